package explain

// This file reads the log: every partition from the first offset that can hold an event of the window, up
// to the log's end at the start.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/units"
)

const (
	// largestRecord is the largest record that is read, in bytes. Kafka's own limits are lower.
	largestRecord = 64 * units.MiB
	// firstBytes is the size of a request for a single record, in bytes.
	firstBytes = 64 << 10
)

// logged describes the log of a partition.
type logged struct {
	log  kafkaconn.Log
	from int64 // the first remaining offset that can hold an event of the window
	gone bool  // events of the window may have been deleted before from, or during the reading
	// missing explains why the partition cannot be read: Kafka does not have it, or this user may not read
	// it.
	missing string
}

// logs reads the partitions for an account.
type logs struct {
	cfg     *config.Config
	client  *kafka.Client
	reading scan.Reading
}

// openLogs creates a client for the topics and their dead-letter topics. The caller must call close.
func openLogs(p *cli.Program, cfg *config.Config, topics []string) (*logs, error) {
	known := slices.Clone(topics)
	for _, topic := range topics {
		known = append(known, event.DeadLetterTopic(topic))
	}
	client, err := app.NewKafka(&cfg.Kafka, known...)
	if err != nil {
		return nil, err
	}
	l := &logs{cfg: cfg, client: client}
	l.reading = scan.Reading{Stderr: p.Stderr, Explain: l.explain}
	return l, nil
}

func (l *logs) close() { app.CloseKafka(l.client) }

func (l *logs) explain(ctx context.Context, err error, topic string) error {
	return app.ExplainKafka(ctx, err, &l.cfg.Kafka, topic)
}

// readable returns the number of partitions of a topic after checking that this user may read it.
func (l *logs) readable(ctx context.Context, topic string) (int, error) {
	n, err := kafkaconn.TopicPartitions(ctx, l.client, topic)
	if err != nil {
		return 0, err
	}
	read := kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: topic, For: "to read what the standing is made of"}
	return n, kafkaconn.CheckRights(ctx, l.client, read)
}

// sources returns the partitions of the configured topics, and any other partitions in the ledger, because
// the standings contain their events.
func (l *logs) sources(ctx context.Context, h *held) ([]*source, error) {
	var all []*source
	for _, topic := range l.cfg.Kafka.Topics {
		n, err := l.readable(ctx, topic)
		if err != nil {
			return nil, l.explain(ctx, err, topic)
		}
		for p := range n {
			all = append(all, &source{Partition: ledger.Partition{Topic: topic, Number: p}})
		}
	}
	others := map[string]int{}
	for field := range h.state.Ledger {
		p, err := ledger.ParsePartition(field)
		if err != nil || slices.ContainsFunc(all, func(s *source) bool { return s.Partition == p }) {
			continue
		}
		s := &source{Partition: p}
		n, asked := others[p.Topic]
		if !asked {
			if n, err = l.readable(ctx, p.Topic); err != nil {
				if ctx.Err() != nil {
					return nil, l.explain(ctx, err, p.Topic)
				}
				n = 0
			}
			others[p.Topic] = n
		}
		if p.Number >= n {
			s.missing = "the ledger has it, but Kafka does not, or this user may not read it"
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b *source) int { return a.Compare(b.Partition) })
	for _, s := range all {
		if err := s.stand(h); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stand stores the position and origin of the partition from Redis.
func (s *source) stand(h *held) (err error) {
	field := s.String()
	if s.text = h.state.Ledger[field]; s.text != "" {
		if s.position, err = ledger.Counted(s.text); err != nil {
			return fmt.Errorf("the ledger of %s: %w", field, err)
		}
	}
	if text := h.state.Origins[field]; text != "" {
		if s.began, err = ledger.ParseOrigin(text); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

// byTopic groups the readable partitions by topic.
func byTopic(all []*source) [][]*source {
	var topics [][]*source
	for _, s := range all {
		switch n := len(topics); {
		case s.missing != "":
		case n > 0 && topics[n-1][0].Topic == s.Topic:
			topics[n-1] = append(topics[n-1], s)
		default:
			topics = append(topics, []*source{s})
		}
	}
	return topics
}

func numbers(all []*source) []int {
	list := make([]int, len(all))
	for i, s := range all {
		list[i] = s.Number
	}
	return list
}

// begin finds the offset from which each partition must be read, as a rebuild does, and whether events of
// the window may already be deleted.
func (l *logs) begin(ctx context.Context, all []*source, q *question, h *held, maxFuture time.Duration) error {
	where := start.Where{From: start.FromWindow, Time: time.UnixMilli(q.window.Start).Add(-maxFuture)}
	by := start.Judge{Now: h.state.Now.UnixMilli(), MaxFuture: maxFuture.Milliseconds()}
	if d := l.cfg.Disorder; d != nil {
		by.Disorder = new(d.Milliseconds())
	}
	for _, some := range byTopic(all) {
		topic := some[0].Topic
		if err := l.beginTopic(ctx, topic, some, q, where, by); err != nil {
			return l.explain(ctx, err, topic)
		}
	}
	return nil
}

func (l *logs) beginTopic(ctx context.Context, topic string, some []*source, q *question, where start.Where, by start.Judge) error {
	var found map[int]kafkaconn.Log
	var since map[int]int64
	err := kafkaconn.RetryTransient(ctx, l.client, func() (err error) {
		found, since, err = kafkaconn.LogsSince(ctx, l.client, topic, time.UnixMilli(where.Since()), numbers(some)...)
		return err
	})
	if err != nil {
		return err
	}
	var committed map[int]kafkaconn.Commit
	err = kafkaconn.RetryTransient(ctx, l.client, func() (err error) {
		committed, err = kafkaconn.Committed(ctx, l.client, l.cfg.Kafka.Group, topic, numbers(some)...)
		return err
	})
	if _, answered := errors.AsType[kafka.Error](err); err != nil && !answered { // without it less is known
		return err
	}
	for _, s := range some {
		s.log = found[s.Number]
		b := start.Beginning{Log: s.log, Since: -1, Committed: committed[s.Number].Offset}
		if at, ok := since[s.Number]; ok {
			b.Since = at
		}
		if known, err := trail.Parse(committed[s.Number].Metadata); err == nil {
			b.Trail = known.Within(s.log.End)
		}
		if b.First, err = l.first(ctx, s); err != nil {
			return err
		}
		at, latest := by.Resolve(where, &b)
		s.from, s.gone = at, by.Origin(at, latest).Time > q.window.Start
	}
	return nil
}

var errSeen = errors.New("seen")

// first reads the first record of a log.
func (l *logs) first(ctx context.Context, s *source) (start.First, error) {
	f := start.First{None: true}
	err := l.stretch(s, s.log.Start, firstBytes).Each(ctx, func(rec *recordbatch.Record) error {
		f = start.First{Time: max(rec.Time, 0)}
		return errSeen
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return f, err
}

func (l *logs) stretch(s *source, from int64, bytes int32) *scan.Stretch {
	return &scan.Stretch{
		Client: l.client, Topic: s.Topic, Partition: s.Number, From: from, End: s.log.End, MaxBytes: bytes,
		MaxRecord: largestRecord, MaxBatch: app.LargestBatch(l.cfg), MaxCodec: app.LargestCodec(l.cfg), // the consumer's limits: events that it cannot read are not counted
	}
}

// read passes all records to the account, judged by the judge of their partition, and records batches that
// cannot be read.
func (l *logs) read(ctx context.Context, own *judge, a *answer) error {
	all := a.sources
	of := map[*scan.Stretch]*source{}
	var stretches []*scan.Stretch
	for _, s := range slices.Concat(byTopic(all)...) {
		back := own.lookBack()
		if s.sweep != nil {
			back = max(back, s.sweep.lookBack())
		}
		one := l.stretch(s, max(s.log.Start, s.from-back), 0)
		of[one], stretches = s, append(stretches, one)
	}
	var last *source
	err := l.reading.Each(ctx, "reading the log", stretches, false, func(one *scan.Stretch, rec *recordbatch.Record) error {
		s := of[one]
		if s != last {
			last = s
			own.begin(one.From)
			if s.sweep != nil {
				s.sweep.begin(one.From)
			}
		}
		if rec.Whole != nil {
			if rec.Whole.Last >= s.from {
				a.batch(s, rec, l.cfg.MaxFuture)
			}
			return nil
		}
		e, whose := own.judge(rec)
		if s.sweep != nil {
			if other, theirs := s.sweep.judge(rec); s.judgeOf(own, rec.Offset, a.hash) == s.sweep {
				e, whose = other, theirs
			}
		}
		switch {
		case rec.Offset < s.from: // read only for its id
		case whose == mine:
			a.add(&e, s)
		case whose == nobodys:
			a.unread += rec.Count()
		}
		return nil
	})
	return cmp.Or(err, l.cut(ctx, all))
}

// cut finds the logs of which Kafka deleted a part during the reading.
func (l *logs) cut(ctx context.Context, all []*source) error {
	for _, some := range byTopic(all) {
		topic := some[0].Topic
		err := kafkaconn.RetryTransient(ctx, l.client, func() error {
			now, err := kafkaconn.Logs(ctx, l.client, topic, numbers(some)...)
			for _, s := range some {
				if at := now[s.Number].Start; err == nil && at > s.from {
					s.from, s.log.Start, s.gone = at, at, true
				}
			}
			return err
		})
		if err != nil {
			return l.explain(ctx, err, topic)
		}
	}
	return nil
}
