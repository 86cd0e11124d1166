package shadow

// The live boards compared with a rebuild's shadow, exactly, while both are written.
//
// It is done in two steps. The first pages through both, without a hold, and keeps the
// members that differ. The second asks again for the members that the shadow's pieces
// touched since the first began; done under the hold, when both ledgers stand at the same
// positions and no piece is on its way, what differs then, differs. The argument:
//
// Let a member's scores have been compared at some moment after the first step began at t,
// and let no piece of the shadow have touched it since t. The shadow's ledger is never past
// the live one. So at t the live boards had every event that the shadow had, and each that
// they got since, or had more at t, is one that the shadow got since t, too: it stands now
// where they do. If it got none of this member since t, they got none either. Both scores
// are what they were when they were compared.
//
// (Where Redis went back in time and the live ledger with it, the shadow's may be past it.
// Then ledgers differ until the rebuild begins anew, and its comparison with it.)
//
// A piece is noted when its call has returned: a step between its execution and that may
// see its scores or not, and the step after notices it.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Comparison is what differs between the live boards and a rebuild's. It isn't safe for
// concurrent use.
type Comparison struct {
	r      *Rebuild
	choice Choice
	bound  int
	window map[string]*comparedWindow // by listing
	size   int                        // members that are known to differ
	exact  bool
}

type comparedWindow struct {
	Planned

	members map[string][2]string // those that differ: scores, live and rebuilt
}

// Compare pages through the windows that a choice replaces, live and rebuilt, waiting for
// pause between two calls. A shadow that is behind differs wherever it is, so it is called
// close to the live ledger. It keeps bound members that differ, at most. One comparison of
// a rebuild is under way at a time. progress, which may be nil, is called for each window.
// It waits for what passes, as Update does.
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

// plan takes in the windows that there are by now.
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

// keep remembers a member if it differs.
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

// Update asks again for what was touched since Compare began, or Update was called last.
// Under the hold, with equal ledgers and no call to the shadow under way, it makes the
// comparison exact; called now and then before, it leaves little to be done there. After an
// error the next one asks for all of it.
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
		if err != nil { // as where the hold is over
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

// Exact reports whether nothing had to be left out: neither more members that differ than
// the bound, nor more that were touched than can be remembered.
func (c *Comparison) Exact() bool { return c.exact }

// WindowDifference is how many standings of a window differ.
type WindowDifference struct {
	Planned

	Differ int // members: those that follow, and those with other points or another time
	OnlyA  int // members that only the live board has
	OnlyB  int // members that only the rebuilt one has
}

// Windows are those that were compared, by board, period and start.
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

// Differences are the first so many standings that differ, by window and member: A is the
// live board, B the rebuilt one.
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
