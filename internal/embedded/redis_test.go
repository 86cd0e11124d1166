package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestAnEmbeddedRedisKeepsScoresAndRunsScripts(t *testing.T) {
	r, err := StartRedis(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.Empty(t, r.Note)
	keepsScores(t, r.Address)
}

func TestWithoutAServerOnThePathMiniredisStandsIn(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("PATH", t.TempDir())
	r, err := StartRedis(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Miniredis, r.Name)
	require.Empty(t, r.Note)
	keepsScores(t, r.Address)
}

func TestTTLsOfAMiniredisRunByThemselves(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r, err := StartRedis(t.Context())
	require.NoError(t, err)
	defer r.Close()
	client := connect(t, r.Address)
	require.NoError(t, client.Set(t.Context(), "k", "v", 50*time.Millisecond).Err())
	require.Eventually(t, func() bool { return client.Exists(t.Context(), "k").Val() == 0 },
		10*time.Second, 10*time.Millisecond)
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

	for name, old := range map[string]bool{"redis-server 6.0.16": true, "redis-server 5.0.3": true,
		"redis-server 6.2.0": false, "redis-server 7.0.15": false, "valkey-server 8.0.1": false, "redis-server 10.0.0": false} {
		major, minor, err := version(name)
		require.NoError(t, err)
		require.Equal(t, old, major < 6 || major == 6 && minor < 2, name)
	}
}

func TestAServerIsNamedByItsInfo(t *testing.T) {
	require.Equal(t, "redis-server 7.0.15", RedisName("# Server\r\nredis_version:7.0.15\r\n"))
	require.Equal(t, "valkey-server 8.0.1", RedisName("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"))
	require.Equal(t, Miniredis, RedisName("# Clients\r\nconnected_clients:1\r\n"))
}

func TestAServerOnAPortThatIsTakenIsNotMistakenForOurs(t *testing.T) {
	path := server(t)
	first, err := StartRedisServer(t.Context(), RedisOptions{Program: path})
	require.NoError(t, err)
	defer first.Close()
	second := &RedisServer{Dir: t.TempDir()}
	err = second.start(t.Context(), RedisOptions{Program: path, Port: first.Port})
	require.ErrorIs(t, err, errPortTaken)
}

func TestClosingAServerRemovesItsDirectoryAndEndsIt(t *testing.T) {
	s, err := StartRedisServer(t.Context(), RedisOptions{Program: server(t)})
	require.NoError(t, err)
	s.Close()
	_, err = os.Stat(s.Dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotNil(t, s.Process.Done())
	<-s.Process.Done()
}

func TestAServerThatRefusesItsArgumentsSaysWhy(t *testing.T) {
	_, err := StartRedisServer(t.Context(), RedisOptions{Program: server(t), Args: []string{"--maxmemory", "much"}})
	require.ErrorContains(t, err, "maxmemory")
}

func TestAServerEvictsNothing(t *testing.T) {
	s, err := StartRedisServer(t.Context(), RedisOptions{Program: server(t)})
	require.NoError(t, err)
	defer s.Close()
	policy, err := connect(t, s.Address).ConfigGet(t.Context(), "maxmemory-policy").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory-policy": "noeviction"}, policy)
}

// server is a real server; where the machine has none, nothing here is about it.
func server(t *testing.T) string {
	t.Helper()
	for _, name := range RedisServers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("STANDINGS_TEST_DEMAND") == "real" {
		t.Fatal("no redis-server or valkey-server on the PATH")
	}
	notRun(t, "no redis-server or valkey-server on the PATH")
	return ""
}

// notRun is what testenv.NotRun does; testenv is built on this package.
func notRun(t *testing.T, reason string) {
	t.Helper()
	if list := os.Getenv("STANDINGS_TEST_NOTRUN"); list != "" {
		f, err := os.OpenFile(list, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintf(f, "%s: %s\n", t.Name(), reason)
		require.NoError(t, errFirst(err, f.Close()))
	}
	t.Skip("not run: " + reason)
}

func errFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func keepsScores(t *testing.T, address string) {
	t.Helper()
	client := connect(t, address)
	const exact = 25.123456789012345
	require.NoError(t, client.ZAdd(t.Context(), "board", redis.Z{Score: exact, Member: "u1"}).Err())
	reply, err := client.Eval(t.Context(), `return redis.call('ZSCORE', KEYS[1], 'u1')`, []string{"board"}).Text()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(reply, "25.1234567890123"), reply)
}

func connect(t *testing.T, address string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
