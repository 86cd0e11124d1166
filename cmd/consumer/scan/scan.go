// Package scan reads a stretch of a partition's records, at read_committed and no more of it
// in memory than a response. What passes by itself (a leader that has moved, a broker that
// is away for a moment, a quota) is waited out; where the log is cut meanwhile it goes on at
// what is left.
package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// patience is how long a partition may bring nothing before it is given up.
const patience = 30 * time.Second

// Stretch is a part of a partition's log: the offsets [From, End).
type Stretch struct {
	Client    *kafka.Client
	Topic     string
	Partition int
	From, End int64

	MaxRecord int64         // bytes of the longest record that is given
	MaxBatch  int64         // bytes of the largest batch that is read; 0 for fetch's own
	MaxCodec  int64         // bytes that a codec may hold; 0 for recordbatch's own
	MaxWait   time.Duration // of a fetch, and how many bytes it asks for; 0 for fetch's own
	MaxBytes  int32

	Passed    func(offsets int64) // hears how far it has come; may be nil
	Throttled func()              // hears of a quota that holds it back; may be nil
}

// takeError is an error of whoever takes the records, not of Kafka.
type takeError struct{ error }

// Each gives all records to take, in the order of their offsets. A record's bytes hold until
// take returns; an error of take ends it, and is returned as it is.
func (s *Stretch) Each(ctx context.Context, take func(*recordbatch.Record) error) error {
	err := s.each(ctx, take)
	if own, ok := errors.AsType[*takeError](err); ok {
		return own.error
	}
	return err
}

func (s *Stretch) each(ctx context.Context, take func(*recordbatch.Record) error) error {
	f := &fetch.Fetcher{Transport: s.Client.Transport, Addr: s.Client.Addr, ClientID: kafkaconn.ClientID,
		Topic: s.Topic, Partition: s.Partition, MaxWait: s.MaxWait, MaxBytes: s.MaxBytes, MaxBatch: s.MaxBatch}
	defer func() { // bounded by what a call that was given up may still take
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
		defer cancel()
		_ = f.Drop(ctx)
	}()
	records := &recordbatch.Reader{MaxRecord: s.MaxRecord, MaxCodec: s.MaxCodec}
	defer records.Close()
	wait := retry.Policy{First: 50 * time.Millisecond, Longest: 2 * time.Second, Patience: patience}.Start()
	for at := s.From; at < s.End; {
		if err := ctx.Err(); err != nil { // a fetch may still be answered
			return err
		}
		next, throttled, err := s.response(ctx, f, records, at, take)
		if throttled { // the broker has answered, and has records
			wait.Reset()
		}
		switch {
		case errors.As(err, new(*takeError)):
			return err
		case errors.Is(err, kafka.OffsetOutOfRange):
			if next, err = s.afterRetention(ctx, at); err != nil {
				return err
			}
		case err != nil && (ctx.Err() != nil || damaged(err) || kafkaconn.Classify(err) != ledger.Retry):
			return err
		}
		if next > at {
			if s.Passed != nil {
				s.Passed(min(next, s.End) - at)
			}
			at = next
			wait.Reset()
			continue
		}
		if throttled && err == nil { // the next fetch waits for that
			continue
		}
		switch ended := wait.Next(ctx); {
		case errors.Is(ended, retry.ErrPatience):
			if err == nil {
				err = errors.New("the broker sends no records, though there are some")
			}
			return fmt.Errorf("read %s/%d from offset %d: %w", s.Topic, s.Partition, at, err)
		case errors.Is(ended, context.DeadlineExceeded) && err != nil:
			return err // it says more than that the caller's time is over
		case ended != nil:
			return ended
		}
	}
	return nil
}

// response reads one response, and returns where the next begins. A quota may have the
// broker answer nothing but when it is to be asked again.
func (s *Stretch) response(ctx context.Context, f *fetch.Fetcher, records *recordbatch.Reader, at int64, take func(*recordbatch.Record) error) (next int64, throttled bool, err error) {
	answer, err := f.Fetch(ctx, at)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return at, false, err
	}
	defer answer.Release()
	if answer.Throttled > 0 && s.Throttled != nil {
		s.Throttled()
	}
	if !answer.Answered() {
		return at, answer.Throttled > 0, nil
	}
	answer.Read(records, at)
	for {
		rec, err := records.Next()
		switch {
		case errors.Is(err, io.EOF), err == nil && rec.Offset >= s.End:
			return records.Position(), false, nil
		case err != nil:
			return at, false, fmt.Errorf("read %s/%d: %w", s.Topic, s.Partition, err)
		}
		if err := take(rec); err != nil {
			return at, false, &takeError{err}
		}
	}
}

// damaged reports whether the log itself can't be read: asking again wouldn't help.
func damaged(err error) bool {
	return errors.As(err, new(*recordbatch.OldFormatError)) || slices.ContainsFunc([]error{recordbatch.ErrCorrupt, recordbatch.ErrTruncated, fetch.ErrTooLarge, fetch.ErrVersion, fetch.ErrMalformed},
		func(e error) bool { return errors.Is(err, e) })
}

// afterRetention is where to go on where the log was cut while it was read.
func (s *Stretch) afterRetention(ctx context.Context, at int64) (int64, error) {
	var logs map[int]kafkaconn.Log
	err := kafkaconn.RetryTransient(ctx, s.Client, func() (err error) {
		logs, err = kafkaconn.Logs(ctx, s.Client, s.Topic, s.Partition)
		return err
	})
	return max(at, logs[s.Partition].Start), err
}
