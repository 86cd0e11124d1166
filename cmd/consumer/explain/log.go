package explain

// This file reads the log: every partition from the first offset that can hold an event of the window, up
// to the log's end at the start. Before that it reads the dead letters, to find the refused events.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

const (
	// firstBytes is the size of a request for a single record, in bytes.
	firstBytes = 64 << 10
	// atOnce is the number of partitions whose starts are looked up concurrently.
	atOnce = 16
	// purpose is why this user needs to read topics, for the error if the right is missing.
	purpose = "to read what the standing is made of"
)

// logs reads the partitions for an answer.
type logs struct {
	*scan.Reading
	cfg    *config.Config
	topics []string // the configured ones and those in the ledger, sorted
}

// openLogs creates a client for the topics and their dead-letter topics. The caller must call Close.
func openLogs(p *cli.Program, cfg *config.Config, h *held) (*logs, error) {
	l := &logs{cfg: cfg, topics: slices.Clone(cfg.Kafka.Topics)}
	for field := range h.state.Ledger {
		if p, err := ledger.ParsePartition(field); err == nil {
			l.topics = append(l.topics, p.Topic)
		}
	}
	slices.Sort(l.topics)
	l.topics = slices.Compact(l.topics)
	var known []string
	for _, topic := range l.topics {
		known = append(known, topic, event.DeadLetterTopic(topic))
	}
	var err error
	l.Reading, err = scan.Open(p.Stderr, &cfg.Kafka, known...)
	return l, err
}

// sources returns the partitions of the configured topics, and any other partitions in the ledger, because
// the standings contain their events.
func (l *logs) sources(ctx context.Context, h *held) (all []*source, err error) {
	for _, topic := range l.topics {
		n, err := l.Readable(ctx, topic, purpose)
		configured := slices.Contains(l.cfg.Kafka.Topics, topic)
		if err != nil && (configured || ctx.Err() != nil) {
			return nil, l.Explain(ctx, err, topic)
		}
		if err != nil {
			n = 0
		}
		var numbers []int
		if configured {
			numbers = kafkaconn.UpTo(n)
		}
		for field := range h.state.Ledger {
			p, err := ledger.ParsePartition(field)
			if err == nil && p.Topic == topic && !slices.Contains(numbers, p.Number) {
				numbers = append(numbers, p.Number)
			}
		}
		slices.Sort(numbers)
		for _, number := range numbers {
			s, err := h.source(ledger.Partition{Topic: topic, Number: number})
			if err != nil {
				return nil, err
			}
			if number >= n {
				s.missing = "the ledger has it, but Kafka does not, or this user may not read it"
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// begin finds the offset from which each partition must be read, as a rebuild does, and whether events of
// the window may already be deleted.
func (l *logs) begin(ctx context.Context, a *answer) error {
	by := start.Judge{Now: a.held.state.Now.UnixMilli(), MaxFuture: l.cfg.MaxFuture.Milliseconds()}
	if d := l.cfg.Disorder; d != nil {
		by.Disorder = new(d.Milliseconds())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, s := range a.sources {
		if s.missing == "" {
			group.Go(func() error { return l.Explain(ctx, l.beginAt(ctx, s, a.window.Start, by), s.Topic) })
		}
	}
	return group.Wait()
}

func (l *logs) beginAt(ctx context.Context, s *source, windowStart int64, by start.Judge) error {
	where := start.Where{From: start.FromWindow, Time: time.UnixMilli(windowStart - by.MaxFuture)}
	b := start.Beginning{First: start.First{None: true}}
	err := kafkaconn.RetryTransient(ctx, l.Client, func() error {
		found, since, err := kafkaconn.LogsSince(ctx, l.Client, s.Topic, time.UnixMilli(where.Since()), s.Number)
		b.Log, b.Since = found[s.Number], -1
		if at, ok := since[s.Number]; ok {
			b.Since = at
		}
		return err
	})
	if err != nil {
		return err
	}
	err = kafkaconn.RetryTransient(ctx, l.Client, func() error {
		committed, err := kafkaconn.Committed(ctx, l.Client, l.cfg.Kafka.Group, s.Topic, s.Number)
		b.Committed = committed[s.Number].Offset
		if known, unreadable := trail.Parse(committed[s.Number].Metadata); unreadable == nil {
			b.Trail = known.Within(b.Log.End)
		}
		return err
	})
	if _, answered := errors.AsType[kafka.Error](err); err != nil && !answered { // without it less is known
		return err
	}
	s.log = b.Log
	seen := errors.New("seen")
	err = l.stretch(s, s.log.Start, firstBytes).Each(ctx, func(rec *recordbatch.Record) error {
		b.First = start.First{Time: max(rec.Time, 0)}
		return seen
	})
	if err != nil && !errors.Is(err, seen) {
		return err
	}
	at, latest := by.Resolve(where, &b)
	s.from, s.gone = at, by.Origin(at, latest).Time > windowStart
	return nil
}

// stretch has the consumer's limits: events that it cannot read are not counted.
func (l *logs) stretch(s *source, from int64, bytes int32) *scan.Stretch {
	return &scan.Stretch{
		Client: l.Client, Topic: s.Topic, Partition: s.Number, From: from, End: s.log.End, MaxBytes: bytes,
		MaxBatch: app.LargestBatch(l.cfg), MaxCodec: app.LargestCodec(l.cfg),
	}
}

// refusals finds the member's events that a script refused (overflow, window_limit). Which events are refused
// depends on the order in which they were applied, so the log alone cannot tell; their dead letters do. The
// same applies to record batches that a consumer had too little memory to read, which depends on its
// fold_memory.
func (l *logs) refusals(ctx context.Context, a *answer, own *judge) error {
	var stretches []*scan.Stretch
	for _, topic := range l.topics {
		topic = event.DeadLetterTopic(topic)
		some, err := l.Topic(ctx, topic, purpose)
		switch {
		case errors.Is(err, kafkaconn.ErrNoTopic): // no event was ever dead-lettered
		case errors.As(err, new(*kafkaconn.RightsError)), errors.Is(err, kafka.TopicAuthorizationFailed):
			a.unreadable = append(a.unreadable, topic)
		case err != nil:
			return l.Explain(ctx, err, topic)
		}
		stretches = append(stretches, some...)
	}
	of := map[ledger.Partition]*source{}
	for _, s := range a.sources {
		of[s.Partition] = s
	}
	return l.Each(ctx, "reading dead letters", stretches, false, func(_ *scan.Stretch, rec *recordbatch.Record) error {
		letter, ok := refused(rec, own)
		if s := of[ledger.Partition{Topic: letter.Topic, Number: letter.Partition}]; ok && s != nil {
			s.refused = append(s.refused, refusal{letter.Offset, letter.Last, cli.OptionalText(letter.Reason), cli.OptionalText(letter.Message)})
		}
		return nil
	})
}

// refused parses the dead letter of a refused event. It returns false if the event belongs to another
// member for certain.
func refused(rec *recordbatch.Record, own *judge) (deadletter.Origin, bool) {
	var headers []kafka.Header
	rec.EachHeader(func(key, value []byte) { headers = append(headers, kafka.Header{Key: string(key), Value: value}) })
	of, original, err := deadletter.Read(headers)
	if err != nil || !slices.Contains([]event.Reason{event.Overflow, event.WindowLimit, event.TooLarge}, event.Reason(of.Reason)) {
		return of, false
	}
	var h event.Headers
	for _, header := range original {
		h.Note([]byte(header.Key), header.Value)
	}
	var e event.Event
	bad := rec.Value == nil || own.decoder.DecodeWith(&h, rec.Value, of.Time, &e) != nil
	return of, bad || string(e.User) == own.member
}

// read passes all records, judged, to the answer, and names batches that cannot be read.
func (l *logs) read(ctx context.Context, own *judge, a *answer) error {
	of := map[*scan.Stretch]*source{}
	var stretches []*scan.Stretch
	for _, s := range a.sources {
		if s.missing == "" {
			one := l.stretch(s, max(s.log.Start, s.from-a.lookBack), 0)
			of[one], stretches = s, append(stretches, one)
		}
	}
	var last *source
	err := l.Each(ctx, "reading the log", stretches, false, func(one *scan.Stretch, rec *recordbatch.Record) error {
		s := of[one]
		if s != last {
			last = s
			own.begin(one.From)
		}
		if rec.Whole != nil {
			if rec.Whole.Last >= s.from {
				a.batch(s, rec, l.cfg.MaxFuture)
			}
			return nil
		}
		e, whose := own.judge(rec)
		switch {
		case rec.Offset < s.from: // read only for its id
		case whose == mine:
			a.add(&e, s)
		case whose == nobodys:
			a.unread += rec.Count()
		}
		return nil
	})
	for one, s := range of {
		if at := one.Resumed; at > s.from { // Kafka deleted a part during the reading
			s.from, s.log.Start, s.gone = at, at, true
		}
	}
	return err
}
