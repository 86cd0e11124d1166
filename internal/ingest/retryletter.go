package ingest

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
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ledger"
)

// keptLetter is the most that is kept of a letter, in bytes, outside of the budget.
const keptLetter = 16 << 10

// keepLetter keeps a letter that couldn't be written, for the next flow to try. A large
// one is kept without its value: the whole one follows.
func (w *worker) keepLetter(l letter) {
	l.headers = append(l.headers[:0:0], l.headers...)
	for l.size() > keptLetter && l.strip("it was written once more, to try the topic") {
	}
	l.key, l.value = bytes.Clone(l.key), bytes.Clone(l.value)
	for i := range l.headers {
		l.headers[i].Value = bytes.Clone(l.headers[i].Value)
	}
	w.letter.Store(&l)
}

func (l *letter) size() int {
	n := len(l.key) + len(l.value)
	for _, h := range l.headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// tryLetter writes the letter that couldn't be written, if there is one, and waits until a
// flow may write more where one ended for that. Where the topic is gone, it is made again.
func (w *worker) tryLetter(ctx context.Context) error {
	l, throttled := w.letter.Load(), w.quota.begin()
	if l == nil && !throttled {
		return nil
	}
	d := w.newLetters(w.waiting)
	d.once, d.patience = true, fetch.MaxThrottle
	if l == nil {
		return d.heed(ctx)
	}
	again := *l
	again.time = time.Now() // the first try's may be why it was refused
	err := d.write(ctx, []letter{again})
	if err == nil {
		w.letter.Store(nil)
		return d.heed(ctx)
	}
	if ctx.Err() == nil && w.remake != nil {
		if err := w.remake(ctx, w.topic); err != nil {
			return err
		}
	}
	return err
}

// remakeEvery is how often a dead-letter topic that can't be written is looked for, by
// all partitions together.
const remakeEvery = 5 * time.Second

// remakes is when each topic's dead-letter topic was looked for last.
type remakes struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (r *remakes) due(topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	if last, ok := r.last[topic]; ok && time.Since(last) < remakeEvery {
		return false
	}
	r.last[topic] = time.Now()
	return true
}

// remakeDeadLetters makes a topic's dead-letter topic again, if it is gone. Errors that
// pass are those of the next time.
func (c *Consumer) remakeDeadLetters(ctx context.Context, topic string) error {
	if !c.remakes.due(topic) {
		return nil
	}
	name := DeadLetterTopic(topic)
	found, err := c.kafka.metadata(ctx, topic, name)
	if err != nil || found[name] > 0 || found[topic] == 0 {
		return nil //nolint:nilerr // the write says what is wrong
	}
	settings, err := c.kafka.settings(ctx, topic)
	if err != nil && Meaning(err) == ledger.Retry {
		return nil
	}
	c.Log.Warn("the dead-letter topic is gone: making it again", zap.String("topic", name))
	if err := c.createDeadLetters(ctx, topic, found[topic], settings); err != nil && Meaning(err) == ledger.Halt {
		return &Halt{HaltKafka, fmt.Sprintf("the dead-letter topic %s is gone, and can't be made again: %v", name, err),
			fmt.Sprintf("create it with %d partitions, or let this user create it", found[topic])}
	}
	return nil
}
