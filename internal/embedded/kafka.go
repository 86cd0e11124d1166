// Package embedded starts a Kafka and a Redis for users who have neither: for the demo, and for tests on a machine with
// only Go. Their data is not kept.
//
// Kafka is a fake broker inside the process. It implements the protocol, including groups and transactions, and keeps
// its log in memory. Redis is a redis-server or valkey-server on the PATH, run as a child process that ends with this
// one. If there is no such program, it is a miniredis inside the process.
package embedded

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaClusterID is the cluster id of an embedded Kafka, which distinguishes it from a real one.
const KafkaClusterID = "standings-embedded"

// KafkaOptions configures an embedded Kafka.
type KafkaOptions struct {
	Topics map[string]int // numbers of partitions by topic
	// Keep is the approximate number of bytes that a partition's log keeps; 0: all. Without a limit, the log in
	// memory fills the machine within a night.
	Keep int64
}

// Kafka is an embedded broker on a free port of 127.0.0.1.
type Kafka struct {
	cluster *kfake.Cluster
	stop    chan struct{}
	stopped sync.WaitGroup
}

// trimEvery is the interval at which KafkaOptions.Keep is applied.
const trimEvery = time.Second

// StartKafka starts a broker and returns when it is ready.
func StartKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start an embedded Kafka: %w", err)
	}
	settings := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(KafkaClusterID),
		// So that a test can observe the timeout of a member without waiting six seconds.
		kfake.GroupMinSessionTimeout(time.Second),
	}
	for topic, partitions := range options.Topics {
		if partitions < 1 {
			return nil, fmt.Errorf("start an embedded Kafka: topic %s with %d partitions", topic, partitions)
		}
		settings = append(settings, kfake.SeedTopics(int32(partitions), topic))
	}
	if options.Keep > 0 {
		settings = append(settings, kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes": strconv.FormatInt(options.Keep, 10),
			// Memory is released one segment at a time.
			"log.segment.bytes": strconv.FormatInt(max(options.Keep/8, 1<<14), 10),
		}))
	}
	cluster, err := kfake.NewCluster(settings...)
	if err != nil {
		return nil, fmt.Errorf("start an embedded Kafka: %w", err)
	}
	k := &Kafka{cluster: cluster, stop: make(chan struct{})}
	if options.Keep > 0 {
		k.stopped.Go(k.trim)
	}
	return k, nil
}

// trim applies the retention, as a broker's log cleaner does; the fake broker does so only on request.
func (k *Kafka) trim() {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.cluster.ApplyRetention()
		case <-k.stop:
			return
		}
	}
}

// Addresses returns the broker's host:port.
func (k *Kafka) Addresses() []string { return k.cluster.ListenAddrs() }

// Close ends the broker and drops its log.
func (k *Kafka) Close() {
	close(k.stop)
	k.stopped.Wait()
	k.cluster.Close()
}
