package redisconn

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestWhatAClusterDoesNotServeIsNamed(t *testing.T) {
	part := func(start, end int, addr string) redis.ClusterSlot {
		return redis.ClusterSlot{Start: start, End: end, Nodes: []redis.ClusterNode{{Addr: addr}, {Addr: "replica:1"}}}
	}
	for name, c := range map[string]struct {
		view []redis.ClusterSlot
		away []string
		want []string
	}{
		"all is served":        {[]redis.ClusterSlot{part(8192, 16383, "b:1"), part(0, 8191, "a:1")}, nil, nil},
		"in the middle":        {[]redis.ClusterSlot{part(0, 99, "a:1"), part(101, 16383, "b:1")}, nil, []string{"no master has 100 of the cluster's slots"}},
		"at both ends":         {[]redis.ClusterSlot{part(10, 99, "a:1"), part(100, 16000, "b:1")}, nil, []string{"no master has 0-9, 16001-16383 of the cluster's slots"}},
		"none":                 {nil, nil, []string{"no master has 0-16383 of the cluster's slots"}},
		"a master is away":     {[]redis.ClusterSlot{part(0, 99, "a:1"), part(100, 199, "b:1"), part(200, 16383, "a:1")}, []string{"a:1"}, []string{"the master a:1, which has slots 0-99, 200-16383, doesn't answer: gone"}},
		"by a name of a proxy": {[]redis.ClusterSlot{part(0, 16383, "inside:1")}, []string{"proxy:1"}, []string{"the master proxy:1 doesn't answer: gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			var all Coverage
			for _, addr := range c.away {
				all.Away = append(all.Away, AwayMaster{Addr: addr, Err: errors.New("gone")})
			}
			all.read(c.view)
			require.Equal(t, c.want, all.Gaps())
		})
	}
}
