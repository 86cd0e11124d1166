package testenv

// A Kafka of a test's own, to be killed, paused and started again.

import (
	"context"
	"errors"
	"maps"
	"testing"
)

// PrivateKafka starts a Kafka for this test alone, with broker settings such as
// message.max.bytes. What they say of listeners comes beside the one that Addr
// names, which is without TLS and SASL. It ends with the test. There is no embedded one: where the
// machine has no Kafka, the test is reported as not run.
func PrivateKafka(t testing.TB, config map[string]string) *KafkaServer {
	t.Helper()
	settings := map[string]string{
		// A killed broker that starts again is kept out until its old session ends,
		// which would take nine seconds.
		"broker.session.timeout.ms":    "2000",
		"broker.heartbeat.interval.ms": "400",
	}
	maps.Copy(settings, config)
	p, err := newKafkaProcess(t.Context(), settings)
	if errors.Is(err, errNotHere) {
		NotRun(t, "it needs a Kafka of its own: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	k := p.server()
	k.private, k.test = p, t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of Kafka at %s ends with:\n%s", k.address, tail(p.file("log")))
		}
		k.close()
	})
	return k
}

// own is the process of a private server; the others are not this test's to stop.
func (k *KafkaServer) own() *kafkaProcess {
	if k.private == nil {
		panic("testenv: " + k.String() + " is shared: only a PrivateKafka can be stopped")
	}
	k.test.Helper()
	return k.private
}

// Stop ends the broker in order, as an operator would. Its data stays.
func (k *KafkaServer) Stop() {
	k.own().process.Stop(kafkaGrace)
}

// Kill ends the broker at once, as a crash would. Its data stays.
func (k *KafkaServer) Kill() {
	k.own().process.Kill()
}

// Start starts a stopped or killed broker again, on its port and data.
func (k *KafkaServer) Start() {
	p := k.own()
	k.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), kafkaStart)
	defer cancel()
	if err := p.start(ctx); err != nil {
		k.test.Fatalf("start Kafka again at %s: %v", k.address, err)
	}
}

// Pause makes the broker hang: connections stay open, nothing is answered.
func (k *KafkaServer) Pause() { pause(k.test, k.own().process) }

// Resume ends a Pause.
func (k *KafkaServer) Resume() { resume(k.test, k.own().process) }

// Dir is where the broker keeps its configuration, log and data.
func (k *KafkaServer) Dir() string { return k.own().dir }
