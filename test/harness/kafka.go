package harness

// This file reads Kafka with a client of its own.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// callWithin is the timeout of a call to Kafka or Redis.
const callWithin = time.Minute

// Ends returns the offsets up to which a read_committed reader may read, by partition. An open transaction
// holds back its partition's end.
func (p *Place) Ends(t testing.TB) map[int]int64 {
	t.Helper()
	ends, err := p.ends(t.Context(), p.Topic)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// TryEnds is Ends for moments at which Kafka may be unavailable.
func (p *Place) TryEnds(ctx context.Context) (map[int]int64, error) { return p.ends(ctx, p.Topic) }

func (p *Place) ends(ctx context.Context, topic string) (map[int]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	listed, err := p.admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("the ends of %s: %w", topic, err)
	}
	ends := map[int]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[int(o.Partition)] = o.Offset })
	return ends, nil
}

// Committed returns the group's offsets by partition.
func (p *Place) Committed(t testing.TB) map[int]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callWithin)
	defer cancel()
	fetched, err := p.admin.FetchOffsets(ctx, p.Group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		t.Fatalf("the offsets of group %s: %v", p.Group, err)
	}
	offsets := map[int]int64{}
	for partition, o := range fetched[p.Topic] {
		offsets[int(partition)] = o.At
	}
	return offsets
}

// AddPartitions increases the topic's number of partitions. No records may be streamed meanwhile.
func (p *Place) AddPartitions(t testing.TB, total int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callWithin)
	defer cancel()
	r, err := p.admin.UpdatePartitions(ctx, total, p.Topic)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatalf("grow %s to %d partitions: %v", p.Topic, total, err)
	}
	Eventually(t, callWithin, func() string {
		topics, err := p.admin.ListTopics(t.Context(), p.Topic)
		if err != nil || len(topics[p.Topic].Partitions) != total || topics[p.Topic].Partitions[int32(total-1)].Leader < 0 {
			return fmt.Sprintf("the new partitions aren't there yet: %v", err)
		}
		return ""
	})
	// The client's metadata is stale, and it refreshes it rarely.
	p.connect(t)
}

// AwaitSettled waits until the markers of all ended transactions are written, which Kafka does after its
// response. open lists the partitions with an open transaction, with the offset at which it starts.
func (p *Place) AwaitSettled(t testing.TB, open map[int]int64) {
	t.Helper()
	Eventually(t, callWithin, func() string {
		stable, err := p.ends(t.Context(), p.Topic)
		if err != nil {
			return err.Error()
		}
		ends, err := p.admin.ListEndOffsets(t.Context(), p.Topic)
		if err != nil {
			return err.Error()
		}
		for partition, at := range stable {
			end, _ := ends.Lookup(p.Topic, int32(partition))
			want, held := open[partition]
			if !held {
				want = end.Offset
			}
			if at != want {
				return fmt.Sprintf("transactions of partition %d are open from %d on, want %d", partition, at, want)
			}
		}
		return ""
	})
}

// Admin returns an admin client of the place's Kafka.
func (p *Place) Admin() *kadm.Client { return p.admin }

// DeleteBefore deletes the records of a partition before an offset.
func (p *Place) DeleteBefore(t testing.TB, partition int, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(p.Topic, int32(partition), offset, -1)
	deleted, err := p.admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatalf("delete the records of %s/%d before %d: %v", p.Topic, partition, offset, err)
	}
}

// DeadLetters returns all current records of the dead-letter topic; none if the topic does not exist.
func (p *Place) DeadLetters(t testing.TB) []*kgo.Record {
	t.Helper()
	topics, err := p.admin.ListTopics(t.Context(), p.DeadLetterTopic())
	if err != nil {
		t.Fatalf("look for %s: %v", p.DeadLetterTopic(), err)
	}
	if !topics.Has(p.DeadLetterTopic()) {
		return nil
	}
	return p.ReadAll(t, p.DeadLetterTopic())
}

// ReadAll reads the committed records of a topic up to its current end.
func (p *Place) ReadAll(t testing.TB, topic string) []*kgo.Record {
	t.Helper()
	var all []*kgo.Record
	p.EachRecord(t, topic, func(r *kgo.Record) { all = append(all, r) })
	return all
}

// EachRecord calls do for every committed record of a topic up to its current end, in order within each
// partition.
func (p *Place) EachRecord(t testing.TB, topic string, do func(*kgo.Record)) {
	t.Helper()
	ends, err := p.ends(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	from := map[int32]kgo.Offset{}
	left := map[int]int64{}
	starts, err := p.admin.ListStartOffsets(t.Context(), topic)
	if err != nil {
		t.Fatalf("the starts of %s: %v", topic, err)
	}
	for partition, end := range ends {
		start, _ := starts.Lookup(topic, int32(partition))
		if start.Offset < end {
			from[int32(partition)] = kgo.NewOffset().At(start.Offset)
			left[partition] = end
		}
	}
	if len(left) == 0 {
		return
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Kafka.Addr()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), ctx.Err()); err != nil {
			t.Fatalf("read %s: %v; still to come: %v", topic, err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, reading := left[int(r.Partition)]; reading && r.Offset < end {
				if !r.Attrs.IsControl() {
					do(r)
				}
				if r.Offset == end-1 {
					delete(left, int(r.Partition))
				}
			}
		})
	}
}

// LogBytes returns the size of the topic's log in bytes, as the broker stores and sends it.
func (p *Place) LogBytes(t testing.TB) int64 {
	t.Helper()
	topic := kadm.TopicsSet{}
	topic.Add(p.Topic, 0)
	dirs, err := p.admin.DescribeAllLogDirs(t.Context(), topic)
	if err != nil {
		t.Fatalf("the size of %s: %v", p.Topic, err)
	}
	size := int64(0)
	dirs.Each(func(d kadm.DescribedLogDir) { size += d.Size() })
	return size
}
