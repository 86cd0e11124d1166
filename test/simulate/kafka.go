package simulate

// This file simulates the brokers: it answers from memory the requests that kafka-go's transport would send.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/createpartitions"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/offsetfetch"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// readUncommitted is the isolation level with which a broker includes records of open transactions.
const readUncommitted = 0

const topic = "points" // the first topic; topics.go has the others

// brokers is the cluster.
type brokers struct {
	// Partitions of all topics. Only the world adds some; processes only look them up.
	adding     sync.RWMutex
	partitions []*partition
	absent     string   // a topic that does not exist yet
	letters    []letter // of all dead-letter topics
	committed  map[int]int64
	trails     map[int]string  // committed with the offsets
	planned    map[int]planned // committed starts from which no process has read yet
	hindrance  hindrance       // of fetches
	// The dead-letter topics by name; letters has everything ever written to them.
	deadLetters map[string]*deadLetterLog
}

// letter is a written dead letter.
type letter struct {
	partition int // of the event, as an index over all topics
	reason    string
	offset    int64
	key       []byte
	value     []byte
}

// transport is one process's connection to the brokers.
type transport struct {
	w    *world
	from *process
}

// RoundTrip answers a request once the driver permits it.
func (t *transport) RoundTrip(ctx context.Context, _ net.Addr, request kafka.Request) (kafka.Response, error) {
	c := &call{from: t.from, server: ofKafka}
	switch r := request.(type) {
	case protocol.RawExchanger:
		return t.raw(ctx, c, r)
	case *metadata.Request:
		c.kind, c.what = "metadata", "metadata of "+strings.Join(r.TopicNames, " ")
		c.do = func() (any, error) { return t.w.kafka.metadata(r), nil }
		c.fails = func(code kafka.Error, _ bool) any {
			out := &metadata.Response{}
			for _, name := range r.TopicNames {
				out.Topics = append(out.Topics, metadata.ResponseTopic{Name: name, ErrorCode: int16(code)})
			}
			return out
		}
	case *listoffsets.Request:
		c.kind, c.what = "offsets", "offsets "+otherwise(r.Topics[0].Topic)+asked(r)
		c.do = func() (any, error) { return t.w.kafka.listOffsets(r), nil }
		c.fails = func(code kafka.Error, _ bool) any {
			out := t.w.kafka.listOffsets(r)
			for i := range out.Topics[0].Partitions {
				p := &out.Topics[0].Partitions[i]
				*p = listoffsets.ResponsePartition{Partition: p.Partition, ErrorCode: int16(code), Timestamp: -1, Offset: -1}
			}
			return out
		}
	case *offsetfetch.Request:
		c.kind, c.what = "committed", fmt.Sprint("committed offsets of ", otherwise(r.Topics[0].Name), r.Topics[0].PartitionIndexes)
		c.do = func() (any, error) { return t.w.kafka.offsetFetch(r), nil }
		c.fails = func(code kafka.Error, whole bool) any {
			if whole {
				return &offsetfetch.Response{ErrorCode: int16(code)}
			}
			out := t.w.kafka.offsetFetch(r)
			for i := range out.Topics[0].Partitions {
				p := &out.Topics[0].Partitions[i]
				p.CommittedOffset, p.ErrorCode = -1, int16(code)
			}
			return out
		}
	case *describegroups.Request:
		c.kind, c.what = "rights", "rights on the group"
		c.do = func() (any, error) {
			return &describegroups.Response{Groups: []describegroups.ResponseGroup{{GroupID: r.Groups[0], AuthorizedOperations: -1}}}, nil
		}
	case *describeconfigs.Request:
		c.kind, c.what = "config", "configuration of the topic"
		c.do = func() (any, error) {
			return &describeconfigs.Response{Resources: []describeconfigs.ResponseResource{{
				ResourceType: int8(kafka.ResourceTypeTopic), ResourceName: r.Resources[0].ResourceName,
				ConfigEntries: []describeconfigs.ResponseConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "delete"}},
			}}}, nil
		}
	case *createtopics.Request:
		c.kind, c.what = "create", "create "+r.Topics[0].Name
		c.do = func() (any, error) { return t.w.create(r), nil }
	case *createpartitions.Request:
		c.kind, c.what = "create", "add partitions to "+r.Topics[0].Name
		c.do = func() (any, error) { return t.w.enlarge(r), nil }
	case *produce.Request:
		letters, err := t.w.kafka.readLetters(r)
		if err != nil {
			return nil, err
		}
		c.kind, c.writes = "produce", true
		c.what = fmt.Sprintf("%d dead letters of partition %s%d", len(letters), otherwise(sourceOf(r.Topics[0].Topic)), r.Topics[0].Partitions[0].Partition)
		c.fails = func(code kafka.Error, _ bool) any {
			return &produce.Response{Topics: []produce.ResponseTopic{{
				Topic: r.Topics[0].Topic, Partitions: []produce.ResponsePartition{{Partition: r.Topics[0].Partitions[0].Partition, ErrorCode: int16(code)}},
			}}}
		}
		c.do = func() (any, error) {
			return c.fails(t.w.writes(letters, r.Topics[0].Topic, r.Topics[0].Partitions[0].Partition), false), nil
		}
	default:
		panic(fmt.Sprintf("simulate: a request of type %T", request))
	}
	value, err := t.w.park(ctx, c)
	if err != nil {
		return nil, err
	}
	response, ok := value.(kafka.Response)
	if !ok {
		panic(fmt.Sprintf("simulate: an answer of type %T", value))
	}
	return response, nil
}

func asked(r *listoffsets.Request) string {
	var all []string
	for _, p := range r.Topics[0].Partitions {
		when := "end"
		switch p.Timestamp {
		case kafka.FirstOffset:
			when = "start"
		case kafka.LastOffset:
		default:
			when = "at " + time.UnixMilli(p.Timestamp).UTC().Format(time.RFC3339)
		}
		all = append(all, fmt.Sprintf("%d %s", p.Partition, when))
	}
	return strings.Join(all, ", ")
}

func (k *brokers) metadata(r *metadata.Request) *metadata.Response {
	out := &metadata.Response{ClusterID: "simulated", Brokers: []metadata.ResponseBroker{{NodeID: 1, Host: "broker", Port: 9092}}, ControllerID: 1}
	for _, name := range r.TopicNames {
		if l := k.deadLetters[name]; l != nil {
			out.Topics = append(out.Topics, l.metadata(name))
			continue
		}
		t := metadata.ResponseTopic{Name: name}
		for i := range k.size(name) {
			t.Partitions = append(t.Partitions, metadata.ResponsePartition{PartitionIndex: int32(i), LeaderID: 1, ReplicaNodes: []int32{1}, IsrNodes: []int32{1}})
		}
		if name == k.absent {
			t.ErrorCode, t.Partitions = int16(kafka.UnknownTopicOrPartition), nil
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

func (k *brokers) listOffsets(r *listoffsets.Request) *listoffsets.Response {
	out := &listoffsets.Response{Topics: []listoffsets.ResponseTopic{{Topic: r.Topics[0].Topic}}}
	for _, p := range r.Topics[0].Partitions {
		a := listoffsets.ResponsePartition{Partition: p.Partition, Timestamp: p.Timestamp}
		if dead := k.deadLetters[r.Topics[0].Topic]; dead != nil {
			// The caller wants to read dead letters, and there are none. Without the right to write, this
			// request is still permitted.
			if refused := dead.refuses(p.Partition); refused != kafka.TopicAuthorizationFailed {
				a.ErrorCode = int16(refused)
			}
		} else if log := k.partition(r.Topics[0].Topic, p.Partition); log == nil {
			a.ErrorCode = int16(kafka.UnknownTopicOrPartition)
		} else {
			switch p.Timestamp {
			case kafka.FirstOffset:
				a.Offset = log.start
			case kafka.LastOffset:
				end, stable := log.answers()
				if a.Offset = stable; r.IsolationLevel == readUncommitted {
					a.Offset = end
				}
			default:
				a.Offset = log.since(p.Timestamp)
			}
		}
		out.Topics[0].Partitions = append(out.Topics[0].Partitions, a)
	}
	return out
}

func (k *brokers) offsetFetch(r *offsetfetch.Request) *offsetfetch.Response {
	out := &offsetfetch.Response{Topics: []offsetfetch.ResponseTopic{{Name: r.Topics[0].Name}}}
	for _, p := range r.Topics[0].PartitionIndexes {
		id, offset := -1, int64(-1)
		if log := k.partition(r.Topics[0].Name, p); log != nil {
			id, offset = log.id, k.lastCommitted(log.id)
		}
		out.Topics[0].Partitions = append(out.Topics[0].Partitions, offsetfetch.ResponsePartition{PartitionIndex: p, CommittedOffset: offset, Metadata: k.lastMetadata(id)})
	}
	return out
}

func (k *brokers) readLetters(r *produce.Request) ([]letter, error) {
	var all []letter
	p := r.Topics[0].Partitions[0]
	source := k.partition(sourceOf(r.Topics[0].Topic), p.Partition)
	if source == nil {
		panic("simulate: records for " + r.Topics[0].Topic)
	}
	for {
		rec, err := p.RecordSet.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		l := letter{partition: source.id}
		if l.key, err = protocol.ReadAll(rec.Key); err != nil {
			return nil, err
		}
		if l.value, err = protocol.ReadAll(rec.Value); err != nil {
			return nil, err
		}
		for _, h := range rec.Headers {
			switch h.Key {
			case "standings-reason":
				l.reason = string(h.Value)
			case "standings-offset":
				if _, err := fmt.Sscan(string(h.Value), &l.offset); err != nil {
					return nil, err
				}
			}
		}
		all = append(all, l)
	}
}

func (k *brokers) fetch(q *kmsg.FetchRequest) *kmsg.FetchResponse {
	a := kmsg.NewPtrFetchResponse()
	t := kmsg.NewFetchResponseTopic()
	t.Topic = q.Topics[0].Topic
	want := q.Topics[0].Partitions[0]
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition = want.Partition
	switch log := k.partition(t.Topic, want.Partition); log {
	case nil:
		p.ErrorCode = int16(kafka.UnknownTopicOrPartition)
	default:
		p.HighWatermark, p.LastStableOffset = log.answers()
		p.LogStartOffset = log.start
		if want.FetchOffset < log.start || want.FetchOffset > p.HighWatermark {
			p.ErrorCode = int16(kafka.OffsetOutOfRange)
		} else {
			p.RecordBatches, p.AbortedTransactions = log.read(want.FetchOffset, int(want.PartitionMaxBytes))
		}
	}
	t.Partitions = append(t.Partitions, p)
	a.Topics = append(a.Topics, t)
	return a
}
