package shadow

// An exact comparison of the live boards with a rebuild's shadow, while both are written.
//
// A comparison has two steps. The first step pages through both copies without a hold, and remembers the
// members that differ. The second step reads again the members that pieces of the shadow touched since the
// first step began. It runs under the hold, when both ledgers are equal and no piece is in flight, so its
// result is exact. Proof:
//
// Let the first step begin at t. Consider a member that was compared after t and that no piece of the
// shadow has touched since t. The shadow's ledger is never past the live one, so at t the live boards had
// every event that the shadow had. The ledgers are equal now, so every event that the live boards had in
// excess at t, or received since t, reached the shadow after t. None of these events belongs to the member, since
// no piece touched it. So neither of its two scores has changed since t, and the comparison is still valid.
//
// (If Redis was rolled back, the shadow's ledger may be past the live one. The ledgers then differ until
// the rebuild, and its comparison, start again.)
//
// Apply notes a piece after its call has returned. A step that runs between the execution of the script and
// the note may or may not see the piece's scores; the next step reads those members again.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Comparison is the difference between the live boards and a rebuild's. It is not safe for concurrent use.
type Comparison struct {
	r      *Rebuild
	choice Choice
	bound  int
	window map[string]*comparedWindow // by listing
	size   int                        // number of members known to differ
	exact  bool
}

type comparedWindow struct {
	Planned

	members map[string][2]string // members that differ: live score, rebuilt score
}

// Compare pages through the windows that choice replaces, live and rebuilt, and pauses between calls. Every
// member that the shadow has not caught up with differs, so the caller first brings the shadow close to the
// live ledger. The comparison records at most bound members that differ. A rebuild may run one comparison
// at a time. Compare calls progress, which may be nil, for each window. Like Update, it retries transient
// errors.
func (r *Rebuild) Compare(ctx context.Context, choice Choice, bound int, pause time.Duration, progress func(done, all int)) (*Comparison, error) {
	c := &Comparison{r: r, choice: choice, bound: bound, window: map[string]*comparedWindow{}, exact: true}
	r.shadow.touched.Store(newTouched())
	if err := c.compare(ctx, pause, progress); err != nil {
		r.shadow.touched.Store(nil)
		return nil, fmt.Errorf("compare the boards of %q with the rebuilt ones: %w", r.live.Prefix(), err)
	}
	return c, nil
}

func (c *Comparison) compare(ctx context.Context, pause time.Duration, progress func(done, all int)) error {
	if _, err := c.r.takeBans(ctx); err != nil {
		return err
	}
	if err := c.plan(ctx); err != nil {
		return err
	}
	done := 0
	for _, w := range c.sorted() {
		if err := c.of(w).Scan(ctx, pause, w.keep(c)); err != nil {
			return err
		}
		if done++; progress != nil {
			progress(done, len(c.window))
		}
	}
	return nil
}

func (c *Comparison) of(w *comparedWindow) ranking.Sets {
	layout, _ := c.r.live.Layout(w.Board, w.Period)
	return ranking.Sets{
		Store: c.r.live, Window: w.Window, Retry: Retry, Fields: c.r.live.Fields(w.Board),
		A: ranking.Set{Key: c.r.live.Keys().Window(&w.Window), Layout: layout, Foreign: w.otherRule},
		B: ranking.Set{Key: c.r.shadow.Keys().Window(&w.Window), Layout: layout},
	}
}

// plan updates the compared windows to those that exist now.
func (c *Comparison) plan(ctx context.Context) error {
	var p *Plan
	if err := Retry(ctx, func() (err error) { p, err = c.r.plan(ctx, c.choice); return err }); err != nil {
		return err
	}
	for _, w := range p.Windows {
		name := w.Listing()
		known := c.window[name]
		switch {
		case w.Action != Replaced && w.Action != Dropped:
			if known != nil {
				c.size -= len(known.members)
				delete(c.window, name)
			}
		case known != nil:
			known.Planned = w
		default:
			c.window[name] = &comparedWindow{w, map[string][2]string{}}
		}
	}
	return nil
}

// keep returns a function that records a member that differs.
func (w *comparedWindow) keep(c *Comparison) func(member, live, rebuilt string) error {
	return func(member, live, rebuilt string) error {
		if _, known := w.members[member]; !known {
			if c.size >= c.bound {
				c.exact = false
				return nil
			}
			c.size++
		}
		w.members[member] = [2]string{live, rebuilt}
		return nil
	}
}

// Update compares again the members that were touched since Compare began or Update was last called. Under
// the hold, with equal ledgers and no call to the shadow in flight, it makes the comparison exact. Earlier
// calls leave less work for that one. After an error the next call compares the same members again.
func (c *Comparison) Update(ctx context.Context) error {
	t := c.r.shadow.touched.Load()
	if t == nil {
		return ranking.Faultf("compare the boards of %q with the rebuilt ones: the comparison is over", c.r.live.Prefix())
	}
	if err := c.update(ctx, t); err != nil {
		return fmt.Errorf("compare the boards of %q with the rebuilt ones: %w", c.r.live.Prefix(), err)
	}
	return nil
}

func (c *Comparison) update(ctx context.Context, t *touched) (err error) {
	windows, over := t.take()
	c.exact = c.exact && !over
	defer func() {
		if err != nil { // for example, the hold has lapsed
			t.again(windows)
		}
	}()
	if err := c.plan(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		w, members := c.window[name], windows[name]
		if w == nil {
			continue
		}
		for member := range members {
			if _, known := w.members[member]; known {
				delete(w.members, member)
				c.size--
			}
		}
		if err := c.of(w).Members(ctx, slices.Sorted(maps.Keys(members)), w.keep(c)); err != nil {
			return err
		}
	}
	return nil
}

// Exact reports whether the comparison is complete: no more members differ than bound, and no more were
// touched than can be recorded.
func (c *Comparison) Exact() bool { return c.exact }

// WindowDifference counts the standings of a window that differ.
type WindowDifference struct {
	Planned

	Differ int // members: the two counts below, and members with other points or another time
	OnlyA  int // members that only the live board has
	OnlyB  int // members that only the rebuilt board has
}

// Windows returns the compared windows by board, period and start.
func (c *Comparison) Windows() []WindowDifference {
	var all []WindowDifference
	for _, w := range c.sorted() {
		d := WindowDifference{Planned: w.Planned, Differ: len(w.members)}
		for _, scores := range w.members {
			switch {
			case scores[1] == "":
				d.OnlyA++
			case scores[0] == "":
				d.OnlyB++
			}
		}
		all = append(all, d)
	}
	return all
}

func (c *Comparison) sorted() []*comparedWindow {
	return slices.SortedFunc(maps.Values(c.window), func(a, b *comparedWindow) int { return a.Compare(b.Window) })
}

// Differences returns the first limit standings that differ, by window and member. A is the live board, B
// the rebuilt one.
func (c *Comparison) Differences(limit int) ([]ranking.Difference, error) {
	var all []ranking.Difference
	for _, w := range c.sorted() {
		sets := c.of(w)
		for _, member := range slices.Sorted(maps.Keys(w.members)) {
			if len(all) >= limit {
				return all, nil
			}
			d, err := sets.Difference(member, w.members[member][0], w.members[member][1])
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	return all, nil
}
