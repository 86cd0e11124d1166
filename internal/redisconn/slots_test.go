package redisconn

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// silentServer accepts connections and never replies, like a stopped server.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l.Addr().String()
}

// A cluster client asks nodes in random order, so the test tries several times.
func TestNodesThatHangDoNotKeepAClusterFromBeingReached(t *testing.T) {
	t.Parallel()
	node := testenv.LocalRedis(t, "--cluster-enabled", "yes")
	direct := node.Client(t)
	require.NoError(t, direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, 30*time.Second, 50*time.Millisecond)
	const timeout = 4 * time.Second
	var all sync.WaitGroup
	for range 8 {
		c := NewClient(Settings{Addresses: []string{silentServer(t), silentServer(t), node.Addr()}, Timeout: timeout})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		all.Go(func() {
			if err := c.Get(Within(t.Context(), timeout), "key").Err(); err == nil || err.Error() != "redis: nil" {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
