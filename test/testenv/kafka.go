package testenv

// The Kafka that the tests of a process share, and helpers for any Kafka.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/embedded"
)

// KafkaServer is a Kafka that tests can use.
type KafkaServer struct {
	server

	private kafkaNode  // controls a private server; otherwise nil
	test    testing.TB // the test that owns a private server
}

// Kafka returns the Kafka that all tests of this process share. Topics separate the tests: use Topic.
// Groups and transactional ids must have unique names, too.
func Kafka(t testing.TB) *KafkaServer {
	t.Helper()
	k, err := sharedKafka()
	if err != nil {
		t.Fatalf("a Kafka for tests: %v", err)
	}
	return k
}

// RealKafka is Kafka for a test that an embedded Kafka cannot serve; reason names the missing behaviour. With
// an embedded Kafka the test is reported as not run.
func RealKafka(t testing.TB, reason string) *KafkaServer {
	t.Helper()
	k := Kafka(t)
	if k.Embedded() {
		NotRun(t, "an embedded Kafka can't show it: "+reason)
	}
	return k
}

var sharedKafka = sync.OnceValues(func() (*KafkaServer, error) { return startKafka(context.Background()) })

// kafkaWays lists the sources in the order in which they are tried.
var kafkaWays = []attempt[*KafkaServer]{
	{Given, givenKafka}, {Container, containerKafka}, {Local, localKafka}, {Embedded, embeddedKafka},
}

func startKafka(ctx context.Context) (*KafkaServer, error) {
	d, err := demanded()
	if err != nil {
		return nil, err
	}
	return choose(ctx, kafkaWays, d.shared)
}

func newKafka(address, name string, source Source, end func()) *KafkaServer {
	return &KafkaServer{server: server{address: address, name: name, source: source, close: end}}
}

func givenKafka(ctx context.Context) (*KafkaServer, error) {
	address := os.Getenv(KafkaVariable)
	if address == "" {
		return nil, fmt.Errorf("%s is not set: %w", KafkaVariable, errNotHere)
	}
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	id, version, err := IdentifyKafka(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", KafkaVariable, address, err)
	}
	k := newKafka(address, "Apache Kafka "+version, handedOn(kafkaSourceVariable), func() {})
	if id == embedded.KafkaClusterID {
		k.name, k.source = embeddedKafkaName, Embedded
	}
	return k, nil
}

const embeddedKafkaName = "kfake"

func embeddedKafka(ctx context.Context) (*KafkaServer, error) {
	k, err := embedded.StartKafka(ctx, embedded.KafkaOptions{})
	if err != nil {
		return nil, err
	}
	return newKafka(k.Addresses()[0], embeddedKafkaName, Embedded, k.Close), nil
}

// IdentifyKafka asks a broker for its cluster's id, and for its version as far as the protocol versions
// reveal it.
func IdentifyKafka(ctx context.Context, address string) (id, version string, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RetryTimeout(5*time.Second), kgo.RequestRetries(3))
	if err != nil {
		return "", "", err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	metadata, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return "", "", err
	}
	if len(metadata.Brokers) == 0 {
		return "", "", errors.New("it has no broker yet")
	}
	versions, err := admin.ApiVersions(ctx)
	if err != nil {
		return "", "", err
	}
	for _, v := range versions {
		if v.Err != nil {
			return "", "", v.Err
		}
		version = v.VersionGuess()
	}
	return metadata.Cluster, version, nil
}

// Addresses returns the bootstrap brokers: only Addr.
func (k *KafkaServer) Addresses() []string { return []string{k.address} }

// Topic creates a topic on the shared Kafka.
func Topic(t testing.TB, partitions int, config map[string]string) string {
	t.Helper()
	return Kafka(t).Topic(t, partitions, config)
}

// Topic creates a topic with a unique name and with settings such as retention.ms. It returns when every
// partition has a leader. The topic is deleted when the test ends.
func (k *KafkaServer) Topic(t testing.TB, partitions int, config map[string]string) string {
	t.Helper()
	name := Unique(t.Name())
	k.CreateTopic(t, name, partitions, config)
	t.Cleanup(func() {
		// This keeps a long run from filling the disk. The broker may have stopped by now.
		client, err := kgo.NewClient(kgo.SeedBrokers(k.address), kgo.RetryTimeout(time.Second), kgo.RequestRetries(0))
		if err != nil {
			t.Errorf("delete topic %s: %v", name, err)
			return
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, _ = kadm.NewClient(client).DeleteTopics(ctx, name)
	})
	return name
}

// CreateTopic creates a topic with the given name, such as a dead-letter topic. It is not deleted.
func (k *KafkaServer) CreateTopic(t testing.TB, name string, partitions int, config map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*hang)
	defer cancel()
	settings := make(map[string]*string, len(config))
	for key, value := range config {
		settings[key] = &value
	}
	admin := kadm.NewClient(k.Client(t))
	if _, err := admin.CreateTopic(ctx, int32(partitions), 1, settings, name); err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	for !led(ctx, admin, name, partitions) {
		select {
		case <-ctx.Done():
			t.Fatalf("topic %s has no leaders: %v", name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func led(ctx context.Context, admin *kadm.Client, name string, partitions int) bool {
	topics, err := admin.ListTopics(ctx, name)
	if err != nil || topics[name].Err != nil || len(topics[name].Partitions) != partitions {
		return false
	}
	for _, p := range topics[name].Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}

// Client returns a franz-go client of the shared Kafka.
func Client(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	return Kafka(t).Client(t, options...)
}

// Client returns a franz-go client, independent of the client under test. It is closed when the test ends.
func (k *KafkaServer) Client(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(k.address), kgo.MetadataMinAge(10 * time.Millisecond),
	}, options...)...)
	if err != nil {
		t.Fatalf("a Kafka client: %v", err)
	}
	t.Cleanup(client.Close)
	return client
}
