package bans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/retry"
)

var errNotRead = errors.New("the bans topic hasn't been read to its end yet")

// maxRecord is the maximum length of a ban's record, in bytes. Longer records are bad.
const maxRecord = 64 << 10

// Follower reads the topic from its start and follows it. It is safe for concurrent use, except that Run must be
// called only once.
type Follower struct {
	Client *kafka.Client
	Topic  string
	Log    *zap.Logger

	mu      sync.Mutex
	state   State           // nil until the topic was read to its end; replaced, never modified
	read    int64           // the next offset to read
	waits   error           // why the topic cannot be read; nil if it can
	bad     int64           // number of ignored records
	erased  map[Key]*Record // every erasure read, even if a later record replaced it
	changed chan struct{}
}

// NewFollower returns a follower of a topic.
func NewFollower(client *kafka.Client, topic string, log *zap.Logger) *Follower {
	return &Follower{Client: client, Topic: topic, Log: log, changed: make(chan struct{}), erased: map[Key]*Record{}}
}

// erasure returns the erasure of a key that was read, if a later record has replaced it.
func (f *Follower) erasure(k Key) *Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.state[k]; r != nil && r.Erased {
		return nil
	}
	return f.erased[k]
}

// State returns the state of the topic as far as it was read: nil until its end was reached once. The caller must
// not modify it.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Changed is closed at the next change of State or Waits.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Waits returns why the topic cannot be read at the moment; nil if it can.
func (f *Follower) Waits() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

// Bad returns the number of records that were ignored because they are not valid bans.
func (f *Follower) Bad() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bad
}

// Ready waits until the topic was read to the end that Run found at its start, and up to an offset.
func (f *Follower) Ready(ctx context.Context, offset int64) error {
	for {
		f.mu.Lock()
		ready, changed := f.state != nil && f.read >= offset, f.changed
		f.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// UpToDate waits until the topic was read to its current end.
func (f *Follower) UpToDate(ctx context.Context) error {
	log, err := f.ends(ctx)
	if err != nil {
		return err
	}
	return f.Ready(ctx, log.End)
}

func (f *Follower) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Run reads until the context ends. On any error, such as a missing topic, it retries, and Waits returns the
// error. The bans that were read stay in force meanwhile.
func (f *Follower) Run(ctx context.Context) {
	wait := retry.ForEver.Start()
	var logged retry.LogLimit
	for {
		err := f.pass(ctx, wait.Reset)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.set(func() { f.waits = err })
			if logged.Due(sayEvery) {
				f.Log.Warn("can't read the bans topic; trying again", zap.String("topic", f.Topic), zap.Error(err))
			}
		}
		if wait.Next(ctx) != nil {
			return
		}
	}
}

// pass reads the log from its start until an error. Such an error is also that the log ends before the offset
// reached, since the topic was deleted and created again. State changes only once the new log was read to its end,
// so that a member banned in both logs is never shown in between.
func (f *Follower) pass(ctx context.Context, gotOn func()) error {
	log, err := f.ends(ctx)
	if err != nil {
		return err
	}
	r := fetch.NewTail(f.Client, f.Topic, maxRecord)
	defer r.Close(ctx)
	state := State{}
	for at, ready := log.Start, false; ; {
		if !ready && at >= log.End {
			ready = true
			f.publish(state, at)
		}
		next, err := r.Next(ctx, at, func(rec *recordbatch.Record) error {
			if f.take(state, rec) && ready {
				f.publish(state, rec.Offset+1)
			}
			return nil
		})
		switch {
		case errors.Is(err, kafka.OffsetOutOfRange):
			return fmt.Errorf("read %s from offset %d: it begins or ends elsewhere now, and is read again: %w", f.Topic, at, err)
		case err != nil:
			return err
		}
		gotOn()
		f.mu.Lock()
		waited := f.waits != nil
		f.mu.Unlock()
		if ready && next > at || waited {
			f.set(func() {
				f.waits = nil
				if ready {
					f.read = next
				}
			})
		}
		at = next
	}
}

// ends returns the current bounds of the log. A missing topic is a temporary error.
func (f *Follower) ends(ctx context.Context) (kafkaconn.Log, error) {
	if _, err := kafkaconn.TopicPartitions(ctx, f.Client, f.Topic); err != nil {
		return kafkaconn.Log{}, err
	}
	var logs map[int]kafkaconn.Log
	err := kafkaconn.RetryTransient(ctx, f.Client, func() (err error) {
		logs, err = kafkaconn.Logs(ctx, f.Client, f.Topic, 0)
		return err
	})
	return logs[0], err
}

func (f *Follower) publish(state State, read int64) {
	f.set(func() { f.state, f.read, f.waits = maps.Clone(state), read, nil })
}

// take adds a record to state, and reports whether it is a ban or a tombstone. It logs and ignores a bad record,
// so that it does not block the others.
func (f *Follower) take(state State, rec *recordbatch.Record) bool {
	k, r, err := Decode(rec.Key, rec.Value)
	switch {
	case rec.Whole != nil:
		err = errors.New(rec.TooLarge("this reader"))
	case rec.Oversize > 0:
		err = fmt.Errorf("it has %d bytes", rec.Oversize)
	}
	if err != nil {
		f.mu.Lock()
		f.bad += rec.Count()
		f.mu.Unlock()
		f.Log.Error("a record of the bans topic is no ban, and is ignored", zap.String("topic", f.Topic), zap.Int64("offset", rec.Offset), zap.Error(err))
		return false
	}
	state.take(k, r)
	if r != nil && r.Erased {
		f.mu.Lock()
		f.erased[k] = r
		f.mu.Unlock()
	}
	return true
}
