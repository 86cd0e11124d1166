package fetch

// A broker that throttles (KIP-219).

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// throttling is a transport that answers every request; edit changes the n-th answer.
type throttling struct {
	edit func(n int, r *kmsg.FetchResponse)
	at   []time.Time // of requests
}

func (b *throttling) RoundTrip(_ context.Context, _ net.Addr, m kafka.Request) (kafka.Response, error) {
	x := m.(*exchange)
	x.Required(map[protocol.ApiKey]int16{protocol.Fetch: newest})
	n := len(b.at)
	b.at = append(b.at, time.Now())
	request := &bytes.Buffer{}
	return x.RawExchange(struct {
		io.Writer
		io.Reader
	}{request, lazily(func() []byte {
		correlation := int32(binary.BigEndian.Uint32(request.Bytes()[8:]))
		return answer(newest, correlation, func(r *kmsg.FetchResponse) { b.edit(n, r) })
	})})
}

func lazily(fill func() []byte) io.Reader {
	var r *bytes.Reader
	return reads(func(p []byte) (int, error) {
		if r == nil {
			r = bytes.NewReader(fill())
		}
		return r.Read(p)
	})
}

type reads func([]byte) (int, error)

func (f reads) Read(p []byte) (int, error) { return f(p) }

func TestTheNextCallWaitsAsLongAsTheBrokerAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &throttling{edit: func(n int, r *kmsg.FetchResponse) {
			switch n {
			case 0, 1:
				r.ThrottleMillis, r.Topics = 9000, nil
			case 2: // with records, as brokers other than Kafka's do
				r.ThrottleMillis = 500
			}
		}}
		m := &budget{limit: 1 << 20}
		f := &Fetcher{Transport: b, Topic: topic, Memory: m}
		for n, want := range []bool{false, false, true, true} {
			began := time.Now()
			r, err := f.Fetch(t.Context(), 5)
			if err != nil || r.Answered() != want || want && string(r.Records) != "records" {
				t.Fatalf("answer %d: %+v: %v", n, r, err)
			}
			r.Release()
			if asked := []time.Duration{0, 9 * time.Second, 9 * time.Second, 500 * time.Millisecond}[n]; time.Since(began) < asked || time.Since(began) > asked+asked/10 {
				t.Errorf("it was asked again after %v, and wanted %v", time.Since(began), asked)
			}
		}
		if err := f.Drop(t.Context()); err != nil || m.now() != 0 {
			t.Fatalf("%d bytes are held: %v", m.now(), err)
		}
	})
}

func TestNothingIsHeldWhileABrokerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &throttling{edit: func(n int, r *kmsg.FetchResponse) {
			r.ThrottleMillis = 30_000
			r.Topics[0].Partitions[0].RecordBatches = make([]byte, DefaultMaxBytes)
		}}
		m := &budget{limit: 1 << 24}
		f := &Fetcher{Transport: b, Topic: topic, Memory: m}
		if _, err := f.Fetch(t.Context(), 5); err != nil || m.now() < DefaultMaxBytes {
			t.Fatalf("%d bytes are held: %v", m.now(), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			_, err := f.Fetch(ctx, 5)
			ended <- err
		}()
		synctest.Wait()
		if m.now() != 0 {
			t.Errorf("%d bytes are held", m.now())
		}
		over := errors.New("the generation is over")
		began := time.Now()
		cancel(over)
		if err := <-ended; !errors.Is(err, over) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if len(b.at) != 1 {
			t.Errorf("%d requests", len(b.at))
		}
	})
}

// A broker does not read from a connection that it throttles, while the transport would use it for any
// request.
func TestAConnectionThatIsThrottledForLongIsGivenToNobodyElse(t *testing.T) {
	for _, c := range []struct {
		ms    int32
		again bool
	}{{50, false}, {1100, true}} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
		require.NoError(t, err)
		t.Cleanup(cluster.Close)
		address := cluster.ListenAddrs()[0]
		produce(t, client(t, address, kgo.ProducerBatchCompression(kgo.NoCompression())), "a")
		f, g, _ := fetcher(t, address)
		if got, _ := follow(t, f, 0); len(got) != 1 {
			t.Fatal(got)
		}
		var throttles atomic.Bool
		throttles.Store(true)
		cluster.ControlKey(int16(protocol.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			if !throttles.Load() {
				return nil, nil, false
			}
			r := q.ResponseKind().(*kmsg.FetchResponse)
			r.ThrottleMillis = c.ms
			return r, nil, true
		})
		dials := g.dials.Load()
		r, err := f.Fetch(t.Context(), 0)
		if err != nil || r.Answered() || r.Throttled != time.Duration(c.ms)*time.Millisecond {
			t.Fatalf("%+v: %v", r, err)
		}
		throttles.Store(false)
		if got, _ := follow(t, f, 0); len(got) != 1 {
			t.Fatal(got)
		}
		if again := g.dials.Load() > dials; again != c.again {
			t.Errorf("after a throttle of %d ms: a new connection %t", c.ms, again)
		}
	}
}
