package redisconn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

func TestEveryMasterReportsItsMemory(t *testing.T) {
	client := testenv.PrivateRedis(t, "--maxmemory", "60mb", "--maxmemory-policy", "noeviction").Client(t)
	all, err := Memories(t.Context(), client)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, client.Options().Addr, all[0].Server)
	require.EqualValues(t, 60<<20, all[0].Max)
	require.Greater(t, all[0].Used, int64(100_000))
	require.NoError(t, client.Do(t.Context(), "acl", "setuser", "default", "-info").Err())
	all, err = Memories(t.Context(), client)
	require.NoError(t, err)
	require.Empty(t, all, "without the right to INFO")
}
