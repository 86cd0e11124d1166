package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// Turn is a reader's turn at memory: a reserve that it uses while others wait. Only the reader's goroutine uses
// it. A reader outside of the memory budget has a turn without an account, and never takes it.
type Turn struct {
	Field   string
	Budget  *memory.Budget
	Account *memory.Account
	Fetcher *fetch.Fetcher              // holds memory for the next response
	Waits   func(error)                 // receives what the reader waits for; nil once it continues
	Drain   func(context.Context) error // sweeps everything that was folded
	Holds   func() bool                 // reports folded data that would have to be read again; nil: there is never any
	Taken   bool
	Used    bool // a batch was handed over during the turn
	unused  bool // the last turn ended before the reader held anything
}

// ErrNoMemory reports that the reader must wait for a turn, after what it has folded is swept.
var ErrNoMemory = errors.New("no memory")

// holding reports whether the reader holds folded data that it would have to read again.
func (t *Turn) holding() bool { return t.Holds != nil && t.Holds() }

// End ends the reader's turn, if it has one, so that the next reader gets the rest of the reserve.
func (t *Turn) End() {
	if t.Taken {
		t.Account.EndTurn()
	}
	t.Taken, t.Used = false, false
}

// answered records a broker's answer. A turn was of use once the reader holds what it folded from an earlier answer, or if
// the log has nothing more: the records of one answer may all belong to members that the reading leaves out.
func (t *Turn) answered(empty bool) {
	if t.Taken && (empty || t.holding()) {
		t.unused = false
	}
}

// letGo releases the memory that is kept for the next response, before a wait for anything else.
func (t *Turn) letGo() {
	t.End()
	t.Fetcher.Free()
}

// Wait sweeps what was folded, releases all memory, and waits for a turn. No reader waits for a turn while it
// holds memory.
func (t *Turn) Wait(ctx context.Context) error {
	t.End()
	if err := t.Fetcher.Drop(ctx); err != nil {
		return err
	}
	if err := t.Drain(ctx); err != nil {
		return err
	}
	reported := false
	err := t.Account.Wait(ctx, func(q memory.Queue) {
		if q.Still >= memoryStill || q.Waited >= memoryLong {
			t.Waits(t.missed(q))
			reported = true
		}
	})
	if err != nil {
		return err
	}
	if reported { // the wait for something else may continue
		t.Waits(nil)
	}
	t.Taken = true
	return nil
}

// A wait for a turn is normal while many partitions catch up: batches are large then, and are swept one after
// the other. It is reported as a state of its own if no partition was served for memoryStill, or if this
// partition waits for memoryLong although others are served.
const (
	memoryStill = 30 * time.Second
	memoryLong  = 5 * time.Minute
)

func (t *Turn) missed(q memory.Queue) error {
	return &health.Waiting{Reason: health.WaitsMemory,
		Err: fmt.Errorf("%s has waited for %v for its turn at memory, with %d others: %d of %d bytes are in use, and nobody was served for %v",
			t.Field, q.Waited.Round(time.Second), q.Waiting-1, q.Used, t.Budget.Total(), q.Still.Round(time.Second)),
		Remedy: "raise fold_memory, or run more replicas; what other partitions wait for holds up the memory that they have"}
}

const (
	// throttlePatience and outagePatience are how long a reader holds memory that others want, while a broker
	// sends only throttled answers and while it doesn't answer. A batch that is given up must be read again
	// under the same quota, so throttlePatience is long; in an outage, others may have brokers that do answer.
	throttlePatience = 5 * time.Minute
	OutagePatience   = 10 * time.Second
	// unusedPatience is how long a reader holds a turn while it waits for a broker that answered after the
	// previous turn had ended unused.
	unusedPatience = 2 * time.Second
)

// yields reports whether the reader must give its held batch to others that wait for memory, after it has
// waited for the broker since a time. It then reads the batch again in another turn. If it holds no batch, it
// doesn't keep a turn while it waits for the broker. After an error the reader continues to fetch without a
// reserve, and queues once it has an answer that needs one: in the queue, readers whose brokers have nothing
// for them would take the reserve from the others, turn after turn. After a throttled answer the reader queues
// as soon as it may fetch again (see afterThrottle).
//
// If a broker answers only some of the fetches, this alone would never end:
//
//	the reader of a sweep                    the broker
//	gets a turn and fetches                  fails: the turn ends
//	fetches without a turn                   answers
//	folds until memory is refused,
//	releases all and queues for a turn
//	gets a turn and fetches                  fails: the turn ends
//
// So a reader whose turn has ended like that holds the next one for unusedPatience.
func (t *Turn) yields(since time.Time, patience time.Duration) bool {
	t.Fetcher.Free()
	if !t.holding() {
		if t.Taken && t.unused && time.Since(since) < unusedPatience {
			return false
		}
		t.unused = t.unused || t.Taken
		t.End()
		return false
	}
	if time.Since(since) < patience || !t.Budget.Wanted() {
		return false
	}
	t.End()
	return true
}

// afterThrottle waits until the broker may be queried again, and then for a turn: an answer for which there is
// no memory uses up the quota all the same.
func (t *Turn) afterThrottle(ctx context.Context) error {
	if err := t.Fetcher.Pause(ctx); err != nil {
		return err
	}
	return t.Wait(ctx)
}
