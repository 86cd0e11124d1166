package ban

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// report lists all bans. Its JSON is an interface: fields are never omitted or renamed, and an unknown
// value is null.
type report struct {
	Topic string   `json:"topic"`
	Bans  []listed `json:"bans"`
	// Problem explains why Redis could not be read.
	Problem *string `json:"problem"`
}

type listed struct {
	Member string  `json:"member"`
	Board  *string `json:"board"` // null: all
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	At     string  `json:"at"`    // RFC 3339 with ms, in UTC
	Until  *string `json:"until"` // null: no expiry
	State  string  `json:"state"` // banned, erased, or over (the ban expired)
	// Done reports whether Redis agrees with State; null: unknown.
	Done *bool `json:"done"`
}

// ListCommand returns the bans command for a program.
func ListCommand(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "bans",
		Short: "List bans",
		Long: `Lists the records of kafka.bans_topic: bans, erasures, and expired bans that were not
removed. IN REDIS shows whether a consumer has applied them.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			found := &report{Topic: l.Config.Kafka.BansTopic, Bans: []listed{}}
			v, err := open(c.Context(), p, l.Config, false)
			switch {
			case errors.Is(err, kafkaconn.ErrNoTopic): // no member was ever banned
			case err != nil:
				return err
			default:
				defer v.close()
				v.list(c.Context(), found)
			}
			if f.asJSON {
				return cli.WriteJSON(p.Stdout, found)
			}
			return terminal.Write(p.Stdout, found.text())
		},
	}
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

func (v *view) list(ctx context.Context, to *report) {
	all, err := v.desk.List(ctx)
	if err != nil {
		to.Problem = new(err.Error())
	}
	for _, r := range all {
		l := listed{Member: r.Member, Reason: r.Reason, By: r.By, At: units.TimeMS(r.At.UnixMilli()), State: r.State, Done: r.Done}
		if r.Board != "" {
			l.Board = &r.Board
		}
		if !r.Until.IsZero() {
			l.Until = new(units.TimeMS(r.Until.UnixMilli()))
		}
		to.Bans = append(to.Bans, l)
	}
}

func (r *report) text() string {
	if len(r.Bans) == 0 {
		return fmt.Sprintf("No member is banned in %s.\n", r.Topic)
	}
	var b strings.Builder
	t := terminal.NewTable("MEMBER", "BOARD", "STATE", "SINCE", "UNTIL", "IN REDIS", "BY", "REASON")
	for _, l := range r.Bans {
		board, until, done := "all", "-", "?"
		if l.Board != nil {
			board = *l.Board
		}
		if l.Until != nil {
			until = *l.Until
		}
		if l.Done != nil {
			done = map[bool]string{true: "yes", false: "not yet"}[*l.Done]
		}
		t.Add(terminal.Plain(l.Member), board, l.State, l.At, until, done, terminal.Plain(l.By), terminal.Plain(l.Reason))
	}
	t.Write(&b)
	if r.Problem != nil {
		fmt.Fprintf(&b, "\nRedis could not be read: %s\n", terminal.OneLine(*r.Problem))
	}
	return b.String()
}
