package shards

// This file agrees on the start and end of calendar windows between processes with different time zone data.
//
// The rules of a time zone change, so an upgraded replica computes other bounds for some windows than a replica
// that was not upgraded, or than itself before the upgrade. The border between two windows is therefore settled
// once, in Redis, by the first process that folds an event of either window. All other processes use the
// settled border:
//
//	worker of an old version          Redis                      worker of a new version
//	an event of November
//	  requests its borders ─────────▶ settles its start and end
//	folds, applies                    November is listed
//	                                                             an event of November
//	                                  returns the settled ◀─────   requests its borders
//	                                  borders                    folds by those
//	                                  settles December's end ◀── an event of December, which
//	                                                               starts where November ends
//
// An open window keeps its bounds, later windows follow the new rules, and there is no gap and no overlap. A
// border is in Redis before any window that uses it, and apply.lua opens no window with other bounds. So a
// border that a worker has cached and that Redis has lost with its newest seconds does no harm: the worker
// drops what it has folded and requests the borders again.
//
// With several shards the first shard decides, unless it lacks a border that another shard has.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Borders holds the settled borders of a process.
type Borders struct {
	Known   *fold.Borders
	shards  All
	rules   fold.Rules
	longest int64 // how long a border is needed after its instant, in ms
	log     *zap.Logger

	mu     sync.Mutex
	listed map[periods.Border]int64 // the bounds of listed windows that differ from the settled borders
}

// keptFor is how long a border is kept after the last window that uses it is over; this is longer than the
// window is listed.
const keptFor = 4 * 24 * 3_600_000 // ms

// NewBorders returns borders that are settled in all shards.
func NewBorders(rules fold.Rules, retention map[periods.Period]time.Duration, all All, log *zap.Logger) *Borders {
	b := &Borders{Known: new(fold.Borders), shards: all, rules: rules, log: log, listed: map[periods.Border]int64{}}
	for i := range rules.Periods {
		rule := &rules.Periods[i].Rule
		b.longest = max(b.longest, (rule.Length()+retention[rule.Name()]).Milliseconds()+keptFor)
	}
	return b
}

// Settle settles borders in every shard, and learns the settled values.
func (b *Borders) Settle(ctx context.Context, all []fold.Unsettled) error {
	want := make([]ledger.Border, len(all))
	b.mu.Lock()
	for i, u := range all {
		want[i] = ledger.Border{Name: u.Border.String(), At: u.At, Keep: u.At + periods.MaxShift + b.longest}
		if at, ok := b.listed[u.Border]; ok {
			want[i].At = at
		}
	}
	b.mu.Unlock()
	if err := b.shards.settle(ctx, want); err != nil {
		return err
	}
	known := map[periods.Border]int64{}
	for i, u := range all {
		at := want[i].At
		if max(at-u.At, u.At-at) >= periods.MaxShift {
			return &health.Halt{Reason: health.HaltBounds, What: fmt.Sprintf("the border of windows %v is settled at %d ms, and the calendar here has it at %d", u.Border, at, u.At),
				Remedy: "no change of time zone rules is as large: something else wrote it. Set it right in the hash that ends in :borders on every shard, and " + health.RebuildRemedy}
		}
		if at != u.At {
			b.log.Info("a border of windows is where other time zone data have it", zap.String("border", u.Border.String()), zap.Int64("settled_ms", at), zap.Int64("here_ms", u.At))
		}
		known[u.Border] = at
	}
	b.Known.Settle(known)
	return nil
}

// settle settles borders in every shard, and stores the settled values in want.
func (all All) settle(ctx context.Context, want []ledger.Border) error {
	if len(all) > 1 { // a shard that lost its newest seconds lacks borders that others have
		found := make([][]ledger.Settled, len(all))
		err := all.Each(func(i int, s Standings) (err error) {
			found[i], err = s.Settle(ctx, want, true)
			return err
		})
		if err != nil {
			return err
		}
		for i := range want {
			for _, f := range found {
				if f[i].OK {
					want[i].At = f[i].At
					break
				}
			}
		}
	}
	for shard, s := range all {
		settled, err := s.Settle(ctx, want, false)
		if err != nil {
			return err
		}
		for i, is := range settled {
			switch {
			case !is.OK: // over: no event counts in its windows
			case shard == 0:
				want[i].At = is.At
			case is.At != want[i].At:
				return &health.Halt{Reason: health.HaltBounds, What: fmt.Sprintf("the border of windows %s is settled at %d ms on the first shard, and at %d%s", want[i].Name, want[i].At, is.At, On(shard, all.Count())),
					Remedy: "remove it from the hash that ends in :borders on the shard that is wrong (HDEL), and " + health.RebuildRemedy}
			}
		}
	}
	return nil
}

// BoundsError reports that a window of a piece has other bounds in Redis: those of its listing or, if it isn't
// listed, those of its settled borders. Nothing of the piece was written.
type BoundsError struct {
	Field   string
	Name    string        // the window's name in the listing
	Window  ledger.Window // as it was folded
	Listing string        // empty if it isn't listed
	// The bounds in the listing, in Unix ms; 0 if the listing can't be parsed.
	Start, End int64
}

func (e *BoundsError) Error() string {
	if e.Listing == "" {
		return fmt.Sprintf("%s: the borders of the window %s aren't settled at [%d, %d)", e.Field, e.Name, e.Window.Start, e.Window.End)
	}
	return fmt.Sprintf("%s: the window %s is listed as [%s], and was folded as [%d, %d)", e.Field, e.Name, e.Listing, e.Window.Start, e.Window.End)
}

// Learn forgets the known borders, so that they are requested again, now with the bounds of the listing. It
// returns a halt if that can't help: the bounds differ by more than time zone rules change.
func (b *Borders) Learn(e *BoundsError) error {
	b.Known.Forget()
	if e.Listing == "" {
		return nil
	}
	start, end, ok := b.of(&e.Window)
	far := max(e.Start-e.Window.Start, e.Window.Start-e.Start, e.End-e.Window.End, e.Window.End-e.End)
	if !ok || far >= periods.MaxShift {
		return b.Halt(e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[start], b.listed[end] = e.Start, e.End
	return nil
}

// of returns the borders of a window; ok is false if no time zone decides where they are.
func (b *Borders) of(w *ledger.Window) (start, end periods.Border, ok bool) {
	for i := range b.rules.Periods {
		if rule := &b.rules.Periods[i].Rule; string(rule.Name()) == w.Period {
			return rule.Borders(w.Name)
		}
	}
	return start, end, false
}

// Halt returns the halt for bounds that asking for the borders again does not explain.
func (*Borders) Halt(e *BoundsError) error {
	return &health.Halt{Reason: health.HaltBounds, What: e.Error(), Remedy: "something else changed the listing or the borders of the window: " + health.RebuildRemedy}
}
