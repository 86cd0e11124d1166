package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// turn is a reader's turn at memory: a reserve, which it has while others wait. It is the
// reader's goroutine's. Whoever reads outside of the budget has one without an account, and
// never takes it.
type turn struct {
	field   string
	budget  *memory.Budget
	account *memory.Account
	fetcher *fetch.Fetcher              // holds memory for the next response
	waits   func(error)                 // is given what is waited for, nil once it goes on
	drain   func(context.Context) error // has all that was folded swept
	holds   func() bool                 // what is folded would have to be read again; nil: nothing is
	taken   bool
	used    bool // a batch was given away on it
	unused  bool // the last one ended before a broker had answered
}

// errNoMemory says that a turn has to be waited for, once what is folded is swept.
var errNoMemory = errors.New("no memory")

// holding reports whether the reader holds what it would have to read again.
func (t *turn) holding() bool { return t.holds != nil && t.holds() }

// end lets the next one have what is left of a reserve, if this reader is on one.
func (t *turn) end() {
	if t.taken {
		t.account.EndTurn()
	}
	t.taken, t.used = false, false
}

// answered takes note of a broker's answer.
func (t *turn) answered() { t.unused = t.unused && !t.taken }

// letGo gives back what is kept for the next response, before a wait for anything but
// that.
func (t *turn) letGo() {
	t.end()
	t.fetcher.Free()
}

// wait has everything swept, gives everything back, and waits for a turn.
// Nobody waits while holding.
func (t *turn) wait(ctx context.Context) error {
	t.end()
	if err := t.fetcher.Drop(ctx); err != nil {
		return err
	}
	if err := t.drain(ctx); err != nil {
		return err
	}
	reported := false
	err := t.account.Wait(ctx, func(q memory.Queue) {
		if q.Still >= memoryStill || q.Waited >= memoryLong {
			t.waits(t.missed(q))
			reported = true
		}
	})
	if err != nil {
		return err
	}
	if reported { // what else it waits for may go on
		t.waits(nil)
	}
	t.taken = true
	return nil
}

// A wait for a turn is ordinary while many partitions catch up: batches are large then,
// and one after the other is swept. It is a state of its own where nobody was served for
// so long, or where it takes that long although others are.
const (
	memoryStill = 30 * time.Second
	memoryLong  = 5 * time.Minute
)

func (t *turn) missed(q memory.Queue) error {
	return &health.Waiting{Reason: health.WaitsMemory,
		Err: fmt.Errorf("%s has waited for %v for its turn at memory, with %d others: %d of %d bytes are in use, and nobody was served for %v",
			t.field, q.Waited.Round(time.Second), q.Waiting-1, q.Used, t.budget.Total(), q.Still.Round(time.Second)),
		Remedy: "raise fold_memory, or run more replicas; what other partitions wait for holds up the memory that they have"}
}

const (
	// throttlePatience and outagePatience are how long memory that others wait for is
	// held where a broker answers only that it is to be left alone, and where it doesn't
	// answer. To give a batch up is to read it again, by the same quota: so that comes
	// last, while in an outage others may have brokers that do answer.
	throttlePatience = 5 * time.Minute
	outagePatience   = 10 * time.Second
	// unusedPatience is how long a turn is held through a wait for a broker that has answered since it let the last turn
	// pass.
	unusedPatience = 2 * time.Second
)

// yields reports whether a batch that is held goes to others who wait for memory, after a
// wait for the broker since a moment: it is read again then, in another turn. Where none
// is held, a turn isn't held through a wait for the broker at all. After an error the
// reader asks on without a reserve, and queues once there is an answer that needs one: in
// the queue those whose brokers have nothing for them would keep it from the others, turn
// after turn. After a throttled answer it queues once it may ask (see afterThrottle).
//
// If a broker answers only some of the fetches, that alone would never end:
//
//	the reader of a sweep                    the broker
//	gets a turn and fetches                  fails: the turn ends
//	fetches without a turn                   answers
//	folds until it is refused memory, lets
//	all go and queues for a turn
//	gets a turn and fetches                  fails: the turn ends
//
// So a reader whose turn has ended like that holds the next one for unusedPatience.
func (t *turn) yields(since time.Time, patience time.Duration) bool {
	t.fetcher.Free()
	if !t.holding() {
		if t.taken && t.unused && time.Since(since) < unusedPatience {
			return false
		}
		t.unused = t.unused || t.taken
		t.end()
		return false
	}
	if time.Since(since) < patience || !t.budget.Wanted() {
		return false
	}
	t.end()
	return true
}

// afterThrottle waits until the broker may be asked again, and then for a turn: an answer
// that there is no memory for is paid for by the quota all the same.
func (t *turn) afterThrottle(ctx context.Context) error {
	if err := t.fetcher.Pause(ctx); err != nil {
		return err
	}
	return t.wait(ctx)
}
