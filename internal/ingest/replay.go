package ingest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Replay reads partitions again and adds them to standings of its own, a shadow of the
// live ones. It is a consumer without a group: its workers are the same, but end where
// their endpoint is. It commits no offsets and writes no dead letters.
type Replay struct {
	consumer *Consumer
	watched  []*watched // one a shard
	workers  map[string]*replayWorker
}

// AllShards takes the place of a shard where something is for all of them.
const AllShards = -1

// NewReplay makes a replay. Of a consumer's settings those of the group, of commits and
// of the start aren't used.
func NewReplay(c Config) *Replay {
	r := &Replay{workers: map[string]*replayWorker{}}
	c.Standings = slices.Clone(c.Standings)
	for i, s := range c.Standings {
		w := &watched{Standings: s, at: map[string]ledger.Position{}}
		r.watched, c.Standings[i] = append(r.watched, w), w
	}
	r.consumer = New(c)
	return r
}

// Progress is how many offsets of a partition are in, in every shard, since where it began:
// of a sweep the share that is.
func (r *Replay) Progress(field string, begin int64) int64 {
	least := int64(math.MaxInt64)
	for _, w := range r.watched {
		if w.left {
			continue
		}
		at, ok := w.position(field)
		if !ok {
			return 0
		}
		least = min(least, at.From-begin+int64(float64(at.To-at.From)*(float64(at.Hash)/(1<<64))))
	}
	return least
}

// Leave leaves a shard out of all that is for AllShards from now on: it is through.
func (r *Replay) Leave(shard int) { r.watched[shard].left = true }

// has reports whether what is for a shard, or for AllShards, is for this one.
func (r *Replay) has(shard, this int) bool {
	return shard == this || shard == AllShards && !r.watched[this].left
}

// Refresh reads where the shadow's ledgers are in a shard, or in AllShards. A call whose
// answer was never learned may have been executed, as where To was ended by its context.
func (r *Replay) Refresh(ctx context.Context, shard int) error {
	return r.consumer.shards.each(func(i int, s Standings) error {
		if !r.has(shard, i) {
			return nil
		}
		state, err := r.state(ctx, s)
		if err != nil {
			return err
		}
		all := map[string]ledger.Position{}
		for field, text := range state.Ledger {
			if all[field], err = positionOf(field, text); err != nil {
				return err
			}
		}
		r.watched[i].all(all)
		r.watched[i].looked = true
		return nil
	})
}

// state is a shadow's, once it is known.
func (r *Replay) state(ctx context.Context, of Standings) (state ledger.State, err error) {
	err = retry.ForEver.Do(ctx, r.passes, func() (err error) { state, err = of.State(ctx); return err })
	return state, err
}

// passes reports whether an error of the shadow may pass.
func (r *Replay) passes(err error) bool { return r.consumer.shards.Classify(err) == ledger.Retry }

// Position is how far a partition is in a shard, as far as this replay knows.
func (r *Replay) Position(shard int, field string) ledger.Position {
	at, _ := r.watched[shard].position(field)
	return at
}

// Begin writes into a shard of the shadow where partitions begin.
func (r *Replay) Begin(ctx context.Context, shard int, all ...ledger.StartPosition) error {
	var begun ledger.StartResult
	err := retry.ForEver.Do(ctx, r.passes, func() (err error) { begun, err = r.consumer.shards[shard].Begin(ctx, all); return err })
	if err != nil {
		return err
	}
	switch begun {
	case ledger.Began:
		for _, b := range all {
			r.watched[shard].reached(b.Partition.String(), b.At)
		}
	case ledger.Overtaken: // by a call of our own whose answer never came, if at all
		state, err := r.state(ctx, r.consumer.shards[shard])
		if err != nil {
			return err
		}
		for i := range all {
			field := all[i].Partition.String()
			if found := state.Ledger[field]; found != all[i].At.String() {
				return fmt.Errorf("begin %s at %v: the shadow has %q", field, all[i].At, found)
			}
			r.watched[shard].reached(field, all[i].At)
		}
	default:
		return fmt.Errorf("begin the shadow: unexpected answer %d", begun)
	}
	return nil
}

// To reads every partition that is named from where the shadow stands to the position
// given, all at once within the memory budget: for one shard, or for AllShards, and then none
// of the positions is in a sweep. Of several shards those that are past a position, or in a
// sweep that ends past it, stay where they are. It returns when all have ended: with the first
// error that won't pass, ErrWentBack and the others above among them, or *Halt.
func (r *Replay) To(ctx context.Context, shard int, limits map[string]ledger.Position) error {
	for i, w := range r.watched {
		if !r.has(shard, i) || w.looked {
			continue
		}
		if err := r.Refresh(ctx, i); err != nil {
			return err
		}
	}
	for i, w := range r.watched {
		w.looked = w.looked && !r.has(shard, i)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, field := range slices.Sorted(maps.Keys(limits)) {
		until := r.endpoint(shard, limits[field])
		at, ok := r.positions(shard, field, until)
		if !ok {
			cancel(fmt.Errorf("%s: %w", field, ErrShadowLost))
			break
		}
		if until.reached(at) {
			continue
		}
		w, err := r.worker(field)
		if err != nil {
			cancel(err)
			break
		}
		all.Go(func() {
			if err := w.run(ctx, at, until); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// endpoint is a position as the endpoint of a shard, or of AllShards.
func (r *Replay) endpoint(shard int, at ledger.Position) endpoint {
	until := endsAt(at)
	until.lowest = shard == AllShards && len(r.watched) > 1
	return until
}

// positions are where a partition stands in a shard, or in AllShards, with those beyond all
// that is read that nothing is read for. It is false where one of the others has nothing of it.
func (r *Replay) positions(shard int, field string, until endpoint) (ledger.Positions, bool) {
	all := make(ledger.Positions, len(r.watched))
	for i, w := range r.watched {
		if all[i] = beyond; !r.has(shard, i) {
			continue
		}
		at, ok := w.position(field)
		if !ok {
			return nil, false
		}
		all[i] = until.place(at)
	}
	return all, true
}

// worker is the partition's, the same in every round: it knows how fast Redis is, and rules that
// were met.
func (r *Replay) worker(field string) (*replayWorker, error) {
	if w := r.workers[field]; w != nil {
		return w, nil
	}
	p, err := ledger.ParsePartition(field)
	if err != nil {
		return nil, err
	}
	w := r.consumer.replayWorker(p.Topic, p.Number)
	r.workers[field] = w
	return w, nil
}

// Stats counts what was read and added.
func (r *Replay) Stats() *Stats { return r.consumer.Stats }

// watched are standings of a shard that tell what was added.
type watched struct {
	Standings

	left   bool // see Leave
	looked bool // nothing was sent since its ledger was read

	mu sync.Mutex
	at map[string]ledger.Position
}

func (w *watched) position(field string) (ledger.Position, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.at[field]
	return at, ok
}

func (w *watched) all(at map[string]ledger.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
}

func (w *watched) reached(field string, at ledger.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[field] = at
}

func (w *watched) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := w.Standings.Apply(ctx, p)
	if err == nil && a.Outcome == ledger.Applied {
		w.reached(p.Partition.String(), p.Next)
	}
	return a, took, err
}
