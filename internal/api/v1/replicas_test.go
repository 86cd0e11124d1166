package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

// onReplica is a fixture of some shards that is written on a master and read from its replica.
func onReplica(t *testing.T, of ledger.Shards) (*fixture, *testenv.RedisServer, *testenv.Link) {
	t.Helper()
	master := testenv.LocalRedis(t)
	replica, link := testenv.Replica(t, master)
	r := redisconn.NewReplicas(redisconn.ReplicasConfig{
		Settings: redisconn.Settings{Addresses: []string{master.Addr()}, Timeout: 20 * time.Second},
		Replicas: []string{replica.Addr()}, MaxAge: time.Hour,
	})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	f := fixtureReading(t, master.Client(t), r, "lb", of, codec.Readable)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(r.Choices(), func(c redisconn.Choice) bool { return c.Replica })
	}, time.Minute, 20*time.Millisecond)
	return f, replica, link
}

// reported has a worker say, by the clock of the master, that all is well.
func (f *fixture) reported() {
	f.t.Helper()
	now, err := f.client.Time(f.t.Context()).Result()
	require.NoError(f.t, err)
	text, err := json.Marshal(health.Line{Owner: "me", State: health.StateRunning, At: now, Written: now.UnixMilli(), Lag: new(int64)})
	require.NoError(f.t, err)
	for _, s := range f.boards.Shards() {
		require.NoError(f.t, f.client.HSet(f.t.Context(), s.Keys().Workers(), "points/0", text).Err())
	}
}

func (f *fixture) counts(offset int64) {
	f.t.Helper()
	for _, s := range f.boards.Shards() {
		require.NoError(f.t, f.client.HSet(f.t.Context(), s.Keys().Ledger(), "points/0", strconv.FormatInt(offset, 10)).Err())
	}
}

// until reads a page until it is right, and returns it.
func (f *fixture) until(wrong func(standingsAnswer) string) standingsAnswer {
	f.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		a := read[standingsAnswer](f, w("global")+"/standings")
		what := wrong(a)
		if what == "" {
			return a
		}
		if time.Now().After(until) {
			f.t.Fatal(what)
		}
	}
}

func has(members ...string) func(standingsAnswer) string {
	return func(a standingsAnswer) string {
		var found []string
		for _, s := range a.Standings {
			found = append(found, s.Member)
		}
		if !slices.Equal(found, members) {
			return fmt.Sprintf("%v, and not %v", found, members)
		}
		return ""
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

// What is at most so old isn't older than it says.
func TestTheAgeOfAReplicaIsRoundedUp(t *testing.T) {
	for age, ms := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 10*time.Second + 1: 10_001} {
		require.Equal(t, ms, *replicaAge(true, age), "%v", age)
	}
	require.Nil(t, replicaAge(false, 0))
}

func TestAnAnswerFromAReplicaIsAsOfWhenItsMasterHadWrittenNoMore(t *testing.T) {
	t.Parallel()
	for _, of := range []ledger.Shards{1, 3} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			t.Parallel()
			f, _, link := onReplica(t, of)
			f.reported()
			f.put("global", f.standing("global", "a", 1, 10))
			fresh := f.until(has("a"))
			require.NotNil(t, fresh.Trust.ReplicaAgeMS)
			require.Equal(t, "whole", fresh.Trust.State)
			require.Zero(t, *fresh.Trust.Lag)
			require.Equal(t, http.StatusOK, f.get(w("global")+"/stream").status)

			link.Hold(true)
			held, err := f.client.Time(t.Context()).Result()
			require.NoError(t, err)
			f.put("global", f.standing("global", "b", 1, 20))
			began, behind := time.Now(), false
			f.until(func(a standingsAnswer) string {
				require.Empty(t, has("a")(a))
				since, age := time.Since(began), time.Duration(*a.Trust.ReplicaAgeMS)*time.Millisecond
				require.False(t, instant(t, *a.Trust.At).After(held.Add(time.Millisecond)), "it lacks what was written then")
				require.Equal(t, age > 10*time.Second, a.Trust.State == "behind", "%s, %v old", a.Trust.State, age)
				require.Zero(t, *a.Trust.Lag, "what was reported is as old as the rows, and was true with them")
				require.Empty(t, a.Trust.NotCounted)
				for _, s := range a.Trust.Shards {
					require.LessOrEqual(t, *s.ReplicaAgeMS, *a.Trust.ReplicaAgeMS)
					require.False(t, instant(t, s.At).Before(instant(t, *a.Trust.At)))
				}
				left := instant(t, a.Window.End).Sub(held.Add(since)).Seconds()
				require.InDelta(t, left, a.Window.SecondsLeft, 5, "the window goes on")
				if behind = a.Trust.State == "behind"; !behind {
					return fmt.Sprintf("after %v it isn't behind", since)
				}
				require.Greater(t, since, 9*time.Second)
				return ""
			})
			link.Hold(false)
			f.until(func(a standingsAnswer) string {
				if wrong := has("b", "a")(a); wrong != "" {
					return wrong
				}
				if age := *a.Trust.ReplicaAgeMS; age > 5000 {
					return fmt.Sprintf("still %d ms old", age)
				}
				return ""
			})
		})
	}
}

func TestWhoWaitsForARecordIsAnsweredOnceTheReplicaHasIt(t *testing.T) {
	t.Parallel()
	f, _, link := onReplica(t, 1)
	f.put("global", f.standing("global", "a", 1, 10))
	f.until(has("a"))
	link.Hold(true)
	f.put("global", f.standing("global", "b", 1, 20))
	f.counts(50)
	a := read[standingsAnswer](f, w("global")+"/standings", "min_offset", "points/0@49", "wait_ms", "100")
	require.False(t, *a.Trust.Reached, "the master has it, and the replica hasn't")
	require.Empty(t, has("a")(a))
	released := time.AfterFunc(300*time.Millisecond, func() { link.Hold(false) })
	defer released.Stop()
	a = read[standingsAnswer](f, w("global")+"/standings", "min_offset", "points/0@49", "wait_ms", "10000")
	require.True(t, *a.Trust.Reached)
	require.Empty(t, has("b", "a")(a))
}

func TestAReplicaThatServesNothingWithoutItsMasterIsAProblemThatPasses(t *testing.T) {
	t.Parallel()
	f, replica, _ := onReplica(t, 1)
	f.put("global", f.standing("global", "a", 1, 10))
	f.until(has("a"))
	c := replica.Client(t)
	require.NoError(t, c.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err())
	require.NoError(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	// Until that is seen, a second later at most, it is asked; then the master answers.
	for until := time.Now().Add(time.Minute); ; {
		a := f.get(w("global") + "/standings")
		if a.status == http.StatusOK && decode[standingsAnswer](t, a.body).Trust.ReplicaAgeMS == nil {
			break
		}
		if a.status != http.StatusOK {
			require.Equal(t, http.StatusServiceUnavailable, a.status)
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
		require.True(t, time.Now().Before(until), "%s", a.body)
	}
}
