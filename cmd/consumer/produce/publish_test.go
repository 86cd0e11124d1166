package produce

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/test/clitest"
)

func TestProduceTriesAgainUntilABrokerRecovers(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: 3},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 3},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.UnknownTopicOrPartition, Count: 3})
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "1000")
	if code != 0 || !strings.HasPrefix(stdout, "published 1,000 events") || strings.Contains(stdout, "may have been written") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if got := count(logOf(t, c, "points")); got != 1000 {
		t.Errorf("%d records, want 1000: nothing was written by the refused attempts", got)
	}
}

// cut is a listener whose connections can be closed when a response is written.
type cut struct {
	net.Listener
	answers *atomic.Int64 // number of responses to lose from now on
	silent  bool          // the connection stays open
}

func (c cut) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return cutConn{conn, c}, err
}

type cutConn struct {
	net.Conn
	cut
}

func (c cutConn) Write(p []byte) (int, error) {
	switch lost := c.answers.Add(-1) >= 0; {
	case lost && c.silent:
		return len(p), nil
	case lost:
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// A fixed copy that is written twice counts twice.
func TestWhatIsSentAgainForWantOfAnAnswerIsWrittenOnce(t *testing.T) {
	lost := new(atomic.Int64)
	for name, trouble := range map[string]struct {
		fault  kfake.Fault
		listen bool
	}{
		"a leader without its replicas' answer": {fault: kfake.Fault{Err: kerr.RequestTimedOut, Count: 2}},
		"too few replicas after it was written": {fault: kfake.Fault{Err: kerr.NotEnoughReplicasAfterAppend, Count: 2}},
		"a connection that ends": {listen: true, fault: kfake.Fault{Observe: true, Count: 3, When: func(kmsg.Request) bool {
			lost.Store(1)
			return true
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			var options []kfake.Opt
			if trouble.listen {
				options = append(options, kfake.ListenFn(func(network, address string) (net.Listener, error) {
					l, err := net.Listen(network, address)
					return cut{l, lost, false}, err
				}))
			}
			c, environ := clitest.FakeKafka(t, options...)
			trouble.fault.Keys = []kmsg.Key{kmsg.Produce}
			met := c.Fault(trouble.fault)
			code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "100", "--members", "1")
			if code != 0 || !strings.HasPrefix(stdout, "published 100 events") || strings.Contains(stdout, "may have been written") {
				t.Errorf("code %d\n%s%s", code, stdout, stderr)
			}
			if got := count(logOf(t, c, "points")); got != 100 || met.Hits() < 2 {
				t.Errorf("%d records by %d attempts, want 100", got, met.Hits())
			}
		})
	}
}

// takes sets the maximum batch size of the topic.
func takes(t *testing.T, c *kfake.Cluster, bytes string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	set := []kadm.AlterConfig{{Name: "max.message.bytes", Value: &bytes}}
	if done, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), set, "points"); err != nil || done[0].Err != nil {
		t.Fatal(done, err)
	}
}

func TestABatchIsNoLargerThanTheTopicTakes(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	takes(t, c, "3000")
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "2000")
	if code != 0 || count(logOf(t, c, "points")) != 2000 {
		t.Errorf("code %d, %d records\n%s%s", code, count(logOf(t, c, "points")), stdout, stderr)
	}
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, []byte(`{"user_id":"a","note":"`+strings.Repeat("x", 4000)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = clitest.Execute(t, Command, environ, "produce", "--file", path)
	if code != 1 || strings.Count(withoutProgress(stderr), "\n") != 1 || !strings.Contains(stderr, "an event of 4026 bytes is more than topic points takes") || strings.Contains(stdout, "may have been written") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	code, stdout, stderr = clitest.Execute(t, Command, environ, "produce", "--count", "2000", "--members", "1")
	if code != 1 || strings.Count(withoutProgress(stderr), "\n") != 1 || !strings.Contains(stderr, "no right to DescribeConfigs the topic") || strings.Contains(stdout, "may have been written") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	// The first batches may have been sent with few events, and so may be small enough.
	var published int
	if _, err := fmt.Sscanf(stdout, "published %d event", &published); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if got := count(logOf(t, c, "points")); got != 2000+published {
		t.Errorf("%d records, want the 2000 of before and %d", got, published)
	}
}

func TestTheRightThatIdempotenceTakesIsNamed(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10")
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "Write the topic, and before Kafka 2.8 that to IdempotentWrite the cluster") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// Continuing with a new sequence could write records twice.
func TestALogThatForgetsWhatItAcknowledgedEndsTheRun(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber, Count: 1})
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10", "--members", "1")
	if code != 1 || strings.Count(withoutProgress(stderr), "\n") != 1 || !strings.Contains(stderr, "no longer has acknowledged records (OUT_OF_ORDER_SEQUENCE_NUMBER)") ||
		!strings.Contains(stdout, "\n10 more may have been written") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

func TestAnInterruptedProduceGivesUpOnAnAbsentBrokerInTime(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	refusing := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = refusing.Wait(ctx, 2)
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := execute(ctx, []string{"produce", "--rate", "1000"}, append(environ, "STANDINGS_SHUTDOWN_TIMEOUT=200ms"), strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.HasPrefix(stdout.String(), "published 0 events") || !strings.Contains(stdout.String(), "more may have been written: they were not acknowledged") ||
		!strings.HasSuffix(stderr.String(), "consumer: interrupted\n") {
		t.Errorf("code %d\n%s%s", code, &stdout, &stderr)
	}
}

func TestAnInterruptedProduceDoesNotWaitForABrokerThatHangs(t *testing.T) {
	lost := new(atomic.Int64)
	c, environ := clitest.FakeKafka(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return cut{l, lost, true}, err
	}))
	seen := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1, When: func(kmsg.Request) bool {
		lost.Store(1 << 40)
		return true
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var interrupted time.Time
	go func() {
		_ = seen.Wait(ctx, 1)
		interrupted = time.Now()
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := execute(ctx, []string{"produce", "--count", "10", "--members", "1"}, append(environ, "STANDINGS_SHUTDOWN_TIMEOUT=200ms"), strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.HasPrefix(stdout.String(), "published 0 events") || !strings.Contains(stdout.String(), "more may have been written: they were not acknowledged") {
		t.Errorf("code %d\n%s%s", code, &stdout, &stderr)
	}
	if took := time.Since(interrupted); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	lost.Store(0)
	if got := count(logOf(t, c, "points")); got == 0 || got > 10 { // at most the first batch
		t.Errorf("%d records: it isn't about an answer that is lost", got)
	}
}

func publisherTo(t testing.TB, brokers []string, patience time.Duration) *Publisher {
	t.Helper()
	cfg := config.Defaults()
	cfg.Kafka.Brokers = brokers
	p, err := Open(t.Context(), Options{Kafka: &cfg.Kafka, Topic: "points", Partitions: 4, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The results of the other records are known before the run ends.
func TestAPartitionThatAcknowledgesNothingIsGivenUpWithTheCause(t *testing.T) {
	c, _ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{2}, Err: kerr.NotEnoughReplicas, Count: -1})
	p := publisherTo(t, c.ListenAddrs(), time.Second)
	n := 0
	var err error
	for ; err == nil; n++ {
		err = p.add(t.Context(), outgoing{value: []byte("{}")})
		time.Sleep(time.Millisecond)
	}
	err = p.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "points/2 has not acknowledged anything for 1s: NOT_ENOUGH_REPLICAS") {
		t.Errorf("%v", err)
	}
	taken := p.lanes[2].taken.Load()
	if sure := p.events.Load(); sure+taken != p.taken || p.unsure() != taken {
		t.Errorf("%d taken, %d by partition 2, %d acknowledged, %d unsure", p.taken, taken, sure, p.unsure())
	}
}

// A throttled producer continues.
func TestAQuotaIsWaitedOut(t *testing.T) {
	c, _ := clitest.FakeKafka(t)
	refused := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	p := publisherTo(t, c.ListenAddrs(), time.Second)
	p.trouble.OnBrokerThrottle(kgo.BrokerMetadata{}, time.Minute, false)
	if err := p.add(t.Context(), outgoing{key: []byte("a"), value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.failed:
		t.Errorf("given up: %v", p.err)
	case <-time.After(2 * p.Patience):
	}
	refused.Remove()
	if err := p.Close(t.Context()); err != nil || p.events.Load() != 1 {
		t.Error(err)
	}
}

func TestABrokerThatGoesAwayIsNamed(t *testing.T) {
	c, _ := clitest.FakeKafka(t)
	p := publisherTo(t, c.ListenAddrs(), time.Second)
	address := c.ListenAddrs()[0]
	c.Close()
	if err := p.add(t.Context(), outgoing{key: []byte("a"), value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	<-p.failed
	err := p.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "can't connect to Kafka at "+address) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	c, _ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: 3})
	p := publisherTo(t, c.ListenAddrs(), publishPatience)
	value := make([]byte, 500_000)
	most := int64(0)
	for i := range 300 {
		if err := p.add(t.Context(), outgoing{key: []byte(strconv.Itoa(i)), value: value}); err != nil {
			t.Fatal(err)
		}
		most = max(most, p.held.Load())
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most > publishMemory+1_000_000 || p.held.Load() != 0 || p.events.Load() != 300 {
		t.Errorf("%d bytes at most, %d in the end, %d events", most, p.held.Load(), p.events.Load())
	}
}
