package testenv

// A Kafka for one test, which may kill it, pause it and start it again.

import (
	"context"
	"maps"
	"testing"
)

// kafkaNode is the child process or the container that a private Kafka runs in.
type kafkaNode interface {
	start(ctx context.Context) error // on its port and data
	stop() error                     // gracefully
	kill() error                     // at once
	pause() error
	resume() error
	remove()     // also deletes its data
	log() string // the end of the log
}

// PrivateKafka starts a Kafka for this test alone, with broker settings such as message.max.bytes. A
// setting may name a file of this machine. Listeners in the settings are added to the listener at Addr, which
// has neither TLS nor SASL. The broker ends with the test. There is no embedded private Kafka: if the
// machine has no Kafka, the test is reported as not run.
func PrivateKafka(t testing.TB, config map[string]string) *KafkaServer {
	t.Helper()
	settings := privateSettings(config)
	return ownKafka(t, private(t, "Kafka", []attempt[*KafkaServer]{
		{Local, func(ctx context.Context) (*KafkaServer, error) {
			if err := quickKafka(); err != nil {
				return nil, err
			}
			return newLocalKafka(ctx, settings)
		}},
		{Container, func(ctx context.Context) (*KafkaServer, error) { return newKafkaContainer(ctx, settings) }},
	}))
}

// LocalKafka is PrivateKafka for a test whose settings need a local process, for instance listeners on this
// machine's addresses. It starts a local process even if containers are demanded.
func LocalKafka(t testing.TB, config map[string]string) *KafkaServer {
	t.Helper()
	return ownKafka(t, local(t, "Kafka", func(ctx context.Context) (*KafkaServer, error) {
		return newLocalKafka(ctx, privateSettings(config))
	}))
}

func privateSettings(config map[string]string) map[string]string {
	settings := map[string]string{
		// A killed broker that starts again is fenced until its old session ends, which would take
		// nine seconds by default.
		"broker.session.timeout.ms":    "2000",
		"broker.heartbeat.interval.ms": "400",
	}
	maps.Copy(settings, config)
	return settings
}

func ownKafka(t testing.TB, k *KafkaServer) *KafkaServer {
	t.Helper()
	k.test = t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of Kafka at %s ends with:\n%s", k.address, k.private.log())
		}
		k.close()
	})
	return k
}

// own returns the node of a private server. It panics for a shared server, which a test must not stop.
func (k *KafkaServer) own() kafkaNode {
	if k.test == nil {
		panic("testenv: " + k.String() + " is shared: only a PrivateKafka can be stopped")
	}
	k.test.Helper()
	return k.private
}

// Stop shuts the broker down gracefully, as an operator would. Its data stays.
func (k *KafkaServer) Stop() { did(k.test, "stop Kafka", k.own().stop()) }

// Kill ends the broker at once, as a crash would. Its data stays.
func (k *KafkaServer) Kill() { did(k.test, "kill Kafka", k.own().kill()) }

// Start starts a stopped or killed broker again, on its port and data.
func (k *KafkaServer) Start() {
	node := k.own()
	k.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), kafkaStart)
	defer cancel()
	did(k.test, "start Kafka again at "+k.address, node.start(ctx))
}

// Pause makes the broker hang: connections stay open, but it answers nothing.
func (k *KafkaServer) Pause() { did(k.test, "pause Kafka", k.own().pause()) }

// Resume ends a Pause.
func (k *KafkaServer) Resume() { did(k.test, "resume Kafka", k.own().resume()) }
