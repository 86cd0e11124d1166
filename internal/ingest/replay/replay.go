// Package replay reads partitions again, into standings of its own, up to given positions of the live ledger. A
// rebuild uses it. The work itself is done by the workers of a consumer (see ingest.NewReplay), whose readings end at an
// Endpoint.
package replay

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Replay reads partitions again and adds them to its own standings, a shadow of the live ones. It is a consumer
// without a group: its workers use the same pipeline, but end at their endpoints. It commits no offsets and
// writes no dead letters.
type Replay struct {
	consumer Consumer
	shards   shards.All
	watched  []*watched // one per shard
	workers  map[string]RunWorker
}

// Consumer is what a Replay requires of the consumer that does its work.
type Consumer struct {
	Topics   []string
	Group    string
	Stats    *counts.Stats
	Resolver func(topic string) *locate.Resolver
	// NewWorker returns the function that reads a partition from the shards' positions to an endpoint.
	NewWorker func(p ledger.Partition) RunWorker
}

// RunWorker reads a partition from the shards' positions to an endpoint.
type RunWorker func(ctx context.Context, at ledger.Positions, until Endpoint) error

// New returns a replay into standings, one per shard. consumer receives the standings to which its workers
// must write.
func New(into []shards.Standings, consumer func(into []shards.Standings) Consumer) *Replay {
	r := &Replay{workers: map[string]RunWorker{}}
	into = slices.Clone(into)
	for i, s := range into {
		w := &watched{Standings: s, at: map[string]ledger.Position{}}
		r.watched, into[i] = append(r.watched, w), w
	}
	r.consumer, r.shards = consumer(into), shards.Tagged(into)
	return r
}

// AllShards selects all shards, in place of a shard.
const AllShards = -1

// Progress returns how many offsets of a partition were applied, in every shard, since begin. For a sweep in
// progress, it counts the applied share of the sweep's offsets.
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

// Leave excludes a shard from AllShards from now on, because it is complete.
func (r *Replay) Leave(shard int) { r.watched[shard].left = true }

// has reports whether shard, which may be AllShards, includes this one.
func (r *Replay) has(shard, this int) bool {
	return shard == this || shard == AllShards && !r.watched[this].left
}

// Refresh reads the positions of the shadow's ledgers in a shard, or in AllShards. A call whose answer was lost
// may have been executed, for example if its context ended To.
func (r *Replay) Refresh(ctx context.Context, shard int) error {
	return r.shards.Each(func(i int, s shards.Standings) error {
		if !r.has(shard, i) {
			return nil
		}
		state, err := r.state(ctx, s)
		if err != nil {
			return err
		}
		all := map[string]ledger.Position{}
		for field, text := range state.Ledger {
			if all[field], err = PositionOf(field, text); err != nil {
				return err
			}
		}
		r.watched[i].all(all)
		r.watched[i].looked = true
		return nil
	})
}

// state returns a shadow's state. It retries transient errors.
func (r *Replay) state(ctx context.Context, of shards.Standings) (state ledger.State, err error) {
	err = retry.ForEver.Do(ctx, r.passes, func() (err error) { state, err = of.State(ctx); return err })
	return state, err
}

// passes reports whether an error of the shadow may be transient.
func (r *Replay) passes(err error) bool { return r.shards.Classify(err) == ledger.Retry }

// Position returns the position of a partition in a shard, as far as this replay knows it.
func (r *Replay) Position(shard int, field string) ledger.Position {
	at, _ := r.watched[shard].position(field)
	return at
}

// Begin writes the start positions of partitions to a shard of the shadow.
func (r *Replay) Begin(ctx context.Context, shard int, all ...ledger.StartPosition) error {
	var begun ledger.StartResult
	err := retry.ForEver.Do(ctx, r.passes, func() (err error) { begun, err = r.shards[shard].Begin(ctx, all); return err })
	if err != nil {
		return err
	}
	switch begun {
	case ledger.Began:
		for _, b := range all {
			r.watched[shard].reached(b.Partition.String(), b.At)
		}
	case ledger.Overtaken: // possibly by a call of this replay whose answer was lost
		state, err := r.state(ctx, r.shards[shard])
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

// To reads every partition in limits from the shadow's position to the given position, all concurrently within
// the memory budget. It does so for one shard, or for AllShards; then no given position may be in a sweep. A
// shard that is past a position, or in a sweep that ends past it, stays where it is if there are several. To
// returns when all partitions have ended, with the first permanent error: for example ErrWentBack and the other
// errors of this package, or a *Halt.
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
		if until.Reached(at) {
			continue
		}
		w, err := r.worker(field)
		if err != nil {
			cancel(err)
			break
		}
		all.Go(func() {
			if err := w(ctx, at, until); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// endpoint returns a position as the endpoint of a shard, or of AllShards.
func (r *Replay) endpoint(shard int, at ledger.Position) Endpoint {
	until := endsAt(at)
	until.Lowest = shard == AllShards && len(r.watched) > 1
	return until
}

// positions returns the positions of a partition in a shard, or in AllShards; those of shards for which nothing
// is read are beyond. It returns false if a shard that is read has no position.
func (r *Replay) positions(shard int, field string, until Endpoint) (ledger.Positions, bool) {
	all := make(ledger.Positions, len(r.watched))
	for i, w := range r.watched {
		if all[i] = Beyond; !r.has(shard, i) {
			continue
		}
		at, ok := w.position(field)
		if !ok {
			return nil, false
		}
		all[i] = until.Place(at)
	}
	return all, true
}

// worker returns the worker of a partition. It is the same in every round, so that it keeps its measured pace
// and the rules that it has learned.
func (r *Replay) worker(field string) (RunWorker, error) {
	if w := r.workers[field]; w != nil {
		return w, nil
	}
	p, err := ledger.ParsePartition(field)
	if err != nil {
		return nil, err
	}
	w := r.consumer.NewWorker(p)
	r.workers[field] = w
	return w, nil
}

// Stats returns the counters of what was read and added.
func (r *Replay) Stats() *counts.Stats { return r.consumer.Stats }

// watched is a shard's standings that record how far pieces were added.
type watched struct {
	shards.Standings

	left   bool // see Leave
	looked bool // no piece was sent since its ledger was read

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
