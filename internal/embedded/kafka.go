// Package embedded starts a Kafka and a Redis for users who have neither: for the demo, and for tests on a
// machine with only Go. Their data is not kept.
//
// Kafka is a fake broker inside the process. It speaks the protocol, including groups and transactions, and
// keeps its log in memory. Redis is a redis-server or valkey-server found on the PATH, which runs as a
// child process that dies with this one, or else a miniredis inside the process.
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

// KafkaOptions describes how an embedded Kafka starts.
type KafkaOptions struct {
	Topics map[string]int // number of partitions by topic
	// Keep is the approximate number of bytes of log that a partition keeps; 0: all. Without a limit a log
	// in memory fills the machine in a night.
	Keep int64
}

// Kafka is an embedded broker on a free port of 127.0.0.1.
type Kafka struct {
	cluster *kfake.Cluster
	stop    chan struct{}
	stopped sync.WaitGroup
}

// trimEvery is the interval at which logs are reduced to KafkaOptions.Keep.
const trimEvery = time.Second

// StartKafka starts a broker, which is ready when it returns.
func StartKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start an embedded Kafka: %w", err)
	}
	settings := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(KafkaClusterID),
		// A test can then see a member time out without waiting six seconds.
		kfake.GroupMinSessionTimeout(time.Second),
	}
	for topic, partitions := range options.Topics {
		settings = append(settings, kfake.SeedTopics(int32(partitions), topic))
	}
	if options.Keep > 0 {
		settings = append(settings, kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes": strconv.FormatInt(options.Keep, 10),
			// Memory is freed a segment at a time.
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

// trim applies the retention, as a broker's log cleaner does. The fake broker does it only on request.
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

// Close ends the broker, and drops its log.
func (k *Kafka) Close() {
	close(k.stop)
	k.stopped.Wait()
	k.cluster.Close()
}
