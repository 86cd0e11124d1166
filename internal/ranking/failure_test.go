package ranking

// Tests errors of a server that really has the problem: how they are classified, and that keys change only
// by a whole piece.

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

// private returns a fixture on a server of its own. A member has 10 points, and the next piece adds 10
// more.
func private(t *testing.T, args ...string) (*fixture, *testenv.RedisServer) {
	t.Helper()
	server := testenv.PrivateRedis(t, args...)
	// A client as the program uses it, which doesn't repeat calls by itself.
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	f := newFixture(t, client.(*redis.Client), "lb")
	f.begin(t)
	f.add(t, f.member("u1", 10))
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	return f, server
}

func (f *fixture) set(t tester, setting ...any) {
	t.Helper()
	require.NoError(t, f.client.Do(t.Context(), append([]any{"config", "set"}, setting...)...).Err())
}

// fails sends the piece and requires an error that contains a text.
func (f *fixture) fails(t tester, says string) error {
	t.Helper()
	_, _, err := f.store.Apply(t.Context(), &f.piece)
	require.ErrorContains(t, err, says)
	require.ErrorContains(t, err, "apply events/3 from 10 to 20: ")
	return err
}

func TestATroubledServerChangesNothingAndIsTriedAgain(t *testing.T) {
	f, server := private(t)
	killer := f.client.Conn() // connected now: a busy Redis 6.2 answers BUSY to a new connection
	defer func() { require.NoError(t, killer.Close()) }()
	require.NoError(t, killer.Ping(t.Context()).Err())
	for _, c := range []struct {
		code        string
		spoil, mend func(*testing.T)
	}{
		{"OOM", func(t *testing.T) { f.set(t, "maxmemory", "1") }, func(t *testing.T) { f.set(t, "maxmemory", "0") }},
		{"NOREPLICAS", func(t *testing.T) { f.set(t, "min-replicas-to-write", "1") }, func(t *testing.T) { f.set(t, "min-replicas-to-write", "0") }},
		{
			"READONLY",
			func(t *testing.T) { require.NoError(t, f.client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err()) },
			func(t *testing.T) { require.NoError(t, f.client.ReplicaOf(t.Context(), "no", "one").Err()) },
		},
		{
			"MASTERDOWN",
			func(t *testing.T) {
				f.set(t, "replica-serve-stale-data", "no")
				require.NoError(t, f.client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
			},
			func(t *testing.T) { require.NoError(t, f.client.ReplicaOf(t.Context(), "no", "one").Err()) },
		},
		{
			"MISCONF",
			func(t *testing.T) {
				f.set(t, "save", "3600 1")
				server.SpoilDumps()
				require.NoError(t, f.client.BgSave(t.Context()).Err())
				require.Eventually(t, func() bool {
					return strings.Contains(f.client.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
				}, 30*time.Second, 10*time.Millisecond)
			},
			func(t *testing.T) { f.set(t, "save", "") },
		},
		{
			"BUSY",
			func(t *testing.T) {
				f.set(t, "lua-time-limit", "1")
				go func() { _ = f.client.Eval(t.Context(), "while true do end", nil).Err() }()
				require.Eventually(t, func() bool {
					return strings.HasPrefix(f.client.Get(t.Context(), "x").Err().Error(), "BUSY")
				}, 30*time.Second, 10*time.Millisecond)
			},
			func(t *testing.T) {
				require.NoError(t, killer.ScriptKill(t.Context()).Err())
				require.Eventually(t, func() bool { return killer.Ping(t.Context()).Err() == nil }, 30*time.Second, 10*time.Millisecond)
			},
		},
	} {
		t.Run(c.code, func(t *testing.T) {
			f.unchanged(t, func() {
				c.spoil(t)
				defer c.mend(t)
				err := f.fails(t, c.code+" ")
				require.Equal(t, ledger.Retry, Classify(err))
				require.False(t, redisconn.Unreachable(err), "it has answered")
				full, isFull := errors.AsType[*ledger.FullError](err)
				require.Equal(t, c.code == "OOM", isFull)
				if isFull {
					require.Equal(t, int64(1), full.Max)
					require.Greater(t, full.Used, int64(100_000))
				}
			})
		})
	}
	f.mustApply(t)
}

func TestALoadingServerIsTriedAgain(t *testing.T) {
	debug := []string{"--enable-debug-command", "yes"}
	if strings.HasPrefix(testenv.PrivateRedis(t).Name(), "redis-server 6.") {
		debug = nil // Redis 6 needs no permission
	}
	f, _ := private(t, debug...)
	f.set(t, "key-load-delay", "10000") // µs per key: ten seconds in all
	f.set(t, "rdbcompression", "no")
	for range 1000 { // Redis handles other events every 2 MB
		require.NoError(t, f.client.RPush(t.Context(), "lb"+rand.Text(), strings.Repeat("x", 20_000)).Err())
	}
	f.unchanged(t, func() {
		loaded := make(chan error, 1)
		go func() { loaded <- f.client.Do(t.Context(), "debug", "reload").Err() }()
		require.Eventually(t, func() bool {
			return strings.Contains(f.client.Get(t.Context(), "x").Err().Error(), "LOADING ")
		}, 30*time.Second, 5*time.Millisecond)
		require.Equal(t, ledger.Retry, Classify(f.fails(t, "LOADING ")))
		f.set(t, "key-load-delay", "0")
		require.NoError(t, <-loaded)
	})
	f.mustApply(t)
}

func TestFlushedScriptsAreSentAgain(t *testing.T) {
	f, _ := private(t)
	require.NoError(t, f.client.ScriptFlush(t.Context()).Err())
	f.mustApply(t)
	require.NoError(t, f.client.ScriptFlush(t.Context()).Err())
	_, err := f.store.State(t.Context())
	require.NoError(t, err)
}

func TestAKeyThatHoldsSomethingElseHalts(t *testing.T) {
	f := someone(t)
	for _, key := range []string{f.store.keys.Ledger(), f.store.keys.Schema(), f.store.keys.Windows(), f.key(0), f.key(2)} {
		aside := f.prefix + "aside"
		require.NoError(t, f.client.Rename(t.Context(), key, aside).Err())
		require.NoError(t, f.client.LPush(t.Context(), key, "x").Err())
		f.unchanged(t, func() { require.Equal(t, ledger.Halt, Classify(f.fails(t, "WRONGTYPE "))) })
		require.NoError(t, f.client.Del(t.Context(), key).Err())
		require.NoError(t, f.client.Rename(t.Context(), aside, key).Err())
	}
	require.Equal(t, ledger.Applied, f.apply(t).Outcome)
}

func TestCredentialsThatAreMissingOrWrongHalt(t *testing.T) {
	f, server := private(t)
	f.set(t, "requirepass", "secret")
	for code, dial := range map[string]redisconn.Settings{"NOAUTH": {}, "WRONGPASS": {Password: "other"}} {
		dial.Addresses, dial.Timeout = []string{server.Addr()}, 20*time.Second
		client := redisconn.NewClient(dial)
		store := f.storeOf(t, func(c *Config) { c.Client = client })
		_, _, err := store.Apply(t.Context(), &f.piece)
		require.ErrorContains(t, err, code)
		require.Equal(t, ledger.Halt, Classify(err))
		require.Equal(t, ledger.Refuse, Classify(err).AtStart())
		// Try doesn't mistake the error for a server that doesn't report its policy.
		err = store.Try(t.Context(), true)
		require.ErrorContains(t, err, code)
		require.Equal(t, ledger.Refuse, Classify(err).AtStart())
		require.NoError(t, client.Close())
	}
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Password: "secret", Timeout: 20 * time.Second})
	require.NoError(t, f.storeOf(t, func(c *Config) { c.Client = client }).Try(t.Context(), false))
	require.NoError(t, client.Close())
}

// as returns a client of a user with the given rights.
func (f *fixture) as(t *testing.T, server *testenv.RedisServer, rules ...string) redis.UniversalClient {
	t.Helper()
	args := []any{"acl", "setuser", "worker", "reset", "on", ">p"}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, f.client.Do(t.Context(), args...).Err())
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Username: "worker", Password: "p", Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestAScriptThatDiesMidwayLeavesTheLedgerTorn(t *testing.T) {
	for _, c := range []struct {
		command string
		torn    bool
	}{
		{"hget", false}, {"get", false}, {"exists", false}, {"time", false}, {"zmscore", false}, {"hset", false},
		{"zadd", true}, {"pexpireat", true},
	} {
		t.Run(c.command, func(t *testing.T) {
			f, server := private(t)
			// A new window, so that the script uses every command.
			f.piece.Windows[0].Board = "eu"
			before := contents(t, f.client, f.prefix)
			full := f.store
			f.store = f.storeOf(t, func(config *Config) { config.Client = f.as(t, server, "~*", "+@all", "-"+c.command) })
			err := f.fails(t, "")
			require.True(t, redisconn.IsMissingRight(err), err)
			require.Equal(t, ledger.Halt, Classify(err))
			f.store = full
			if !c.torn {
				require.Equal(t, before, contents(t, f.client, f.prefix))
				f.mustApply(t)
				return
			}
			position, err := f.store.Position(t.Context(), ledger.Partition{Topic: "events", Number: 3})
			require.NoError(t, err)
			require.Equal(t, ledger.Torn(f.piece.Expected), position)
			_, err = ledger.Parse(position)
			require.ErrorIs(t, err, ledger.ErrTorn)
			// Even with all rights, no later call adds anything a second time.
			for range 3 {
				f.answers(t, ledger.Answer{Outcome: ledger.Moved, Found: "torn:10"})
			}
		})
	}
}

func TestAServerThatIsAwayIsUnreachable(t *testing.T) {
	f, server := private(t)
	patient := f.store
	f.store = f.storeOf(t, func(c *Config) {
		c.Client, c.Timeout = redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Timeout: 300 * time.Millisecond}), 300*time.Millisecond
	})
	// Redis may have executed a call that timed out or was cancelled. If the piece is sent again, it counts
	// once.
	applied := func() bool {
		a, _, err := f.store.Apply(t.Context(), &f.piece)
		return err == nil && a.Outcome == ledger.Applied
	}
	require.Eventually(t, applied, 30*time.Second, 10*time.Millisecond)
	f.piece.Expected, f.piece.Next = ledger.At(20), ledger.At(30)

	server.Pause()
	_, took, err := f.store.Apply(t.Context(), &f.piece)
	require.Error(t, err)
	require.True(t, redisconn.Unreachable(err), "%v", err)
	require.Equal(t, ledger.Retry, Classify(err))
	require.Less(t, took, 15*time.Second, "every call has a deadline")
	server.Resume()
	require.Eventually(t, applied, 30*time.Second, 10*time.Millisecond)
	b, err := patient.Rank(t.Context(), "global", f.window(0), "u1")
	require.NoError(t, err)
	require.Equal(t, int64(30), b.Standings[0].Points)

	server.Kill()
	_, _, err = f.store.Apply(t.Context(), &f.piece)
	require.True(t, redisconn.Unreachable(err), "%v", err)
	require.Equal(t, ledger.Retry, Classify(err))
	require.Equal(t, ledger.Retry, Classify(err).AtStart())
}

func TestMoreAppliesThanAllowedWaitForTheirTurn(t *testing.T) {
	f, server := private(t)
	server.Pause()
	defer server.Resume()
	stuck := make(chan error, callsInFlight)
	for range callsInFlight {
		go func() {
			_, _, err := f.store.Apply(t.Context(), &f.piece)
			stuck <- err
		}()
	}
	require.Eventually(t, func() bool { return len(f.store.encoders) == 0 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the generation is over"))
	_, took, err := f.store.Apply(ctx, &f.piece)
	require.ErrorContains(t, err, "the generation is over")
	require.Zero(t, took)
	server.Resume()
	for range callsInFlight {
		require.NoError(t, <-stuck)
	}
}
