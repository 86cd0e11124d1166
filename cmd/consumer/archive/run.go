package archive

// This file implements run: one pass on demand, under the same lease and fence that replicas use.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// runLease is how long the lease outlives this process if it dies. A replica's lease has the same length.
const runLease = 15 * time.Second

type runFlags struct {
	live   bool
	wait   time.Duration
	asJSON bool
}

func runCommand(p *cli.Program) *cobra.Command {
	f := runFlags{wait: 20 * time.Second}
	c := &cobra.Command{
		Use:   "run",
		Short: "Archive windows now",
		Long: `Copies final windows that are missing to the archive. With --live it also backs up every complete open
window, regardless of archive.interval. It continues what another process had
started.

One process at a time is the leader, and writes the archive. If a replica runs, one of them is the
leader, and archives by itself if archive.url is set for it: this command then does nothing and
reports the leader. A replica that died remains the leader for 15 seconds, less than the default
--wait.

The exit code is 0 if all final windows are archived and, with --live, all complete open windows
have a current backup; 1 if a window is missing or another process is the leader; 2 for an
invalid command line or configuration.`,
		Example: `  consumer archive run
  consumer archive run --live --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.wait < 0 {
				return cli.Usagef("--wait must be at least 0s")
			}
			return f.run(c.Context(), p)
		},
	}
	c.Flags().BoolVar(&f.live, "live", false, "also take backups of open windows")
	c.Flags().Var(cli.Duration(&f.wait), "wait", "maximum time to wait while another process is the leader")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

// runReport is the JSON of run; docs/json.md describes its fields.
type runReport struct {
	Final    finalReport   `json:"final"`
	Backups  *backupReport `json:"backups"` // null without --live
	Seconds  float64       `json:"seconds"`
	Problems []string      `json:"problems"`
}

type finalReport struct {
	Taken    int64 `json:"taken"` // windows
	Rows     int64 `json:"rows"`
	Waiting  int   `json:"waiting"`   // final windows that are not in the archive
	NotFinal int   `json:"not_final"` // windows that accept no more events but are not final yet
}

type backupReport struct {
	Taken      int64 `json:"taken"`
	Rows       int64 `json:"rows"`
	Incomplete int   `json:"incomplete"` // open windows that are incomplete, so that their last backup remains
	Waiting    int   `json:"waiting"`    // complete open windows that could not be copied
}

func (f *runFlags) run(ctx context.Context, p *cli.Program) error {
	l, err := p.Configuration()
	if err != nil {
		return err
	}
	s, err := app.OpenArchive(ctx, l.Config)
	if err != nil {
		return err
	}
	if s == nil {
		return cli.Usagef("archive.url is not set")
	}
	defer func() { _ = s.Close() }() // nothing is in flight any more
	r, err := app.OpenReader(ctx, l.Config)
	if err != nil {
		return err
	}
	defer r.Close()
	fields, err := app.ArchivedFields(l.Config)
	if err != nil {
		return err
	}
	one := &handRun{runFlags: f, store: s, found: runReport{Problems: []string{}}}
	one.show(p)
	one.config = archive.Config{
		Boards: r.Boards, Store: s, Lateness: app.Lateness(l.Config), Zone: app.Zones(l.Config), Fields: fields,
		Progress: func(p archive.Progress) { one.rows.Store(p.Final.Rows + p.Backups.Rows) }, Log: logging.Notes(one.note),
	}
	if f.live {
		one.config.Interval = time.Nanosecond // all backups are due
	}
	began := time.Now()
	err = one.lead(ctx)
	if one.bar != nil {
		one.bar.Stop()
	}
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	one.found.Seconds = time.Since(began).Seconds()
	if f.asJSON {
		err = cli.WriteJSON(p.Stdout, &one.found)
	} else {
		err = terminal.Write(p.Stdout, one.found.text())
	}
	if err == nil && !one.found.all() {
		err = errors.New("some windows are not in the archive")
	}
	return err
}

// handRun is one pass started by an operator.
type handRun struct {
	*runFlags
	config archive.Config
	store  *store.Store
	bar    *terminal.Progress
	rows   atomic.Int64
	note   func(string)
	found  runReport
}

// show reports progress if stderr is a terminal, and sets up notes.
func (h *handRun) show(p *cli.Program) {
	if _, ok := terminal.Width(p.Stderr); ok {
		h.bar = terminal.ShowProgress(p.Stderr, "archiving", "rows", 0, h.rows.Load)
	}
	h.note = func(line string) {
		if h.bar != nil {
			h.bar.Note(line)
			return
		}
		_, _ = fmt.Fprintln(p.Stderr, terminal.OneLine(line)) // a failed write to stderr cannot be reported
	}
}

// lead waits until this process is the leader and then runs one pass. If another process leads until --wait
// is over, the error names it.
func (h *handRun) lead(ctx context.Context) error {
	leading, end := context.WithCancel(ctx)
	defer end()
	var other atomic.Pointer[string]
	waits := time.AfterFunc(max(h.wait, time.Second), end)
	defer waits.Stop()
	var result error
	led := false
	l := jobs.Leader{
		Redis: h.config.Boards.Shards()[0], Owner: jobs.NewOwner(), Length: runLease, Log: zap.NewNop(),
		Other: func(who string) { other.Store(&who) },
		Jobs: func(t jobs.Term) []jobs.Job {
			return []jobs.Job{{Name: "archive", Every: time.Hour, Run: func(ctx context.Context) (time.Duration, error) {
				waits.Stop()
				led = true
				result = app.Fenced(ctx, h.store, h.pass(ctx, store.Fence{Token: t.Token, Owner: t.Owner}))
				if errors.As(result, new(*jobs.FencedError)) {
					waits.Reset(max(h.wait, time.Second)) // this process leads again unless another one does
				} else {
					end() // one pass is enough
				}
				return 0, result
			}}}
		},
	}
	err := l.Run(leading)
	switch {
	case err != nil:
		return err
	case led && result != nil && ctx.Err() == nil && errors.Is(result, context.Canceled):
		return errors.New("this process is no longer the leader; the new one continues")
	case led:
		return result
	case ctx.Err() != nil:
		return ctx.Err()
	case other.Load() != nil:
		return fmt.Errorf("another process is the leader, %s: it archives all windows if archive.url is set for it", terminal.OneLine(*other.Load()))
	}
	return fmt.Errorf("could not get the leader's lease within %s", units.FormatDuration(h.wait))
}

// pass copies all missing windows once. A window that cannot be copied is added to the problems.
func (h *handRun) pass(ctx context.Context, f store.Fence) error {
	if err := h.store.Migrate(ctx); err != nil {
		return err
	}
	if err := h.store.Take(ctx, f); err != nil {
		return err
	}
	archiver := archive.New(h.config)
	if err := archiver.Pass(ctx, f); h.ended(ctx, err) {
		return err
	}
	p := archiver.Reached()
	h.found.Final = finalReport{Taken: p.Final.Windows, Rows: p.Final.Rows, Waiting: p.Waiting, NotFinal: p.NotFinal}
	if h.live {
		h.found.Backups = &backupReport{Taken: p.Backups.Windows, Rows: p.Backups.Rows, Incomplete: p.Incomplete, Waiting: p.Due}
	}
	return nil
}

// ended reports whether err ends the run. Other errors are recorded as problems.
func (h *handRun) ended(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrFenced) {
		return err != nil
	}
	for line := range cli.Lines(err) {
		h.found.Problems = append(h.found.Problems, line)
		h.note(line)
	}
	return false
}

// all reports whether every window that should be in the archive is there.
func (r *runReport) all() bool {
	return len(r.Problems) == 0 && r.Final.Waiting == 0 && (r.Backups == nil || r.Backups.Waiting == 0)
}

func (r *runReport) text() string {
	var text strings.Builder
	count := func(n int64, what string) string { return units.Plural(n, what) }
	fmt.Fprintf(&text, "%s taken, %s", count(r.Final.Taken, "final window"), count(r.Final.Rows, "row"))
	if n := int64(r.Final.Waiting); n > 0 {
		fmt.Fprintf(&text, "; %s not in the archive", count(n, "window"))
	}
	if n := int64(r.Final.NotFinal); n > 0 {
		fmt.Fprintf(&text, "; %s not final yet", count(n, "window"))
	}
	text.WriteString("\n")
	if b := r.Backups; b != nil {
		fmt.Fprintf(&text, "%s taken, %s", count(b.Taken, "backup"), count(b.Rows, "row"))
		if n := int64(b.Incomplete); n > 0 {
			fmt.Fprintf(&text, "; %s not complete", count(n, "window"))
		}
		if n := int64(b.Waiting); n > 0 {
			fmt.Fprintf(&text, "; %s not copied", count(n, "window"))
		}
		text.WriteString("\n")
	}
	return text.String()
}
