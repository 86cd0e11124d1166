package redisconn

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// pair is a master, and a replica that follows it by a link.
type pair struct {
	master, replica *testenv.RedisServer
	link            *testenv.Link
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{master: testenv.LocalRedis(t, "--repl-ping-replica-period", "1")}
	p.replica, p.link = testenv.Replica(t, p.master)
	return p
}

func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	what := ""
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if what = wrong(); what == "" {
			return
		}
	}
	t.Fatal(what)
}

// replicas reads from the replica of the pair.
func (p *pair) replicas(t *testing.T, maxAge time.Duration) *Replicas {
	t.Helper()
	r := NewReplicas(ReplicasConfig{
		Settings: Settings{Addresses: []string{p.master.Addr()}, Timeout: 5 * time.Second},
		Replicas: []string{p.replica.Addr()}, MaxAge: maxAge,
	})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// reads waits until a server is read, and returns the choice.
func reads(t *testing.T, r *Replicas, server *testenv.RedisServer) Choice {
	t.Helper()
	var c Choice
	eventually(t, func() string {
		all := r.Choices()
		if len(all) != 1 || all[0].Server != server.Addr() {
			return fmt.Sprintf("%+v is read, and not %s", all, server.Addr())
		}
		c = all[0]
		return ""
	})
	return c
}

// read reads k, and as of when.
func read(t *testing.T, r *Replicas) (string, AsOf, error) {
	t.Helper()
	script := redis.NewScript(`local i = redis.call('INFO', 'replication')
		return {redis.call('GET', KEYS[1]) or '', string.match(i, 'role:(%a+)'), string.match(i, 'master_replid:(%x+)'),
			string.match(i, string.find(i, 'role:master') and 'master_repl_offset:(%d+)' or 'slave_repl_offset:(%d+)')}`)
	words, err := script.Run(t.Context(), r.Client(), []string{"k"}).StringSlice()
	require.NoError(t, err)
	p, err := ParseReplication(words[1], words[2], words[3])
	require.NoError(t, err)
	is, err := r.AsOf(p)
	return words[0], is, err
}

func TestAReplicaIsReadAndSaysHowOldItIs(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := p.replicas(t, time.Hour)
	require.Empty(t, reads(t, r, p.replica).Why)
	master := p.master.Client(t)
	require.NoError(t, master.Set(t.Context(), "k", "old", 0).Err())
	eventually(t, func() string {
		text, is, err := read(t, r)
		require.NoError(t, err)
		require.True(t, is.Replica)
		if text != "old" || is.Age > 5*time.Second {
			return fmt.Sprintf("%q as of %v ago", text, is.Age)
		}
		return ""
	})

	p.link.Hold(true)
	held, err := master.Time(t.Context()).Result()
	require.NoError(t, err)
	require.NoError(t, master.Set(t.Context(), "k", "new", 0).Err())
	began := time.Now()
	eventually(t, func() string {
		text, is, err := read(t, r)
		require.NoError(t, err)
		require.Equal(t, "old", text)
		if written := is.At.Sub(held); written > 0 {
			t.Fatalf("it is said to be as of %v after what it lacks", written)
		}
		if since := time.Since(began); is.Age < since {
			t.Fatalf("what it lacks was written %v ago, and it is said to be %v old", since, is.Age)
		}
		if is.Age < 3*time.Second {
			return fmt.Sprintf("as of %v ago", is.Age)
		}
		return ""
	})
	require.Contains(t, p.replica.Client(t).Info(t.Context(), "replication").Val(), "master_link_status:up", "it doesn't know that it is old")
	p.link.Hold(false)
	eventually(t, func() string {
		text, is, err := read(t, r)
		require.NoError(t, err)
		if text != "new" || is.Age > 3*time.Second || !is.At.After(held) {
			return fmt.Sprintf("%q as of %v ago", text, is.Age)
		}
		return ""
	})
}

func TestAReplicaThatIsTooOldIsLeftForItsMasterUntilItHasCaughtUp(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := p.replicas(t, 2*time.Second)
	reads(t, r, p.replica)
	p.link.Hold(true)
	require.Contains(t, reads(t, r, p.master).Why, "behind")
	_, is, err := read(t, r)
	require.NoError(t, err)
	require.Zero(t, is)
	p.link.Hold(false)
	require.Empty(t, reads(t, r, p.replica).Why)
}

func TestAReplicaWithoutALinkIsReadOnlyWhileItsMasterIsAway(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := p.replicas(t, time.Hour)
	reads(t, r, p.replica)
	replica := p.replica.Client(t)
	host, port, _ := strings.Cut(p.link.Addr, ":")
	require.NoError(t, replica.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	require.Contains(t, reads(t, r, p.master).Why, "has lost the link")
	require.NoError(t, replica.ReplicaOf(t.Context(), host, port).Err())
	reads(t, r, p.replica)

	p.master.Kill()
	eventually(t, func() string {
		all := r.Choices()
		if all[0].Server != p.replica.Addr() || !strings.Contains(all[0].Why, "the master, doesn't answer") {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	})
	_, is, err := read(t, r)
	require.NoError(t, err)
	require.True(t, is.Replica)
	require.Positive(t, is.Age)
}

// Whoever reads goes on where a replica dies: what failed is noticed, and another one chosen.
func TestTheMasterIsReadOnceAReplicaIsGone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := p.replicas(t, time.Hour)
	reads(t, r, p.replica)
	p.replica.Kill()
	eventually(t, func() string {
		if err := r.Client().Get(t.Context(), "k").Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err.Error()
		}
		return ""
	})
	require.Contains(t, reads(t, r, p.master).Why, "doesn't answer")
}

// It may have been written to by itself.
func TestAReplicaThatHasBecomeAMasterIsNotTakenForItsMaster(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r := p.replicas(t, time.Hour)
	reads(t, r, p.replica)
	info := p.replica.Client(t)
	require.NoError(t, info.ReplicaOf(t.Context(), "NO", "ONE").Err())
	stream := func(of *testenv.RedisServer) string {
		_, rest, _ := strings.Cut(of.Client(t).Info(t.Context(), "replication").Val(), "master_replid:")
		return rest[:40]
	}
	_, err := r.AsOf(Replication{Stream: stream(p.replica), Offset: 1 << 40})
	require.ErrorAs(t, err, new(*UndatedError))
	require.Contains(t, reads(t, r, p.master).Why, "is a master")
	_, err = r.AsOf(Replication{Stream: stream(p.replica), Offset: 1 << 40})
	require.ErrorAs(t, err, new(*UndatedError))
}

func TestWhoMayNotAskHowFarAReplicaIsSaysWhichRightIsMissing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, server := range []*testenv.RedisServer{p.master, p.replica} {
		require.NoError(t, server.Client(t).Do(t.Context(), "acl", "setuser", "boards", "on", ">secret", "~*", "+get", "+time").Err())
	}
	r := NewReplicas(ReplicasConfig{
		Settings: Settings{Addresses: []string{p.master.Addr()}, Username: "boards", Password: "secret", Timeout: 5 * time.Second},
		Replicas: []string{p.replica.Addr()}, MaxAge: time.Hour,
	})
	defer func() { require.NoError(t, r.Close()) }()
	require.Contains(t, reads(t, r, p.master).Why, "doesn't let this user run INFO")
	require.ErrorContains(t, r.Err(), "grant it (ACL SETUSER … +info)")
}
