package app

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

func published(t *testing.T, cfg *config.Config) error {
	t.Helper()
	producer, err := NewProducer(&cfg.Kafka, kgo.DefaultProduceTopic("points"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := MayPublishOnce(t.Context(), producer); err != nil {
		return err
	}
	return producer.ProduceSync(t.Context(), &kgo.Record{Partition: 2, Value: []byte("{}")}).FirstErr()
}

func TestAProducerReachesKafkaByEveryMechanism(t *testing.T) {
	for _, name := range kafkaconn.Mechanisms {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "points"), kfake.EnableSASL(), kfake.Superuser(name, "u", "right"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cfg := config.Defaults()
		cfg.Kafka.Brokers = c.ListenAddrs()
		cfg.Kafka.SASL = config.SASL{Mechanism: strings.ToLower(name), Username: "u", Password: "right"}
		if err := published(t, cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := c.PartitionInfo("points", 2).HighWatermark; n != 1 {
			t.Errorf("%s: %d records", name, n)
		}
	}
}

func TestAProducerReachesKafkaByTLS(t *testing.T) {
	s := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	s.Close()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "points"), kfake.TLS(&tls.Config{Certificates: s.TLS.Certificates}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := config.Defaults()
	cfg.Kafka.Brokers = c.ListenAddrs()
	cfg.Kafka.TLS = config.TLS{Enabled: true, CAFile: filepath.Join(t.TempDir(), "ca.pem")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(cfg.Kafka.TLS.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := published(t, cfg); err != nil {
		t.Error(err)
	}
	cfg.Kafka.TLS.CAFile = ""
	err = published(t, cfg)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
}

func TestAKafkaWithoutIdempotentProducersIsRefused(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "points"), kfake.MaxVersions(kversion.V0_10_2()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := config.Defaults()
	cfg.Kafka.Brokers = c.ListenAddrs()
	if err := published(t, cfg); err == nil || !strings.Contains(err.Error(), "start the idempotent producer (InitProducerId, Kafka 0.11 or later):") {
		t.Errorf("%v", err)
	}
}

func TestAnErrorOfAProducerIsExplainedLikeAnyOther(t *testing.T) {
	cfg := config.Defaults()
	for err, want := range map[error]string{
		kerr.TopicAuthorizationFailed: "not authorized for topic points: ",
		kerr.UnknownTopicOrPartition:  "topic points does not exist on the cluster at ",
		kerr.NotEnoughReplicas:        "topic points at localhost:9092: " + kafka.NotEnoughReplicas.Description() + " (Not Enough Replicas, error 19)",
		kerr.UnknownProducerID:        "no longer has acknowledged records (UNKNOWN_PRODUCER_ID)",
	} {
		if got := ExplainPublishing(t.Context(), err, &cfg.Kafka, "points"); got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v, want %s", err, got, want)
		}
	}
}
