package kafkaconn

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// forwards returns an address that forwards to a broker until closes is called.
func forwards(t *testing.T, broker string) (address string, closes func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", broker)
			if err != nil {
				_ = c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c, to)
			mu.Unlock()
			for _, pair := range [][2]net.Conn{{c, to}, {to, c}} {
				all.Go(func() { _, _ = io.Copy(pair[0], pair[1]); _ = pair[0].Close() })
			}
		}
	})
	closes = sync.OnceFunc(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	t.Cleanup(closes)
	return l.Addr().String(), closes
}

// The configured address is that of one broker, which dies. The other brokers give the new leaders, and the
// group's coordinator.
func TestAClusterIsFoundByAnyBrokerOnceTheConfiguredOneIsGone(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, "points"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	brokers := cluster.ListenAddrs()
	address, closes := forwards(t, brokers[0])
	s := Settings{Brokers: []string{address}, Timeout: time.Second}
	transport := s.Transport(100*time.Millisecond, "points")
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(address), Transport: transport, Timeout: 20 * time.Second}
	leader := func() string {
		m, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{"points"}})
		require.NoError(t, err)
		l := m.Topics[0].Partitions[0].Leader
		return net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
	}
	leader()
	closes()
	for node, broker := range brokers {
		require.NoError(t, cluster.MoveTopicPartition("points", 0, int32(node)))
		require.Eventually(t, func() bool { return leader() == broker }, 10*time.Second, 10*time.Millisecond)
	}
	for range 10 { // in random order
		conn, err := s.Dialer(transport).Dial("tcp", AnyBroker)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// A broker also closes connections in excess of its limit per address.
func TestAConnectionThatIsClosedUnansweredNamesTheLimitsOfConnections(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]func(net.Conn){"at once": func(net.Conn) {}, "with the request read": func(c net.Conn) { _, _ = c.Read(make([]byte, 1000)) }} {
		t.Run(name, func(t *testing.T) {
			address := server(t, each)
			transport := Settings{Brokers: []string{address}, Timeout: time.Second}.Transport(time.Second)
			t.Cleanup(transport.CloseIdleConnections)
			client := &kafka.Client{Addr: kafka.TCP(address), Transport: transport, Timeout: 5 * time.Second}
			_, err := client.Metadata(t.Context(), &kafka.MetadataRequest{})
			var closed *ClosedError
			require.ErrorAs(t, err, &closed)
			require.Equal(t, address, closed.Broker)
			require.ErrorContains(t, err, "max.connections.per.ip")
		})
	}
}
