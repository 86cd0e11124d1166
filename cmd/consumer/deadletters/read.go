package deadletters

// This file reads dead-letter topics and, to find copies, the source topics. It reads one partition at a
// time, with read_committed, up to the log's end at the start of the command. It holds at most one response
// in memory.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/units"
)

// largestRecord is the largest record that is read, in bytes. Kafka's own limits are lower.
const largestRecord = 64 * units.MiB

// scope selects the dead letters that are read.
type scope struct {
	topics    []string // source topics
	partition *int     // nil: all
	needed    bool     // a missing dead-letter topic or partition is an error
	filter
}

// filter selects dead letters. A zero time sets no bound.
type filter struct {
	reasons      []string
	since, until time.Time // when the dead letter was written, in [since, until)
	open         bool      // only those whose original has no copy
}

// takes reports whether the filter selects a record. A record that is not a dead letter has no reason.
func (f *filter) takes(l *deadLetter) bool {
	return (len(f.reasons) == 0 || slices.Contains(f.reasons, l.Reason)) &&
		(f.since.IsZero() || l.written >= f.since.UnixMilli()) && (f.until.IsZero() || l.written < f.until.UnixMilli())
}

// reader reads the dead letters that exist when it is opened.
type reader struct {
	scope
	kafka  *config.Kafka
	client *kafka.Client
	dead   []*scan.Stretch // the dead-letter partitions to read
	having []string        // source topics that have a dead-letter topic
	none   []string        // source topics that have none, because no event was ever dead-lettered

	reading scan.Reading
}

var errInterrupted = errors.New("interrupted")

// open finds the partitions to read. The caller must close the reader.
func open(ctx context.Context, p *cli.Program, c *config.Kafka, s scope) (*reader, error) {
	var known, short []string
	for _, topic := range s.topics {
		known = append(known, event.DeadLetterTopic(topic))
		if s.open {
			known = append(known, topic)
		}
	}
	client, err := app.NewKafka(c, known...)
	if err != nil {
		return nil, err
	}
	r := &reader{scope: s, kafka: c, client: client}
	r.reading = scan.Reading{Stderr: p.Stderr, Explain: r.explain}
	for _, topic := range s.topics {
		lacks, err := r.find(ctx, topic)
		if err != nil {
			r.close()
			return nil, r.explain(ctx, err, event.DeadLetterTopic(topic))
		}
		if lacks != "" {
			short = append(short, lacks)
		}
	}
	if len(short) > 0 && (s.needed || len(r.dead) == 0) { // otherwise another topic has the partition
		r.close()
		return nil, &app.KafkaError{Line: strings.Join(short, ", "), Err: kafkaconn.ErrNoTopic}
	}
	return r, nil
}

func (r *reader) close() { app.CloseKafka(r.client) }

func (r *reader) explain(ctx context.Context, err error, topic string) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return app.ExplainKafka(ctx, err, r.kafka, topic)
}

// find adds the partitions of a source's dead-letter topic. If the topic lacks the selected partition, the
// text lacks reports that.
func (r *reader) find(ctx context.Context, topic string) (lacks string, err error) {
	dlq := event.DeadLetterTopic(topic)
	all, err := r.stretches(ctx, dlq, "to read dead letters")
	if errors.Is(err, kafkaconn.ErrNoTopic) && !r.needed {
		r.none = append(r.none, topic)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r.having = append(r.having, topic)
	if n := r.partition; n != nil && *n >= len(all) {
		return fmt.Sprintf("%s has no partition %d: it has %d", dlq, *n, len(all)), nil
	} else if n != nil {
		all = all[*n : *n+1]
	}
	for _, s := range all {
		if !r.since.IsZero() {
			if err := r.beginAt(ctx, s, r.since); err != nil {
				return "", err
			}
		}
	}
	r.dead = append(r.dead, all...)
	return "", nil
}

// stretches returns the whole log of every partition of a topic.
func (r *reader) stretches(ctx context.Context, topic, purpose string) ([]*scan.Stretch, error) {
	n, err := kafkaconn.TopicPartitions(ctx, r.client, topic)
	if err != nil {
		return nil, err
	}
	read := kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: topic, For: purpose}
	if err := kafkaconn.CheckRights(ctx, r.client, read); err != nil {
		return nil, err
	}
	logs, err := kafkaconn.AllLogs(ctx, r.client, topic, n)
	if err != nil {
		return nil, err
	}
	var all []*scan.Stretch
	for p, log := range logs {
		all = append(all, &scan.Stretch{Client: r.client, Topic: topic, Partition: p, From: log.Start, End: log.End, MaxRecord: largestRecord})
	}
	return all, nil
}

// beginAt moves the start of a stretch to the first record with the time since or later.
func (r *reader) beginAt(ctx context.Context, s *scan.Stretch, since time.Time) error {
	return kafkaconn.RetryTransient(ctx, r.client, func() error {
		_, found, err := kafkaconn.LogsSince(ctx, r.client, s.Topic, since, s.Partition)
		first, ok := found[s.Partition]
		if !ok {
			first = s.End
		}
		s.From = min(s.End, max(first, s.From))
		return err
	})
}

// each calls take for every dead letter in scope, by topic, partition and offset. The bytes of a dead
// letter are valid until take returns.
func (r *reader) each(ctx context.Context, quiet bool, take func(*deadLetter) error) error {
	var copied originals
	if r.open {
		var err error
		if copied, err = r.copies(ctx, quiet); err != nil {
			return err
		}
	}
	return r.reading.Each(ctx, "reading dead letters", r.dead, quiet, func(s *scan.Stretch, rec *recordbatch.Record) error {
		l := readRecord(s.Topic, s.Partition, rec)
		if !r.takes(l) || l.fault == "" && copied.has(l.source) {
			return nil
		}
		return take(l)
	})
}

// nothingOf returns a line that names the topics without dead letters.
func nothingOf(topics []string) string {
	var names []string
	for _, t := range topics {
		names = append(names, event.DeadLetterTopic(t))
	}
	return fmt.Sprintf("%s has no dead letters: %s does not exist", strings.Join(topics, ", "), strings.Join(names, ", "))
}
