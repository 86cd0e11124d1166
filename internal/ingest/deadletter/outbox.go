package deadletter

// What happens to a partition whose dead letters can't be written. In order of events:
//
//	reader, or sweeper          worker                       dead-letter topic
//	write fails for a moment                                 away
//	keeps one letter, returns
//	                            flow ends: all is let go
//	                            tries the letter, waits      away
//	                            tries the letter             takes it
//	                            flow begins at the ledger
//	reads again, writes again                                takes all
//
// So an outage costs others nothing and is probed by one small write, and a letter may be
// there twice, never not at all.

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
)

// Outbox is what a partition keeps of its dead letters from one flow to the next. Those who
// write, its reader and its sweeper, and the worker that tries again share it: what changes
// guards itself.
type Outbox struct {
	ledger.Partition // the source's
	Client           *kafka.Client
	Timeout          time.Duration // of a write
	Count            *atomic.Int64 // counts the records that were written
	Tries            *atomic.Int64 // counts the writes that are tried again
	// Remake makes the dead-letter topic of a topic again if it is gone; nil: nobody does.
	Remake func(ctx context.Context, topic string) error

	kept  atomic.Pointer[deadLetter] // one that couldn't be written; nil: all were
	quota quota
}

// Writer writes dead letters, and gives waits what it waits for, nil once it goes on.
func (o *Outbox) Writer(waits func(error)) *Writer {
	return &Writer{outbox: o, waits: waits, Patience: tries}
}

// keptDeadLetter is the most that is kept of one, in bytes, outside of the budget.
const keptDeadLetter = 16 << 10

// keep keeps a letter that couldn't be written, for the next flow to try. A large
// one is kept without its value: the whole one follows.
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

// Retry writes the letter that couldn't be written, if there is one, and waits until a
// flow may write more where one ended for that. Where the topic is gone, it is made again.
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
	again.time = time.Now() // the first try's may be why it was refused
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
