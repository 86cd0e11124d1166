package fetch

// Helpers of these tests: kafka-go's Transport on a broker, with connections that can be made to hang, and
// records that franz-go produces.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

const topic = "events"

func fake(t testing.TB, options ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(2, topic)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// budget is a Memory that is safe for concurrent use.
type budget struct {
	mu                sync.Mutex
	limit, held, most int64
}

func (b *budget) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || b.held+n > b.limit {
		return false
	}
	b.held += n
	b.most = max(b.most, b.held)
	return true
}

func (b *budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held -= n; n < 0 || b.held < 0 {
		panic("more released than taken")
	}
}

func (b *budget) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// gate controls the reads of connections. While it is shut, a read of more than a few bytes blocks: the
// length of the response is read, but not its body.
type gate struct {
	dials atomic.Int32
	mu    sync.Mutex
	shut  chan struct{} // nil: open
	stuck chan struct{} // closed when a read blocks
}

func (g *gate) close() (stuck <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.stuck = make(chan struct{}), make(chan struct{})
	return g.stuck
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Read(b []byte) (int, error) {
	const large = 4096 // bufio's buffer: a larger read is a body, read directly
	if len(b) > large {
		c.gate.mu.Lock()
		shut, stuck := c.gate.shut, c.gate.stuck
		c.gate.mu.Unlock()
		if shut != nil {
			select {
			case <-stuck:
			default:
				close(stuck)
			}
			<-shut
		}
	}
	return c.Conn.Read(b)
}

// fetcher returns a Fetcher of partition 0 on a Transport that ends with the test.
func fetcher(t testing.TB, address string) (*Fetcher, *gate, *budget) {
	t.Helper()
	return fetcherOf(t, address, topic)
}

func fetcherOf(t testing.TB, address, topic string) (*Fetcher, *gate, *budget) {
	t.Helper()
	g := &gate{}
	transport := &kafka.Transport{
		MetadataTopics: []string{topic}, MetadataTTL: 20 * time.Second, // also the timeout of metadata requests
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			g.dials.Add(1)
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return gated{c, g}, nil
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	m := &budget{limit: 1 << 40}
	f := &Fetcher{Transport: transport, Addr: kafka.TCP(address), ClientID: "test", Topic: topic, MaxWait: 200 * time.Millisecond, Memory: m}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := f.Drop(ctx); err != nil {
			t.Error(err)
		}
		if n := m.now(); n != 0 {
			t.Errorf("%d bytes are still held", n)
		}
	})
	return f, g, m
}

func client(t testing.TB, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(16 << 20), kgo.MetadataMinAge(10 * time.Millisecond),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// produce writes values to partition 0, each in a batch of its own.
func produce(t testing.TB, c *kgo.Client, values ...string) {
	t.Helper()
	for _, v := range values {
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: []byte(v)}).FirstErr())
	}
}

// follow reads from an offset to the partition's last stable offset.
func follow(t testing.TB, f *Fetcher, offset int64) (values []string, next int64) {
	t.Helper()
	var r recordbatch.Reader
	defer r.Close()
	for {
		res, err := f.Fetch(t.Context(), offset)
		if err == nil {
			err = res.Err
		}
		require.NoError(t, err)
		res.Read(&r, offset)
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			values = append(values, string(rec.Value))
		}
		end := res.LastStable
		offset = r.Position()
		res.Release()
		if offset >= end {
			return values, offset
		}
	}
}

func numbered(prefix string, n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprintf("%s%d", prefix, i))
	}
	return values
}

// silence returns the address of a server that accepts connections and never answers.
func silence(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		var conns []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
		}
		for _, c := range conns {
			_ = c.Close() // the client may have closed it first
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		done.Wait()
	})
	return l.Addr().String()
}
