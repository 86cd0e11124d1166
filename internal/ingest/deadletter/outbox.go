package deadletter

// If dead letters cannot be written, these events follow, in this order:
//
//    reader, or sweeper          worker                       dead-letter topic
//    write fails for a second                                 unavailable
//    keeps one dead letter,
//    returns
//                                flow ends: frees everything
//                                tries that one, waits        unavailable
//                                tries that one               accepts it
//                                flow starts at the ledger
//    reads again, writes again                                accepts all
//
// An outage therefore holds no memory that others need, and one small write probes for its end. The topic may
// get a dead letter twice, but always gets it.

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
)

// Outbox is the state of a partition's dead letters that is kept from one flow to the next. The reader and the
// sweeper, which write, and the worker, which tries again, share it. Its mutable parts are safe for concurrent
// use.
type Outbox struct {
	ledger.Partition // of the source topic
	Client           *kafka.Client
	Timeout          time.Duration // of one write
	Count            *atomic.Int64 // records written
	Tries            *atomic.Int64 // writes tried again
	// Remake creates the dead-letter topic of a topic again if it is gone. If it is nil, the topic is not
	// created.
	Remake func(ctx context.Context, topic string) error

	kept  atomic.Pointer[deadLetter] // a dead letter that could not be written; nil: none
	quota quota
}

// Writer returns a Writer of dead letters. It calls waits with the reason when it must wait, and with nil when
// it continues.
func (o *Outbox) Writer(waits func(error)) *Writer {
	return &Writer{outbox: o, waits: waits, Patience: tries}
}

// keptDeadLetter is the maximum size of the kept dead letter in bytes. It is not part of the memory budget.
const keptDeadLetter = 16 << 10

// keep keeps a dead letter that could not be written, for Retry. A large one is kept without its value, since
// the next flow writes the complete one.
func (o *Outbox) keep(l deadLetter) {
	l.headers = append(l.headers[:0:0], l.headers...)
	for l.size() > keptDeadLetter && l.strip("it was written once more, to try the topic") {
	}
	l.key, l.value = bytes.Clone(l.key), bytes.Clone(l.value)
	for i := range l.headers {
		l.headers[i].Value = bytes.Clone(l.headers[i].Value)
	}
	o.kept.Store(&l)
}

// Retry writes the kept dead letter, if there is one. If the previous flow ended because of a quota, it waits
// until the quota allows another write. If the topic is gone, it creates the topic again.
func (o *Outbox) Retry(ctx context.Context, waits func(error)) error {
	l, throttled := o.kept.Load(), o.quota.begin()
	if l == nil && !throttled {
		return nil
	}
	w := o.Writer(waits)
	w.Once, w.Patience = true, fetch.MaxThrottle
	if l == nil {
		return w.heed(ctx)
	}
	again := *l
	again.time = time.Now() // the first try's time may be the reason for the refusal
	err := w.write(ctx, []deadLetter{again})
	if err == nil {
		o.kept.Store(nil)
		return w.heed(ctx)
	}
	if ctx.Err() == nil && o.Remake != nil {
		if err := o.Remake(ctx, o.Topic); err != nil {
			return err
		}
	}
	return err
}
