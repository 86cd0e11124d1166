package ranking

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

// moving is an address that can switch to another server, like a name after a failover. A connected client
// finds its connection closed before the next call.
type moving struct {
	mu    sync.Mutex
	at    string
	conns []net.Conn
}

func (m *moving) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, m.at)
	if err == nil {
		m.conns = append(m.conns, conn)
	}
	return conn, err
}

func (m *moving) to(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.conns {
		_ = conn.Close()
	}
	m.at, m.conns = address, nil
}

// Two servers have the same standings, but each has its own order of members. The second takes over after
// some pages, and no call fails.
func TestAFailoverThatNoCallNoticesLeavesNoMemberOutOfAComparison(t *testing.T) {
	first, second := testenv.PrivateRedis(t), testenv.PrivateRedis(t)
	const members = 20 * scanned
	for _, server := range []*testenv.RedisServer{first, second} {
		rows := make([]redis.Z, members)
		for i := range rows {
			rows[i] = redis.Z{Score: float64(i), Member: fmt.Sprint("member ", i)}
		}
		require.NoError(t, server.Client(t).ZAdd(t.Context(), "lb:{0}:a", rows...).Err())
	}
	where := &moving{at: first.Addr()}
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{first.Addr()}, Timeout: 20 * time.Second, Network: where.dial})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	f := newFixture(t, client.(*redis.Client), "lb")
	pages := 0
	f.client.AddHook(eavesdropper(func(args []any) error {
		if args[0] == "info" {
			return nil
		}
		if pages++; pages == 10 {
			where.to(second.Addr())
		}
		return nil
	}))
	seen := map[string]bool{}
	c := Sets{Store: f.store, A: Set{Key: "lb:{0}:a"}, B: Set{Key: "lb:{0}:b"}}
	err := c.Scan(t.Context(), 0, func(member, _, _ string) error { seen[member] = true; return nil })
	require.NoError(t, err)
	require.Greater(t, pages, 20)
	require.Equal(t, 0, members-len(seen), "members that were left out")
}
