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
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

const (
	// patience is how long a partition may return no records before scan gives up.
	patience = 30 * time.Second
	// LargestRecord is the largest record that is read, in bytes. Kafka's own limits are lower.
	LargestRecord = 64 * units.MiB
)

// Stretch is a part of a partition's log: the offsets [From, End).
type Stretch struct {
	Client    *kafka.Client
	Topic     string
	Partition int
	From, End int64

	MaxBatch int64         // maximum size of a batch, in bytes; 0: fetch's default
	MaxCodec int64         // maximum memory of a codec, in bytes; 0: recordbatch's default
	MaxWait  time.Duration // of a fetch, like MaxBytes; 0: fetch's defaults
	MaxBytes int32

	Passed    func(offsets int64) // called with the number of offsets passed; may be nil
	Throttled func()              // called when a quota delays the reading; may be nil

	// Resumed is the offset at which Each continued after Kafka had deleted a part of the stretch; 0 if it had not.
	Resumed int64

	own error // of take, which is not Kafka's
}

// Each calls take for all records in offset order. A record's bytes are valid until take returns. An error
// of take ends the reading and is returned unchanged.
func (s *Stretch) Each(ctx context.Context, take func(*recordbatch.Record) error) error {
	s.own = nil
	f := &fetch.Fetcher{Transport: s.Client.Transport, Addr: s.Client.Addr, ClientID: kafkaconn.ClientID,
		Topic: s.Topic, Partition: s.Partition, MaxWait: s.MaxWait, MaxBytes: s.MaxBytes, MaxBatch: s.MaxBatch}
	defer func() { // bounded by the time that an abandoned call may still take
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
		defer cancel()
		_ = f.Drop(ctx)
	}()
	records := &recordbatch.Reader{MaxRecord: LargestRecord, MaxCodec: s.MaxCodec}
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
		case s.own != nil:
			return s.own
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
			s.own = err
			return at, false, err
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
	if at = max(at, logs[s.Partition].Start); err == nil {
		s.Resumed = at
	}
	return at, err
}

// Reading reads topics for a person who waits: it shows the progress, and reports once if a quota slows it
// down.
type Reading struct {
	Client *kafka.Client

	settings *config.Kafka
	stderr   io.Writer
	slowed   bool
}

// Open creates a client for some topics. The caller must call Close.
func Open(stderr io.Writer, settings *config.Kafka, topics ...string) (*Reading, error) {
	client, err := app.NewKafka(settings, topics...)
	return &Reading{Client: client, settings: settings, stderr: stderr}, err
}

// Close closes the connections.
func (r *Reading) Close() { app.CloseKafka(r.Client) }

// Explain explains a Kafka error about a topic.
func (r *Reading) Explain(ctx context.Context, err error, topic string) error {
	return app.ExplainKafka(ctx, err, r.settings, topic)
}

// Readable returns the number of partitions of a topic after checking that this user may read it.
func (r *Reading) Readable(ctx context.Context, topic, purpose string) (int, error) {
	n, err := kafkaconn.TopicPartitions(ctx, r.Client, topic)
	if err != nil {
		return 0, err
	}
	return n, kafkaconn.CheckRights(ctx, r.Client, kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: topic, For: purpose})
}

// Topic returns the whole log of every partition of a topic, after checking that this user may read it.
func (r *Reading) Topic(ctx context.Context, topic, purpose string) ([]*Stretch, error) {
	n, err := r.Readable(ctx, topic, purpose)
	if err != nil {
		return nil, err
	}
	logs, err := kafkaconn.AllLogs(ctx, r.Client, topic, n)
	var all []*Stretch
	for p, log := range logs {
		all = append(all, &Stretch{Client: r.Client, Topic: topic, Partition: p, From: log.Start, End: log.End})
	}
	return all, err
}

// Each calls take for all records of some stretches, one stretch after another, as Stretch.Each does. It
// shows the progress if stderr is a terminal, unless quiet is set because other output is written there. An
// error of take ends the reading and is returned unchanged.
func (r *Reading) Each(ctx context.Context, what string, all []*Stretch, quiet bool, take func(*Stretch, *recordbatch.Record) error) error {
	note := func(line string) { fmt.Fprintln(r.stderr, line) }
	var passed atomic.Int64
	if _, ok := terminal.Width(r.stderr); ok && !quiet {
		total := int64(0)
		for _, s := range all {
			total += max(0, s.End-s.From)
		}
		shown := terminal.ShowProgress(r.stderr, what, "offsets", total, passed.Load)
		defer shown.Stop()
		note = shown.Note
	}
	for _, s := range all {
		s.Passed = func(n int64) { passed.Add(n) }
		s.Throttled = func() {
			if !r.slowed {
				note("note: a quota of Kafka's (consumer_byte_rate of this user or of client id " + kafkaconn.ClientID + ") slows this down")
			}
			r.slowed = true
		}
		err := s.Each(ctx, func(rec *recordbatch.Record) error { return take(s, rec) })
		if err != nil && s.own == nil {
			err = r.Explain(ctx, err, s.Topic)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
