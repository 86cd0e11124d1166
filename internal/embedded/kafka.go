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
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// KafkaClusterID is the cluster id of an embedded Kafka, by which it can be recognized
// from a real one.
const KafkaClusterID = "standings-embedded"

// KafkaOptions says what an embedded Kafka starts with.
type KafkaOptions struct {
	Topics map[string]int // topic to its number of partitions
	// Keep is about how many bytes of log a partition keeps; 0: all. A log in
	// memory that nobody trims fills the machine in a night.
	Keep int64
}

// Kafka is an embedded broker on a free port of 127.0.0.1.
type Kafka struct {
	cluster *kfake.Cluster
	stop    chan struct{}
	stopped sync.WaitGroup
}

// trimEvery is how often logs are held to KafkaOptions.Keep.
const trimEvery = time.Second

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
	if options.Keep > 0 {
		settings = append(settings, kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes": strconv.FormatInt(options.Keep, 10),
			// Memory is given back a segment at a time.
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

// trim does what a broker's log cleaner does; the fake one waits to be called.
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

// Addresses are the broker's host:port.
func (k *Kafka) Addresses() []string { return k.cluster.ListenAddrs() }

// Close ends the broker and drops its log.
func (k *Kafka) Close() {
	close(k.stop)
	k.stopped.Wait()
	k.cluster.Close()
}
