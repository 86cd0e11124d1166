// Package scan reads a stretch of a partition's records with read_committed. It holds at most one response
// in memory. It waits out transient problems: a leader that moved, a broker that is briefly unavailable, a
// quota. If Kafka deletes a part of the stretch meanwhile, it continues with the remaining records.
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

// patience is how long a partition may return no records before scan gives up.
const patience = 30 * time.Second

// Stretch is a part of a partition's log: the offsets [From, End).
type Stretch struct {
	Client    *kafka.Client
	Topic     string
	Partition int
	From, End int64

	MaxRecord int64         // maximum length of a record, in bytes
	MaxBatch  int64         // maximum size of a batch, in bytes; 0: fetch's default
	MaxCodec  int64         // maximum memory of a codec, in bytes; 0: recordbatch's default
	MaxWait   time.Duration // of a fetch, like MaxBytes; 0: fetch's defaults
	MaxBytes  int32

	Passed    func(offsets int64) // called with the number of offsets passed; may be nil
	Throttled func()              // called when a quota delays the reading; may be nil
}

// takeError marks an error of take, to distinguish it from errors of Kafka.
type takeError struct{ error }

// Each calls take for all records in offset order. A record's bytes are valid until take returns. An error
// of take ends the reading and is returned unchanged.
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
	defer func() { // bounded by the time that an abandoned call may still take
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
		defer cancel()
		_ = f.Drop(ctx)
	}()
	records := &recordbatch.Reader{MaxRecord: s.MaxRecord, MaxCodec: s.MaxCodec}
	defer records.Close()
	wait := retry.Policy{First: 50 * time.Millisecond, Longest: 2 * time.Second, Patience: patience}.Start()
	for at := s.From; at < s.End; {
		if err := ctx.Err(); err != nil { // a fetch might still succeed
			return err
		}
		next, throttled, err := s.response(ctx, f, records, at, take)
		if throttled { // the broker has responded and has records
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
		if throttled && err == nil { // the next fetch waits as long as the quota demands
			continue
		}
		switch ended := wait.Next(ctx); {
		case errors.Is(ended, retry.ErrPatience):
			if err == nil {
				err = errors.New("the broker sends no records, though there are some")
			}
			return fmt.Errorf("read %s/%d from offset %d: %w", s.Topic, s.Partition, at, err)
		case errors.Is(ended, context.DeadlineExceeded) && err != nil:
			return err // more specific than the end of the caller's deadline
		case ended != nil:
			return ended
		}
	}
	return nil
}

// response reads one response and returns the offset of the next one. Because of a quota, the broker may
// respond without records, only with the time to wait.
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

// damaged reports whether the log itself cannot be read, so that a retry would not help.
func damaged(err error) bool {
	return errors.As(err, new(*recordbatch.OldFormatError)) || slices.ContainsFunc([]error{recordbatch.ErrCorrupt, recordbatch.ErrTruncated, fetch.ErrTooLarge, fetch.ErrVersion, fetch.ErrMalformed},
		func(e error) bool { return errors.Is(err, e) })
}

// afterRetention returns the offset at which to continue after Kafka deleted a part of the log during the
// reading.
func (s *Stretch) afterRetention(ctx context.Context, at int64) (int64, error) {
	var logs map[int]kafkaconn.Log
	err := kafkaconn.RetryTransient(ctx, s.Client, func() (err error) {
		logs, err = kafkaconn.Logs(ctx, s.Client, s.Topic, s.Partition)
		return err
	})
	return max(at, logs[s.Partition].Start), err
}
