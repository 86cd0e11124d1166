package simulate

// This file makes the dead-letter topic unavailable: it is deleted, some of its partitions have no leader,
// or no process may write to it. Only bad events wait for it. A deleted topic is created again.

import (
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createpartitions"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/metadata"

	"github.com/standings/standings/internal/ingest/event"
)

const (
	lettersDeleted  = "the dead-letter topic is deleted"
	lettersNoLeader = "the dead-letter topic has no leader"
	lettersRefused  = "nobody may write to the dead-letter topic"

	lettersMade  = "the dead-letter topic is made"
	lettersGrown = "partitions are added to the dead-letter topic"
)

// deadLetterLog is the dead-letter topic.
type deadLetterLog struct {
	partitions int // 0: the topic does not exist
	// What is wrong, in which partition (-1: all), until when.
	wrong string
	in    int
	until time.Time
}

// away executes an event about the dead-letter topic. Dead letters that were acknowledged before remain
// known to the checks.
func (w *world) away(f fault) bool {
	of := topics[f.n>>3%w.setup.topics()]
	l, partitions := w.kafka.deadLetters[event.DeadLetterTopic(of)], w.kafka.size(of)
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.kind == lettersDeleted {
		if l.partitions == 0 {
			return false
		}
		*l = deadLetterLog{}
		w.tellf("%s%s", otherwise(of), f.kind)
		return true
	}
	l.wrong, l.in, l.until = f.kind, f.n%(2*partitions)-partitions, time.Now().Add(time.Duration(2+f.n>>4%60)*time.Second)
	l.in = max(l.in, -1)
	w.tellf("%s%s: partition %d of it, until %.0f s", otherwise(of), f.kind, l.in, l.until.Sub(w.began).Seconds())
	return false // it counts when it takes effect
}

// refuses returns the error for writing to a partition; 0 if it can be written to.
func (l *deadLetterLog) refuses(partition int32) kafka.Error {
	switch {
	case int(partition) >= l.partitions:
		return kafka.UnknownTopicOrPartition
	case !time.Now().Before(l.until) || l.in >= 0 && l.in != int(partition):
		return 0
	case l.wrong == lettersRefused:
		return kafka.TopicAuthorizationFailed
	}
	return kafka.NotLeaderForPartition
}

// metadata describes the topic.
func (l *deadLetterLog) metadata(name string) metadata.ResponseTopic {
	t := metadata.ResponseTopic{Name: name}
	if l.partitions == 0 {
		t.ErrorCode = int16(kafka.UnknownTopicOrPartition)
	}
	for i := range int32(l.partitions) {
		p := metadata.ResponsePartition{PartitionIndex: i, LeaderID: 1, ReplicaNodes: []int32{1}, IsrNodes: []int32{1}}
		if l.refuses(i) == kafka.NotLeaderForPartition {
			p.ErrorCode, p.LeaderID = int16(kafka.LeaderNotAvailable), -1
		}
		t.Partitions = append(t.Partitions, p)
	}
	return t
}

// create creates the topic.
func (w *world) create(r *createtopics.Request) *createtopics.Response {
	asked, out := r.Topics[0], createtopics.ResponseTopic{Name: r.Topics[0].Name}
	switch l := w.kafka.deadLetters[asked.Name]; {
	case l == nil:
		panic("simulate: somebody makes topic " + asked.Name)
	case l.partitions > 0:
		out.ErrorCode = int16(kafka.TopicAlreadyExists)
	default:
		*l = deadLetterLog{partitions: int(asked.NumPartitions)}
		w.count(lettersMade)
		w.tellf("%s, with %d partitions", lettersMade, l.partitions)
	}
	return &createtopics.Response{Topics: []createtopics.ResponseTopic{out}}
}

// enlarge adds partitions to the topic.
func (w *world) enlarge(r *createpartitions.Request) *createpartitions.Response {
	asked, out := r.Topics[0], createpartitions.ResponseResult{Name: r.Topics[0].Name}
	switch l := w.kafka.deadLetters[asked.Name]; {
	case l.partitions == 0:
		out.ErrorCode = int16(kafka.UnknownTopicOrPartition)
	case int(asked.Count) <= l.partitions:
		out.ErrorCode = int16(kafka.InvalidPartitionNumber)
	default:
		l.partitions = int(asked.Count)
		w.count(lettersGrown)
	}
	return &createpartitions.Response{Results: []createpartitions.ResponseResult{out}}
}

// writes appends dead letters, if the topic can be written to.
func (w *world) writes(letters []letter, to string, partition int32) kafka.Error {
	l := w.kafka.deadLetters[to]
	code := l.refuses(partition)
	switch {
	case code == 0:
		w.kafka.letters = append(w.kafka.letters, letters...)
	case code != kafka.UnknownTopicOrPartition:
		w.count(l.wrong)
	}
	return code
}
