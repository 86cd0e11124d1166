package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// From defines where a replay begins.
type From struct {
	From start.From // any but start.FromLatest
	Time time.Time  // for FromTime
	// SinceOrigin starts a partition no earlier than the live boards' origin: earlier events don't count there.
	SinceOrigin bool
	// Offsets, by fields of the ledger, replace From and Time.
	Offsets map[string]int64
}

// Start is where a replay of a partition begins.
type Start struct {
	Field  string
	At     int64
	Origin ledger.Origin
	Log    kafkaconn.Log
	// LogStart is true if the log begins later than the requested start.
	LogStart bool
}

// StartPosition returns the start as an argument of Begin.
func (s *Start) StartPosition() (ledger.StartPosition, error) {
	p, err := ledger.ParsePartition(s.Field)
	return ledger.StartPosition{Partition: p, At: ledger.At(s.At), Origin: &s.Origin}, err
}

// kafka returns the client of the consumer.
func (r *Replay) kafka() *kafka.Client { return r.consumer.Resolver("").Kafka }

// Fields returns the partitions of the configured topics, as fields of the ledger.
func (r *Replay) Fields(ctx context.Context) ([]string, error) {
	partitions, err := kafkaconn.Partitions(ctx, r.kafka(), r.consumer.Topics...)
	if err != nil {
		return nil, err
	}
	if err := topics.Missing(r.consumer.Topics, partitions); err != nil {
		return nil, err
	}
	var all []string
	for _, topic := range r.consumer.Topics {
		for p := range partitions[topic] {
			all = append(all, ledger.Partition{Topic: topic, Number: p}.String())
		}
	}
	return all, nil
}

// Committed returns the group's committed offsets, limited to the range of the log; the log's start if none is
// committed. Dead letters are written before an offset is committed, so those of later records may still be
// missing.
func (r *Replay) Committed(ctx context.Context, fields []string) (map[string]int64, error) {
	topics, err := byTopic(fields)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for topic, partitions := range topics {
		k := r.kafka()
		var committed map[int]kafkaconn.Commit
		var logs map[int]kafkaconn.Log
		err := kafkaconn.RetryTransient(ctx, k, func() (err error) {
			if committed, err = kafkaconn.Committed(ctx, k, r.consumer.Group, topic, partitions...); err == nil {
				logs, err = kafkaconn.Logs(ctx, k, topic, partitions...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for p, log := range logs {
			all[ledger.Partition{Topic: topic, Number: p}.String()] = min(max(committed[p].Offset, log.Start), log.End)
		}
	}
	return all, nil
}

func byTopic(fields []string) (map[string][]int, error) {
	all := map[string][]int{}
	for _, field := range fields {
		p, err := ledger.ParsePartition(field)
		if err != nil {
			return nil, err
		}
		all[p.Topic] = append(all[p.Topic], p.Number)
	}
	return all, nil
}

// Starts resolves the start positions of partitions in several shards, by their live ledgers: in each shard, at
// most the ledger's position. Kafka is queried once for all shards.
func (r *Replay) Starts(ctx context.Context, from From, live []ledger.State, fields []string) ([][]Start, error) {
	topics, err := byTopic(fields)
	if err != nil {
		return nil, err
	}
	where := start.Where{From: from.From, Time: from.Time}
	if from.From == start.FromWindow {
		if where, err = r.consumer.Resolver("").Terms.Window(earliest(live)); err != nil {
			return nil, err
		}
	}
	all := make([][]Start, len(live))
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		slices.Sort(topics[topic])
		var some [][]Start
		err := waitOut(ctx, func() (err error) {
			some, err = r.startsOf(ctx, topic, topics[topic], from, where, live)
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i] = append(all[i], some[i]...)
		}
	}
	return all, nil
}

// earliest returns the time of the slowest clock.
func earliest(all []ledger.State) time.Time {
	now := all[0].Now
	for i := range all {
		if all[i].Now.Before(now) {
			now = all[i].Now
		}
	}
	return now
}

// addedFor is how long the replay waits for Kafka to list a partition of the ledger: brokers may not know a
// partition that was just added.
const addedFor = 5 * time.Second

// await returns the number of a topic's partitions, once the given partition is among them.
func (r *Replay) await(ctx context.Context, topic string, partition int) (int, error) {
	wait := retry.ForEver.Start()
	for began := time.Now(); ; {
		there, err := kafkaconn.Partitions(ctx, r.kafka(), topic)
		if errors.Is(err, kafka.TopicAuthorizationFailed) {
			return 0, &health.Halt{Reason: health.HaltKafka, What: fmt.Sprintf("the ledger has %s, and this user may not read topic %s", ledger.Partition{Topic: topic, Number: partition}.String(), topic),
				Remedy: "give it the right to Describe and to Read that topic"}
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
		if err := wait.Next(ctx); err != nil {
			return 0, err
		}
	}
}

// gone returns the error for a partition of the ledger that Kafka doesn't have.
func (r *Replay) gone(topic string, partition, partitions int) error {
	field := ledger.Partition{Topic: topic, Number: partition}.String()
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

func (r *Replay) startsOf(ctx context.Context, topic string, partitions []int, from From, where start.Where, live []ledger.State) ([][]Start, error) {
	there, err := r.await(ctx, topic, slices.Max(partitions))
	if err != nil {
		return nil, err
	}
	w := r.consumer.Resolver(topic)
	if from.Offsets != nil {
		where.From = start.FromEarliest
	}
	committed, err := kafkaconn.Committed(ctx, w.Kafka, w.Group, topic, kafkaconn.UpTo(there)...)
	if err != nil {
		return nil, err
	}
	beginnings, err := w.Beginnings(ctx, where, there, committed)
	if err != nil {
		return nil, err
	}
	all := make([][]Start, len(live))
	for _, p := range partitions {
		s := Start{Field: ledger.Partition{Topic: topic, Number: p}.String(), Log: beginnings[p].Log}
		b := beginnings[p]
		identity, err := w.Identities.Of(ctx, ledger.Partition{Topic: topic, Number: p})
		if err != nil {
			return nil, err
		}
		if from.Offsets != nil {
			if b, err = fromOffset(ctx, w, p, b, from.Offsets, s.Field); err != nil {
				return nil, err
			}
		}
		ends := map[int32]int64{}
		for i := range live {
			s, j := s, w.Terms.Judge(live[i].Clock()) // queried after Kafka has answered
			at, latest := j.Resolve(where, &b)
			if err := start.Recreated(topic, live[i].Origins[s.Field], identity); err != nil {
				return nil, err
			}
			s.At, s.Origin = at, j.Origin(at, latest)
			s.LogStart = s.At > 0 && s.At == s.Log.Start
			if text := live[i].Origins[s.Field]; from.SinceOrigin && text != "" {
				origin, err := liveOrigin(ctx, w, p, text, identity, ends)
				if err != nil {
					return nil, err
				}
				s.since(origin)
			}
			if err := s.fit(from, &live[i], s.Field+shards.On(i, ledger.Shards(len(live)))); err != nil {
				return nil, err
			}
			s.Origin.Log = identity
			all[i] = append(all[i], s)
		}
	}
	return all, nil
}

// fromOffset returns a partition as if its log began at the requested offset, or at the log's start if that is
// later.
func fromOffset(ctx context.Context, r *locate.Resolver, partition int, b start.Beginning, offsets map[string]int64, field string) (start.Beginning, error) {
	offset, ok := offsets[field]
	if !ok {
		return b, fmt.Errorf("no offset is given for %s, which the ledger has: all of its partitions have to be there", field)
	}
	if offset <= b.Log.Start {
		return b, nil
	}
	b.Log.Start = offset
	var err error
	b.First, err = r.FirstRecord(ctx, partition, b.Log, nil)
	return b, err
}

// liveOrigin reads the origin of the live boards. An election may have lost records before it. The records that
// replaced them were written after the boards began, so they count. The origin then moves to the offset from
// which records were lost; its time still bounds the times of the records before that. ends caches the brokers'
// answers.
func liveOrigin(ctx context.Context, r *locate.Resolver, partition int, text string, now ledger.Log, ends map[int32]int64) (ledger.Origin, error) {
	o, err := ledger.ParseOrigin(text)
	if err != nil {
		return o, fmt.Errorf("%v: %w", ledger.Partition{Topic: r.Topic, Number: partition}, err)
	}
	if o.Offset == 0 || o.Log.Topic == "" {
		return o, nil
	}
	end, asked := ends[o.Log.Epoch]
	if !asked {
		if end, err = r.EpochEnd(ctx, partition, o.Log.Epoch, now); err != nil {
			return o, err
		}
		ends[o.Log.Epoch] = end
	}
	o.Offset = min(o.Offset, end)
	return o, nil
}

// since moves a start that is before an origin to that origin.
func (s *Start) since(o ledger.Origin) {
	if o.Offset > s.At {
		s.At, s.Origin, s.LogStart = o.Offset, o, false
	}
}

// fit moves a start that is past the live ledger's position back to that position. name is for errors.
func (s *Start) fit(from From, live *ledger.State, name string) error {
	text, ok := live.Ledger[s.Field]
	if !ok {
		return nil
	}
	at, err := ledger.Counted(text)
	if err != nil {
		return fmt.Errorf("the ledger of %s: %w", name, err)
	}
	switch {
	case s.At <= at.From:
		return nil
	case s.Log.Start > at.From:
		return fmt.Errorf("the live ledger of %s is at %v and its log begins only at offset %d: that gap can't be read; "+
			"let a consumer go on over it first, with on_gap: continue", name, at, s.Log.Start)
	case from.Offsets != nil:
		return fmt.Errorf("%s would be read from offset %d, but the live ledger is before that, at %v", name, s.At, at)
	}
	// All records from the requested time on are past those that count so far: begin at the ledger's position.
	if s.At, s.Origin.Offset = at.From, at.From; s.At == 0 {
		s.Origin = ledger.Origin{}
	}
	return nil
}

// waitOut calls ask until it returns no transient error.
func waitOut(ctx context.Context, ask func() error) error {
	return retry.ForEver.Do(ctx, func(err error) bool {
		if code, answered := errors.AsType[kafka.Error](err); answered {
			return kafkaconn.Classify(code) == ledger.Retry
		}
		_, network := errors.AsType[net.Error](err)
		return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}, ask)
}
