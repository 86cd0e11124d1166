package reading

// The requested window: by its name, or relative to Redis's clock.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/standings/standings/internal/periods"
)

// Names of windows relative to Redis's clock. Between seasons, current is the last season that has started.
const (
	Current  = "current"
	Previous = "previous"
)

// Target is a window of a board.
type Target struct {
	Board  string
	Period Period
	Window periods.Window
	Named  string // the requested name: Current, Previous, or the window's own name
}

func (t *Target) relative() bool { return t.Named == Current || t.Named == Previous }

// NotFoundError reports an unknown board, period or window, and names valid ones.
type NotFoundError struct {
	What  string   // board, period or window
	Why   string   // the reason
	Use   string   // the valid names, if There does not have them
	There []string // some valid names
}

func (e *NotFoundError) Error() string {
	if e.Use == "" {
		return e.Why
	}
	return e.Why + ": use " + e.Use
}

// Sentences returns the error as sentences.
func (e *NotFoundError) Sentences() string {
	text := strings.ToUpper(e.Why[:1]) + e.Why[1:]
	if e.Use != "" {
		text += ". Use " + e.Use
	}
	return text
}

// Target finds the requested window. The error is a *NotFoundError, or an error of Redis if its clock had to be
// read.
func (r *Reader) Target(ctx context.Context, board, period, window string) (Target, error) {
	t := Target{Board: board, Named: window}
	var err error
	if t.Period, err = r.Period(board, period); err != nil {
		return t, err
	}
	t.Period.Rule = r.borders.bind(ctx, &t.Period.Rule, r.Boards())
	if !t.relative() { // the clock is not needed
		return r.at(t, time.Time{})
	}
	now, err := r.Now(ctx)
	if err != nil {
		return t, err
	}
	return r.at(t, now)
}

// Period finds a board's period by name. The error is a *NotFoundError.
func (r *Reader) Period(board, name string) (Period, error) {
	if err := r.checkBoard(board); err != nil {
		return Period{}, err
	}
	var kept []string
	for _, p := range r.Periods {
		switch is := p.Rule.Name(); {
		case !r.Has(board, is):
		case string(is) == name:
			return p, nil
		default:
			kept = append(kept, string(is))
		}
	}
	return Period{}, &NotFoundError{What: "period", Why: fmt.Sprintf("board %s has no period %s", board, quoted(name)), There: kept}
}

func (r *Reader) checkBoard(board string) error {
	if err := r.CheckBoard(board); err != nil {
		return &NotFoundError{What: "board", Why: fmt.Sprintf("%s %v", quoted(board), err), There: r.Named}
	}
	if len(r.Named) > 0 && !slices.Contains(r.Named, board) {
		return &NotFoundError{What: "board", Why: "unknown board " + quoted(board), There: r.Named}
	}
	return nil
}

// at returns the target with the window that its name means at a time.
func (r *Reader) at(t Target, now time.Time) (Target, error) {
	w, err := Meant(&t.Period.Rule, t.Named, now)
	t.Window = w
	return t, err
}

// Meant returns the window of a period that a name means at a time: Current, Previous or a window's own name. The
// error is a *NotFoundError, except for a time that no period covers.
func Meant(rule *periods.Rule, name string, now time.Time) (periods.Window, error) {
	if name != Current && name != Previous {
		w, err := rule.Named(name)
		if err != nil {
			return w, unknownWindow(rule.Name(), name, errors.Unwrap(err))
		}
		return w, nil
	}
	w, ok, err := rule.Latest(now.UnixMilli())
	switch {
	case err != nil:
		return w, fmt.Errorf("Redis's clock is at %s: %w", now.UTC().Format(time.RFC3339), err)
	case !ok:
		first, _ := rule.First() // !ok means that the period has not started yet
		return w, &NotFoundError{What: "window", Why: fmt.Sprintf("the period %s has not begun: its first window, %s, starts at %s",
			rule.Name(), first.Name, time.UnixMilli(first.Start).UTC().Format(time.RFC3339))}
	case name == Current:
		return w, nil
	}
	before, ok := rule.Previous(w)
	if !ok {
		return w, &NotFoundError{What: "window", Why: fmt.Sprintf("there is no %s window before %s", rule.Name(), w.Name)}
	}
	return before, nil
}

// units are the names of a window of the periods that have one.
var units = map[periods.Period]string{
	periods.Daily: "day", periods.Weekly: "week", periods.Monthly: "month", periods.Quarterly: "quarter", periods.Yearly: "year",
}

// unknownWindow returns the error for a name that no window has. why is a reason, a name to use, or both, such as:
// weeks start on sunday: use 2026-11-15.
func unknownWindow(p periods.Period, name string, why error) error {
	e := &NotFoundError{What: "window", Why: "unknown " + cmp.Or(units[p], string(p)+" window") + " " + quoted(name), Use: "current or previous"}
	reason, use, _ := strings.Cut(": "+why.Error(), ": use ")
	e.Why += reason
	if use != "" {
		e.Use = use + ", current or previous"
	}
	return e
}

// quoted returns a requested name for a message: as it is if it has only letters, digits and -._:, else quoted.
func quoted(name string) string {
	odd := func(c rune) bool {
		return !strings.ContainsRune("-._:", c) && (c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c))
	}
	if len(name) > 64 {
		return fmt.Sprintf("%+q…", name[:64])
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		return fmt.Sprintf("%+q", name)
	}
	return name
}

// clock estimates Redis's clock from its last known value. Each read of a board returns the time, and a reader
// that named the wrong current window reads again.
type clock struct {
	mu   sync.Mutex
	says time.Time
	seen time.Time // by this process's clock, which may jump; the interval measured is short
}

// trustedFor is how long the estimate is used after a value was received.
const trustedFor = 10 * time.Second

func (c *clock) is(says time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says, c.seen = says, time.Now()
}

func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.seen)
	return c.says.Add(since), !c.seen.IsZero() && since < trustedFor
}

// Now returns the time of Redis's shard 0, to within the delay of one reply.
func (r *Reader) Now(ctx context.Context) (time.Time, error) {
	if now, ok := r.clock.now(); ok {
		return now, nil
	}
	now, err := r.Boards().Now(ctx)
	if err != nil {
		return now, err
	}
	r.clock.is(now)
	return now, nil
}
