package kafkaconn

// The identity of a partition's log. A topic that is deleted and created again has another id, and a leader
// whose election lost records has a later epoch (KIP-320).

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ledger"
)

// TopicLogs returns the identity of the logs of topics: the topic's id as Kafka's tools print it, and the
// epoch of each partition's leader. It asks a broker rather than the transport's cache. The result omits
// topics that do not exist, and topics whose broker reports no id (before Kafka 2.8).
func TopicLogs(ctx context.Context, client *kafka.Client, topics ...string) (map[string]map[int]ledger.Log, error) {
	reply, err := describeTopics(ctx, client, 10, false, topics)
	if errors.Is(err, errUnsupported) {
		return map[string]map[int]ledger.Log{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the id of %s: %w", strings.Join(topics, ", "), err)
	}
	all := map[string]map[int]ledger.Log{}
	for _, t := range reply.Topics {
		if t.Topic == nil || t.ErrorCode != 0 || t.TopicID == [16]byte{} {
			continue
		}
		logs := map[int]ledger.Log{}
		for _, p := range t.Partitions {
			logs[int(p.Partition)] = ledger.Log{Topic: base64.RawURLEncoding.EncodeToString(t.TopicID[:]), Epoch: max(p.LeaderEpoch, 0)}
		}
		all[*t.Topic] = logs
	}
	return all, nil
}

// EpochEnd asks the leader of a partition for the end of a leader epoch in its log: the offset after the
// epoch's last record. If the log has no record of the epoch, it returns the end of the latest earlier
// epoch. It returns -1 if the leader does not know, because the log has no epochs, or if the broker is
// older than Kafka 2.3.
func EpochEnd(ctx context.Context, client *kafka.Client, topic string, partition int, epoch int32) (int64, error) {
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = int32(partition), -1, epoch
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.ReplicaID, request.Topics = -1, append(request.Topics, t)

	r := &leaderRequest{&rawRequest{Request: request, oldest: 3, newest: 4}, topic, int32(partition)}
	err := roundTrip(ctx, client, r)
	var answer kmsg.Response
	if err == nil {
		answer, err = r.answer()
	}
	if errors.Is(err, errUnsupported) {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask where epoch %d of %s/%d ends: %w", epoch, topic, partition, err)
	}
	for _, t := range answer.(*kmsg.OffsetForLeaderEpochResponse).Topics {
		for _, p := range t.Partitions {
			if t.Topic != topic || p.Partition != int32(partition) {
				continue
			}
			if p.ErrorCode != 0 {
				return 0, fmt.Errorf("ask where epoch %d of %s/%d ends: %w", epoch, topic, partition, kafka.Error(p.ErrorCode))
			}
			return p.EndOffset, nil
		}
	}
	return 0, fmt.Errorf("ask where epoch %d of %s/%d ends: no answer", epoch, topic, partition)
}
