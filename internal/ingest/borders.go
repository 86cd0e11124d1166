package ingest

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

// borders holds the settled borders of a process.
type borders struct {
	known   *fold.Borders
	shards  shards
	rules   fold.Rules
	longest int64 // how long a border is needed after its instant, in ms
	log     *zap.Logger

	mu     sync.Mutex
	listed map[periods.Border]int64 // the bounds of listed windows that differ from the settled borders
}

// keptFor is how long a border is kept after the last window that uses it is over; this is longer than the
// window is listed.
const keptFor = 4 * 24 * 3_600_000 // ms

func newBorders(c *Config, all shards) *borders {
	b := &borders{known: new(fold.Borders), shards: all, rules: c.Rules, log: c.Log, listed: map[periods.Border]int64{}}
	for i := range c.Rules.Periods {
		rule := &c.Rules.Periods[i].Rule
		b.longest = max(b.longest, (rule.Length()+c.Retention[rule.Name()]).Milliseconds()+keptFor)
	}
	return b
}

// settle settles borders in every shard, and learns the settled values.
func (b *borders) settle(ctx context.Context, all []fold.Unsettled) error {
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
	b.known.Settle(known)
	return nil
}

// settle settles borders in every shard, and stores the settled values in want.
func (all shards) settle(ctx context.Context, want []ledger.Border) error {
	if len(all) > 1 { // a shard that lost its newest seconds lacks borders that others have
		found := make([][]ledger.Settled, len(all))
		err := all.each(func(i int, s Standings) (err error) {
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
				return &health.Halt{Reason: health.HaltBounds, What: fmt.Sprintf("the border of windows %s is settled at %d ms on the first shard, and at %d%s", want[i].Name, want[i].At, is.At, onShard(shard, all.count())),
					Remedy: "remove it from the hash that ends in :borders on the shard that is wrong (HDEL), and " + health.RebuildRemedy}
			}
		}
	}
	return nil
}

// boundsError reports that a window of a piece has other bounds in Redis: those of its listing or, if it isn't
// listed, those of its settled borders. Nothing of the piece was written.
type boundsError struct {
	field   string
	name    string        // the window's name in the listing
	window  ledger.Window // as it was folded
	listing string        // empty if it isn't listed
	// The bounds in the listing, in Unix ms; 0 if the listing can't be parsed.
	start, end int64
}

func (e *boundsError) Error() string {
	if e.listing == "" {
		return fmt.Sprintf("%s: the borders of the window %s aren't settled at [%d, %d)", e.field, e.name, e.window.Start, e.window.End)
	}
	return fmt.Sprintf("%s: the window %s is listed as [%s], and was folded as [%d, %d)", e.field, e.name, e.listing, e.window.Start, e.window.End)
}

// learn forgets the known borders, so that they are requested again, now with the bounds of the listing. It
// returns a halt if that can't help: the bounds differ by more than time zone rules change.
func (b *borders) learn(e *boundsError) error {
	b.known.Forget()
	if e.listing == "" {
		return nil
	}
	start, end, ok := b.of(&e.window)
	far := max(e.start-e.window.Start, e.window.Start-e.start, e.end-e.window.End, e.window.End-e.end)
	if !ok || far >= periods.MaxShift {
		return b.halt(e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[start], b.listed[end] = e.start, e.end
	return nil
}

// of returns the borders of a window; ok is false if no time zone decides where they are.
func (b *borders) of(w *ledger.Window) (start, end periods.Border, ok bool) {
	for i := range b.rules.Periods {
		if rule := &b.rules.Periods[i].Rule; string(rule.Name()) == w.Period {
			return rule.Borders(w.Name)
		}
	}
	return start, end, false
}

func (*borders) halt(e *boundsError) error {
	return &health.Halt{Reason: health.HaltBounds, What: e.Error(), Remedy: "something else changed the listing or the borders of the window: " + health.RebuildRemedy}
}

// soonAgain is the time within which the same error shows that requesting the borders again didn't help. A
// later error is due to another data loss of Redis.
const soonAgain = 10 * time.Second

// differ handles a boundsError. It returns nil if the worker must fold again by the borders in Redis,
// and a halt if it has already done so and got the same error.
func (p *pipeline) differ(e *boundsError) error {
	text := e.Error()
	again := p.carried.bounds == text && time.Since(p.carried.differed) < soonAgain
	p.carried.bounds, p.carried.differed = text, time.Now()
	if err := p.borders.learn(e); err != nil {
		return err
	}
	if again {
		return p.borders.halt(e)
	}
	p.log.Info("a window has other bounds in Redis: dropping the folded events and reading them again by those bounds", zap.Error(e))
	return nil
}
