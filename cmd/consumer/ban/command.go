// Package ban implements the commands ban, unban, bans and erase. They publish to the bans topic and wait
// until a consumer has applied the change to Redis. They do not write to Redis themselves.
package ban

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

type flags struct {
	board, reason, until, by string
	wait                     time.Duration
	yes, asJSON              bool
}

const waitLong = `The command records it in kafka.bans_topic, and waits up to --wait (10s) until a consumer has
applied it. If that takes longer it is applied later, once a consumer runs. The exit code
is 0 if it is recorded.`

// Command returns the ban command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "ban MEMBER --reason WHY",
		Short: "Ban a member from all boards or one",
		Long: `Hides a member from all windows of all boards, or of one with --board, including from readers of
the sorted sets. Their events still count, hidden. --until sets when the ban expires: a
time (RFC 3339), or a duration from now.

` + waitLong,
		Example: `  consumer ban u42 --reason 'aimbot, case 1234'
  consumer ban u42 --board eu --reason smurfing --until 7d`,
		Args: cli.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return publishing(c.Context(), p, &f, args[0], func(ctx context.Context, v *view, k bans.Key) (*outcome, error) {
				r, err := f.record(ctx, v, k)
				if err != nil {
					return nil, err
				}
				if err := v.publisher.Put(ctx, r); err != nil {
					return nil, err
				}
				o := &outcome{State: bans.StateBanned}
				if !r.Until.IsZero() {
					o.Until = new(units.TimeMS(r.Until.UnixMilli()))
				}
				return o, nil
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.board, "board", "", "only on this `board`")
	c.Flags().StringVar(&f.reason, "reason", "", "`reason` to record")
	c.Flags().StringVar(&f.until, "until", "", "expiry: a `time` such as 2026-12-01T00:00:00Z, or a duration from now such as 12h or 7d")
	complete.Flags(c, p)
	return c
}

// UnbanCommand returns the unban command for a program.
func UnbanCommand(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "unban MEMBER",
		Short: "Remove a ban",
		Long: `Removes a member's ban: the one on all boards or, with --board, the one on that board. They are
independent.

` + waitLong,
		Args: cli.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return publishing(c.Context(), p, &f, args[0], func(ctx context.Context, v *view, k bans.Key) (*outcome, error) {
				found, err := v.publisher.Remove(ctx, k)
				switch {
				case err != nil:
					return nil, err
				case !found:
					return nil, fmt.Errorf("there is no ban %s for %s; see \"consumer bans\"", where(k), terminal.Plain(k.Member))
				}
				return &outcome{State: "shown"}, nil
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.board, "board", "", "only on this `board`")
	complete.Flags(c, p)
	return c
}

// EraseCommand returns the erase command for a program.
func EraseCommand(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "erase MEMBER",
		Short: "Erase a member permanently",
		Long: `Removes a member's standings from all boards and windows, and counts none of their events any more, not
even in a replay. This is irreversible; you confirm it by typing the member's id. Their
events stay in the topic until Kafka deletes them, and their id stays in
kafka.bans_topic.

` + waitLong,
		Args: cli.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !f.yes && !p.Interactive {
				return cli.Usagef("no terminal for the confirmation: use --yes")
			}
			return publishing(c.Context(), p, &f, args[0], func(ctx context.Context, v *view, k bans.Key) (*outcome, error) {
				if !f.yes {
					if err := ask(ctx, p, k.Member); err != nil {
						return nil, err
					}
				}
				f.reason = cmp.Or(f.reason, "erased")
				r, err := f.record(ctx, v, k)
				if err != nil {
					return nil, err
				}
				r.Erased = true
				if err := v.publisher.Put(ctx, r); err != nil {
					return nil, err
				}
				return &outcome{State: bans.StateErased}, nil
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.reason, "reason", "", "`reason` to record")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return c
}

func (f *flags) add(c *cobra.Command) {
	f.wait = 10 * time.Second
	c.Flags().StringVar(&f.by, "by", "", "`author` to record (default: the user of this machine)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	c.Flags().Var(cli.Duration(&f.wait), "wait", "maximum time to wait until a consumer has applied it")
}

// record returns the ban that the flags describe.
func (f *flags) record(ctx context.Context, v *view, k bans.Key) (*bans.Record, error) {
	now := v.desk.Now(ctx)
	r := &bans.Record{Key: k, Reason: f.reason, By: cmp.Or(f.by, thisUser()), At: now}
	if f.until != "" {
		until, err := parseUntil(f.until, now)
		if err != nil {
			return nil, err
		}
		if r.Until = until; !until.After(now) {
			return nil, cli.Usagef("--until %s is in the past", f.until)
		}
	}
	if err := r.Check(); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return r, nil
}

// parseUntil parses an expiry: a time (RFC 3339), or a duration that it adds to now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		return time.Time{}, cli.Usagef("--until %s must be a time such as 2026-12-01T00:00:00Z, or a duration from now such as 12h or 7d", text)
	}
	return now.Add(d), nil
}

func thisUser() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func where(k bans.Key) string {
	if k.Board == "" {
		return "on all boards"
	}
	return "on board " + k.Board
}

// publishing checks the member and the board, opens the topic, publishes, and waits until a consumer has
// applied the record to Redis.
func publishing(ctx context.Context, p *cli.Program, f *flags, member string, publish func(context.Context, *view, bans.Key) (*outcome, error)) error {
	l, err := p.Configuration()
	if err != nil {
		return err
	}
	k, err := bans.ParseKey(f.board + ":" + member)
	if err == nil && f.board != "" {
		err = config.CheckBoard(f.board)
	}
	if err != nil {
		return cli.Usagef("%w", err)
	}
	v, err := open(ctx, p, l.Config, true)
	if err != nil {
		return err
	}
	defer v.close()
	o, err := publish(ctx, v, k)
	if err != nil {
		return v.explain(ctx, err)
	}
	o.Topic, o.Member = v.cfg.Kafka.BansTopic, k.Member
	if k.Board != "" {
		o.Board = &k.Board
	}
	if why := v.await(ctx, k, f.wait); why != nil {
		o.Problem = new(why.Error())
	}
	if o.Done = o.Problem == nil; f.asJSON {
		return cli.WriteJSON(p.Stdout, o)
	}
	return terminal.Write(p.Stdout, o.text(k))
}

// outcome is the recorded change. Its JSON is an interface: fields are never omitted or renamed.
type outcome struct {
	Topic  string  `json:"topic"`
	Member string  `json:"member"`
	Board  *string `json:"board"` // null: all
	State  string  `json:"state"` // banned, shown or erased
	Until  *string `json:"until"` // RFC 3339 with ms, in UTC; null: no expiry
	// Done reports whether Redis agrees with State. If it does not yet, or if that is unknown, Problem
	// explains why.
	Done    bool    `json:"done"`
	Problem *string `json:"problem"`
}

func (o *outcome) text(k bans.Key) string {
	said := terminal.Plain(k.Member)
	switch o.State {
	case "banned":
		said += " is banned " + where(k)
	case "erased":
		said += " is erased"
	default:
		said += " is no longer banned " + where(k)
	}
	if o.Until != nil {
		said += " until " + *o.Until
	}
	if o.Problem != nil {
		return fmt.Sprintf("%s: recorded. %s.\n", said, *o.Problem)
	}
	return said + ".\n"
}

func ask(ctx context.Context, p *cli.Program, member string) error {
	switch err := p.Ask(ctx, fmt.Sprintf("This is irreversible. To erase %s, type the id: ", terminal.Plain(member)), member); {
	case errors.Is(err, cli.ErrNotTyped):
		return fmt.Errorf("the input is not %s: nothing was erased", terminal.Plain(member))
	case err != nil:
		return errors.New("interrupted: nothing was erased")
	}
	return nil
}
