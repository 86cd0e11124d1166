package simulate

// Calls: whatever a process asks of Kafka or Redis parks here until the driver says
// what becomes of it. So every await point of the product is one of the driver's.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/test/simulate/redissim"
)

// call is a question on its way.
type call struct {
	number int // in the order of coming; 0 until it was looked at
	from   *process
	kind   string // fetch, apply, …: what faults choose by
	what   string // the whole of it, for the story
	server server
	came   time.Time
	// ready says whether there is an answer yet: a broker holds an empty one. nil is
	// always.
	ready func() bool
	// do carries it out.
	do func() (any, error)
	// fails is the answer that says that it failed, with an error code in it: of the request
	// as a whole or of a partition. nil is none.
	fails     func(code kafka.Error, whole bool) any
	partition int // that a fetch is about
	offset    int64
	short     int // so many tenths are missing at the end of its answer
	// width is how much Redis has to do, in member-windows.
	width   int
	command *redissim.Command // of Redis
	was     map[int]string    // the ledger before a swap
	shard   *shard            // that it is about
	// writes says that carrying it out may change something.
	writes bool

	answer  chan answer
	expired chan struct{} // closed a little before its deadline, if it has one
	expires time.Time
	gone    bool // nobody waits for the answer any more
	taken   bool // by the driver: it isn't among those that wait
	until   int  // a step: held back so far
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

// park waits for the driver's word, or the context's end.
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
	case a := <-c.answer: // it was on its way: who has both takes the answer
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

// admit numbers the calls that have come since the last look. They came in whatever
// order the goroutines ran in, which must not matter: they are sorted by what they are.
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
		// Calls that were made at one moment would end at one moment, and chance would
		// say which goes first.
		if !c.expires.IsZero() {
			time.AfterFunc(time.Until(c.expires)-time.Duration(c.number%1000+1)*time.Microsecond, func() { close(c.expired) })
		}
	}
	w.calls = append(w.calls, w.came...)
	w.came = w.came[:0]
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c.taken || c.gone || c.from.dead })
}

// reply gives the caller its answer.
func (c *call) reply(value any, err error) {
	c.taken = true
	if !c.gone {
		c.answer <- answer{value, err}
	}
}
