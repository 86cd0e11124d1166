package reading

// Which window is meant: by its name, or relative to Redis's clock.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/standings/standings/internal/periods"
)

// Names of windows that are meant relative to Redis's clock. Of a season that is over the current
// one is the last there was.
const (
	Current  = "current"
	Previous = "previous"
)

// Target is a window of a board.
type Target struct {
	Board  string
	Period Period
	Window periods.Window
	Named  string // how it was asked for: Current, Previous, or the window's own name
}

func (t *Target) relative() bool { return t.Named == Current || t.Named == Previous }

// NotFoundError says that there is no such board, period or window, and which there are.
type NotFoundError struct {
	What  string   // board, period or window
	Name  string   // what was asked for
	Why   string   // in a sentence
	There []string // some of those that are
}

func (e *NotFoundError) Error() string { return e.Why }

// Target finds the window that is meant. Its error is a *NotFoundError, or one of Redis, whose
// clock is asked where it wasn't seen for a while.
func (r *Reader) Target(ctx context.Context, board, period, window string) (Target, error) {
	t := Target{Board: board, Named: window}
	var err error
	if t.Period, err = r.Period(board, period); err != nil {
		return t, err
	}
	t.Period.Rule = r.borders.bind(ctx, &t.Period.Rule, r.Boards())
	if !t.relative() { // Redis needn't be asked for its clock
		return r.at(t, time.Time{})
	}
	now, err := r.Now(ctx)
	if err != nil {
		return t, err
	}
	return r.at(t, now)
}

// Period finds a period that a board has. Its error is a *NotFoundError.
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
	return Period{}, &NotFoundError{What: "period", Name: name, Why: fmt.Sprintf("board %s has no period %q", board, name), There: kept}
}

func (r *Reader) checkBoard(board string) error {
	if err := r.CheckBoard(board); err != nil {
		return &NotFoundError{What: "board", Name: board, Why: fmt.Sprintf("%q %v", board, err), There: r.Named}
	}
	if len(r.Named) > 0 && !slices.Contains(r.Named, board) {
		return &NotFoundError{What: "board", Name: board, Why: fmt.Sprintf("there is no board %q", board), There: r.Named}
	}
	return nil
}

// at is the target with the window that is meant at a time.
func (r *Reader) at(t Target, now time.Time) (Target, error) {
	w, err := Meant(&t.Period.Rule, t.Named, now)
	t.Window = w
	return t, err
}

// Meant is the window of a period that Current or Previous means at a time, or the one of the name.
// Its error is a *NotFoundError, unless the time is one that no period has.
func Meant(rule *periods.Rule, name string, now time.Time) (periods.Window, error) {
	if name != Current && name != Previous {
		w, err := rule.Named(name)
		if err != nil {
			return w, &NotFoundError{What: "window", Name: name, Why: fmt.Sprintf("%v, current or previous", err)}
		}
		return w, nil
	}
	w, ok, err := rule.Latest(now.UnixMilli())
	switch {
	case err != nil:
		return w, fmt.Errorf("Redis's clock is at %s: %w", now.UTC().Format(time.RFC3339), err)
	case !ok:
		first, _ := rule.First() // or it would have begun
		return w, &NotFoundError{What: "window", Name: name, Why: fmt.Sprintf("%s hasn't begun: its first window, %s, starts at %s",
			rule.Name(), first.Name, time.UnixMilli(first.Start).UTC().Format(time.RFC3339))}
	case name == Current:
		return w, nil
	}
	before, ok := rule.Previous(w)
	if !ok {
		return w, &NotFoundError{What: "window", Name: name, Why: fmt.Sprintf("there is no %s window before %s", rule.Name(), w.Name)}
	}
	return before, nil
}

// clock is Redis's, by when it was last seen: reading a board tells the time, too, and whoever
// names the current window by a clock that is a little off reads once more.
type clock struct {
	mu   sync.Mutex
	says time.Time
	seen time.Time // by this process's, which may jump; what is measured with it is short
}

// trustedFor is how long the clock is told from when it was last seen.
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

// Now is the clock of Redis's shard 0, within what passes between two of its answers.
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
