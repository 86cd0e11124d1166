package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// Replay reads partitions again and adds them to standings of its own, a shadow of the
// live ones. It is a consumer without a group: its workers are the same, but end where
// they are told to. It commits no offsets and writes no dead letters.
type Replay struct {
	consumer *Consumer
	watched  *watched
	workers  map[string]*worker
	looked   bool // nothing was sent since the shadow's ledger was read
}

var (
	// ErrWentBack says that the replay is past where it is to end: the live ledger went
	// back. What is in can't be taken out again.
	ErrWentBack = errors.New("the live ledger went back")
	// ErrLogMoved says that records were deleted from the log before they were read.
	ErrLogMoved = errors.New("the log begins later than before")
	// ErrShadowLost says that the replay's own standings are gone.
	ErrShadowLost = errors.New("the shadow has nothing of it any more: its lease ran out, or Redis has lost it")
)

// NewReplay makes a replay. Of a consumer's settings those of the group, of commits and
// of the start aren't used.
func NewReplay(c Config) *Replay {
	w := &watched{Standings: c.Standings, at: map[string]ledger.Position{}}
	c.Standings = w
	return &Replay{consumer: New(c), watched: w, workers: map[string]*worker{}}
}

// Through is how many offsets of a partition are in since where it began: of a sweep
// the share that is.
func (r *Replay) Through(field string, begin int64) int64 {
	at, ok := r.watched.position(field)
	if !ok {
		return 0
	}
	return at.From - begin + int64(float64(at.To-at.From)*(float64(at.Hash)/(1<<64)))
}

// Look reads where the shadow's ledger stands. A call whose answer was never learned may
// have been executed, as where To was ended by its context.
func (r *Replay) Look(ctx context.Context) error {
	state, err := r.state(ctx)
	if err != nil {
		return err
	}
	all := map[string]ledger.Position{}
	for field, text := range state.Ledger {
		if all[field], err = positionOf(field, text); err != nil {
			return err
		}
	}
	r.watched.mu.Lock()
	defer r.watched.mu.Unlock()
	r.watched.at, r.looked = all, true
	return nil
}

// state is the shadow's, once that is known.
func (r *Replay) state(ctx context.Context) (ledger.State, error) {
	wait := newWait()
	for {
		state, err := r.consumer.states.get(ctx)
		if err == nil || r.consumer.Standings.Meaning(err) != ledger.Retry {
			return state, err
		}
		if err := wait.next(ctx); err != nil {
			return ledger.State{}, err
		}
	}
}

// Position is where a partition has come to, as far as this replay knows.
func (r *Replay) Position(field string) ledger.Position {
	at, _ := r.watched.position(field)
	return at
}

// Begin writes into the shadow where partitions begin.
func (r *Replay) Begin(ctx context.Context, all ...ledger.Beginning) error {
	wait := newWait()
	for {
		begun, err := r.consumer.Standings.Begin(ctx, all)
		switch {
		case err == nil && begun == ledger.Began:
			for _, b := range all {
				r.watched.reached(ledger.Field(b.Topic, b.Partition), b.At)
			}
			return nil
		case err == nil && begun == ledger.Overtaken: // by a call of our own whose answer never came, if at all
			state, err := r.state(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				field := ledger.Field(all[i].Topic, all[i].Partition)
				if state.Ledger[field] != all[i].At.String() {
					return fmt.Errorf("begin %s at %v: the shadow has %q", field, all[i].At, state.Ledger[field])
				}
				r.watched.reached(field, all[i].At)
			}
			return nil
		case err == nil:
			return fmt.Errorf("begin the shadow: unexpected answer %d", begun)
		case r.consumer.Standings.Meaning(err) != ledger.Retry:
			return err
		}
		if err := wait.next(ctx); err != nil {
			return err
		}
	}
}

// To reads every partition that is named from where the shadow stands to the position
// given, all at once within the memory budget. It returns when all have ended: with the
// first error that won't pass, ErrWentBack and the others above among them, or *Halt.
func (r *Replay) To(ctx context.Context, limits map[string]ledger.Position) error {
	if !r.looked {
		if err := r.Look(ctx); err != nil {
			return err
		}
	}
	r.looked = false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for field, until := range limits {
		at, ok := r.watched.position(field)
		if !ok {
			cancel(fmt.Errorf("%s: %w", field, ErrShadowLost))
			break
		}
		if at == until {
			continue
		}
		w, err := r.worker(field)
		if err != nil {
			cancel(err)
			break
		}
		all.Go(func() {
			if err := w.replayed(ctx, at, until); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// worker is the partition's, the same in every round: it knows how fast Redis is.
func (r *Replay) worker(field string) (*worker, error) {
	if w := r.workers[field]; w != nil {
		return w, nil
	}
	topic, partition, err := ledger.ParseField(field)
	if err != nil {
		return nil, err
	}
	w := r.consumer.worker(topic, partition, newCommits(nil, r.consumer.Log))
	r.workers[field] = w
	return w, nil
}

// Stats counts what was read and added.
func (r *Replay) Stats() *Stats { return r.consumer.Stats }

// watched are standings that tell what was added.
type watched struct {
	Standings

	mu sync.Mutex
	at map[string]ledger.Position
}

func (w *watched) position(field string) (ledger.Position, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.at[field]
	return at, ok
}

func (w *watched) reached(field string, at ledger.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[field] = at
}

func (w *watched) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := w.Standings.Apply(ctx, p)
	if err == nil && a.Outcome == ledger.Applied {
		w.reached(ledger.Field(p.Topic, p.Partition), p.Next)
	}
	return a, took, err
}
