package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestWithoutAServerOnThePathMiniredisStandsIn(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("PATH", t.TempDir())
	r, err := StartRedis(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Miniredis, r.Name)
	require.Empty(t, r.Note)
	client := connect(t, r.Address)
	require.NoError(t, client.Set(t.Context(), "k", "v", 50*time.Millisecond).Err())
	require.Eventually(t, func() bool { return client.Exists(t.Context(), "k").Val() == 0 }, 10*time.Second, 10*time.Millisecond)
}

func TestAClockThatStandsStillDoesSoForScripts(t *testing.T) {
	defer goleak.VerifyNone(t)
	now := time.Date(2026, 11, 25, 4, 0, 0, 0, time.UTC)
	r, err := StartMiniredisAt(t.Context(), now)
	require.NoError(t, err)
	defer r.Close()
	client := redis.NewClient(&redis.Options{Addr: r.Address})
	defer func() { require.NoError(t, client.Close()) }()
	reply, err := client.Eval(t.Context(), `return tonumber(redis.call('TIME')[1])`, nil).Int64()
	require.NoError(t, err)
	require.Equal(t, now.Unix(), reply)
}

func TestAServerThatIsTooOldOrBrokenIsPassedOverWithANote(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	script := "#!/bin/sh\necho no space left on device >&2\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o700))
	r, err := StartRedis(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Miniredis, r.Name)
	require.Contains(t, r.Note, "no space left on device")
}

func TestAServerIsNamedByItsInfo(t *testing.T) {
	require.Equal(t, "redis-server 7.0.15", RedisName("# Server\r\nredis_version:7.0.15\r\n"))
	require.Equal(t, "valkey-server 8.0.1", RedisName("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"))
	require.Equal(t, Miniredis, RedisName("# Clients\r\nconnected_clients:1\r\n"))
}

func connect(t *testing.T, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
