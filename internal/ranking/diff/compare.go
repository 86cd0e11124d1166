package diff

// One window compared.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

const looksAgain = 5 // at members that differ, while traffic goes on

// lookPause is waited for before each of them. Tests wait shorter.
var lookPause = 300 * time.Millisecond

// compare reads a window of both sides. What differs is asked for again, both sides at
// once: a member whose events come to one side a moment later than to the other then
// agrees. What was read is exact if all ledgers stood at the same positions before and
// after, since no score changes without them.
func (d *Prefixes) compare(ctx context.Context, w *Window) error {
	c := d.sets(w)
	before, err := d.same(ctx)
	if err != nil {
		return err
	}
	differ := map[string]ranking.Difference{}
	note := func(member, a, b string) error {
		one, err := ranking.Sets{Window: w.Window, Fields: w.fields, A: ranking.Set{Layout: w.a}, B: ranking.Set{Layout: w.b}}.Difference(member, a, b)
		if err != nil || kindOf(one.A, one.B, w.a, w.b, w.End) == 0 {
			return err
		}
		if len(differ) >= d.Bound {
			w.More = true
			return nil
		}
		differ[member] = one
		return nil
	}
	if err := c.scan(ctx, d.Pause, note); err != nil {
		return err
	}
	after, err := d.same(ctx)
	if err != nil {
		return err
	}
	w.Exact = before != "" && before == after
	for look := 0; !w.Exact && len(differ) > 0 && look < looksAgain; look++ {
		if err := retry.Sleep(ctx, lookPause); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(differ))
		clear(differ)
		if err := c.members(ctx, names, note); err != nil {
			return err
		}
	}
	return d.report(w, differ)
}

// each receives a member's scores on both sides as Redis writes them, empty where it isn't.
type each func(member, a, b string) error

// sets are the sorted sets of a window, of all shards of both sides.
type sets interface {
	// scan gives every member whose scores differ, as ranking.Sets.Scan does; it may give
	// others, too.
	scan(ctx context.Context, pause time.Duration, to each) error
	// members gives some members by their names, likewise.
	members(ctx context.Context, names []string, to each) error
}

func (d *Prefixes) sets(w *Window) sets {
	if d.A.Shards == d.B.Shards {
		return pairs(d, w)
	}
	return &apart{window: w.Window, alike: w.a == w.b, a: d.A, b: d.B}
}
