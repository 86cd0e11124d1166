package testenv

// A Kafka of several brokers.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaCluster is a Kafka of several brokers, for one test; the brokers are local processes. Brokers[i] has
// the id i+1. The first broker is also the controller, has the offsets of groups, and must run as long as
// the test does.
type KafkaCluster struct{ Brokers []*KafkaServer }

// clusterSettings keep brokers in the cluster even if a busy machine gives them little CPU time.
var clusterSettings = map[string]string{"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}

// PrivateKafkaCluster starts a cluster for this test alone, or reports the test as not run.
func PrivateKafkaCluster(t testing.TB, brokers int) *KafkaCluster {
	t.Helper()
	first := LocalKafka(t, clusterSettings)
	c := &KafkaCluster{Brokers: []*KafkaServer{first}}
	// Kafka creates the topic for the groups' offsets now, while the first broker is the only one.
	ctx, cancel := context.WithTimeout(t.Context(), 2*hang)
	defer cancel()
	admin := kadm.NewClient(first.Client(t))
	for {
		if _, err := admin.FetchOffsets(ctx, "none"); err == nil {
			break
		} else if !pause100(ctx) {
			t.Fatalf("the offsets of groups: %v", err)
		}
	}
	for number := 2; number <= brokers; number++ {
		c.Brokers = append(c.Brokers, ownKafka(t, local(t, "Kafka", func(ctx context.Context) (*KafkaServer, error) {
			p, err := startKafkaProcess(ctx, kafkaProcess{config: privateSettings(clusterSettings), joins: first.private.(*kafkaProcess), number: number})
			if err != nil {
				return nil, err
			}
			k := newKafka(p.address(), p.name(), Local, p.remove)
			k.private = p
			return k, nil
		})))
	}
	c.await(t, admin, fmt.Sprintf("%d brokers", brokers), func(all kadm.Metadata) bool { return len(all.Brokers) == brokers })
	return c
}

// Topic creates a topic with one partition and its replicas on the brokers with these ids: the first is the leader.
func (c *KafkaCluster) Topic(t testing.TB, name string, config map[string]string, brokers ...int32) {
	t.Helper()
	at := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	at.Replicas = brokers
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	topic.ReplicaAssignment = append(topic.ReplicaAssignment, at)
	for key, value := range config {
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name, setting.Value = key, &value
		topic.Configs = append(topic.Configs, setting)
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, topic), int32(hang.Milliseconds())
	answer, err := request.RequestWith(t.Context(), c.Brokers[0].Client(t))
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	c.AwaitLeader(t, name, brokers...)
}

// AwaitLeader waits until exactly these brokers are in sync for the topic's partition and the first one leads it.
func (c *KafkaCluster) AwaitLeader(t testing.TB, topic string, brokers ...int32) {
	t.Helper()
	c.await(t, kadm.NewClient(c.Brokers[0].Client(t)), fmt.Sprintf("brokers %v lead %s", brokers, topic), func(all kadm.Metadata) bool {
		p, ok := all.Topics[topic].Partitions[0]
		return ok && p.Err == nil && p.Leader == brokers[0] && len(p.ISR) == len(brokers)
	}, topic)
}

func (c *KafkaCluster) await(t testing.TB, admin *kadm.Client, what string, is func(kadm.Metadata) bool, topics ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaStart)
	defer cancel()
	for {
		all, err := admin.Metadata(ctx, topics...)
		if err == nil && is(all) {
			return
		}
		if !pause100(ctx) {
			t.Fatalf("never came true: %s: %+v: %v", what, all, err)
		}
	}
}

func pause100(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}
