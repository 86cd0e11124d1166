// Package explain implements the command explain: it shows which events of the log make up a member's
// standing, which do not count and why, and whether the result is equal to the standing in Redis.
//
// The promise: explain judges a record as the consumer does. It uses the consumer's decoder, windows,
// duplicates and rules. An event counts if the ledger that was read in the same call as the standing counts
// it; this includes positions in mid-sweep. So the result is exact under traffic.
//
//	Redis   standing and ledger, of one instant ──────────────┐
//	Kafka   dead letters ─▶ which events were refused          │
//	        log ─▶ judge ─▶ account (counts, sum or best/last) ┴▶ answer
package explain

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
	boardrules "github.com/standings/standings/internal/rules"
)

type flags struct {
	window string
	limit  int
	asJSON bool
}

// Command returns the explain command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "explain BOARD PERIOD MEMBER",
		Short: "Show the events behind a member's standing",
		Long: `Reads the log and shows every event of a member for a window: its position, its time, what it
changed, and whether it counted; if not, why (late, early, a duplicate, a dead letter, after the
window became final, not applied yet). Then it compares the result with Redis, and
shows what can explain a difference.

It reads all partitions from the first offset that can hold an event of the window to the
end of the log, applies the given configuration, and compares as of the ledger that was read
together with the standing, so it is exact under traffic. It commits no offsets and changes nothing.
It takes long on a long log; Ctrl-C stops it.

It lists the latest --limit events; counts and sums cover all. Put an id that begins with a dash
after --. Control characters in ids are escaped.

The exit code is 0 if the log and Redis agree, 1 if they differ, and 2 if Kafka or Redis could
not be read, or for an invalid command line or configuration.`,
		Example: `  consumer explain global weekly Kalobi
  consumer explain eu monthly Kalobi --window previous --limit 20 --json`,
		Args: cli.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if f.limit < 0 || f.limit > math.MaxInt32 {
				return cli.Usagef("--limit must be at least 0 (0: all)")
			}
			if err := windows.CheckMember(args[2]); err != nil {
				return err
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			period, err := windows.Check(l.Config, args[0], args[1])
			if err != nil {
				return err
			}
			q := &question{board: args[0], period: period, member: args[2], hash: fold.Hash([]byte(args[2]))}
			err = run(c.Context(), p, l.Config, &f, q)
			if err != nil && !errors.Is(err, errDiffer) {
				return cli.NoAnswer(err)
			}
			return err
		},
	}
	c.Flags().StringVar(&f.window, "window", windows.Current, windows.Help)
	c.Flags().IntVar(&f.limit, "limit", 100, "maximum number of `events`, the latest (0: all)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

// errDiffer is the answer that the log and Redis differ; all other errors mean that there is no answer.
var errDiffer = errors.New("the log and Redis differ")

func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags, q *question) error {
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	settled, err := r.Boards.SettledBorders(ctx)
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	q.settled = new(fold.Borders)
	q.settled.Settle(settled)
	q.period = q.period.By(settled)
	if q.window, err = windows.Find(ctx, r, &q.period, f.window); err != nil {
		return err
	}
	a, err := find(ctx, p, r, q, f.limit)
	if err != nil {
		return err
	}
	a.judge()
	zone := cfg.ZoneOf(q.window.Period)
	if f.asJSON {
		err = cli.WriteJSON(p.Stdout, a.report(zone))
	} else {
		err = a.write(p.Stdout, zone)
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the report: %w", err)
	case a.agree == nil:
		return fmt.Errorf("%w, and a note can explain it", errDiffer)
	case !*a.agree:
		return errDiffer
	}
	return nil
}

// find reads Redis before the log: then the log contains everything that Redis has counted.
func find(ctx context.Context, p *cli.Program, r *app.Reader, q *question, limit int) (*answer, error) {
	cfg := r.Config
	set, err := app.RuleSet(cfg)
	if err != nil {
		return nil, err
	}
	counting, err := app.Counting(set.Text(), cfg)
	if err != nil {
		return nil, err
	}
	a := &answer{lookBack: counting.Duplicates}
	if a.rules, err = ledger.ParseFingerprint(boardrules.Fingerprint(set.Text())); err != nil {
		return nil, err
	}
	if a.held, err = readHeld(ctx, r, q); err != nil {
		return nil, err
	}
	if a.account, err = newAccount(r, q, a.held, limit); err != nil {
		return nil, err
	}
	for _, k := range cfg.Kept() {
		if k.Name == q.window.Period {
			a.retention, a.lateness = k.Retention, cfg.LatenessOf(k)
		}
	}
	l, err := openLogs(p, cfg, a.held)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if a.sources, err = l.sources(ctx, a.held); err != nil {
		return nil, err
	}
	if err := l.begin(ctx, a); err != nil {
		return nil, err
	}
	own := newJudge(q, &counting)
	if err := l.refusals(ctx, a, own); err != nil {
		return nil, err
	}
	return a, l.read(ctx, own, a)
}

// newAccount returns an account with the rule and layout of the board.
func newAccount(r *app.Reader, q *question, h *held, limit int) (*account, error) {
	a := &account{question: q, limit: limit, erased: h.banned == "erased"}
	others, err := r.Config.Rules()
	if err != nil {
		return nil, err
	}
	if rule := others.Of(q.board); rule != nil {
		a.rule, a.fields = *rule, rule.Fields
	} else if a.rule, err = boardrules.Default(r.Config.MaxPoints); err != nil {
		return nil, fmt.Errorf("max_points: %w", err)
	}
	a.layout, _ = r.Boards.Shards()[h.shard].Layout(q.board, string(q.window.Period)) // always found: the board was read with it
	return a, nil
}
