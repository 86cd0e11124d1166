package deadletters

// This file reads dead-letter topics and, to find copies, the source topics. It reads one partition at a
// time, with read_committed, up to the log's end at the start of the command. It holds at most one response
// in memory.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/units"
)

// scope selects the dead letters that are read. A zero time sets no bound.
type scope struct {
	topics       []string // source topics
	partition    *int     // nil: all
	needed       bool     // a missing dead-letter topic is an error
	reasons      []string
	since, until time.Time // when the dead letter was written, in [since, until)
	open         bool      // only those whose original has no copy
}

// takes reports whether a record is selected. A record that is not a dead letter has no reason.
func (f *scope) takes(l *deadLetter) bool {
	return (len(f.reasons) == 0 || slices.Contains(f.reasons, l.Reason)) &&
		(f.since.IsZero() || l.written >= f.since.UnixMilli()) && (f.until.IsZero() || l.written < f.until.UnixMilli())
}

// reader reads the dead letters that exist when it is opened.
type reader struct {
	*scan.Reading
	scope
	dead   []*scan.Stretch // the dead-letter partitions to read
	having []string        // source topics that have a dead-letter topic
	none   []string        // source topics that have none, because no event was ever dead-lettered
	stderr io.Writer
}

// open finds the partitions to read. The caller must call Close.
func open(ctx context.Context, p *cli.Program, c *config.Kafka, s scope) (*reader, error) {
	var known []string
	for _, topic := range s.topics {
		known = append(known, event.DeadLetterTopic(topic))
		if s.open {
			known = append(known, topic)
		}
	}
	reading, err := scan.Open(p.Stderr, c, known...)
	if err != nil {
		return nil, err
	}
	r := &reader{Reading: reading, scope: s, stderr: p.Stderr}
	lacking := "" // why the last topic without the partition cannot be read
	for _, topic := range s.topics {
		lacks, err := r.find(ctx, topic)
		if err != nil {
			r.Close()
			return nil, r.Explain(ctx, err, event.DeadLetterTopic(topic))
		}
		lacking = cmp.Or(lacks, lacking)
	}
	if len(r.dead) == 0 && lacking != "" {
		r.Close()
		return nil, &app.KafkaError{Line: lacking, Err: kafkaconn.ErrNoTopic}
	}
	return r, nil
}

// find adds the partitions of a source's dead-letter topic. If the topic lacks the selected partition, the
// text lacks reports that.
func (r *reader) find(ctx context.Context, topic string) (lacks string, err error) {
	dlq := event.DeadLetterTopic(topic)
	all, err := r.Topic(ctx, dlq, "to read dead letters")
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
			if err := r.beginAt(ctx, s); err != nil {
				return "", err
			}
		}
	}
	r.dead = append(r.dead, all...)
	return "", nil
}

// beginAt moves the start of a stretch to the first record with the time since or later.
func (r *reader) beginAt(ctx context.Context, s *scan.Stretch) error {
	return kafkaconn.RetryTransient(ctx, r.Client, func() error {
		_, found, err := kafkaconn.LogsSince(ctx, r.Client, s.Topic, r.since, s.Partition)
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
	return r.Each(ctx, "reading dead letters", r.dead, quiet, func(s *scan.Stretch, rec *recordbatch.Record) error {
		l := readRecord(s.Topic, s.Partition, rec)
		if !r.takes(l) || l.fault == "" && copied.has(l.source) {
			return nil
		}
		return take(l)
	})
}

// copies finds the originals that have a fixed copy. It reads the source topics up to their current ends. It
// must be called after the ends of the dead-letter topics are known: then it finds every copy that was
// published before.
func (r *reader) copies(ctx context.Context, quiet bool) (originals, error) {
	var all []*scan.Stretch
	for _, topic := range r.having {
		partitions, err := r.Topic(ctx, topic, "to see which dead letters have a copy")
		if err != nil {
			return nil, r.Explain(ctx, err, topic)
		}
		cut := int64(0)
		for _, s := range partitions {
			if s.From > 0 {
				cut++
			}
		}
		if cut > 0 {
			fmt.Fprintf(r.stderr, "note: Kafka has deleted the beginning of %s of %s: dead letters whose copies were there are shown as open\n",
				units.Plural(cut, "partition"), topic)
		}
		all = append(all, partitions...)
	}
	found := originals{}
	return found, r.Each(ctx, "looking for copies", all, quiet, func(_ *scan.Stretch, rec *recordbatch.Record) error {
		// Only the last header counts, which the publisher adds: a copy of a copy also carries the header of the
		// first copy.
		var name, last []byte
		rec.EachHeader(func(key, value []byte) { name, last = key, value })
		if of, err := parsePosition(string(last)); err == nil && string(name) == FixesHeader {
			found.add(of)
		}
		return nil
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
