package simulate

// This file defines calls. Every request of a process to Kafka or Redis waits here until the driver decides
// its outcome. So the driver controls every point at which the product waits.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/test/simulate/redissim"
)

// call is a request of a process that has not been answered yet.
type call struct {
	number int // in order of arrival; 0 until admitted
	from   *process
	kind   string // fetch, apply, …: faults select calls by kind
	what   string // a full description, for the story
	server server
	came   time.Time
	// ready reports whether a response is available: a broker holds an empty fetch. nil means always.
	ready func() bool
	// do executes the call.
	do func() (any, error)
	// fails returns a response with an error code, for the request as a whole or for a partition; nil if
	// the call has none.
	fails     func(code kafka.Error, whole bool) any
	partition int // of a fetch
	offset    int64
	short     int // tenths to cut from the end of the response
	// width is the work for Redis, in member-windows.
	width   int
	command *redissim.Command // for Redis
	was     map[int]string    // the ledger before a swap
	shard   *shard            // the shard that the call uses
	// writes means that the call may change something.
	writes bool

	answer  chan answer
	expired chan struct{} // closed shortly before the deadline, if there is one
	expires time.Time
	gone    bool // the caller no longer waits
	taken   bool // the driver has taken it from the waiting calls
	until   int  // held back until this step
}

type server string

const (
	ofKafka server = "Kafka"
	ofRedis server = "Redis"
)

type answer struct {
	value any
	err   error
}

var (
	errDead  = errors.New("the process is dead")
	errReset = errors.New("connection reset by the simulation")
)

// park waits for the driver's answer or the end of the context.
func (w *world) park(ctx context.Context, c *call) (any, error) {
	w.mu.Lock()
	if c.from.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	if err := ctx.Err(); err != nil {
		w.mu.Unlock()
		return nil, err
	}
	c.answer, c.expired = make(chan answer, 1), make(chan struct{})
	c.came = time.Now()
	c.expires, _ = ctx.Deadline()
	w.came = append(w.came, c)
	w.mu.Unlock()
	w.wake()
	select {
	case a := <-c.answer:
		return a.value, a.err
	case <-c.expired:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case a := <-c.answer: // it was in flight: if both happen, the answer wins
		return a.value, a.err
	default:
	}
	c.gone = true
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, context.DeadlineExceeded
}

// wake tells the driver that there is something to do.
func (w *world) wake() {
	select {
	case w.stirred <- struct{}{}:
	default:
	}
}

// admit numbers the calls that have arrived since the last step. The goroutines' order must not matter, so
// the calls are sorted by their content.
func (w *world) admit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.came, func(a, b *call) int {
		return cmp.Or(a.came.Compare(b.came), cmp.Compare(a.from.id, b.from.id), cmp.Compare(a.what, b.what))
	})
	for _, c := range w.came {
		w.numbered++
		c.number = w.numbered
		w.asks(c)
		c.delays()
		// Calls made at the same moment would expire at the same moment, and chance would decide the order.
		if !c.expires.IsZero() {
			time.AfterFunc(time.Until(c.expires)-time.Duration(c.number%1000+1)*time.Microsecond, func() { close(c.expired) })
		}
	}
	w.calls = append(w.calls, w.came...)
	w.came = w.came[:0]
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c.taken || c.gone || c.from.dead })
}

// reply sends the caller its response.
func (c *call) reply(value any, err error) {
	c.taken = true
	if !c.gone {
		c.answer <- answer{value, err}
	}
}
