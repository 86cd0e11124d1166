// Package embedded starts a Kafka and a Redis for somebody who has neither: the
// demo, and tests on a machine with only Go. Nothing they hold is kept.
//
// Kafka is a fake broker inside the process. It speaks the protocol, groups and
// transactions included, and keeps its log in memory. Redis is a redis-server or
// valkey-server found on the PATH, run as a child process that dies with this one;
// where there is none, miniredis inside the process.
package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaClusterID is the cluster id of an embedded Kafka, by which it can be told
// from a real one.
const KafkaClusterID = "standings-embedded"

// KafkaOptions says what an embedded Kafka starts with.
type KafkaOptions struct {
	Topics map[string]int // topic to its number of partitions
}

// Kafka is an embedded broker on a free port of 127.0.0.1.
type Kafka struct {
	cluster *kfake.Cluster
}

// StartKafka starts a broker that is ready when it returns.
func StartKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start an embedded Kafka: %w", err)
	}
	settings := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(KafkaClusterID),
		// So that a test can see a member time out without waiting six seconds.
		kfake.GroupMinSessionTimeout(time.Second),
	}
	for topic, partitions := range options.Topics {
		if partitions < 1 {
			return nil, fmt.Errorf("start an embedded Kafka: topic %s with %d partitions", topic, partitions)
		}
		settings = append(settings, kfake.SeedTopics(int32(partitions), topic))
	}
	cluster, err := kfake.NewCluster(settings...)
	if err != nil {
		return nil, fmt.Errorf("start an embedded Kafka: %w", err)
	}
	return &Kafka{cluster: cluster}, nil
}

// Addresses are the broker's host:port.
func (k *Kafka) Addresses() []string { return k.cluster.ListenAddrs() }

// Close ends the broker and drops its log.
func (k *Kafka) Close() { k.cluster.Close() }
