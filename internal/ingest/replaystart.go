package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
)

// ReplayFrom says where a replay begins.
type ReplayFrom struct {
	From StartFrom // any but FromLatest
	Time time.Time // for FromTime
	// SinceOrigin has a partition begin no earlier than the live boards did: what
	// came before doesn't count there.
	SinceOrigin bool
	// Offsets, by fields of the ledger, take the place of all that.
	Offsets map[string]int64
}

// ReplayStart is where a replay of a partition begins.
type ReplayStart struct {
	Field  string
	At     int64
	Origin ledger.Origin
	Log    Log
	// LogStart is true where the log begins later than was asked for.
	LogStart bool
}

// Beginning is the start as Begin takes it.
func (s *ReplayStart) Beginning() (ledger.Beginning, error) {
	topic, partition, err := ledger.ParseField(s.Field)
	return ledger.Beginning{Topic: topic, Partition: partition, At: ledger.At(s.At), Origin: &s.Origin}, err
}

// Fields are the partitions of the configured topics.
func (r *Replay) Fields(ctx context.Context) ([]string, error) {
	c := r.consumer
	partitions, err := c.kafka.metadata(ctx, c.Topics...)
	if err != nil {
		return nil, err
	}
	if err := missing(c.Topics, partitions); err != nil {
		return nil, err
	}
	var all []string
	for _, topic := range c.Topics {
		for p := range partitions[topic] {
			all = append(all, ledger.Field(topic, p))
		}
	}
	return all, nil
}

// Committed is how far partitions had come by the group's offsets in Kafka, within what
// the log has now: its start where the group has none. Dead letters are written before
// that is committed, so those of what lies behind are still to come.
func (r *Replay) Committed(ctx context.Context, fields []string) (map[string]int64, error) {
	topics, err := byTopic(fields)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for topic, partitions := range topics {
		k := r.consumer.kafka
		committed, err := Committed(ctx, k.client, k.group, topic, slices.Max(partitions)+1)
		if err != nil {
			return nil, err
		}
		logs, err := k.bounds(ctx, topic, partitions...)
		if err != nil {
			return nil, err
		}
		for p, log := range logs {
			all[ledger.Field(topic, p)] = min(max(committed[p].Offset, log.start), log.end)
		}
	}
	return all, nil
}

func byTopic(fields []string) (map[string][]int, error) {
	all := map[string][]int{}
	for _, field := range fields {
		topic, partition, err := ledger.ParseField(field)
		if err != nil {
			return nil, err
		}
		all[topic] = append(all[topic], partition)
	}
	return all, nil
}

// Starts resolves where partitions begin, never past where the live ledger stands.
func (r *Replay) Starts(ctx context.Context, from ReplayFrom, live ledger.State, fields []string) ([]ReplayStart, error) {
	topics, err := byTopic(fields)
	if err != nil {
		return nil, err
	}
	asked := max(0, from.Time.UnixMilli())
	if from.From == FromWindow {
		c := r.consumer
		first, err := liveFrom(c.Rules.Calendar, c.Retention, live.Now)
		if err != nil {
			return nil, err
		}
		asked = max(0, first-c.Events.MaxFuture)
	}
	var all []ReplayStart
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		slices.Sort(topics[topic])
		var some []ReplayStart
		err := waitOut(ctx, func() (err error) {
			some, err = r.startsOf(ctx, topic, topics[topic], from, asked, live)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// addedFor is how long a partition of the ledger is looked for in Kafka: what brokers say
// of one that was just added is behind by a moment.
const addedFor = 5 * time.Second

// await counts a topic's partitions, once a partition is among them.
func (r *Replay) await(ctx context.Context, topic string, partition int) (int, error) {
	wait := newWait()
	for began := time.Now(); ; {
		there, err := r.consumer.kafka.metadata(ctx, topic)
		if errors.Is(err, kafka.TopicAuthorizationFailed) {
			return 0, &Halt{HaltKafka, fmt.Sprintf("the ledger has %s, and this user may not read topic %s", ledger.Field(topic, partition), topic),
				"give it the right to Describe and to Read that topic"}
		}
		if err != nil {
			return 0, err
		}
		n := there[topic]
		if partition < n {
			return n, nil
		}
		if time.Since(began) > addedFor {
			return 0, r.gone(topic, partition, n)
		}
		if err := wait.next(ctx); err != nil {
			return 0, err
		}
	}
}

// gone says that Kafka doesn't have a partition of the ledger.
func (r *Replay) gone(topic string, partition, partitions int) error {
	field := ledger.Field(topic, partition)
	has := "has no topic " + topic
	if partitions > 0 {
		has = fmt.Sprintf("has only %d partitions of %s", partitions, topic)
	}
	if !slices.Contains(r.consumer.Topics, topic) {
		has += ", which isn't in kafka.topics any more"
	}
	return fmt.Errorf("the ledger has %s, and Kafka %s: its events can't be read again. "+
		"To rebuild the boards without what it counted, stop all consumers, remove the field %s from the ledger (HDEL), and start them again", field, has, field)
}

func (r *Replay) startsOf(ctx context.Context, topic string, partitions []int, from ReplayFrom, asked int64, live ledger.State) ([]ReplayStart, error) {
	there, err := r.await(ctx, topic, slices.Max(partitions))
	if err != nil {
		return nil, err
	}
	w := r.consumer.worker(topic, 0, nil)
	kind := from.From
	if from.Offsets != nil {
		kind = FromEarliest
	}
	committed, err := w.kafka.committed(ctx, topic, upTo(there)...)
	if err != nil {
		return nil, err
	}
	beginnings, err := w.beginnings(ctx, kind, there, committed, asked)
	if err != nil {
		return nil, err
	}
	var all []ReplayStart
	for _, p := range partitions {
		s := ReplayStart{Field: ledger.Field(topic, p), Log: Log{beginnings[p].log.start, beginnings[p].log.end}}
		b := beginnings[p]
		if from.Offsets != nil {
			if b, err = w.fromOffset(ctx, p, b, from.Offsets, s.Field); err != nil {
				return nil, err
			}
		}
		j := w.judgeAt(live.Clock()) // after all that Kafka has answered
		at, latest := j.resolve(kind, &b, asked)
		s.At, s.Origin = at, j.origin(at, latest)
		s.LogStart = s.At > 0 && s.At == s.Log.Start
		if err := s.fit(from, live); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// fromOffset is a partition whose log begins at the offset that was asked for, or where
// it does begin if that is later.
func (w *worker) fromOffset(ctx context.Context, partition int, b beginning, offsets map[string]int64, field string) (beginning, error) {
	offset, ok := offsets[field]
	if !ok {
		return b, fmt.Errorf("no offset is given for %s, which the ledger has: all of its partitions have to be there", field)
	}
	if offset <= b.log.start {
		return b, nil
	}
	b.log.start = offset
	var err error
	b.first, err = w.firstRecord(ctx, partition, b.log)
	return b, err
}

// fit moves a start to what the live boards have: not before they began, where that was
// asked for, and not past where they stand.
func (s *ReplayStart) fit(from ReplayFrom, live ledger.State) error {
	if text := live.Origins[s.Field]; from.SinceOrigin && text != "" {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Field, err)
		}
		if o.Offset > s.At {
			s.At, s.Origin, s.LogStart = o.Offset, o, false
		}
	}
	text, ok := live.Ledger[s.Field]
	if !ok {
		return nil
	}
	at, err := ledger.Counted(text)
	if err != nil {
		return fmt.Errorf("the ledger of %s: %w", s.Field, err)
	}
	switch {
	case s.At <= at.From:
		return nil
	case s.Log.Start > at.From:
		return fmt.Errorf("the live ledger of %s stands at %v and its log begins only at offset %d: that gap can't be read; "+
			"let a consumer go on over it first, with on_gap: continue", s.Field, at, s.Log.Start)
	case from.Offsets != nil:
		return fmt.Errorf("%s is to be read from offset %d, and the live ledger stands before that, at %v", s.Field, s.At, at)
	}
	// All that a time asks for lies past what counts so far: begin there.
	if s.At, s.Origin.Offset = at.From, at.From; s.At == 0 {
		s.Origin = ledger.Origin{}
	}
	return nil
}
