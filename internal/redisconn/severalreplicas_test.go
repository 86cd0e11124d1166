package redisconn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// Of several replicas a process reads one, and goes on with it. Where that is too old it reads
// another; the master where all are; and where that is away as well, the least old.
func TestOfSeveralReplicasOneIsReadThatIsntTooOld(t *testing.T) {
	t.Parallel()
	master := testenv.LocalRedis(t, "--repl-ping-replica-period", "1")
	links, servers := map[string]*testenv.Link{}, map[string]*testenv.RedisServer{}
	var addresses []string
	for range 3 {
		replica, link := testenv.Replica(t, master)
		addresses = append(addresses, replica.Addr())
		links[replica.Addr()], servers[replica.Addr()] = link, replica
	}
	slices.Sort(addresses)
	chosen := make(chan Choice, 100)
	r := NewReplicas(ReplicasConfig{
		Settings: Settings{Addresses: []string{master.Addr()}, Timeout: 5 * time.Second},
		Replicas: addresses, MaxAge: 2 * time.Second, Chosen: func(c Choice) { chosen <- c },
	})
	defer func() { require.NoError(t, r.Close()) }()
	await := func(right func(Choice) bool) Choice {
		t.Helper()
		within := time.After(time.Minute)
		for {
			select {
			case c := <-chosen:
				if right(c) {
					return c
				}
			case <-within:
				t.Fatalf("what is read is %+v", r.Choices())
			}
		}
	}
	reading := func(of string) func(Choice) bool { return func(c Choice) bool { return c.Server == of } }
	another := func(but ...string) func(Choice) bool {
		return func(c Choice) bool { return c.Replica && c.Why == "" && !slices.Contains(but, c.Server) }
	}
	first := await(another()).Server
	_, is, err := read(t, r)
	require.NoError(t, err)
	require.True(t, is.Replica)

	links[first].Hold(true) // it doesn't know that it is old
	second := await(another(first)).Server
	links[second].Hold(true)
	third := await(another(first, second)).Server
	links[third].Hold(true)
	why := await(reading(master.Addr())).Why
	for _, address := range addresses {
		require.Contains(t, why, address+" is ", "each of them is named")
	}

	links[third].Hold(false)
	require.Empty(t, await(reading(third)).Why, "the one that has caught up")
	links[third].Hold(true)
	await(reading(master.Addr()))
	// The third has heard of this, and the others haven't.
	master.Kill()
	old := await(func(c Choice) bool { return c.Replica })
	require.Equal(t, third, old.Server, "the least old: %s", old.Why)
	require.Contains(t, old.Why, fmt.Sprintf("%s, the master, doesn't answer", master.Addr()))
	_, is, err = read(t, r)
	require.NoError(t, err)
	require.True(t, is.Replica)
	require.Greater(t, is.Age, 2*time.Second)
	servers[third].Pause()
	defer servers[third].Resume()
	next := await(func(c Choice) bool { return c.Replica && c.Server != third })
	require.Contains(t, next.Why, third+" doesn't answer")
}
