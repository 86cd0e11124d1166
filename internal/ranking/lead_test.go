package ranking

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// leads returns the content of the leader's key.
func (f *fixture) leads(t testing.TB) (token, till, length int64, owner string) {
	t.Helper()
	words := strings.SplitN(f.client.Get(t.Context(), LeaderKey(f.prefix)).Val(), " ", 4)
	require.Len(t, words, 4)
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		require.NoError(t, err)
		return n
	}
	return number(words[0]), number(words[1]), number(words[2]), words[3]
}

// setLeader writes the key for a leader with a lease of a minute that ends after left.
func (f *fixture) setLeader(t testing.TB, token int64, left time.Duration, owner string) {
	t.Helper()
	till := f.client.Time(t.Context()).Val().Add(left).UnixMilli()
	text := strconv.FormatInt(token, 10) + " " + strconv.FormatInt(till, 10) + " " + strconv.FormatInt(time.Minute.Milliseconds(), 10) + " " + owner
	require.NoError(t, f.client.Set(t.Context(), LeaderKey(f.prefix), text, 0).Err())
}

func (f *fixture) mustLead(t testing.TB, owner string, floor, want int64) {
	t.Helper()
	token, err := f.store.Lead(t.Context(), owner, floor, time.Minute)
	require.NoError(t, err)
	require.Equal(t, want, token)
	stored, till, length, who := f.leads(t)
	require.Equal(t, want, stored)
	require.Equal(t, owner, who)
	require.EqualValues(t, 60_000, length)
	require.InDelta(t, f.client.Time(t.Context()).Val().UnixMilli()+60_000, till, 30_000)
}

func TestOneLeadsAtATimeAndTokensGrow(t *testing.T) {
	f := fixed(t)
	f.mustLead(t, "a 1", 0, 1)
	busy := func(owner string) {
		t.Helper()
		_, err := f.store.Lead(t.Context(), owner, 100, time.Minute)
		leader, ok := errors.AsType[*LeaderError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "a 1", leader.Owner)
		require.InDelta(t, time.Minute, leader.For, float64(30*time.Second))
	}
	busy("b")
	require.NoError(t, f.store.KeepLead(t.Context(), "a 1", 1, time.Minute))
	busy("b")

	// The owner takes the lease again because an answer was lost.
	f.mustLead(t, "a 1", 0, 2)
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "a 1", 1, time.Minute), ErrNotLeader)
	require.ErrorIs(t, f.store.LeaveLead(t.Context(), "a 1", 1), ErrNotLeader)
	require.ErrorIs(t, f.store.LeaveLead(t.Context(), "b", 2), ErrNotLeader)
	busy("b")

	// After it is released, the next owner gets the lease at once, with a token larger than the archive's.
	require.NoError(t, f.store.LeaveLead(t.Context(), "a 1", 2))
	require.NoError(t, f.store.LeaveLead(t.Context(), "a 1", 2), "no answer, and again")
	f.mustLead(t, "b", 41, 42)
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "a 1", 2, time.Minute), ErrNotLeader)
	require.ErrorIs(t, f.store.LeaveLead(t.Context(), "a 1", 2), ErrNotLeader)
	require.EqualValues(t, -1, f.client.PTTL(t.Context(), LeaderKey(f.prefix)).Val(), "tokens go on from it")
}

// After a wipe or a rollback a token may be given out twice: the largest token in the archive is lower, or
// the first owner of the token hasn't written yet.
func TestRedisThatWentBackGivesATokenAgain(t *testing.T) {
	f := fixed(t)
	f.mustLead(t, "a", 0, 1)
	before := f.client.Get(t.Context(), LeaderKey(f.prefix)).Val()
	require.NoError(t, f.store.LeaveLead(t.Context(), "a", 1))
	f.mustLead(t, "b", 0, 2)
	require.NoError(t, f.client.Set(t.Context(), LeaderKey(f.prefix), before, 0).Err())
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "b", 2, time.Minute), ErrNotLeader)
	f.mustLead(t, "a", 0, 2)
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "b", 2, time.Minute), ErrNotLeader, "the same token, and not b's")

	require.NoError(t, f.client.Del(t.Context(), LeaderKey(f.prefix)).Err())
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "a", 2, time.Minute), ErrNotLeader)
	f.mustLead(t, "c", 0, 1)
	f.client.Del(t.Context(), LeaderKey(f.prefix))
	f.mustLead(t, "c", 2, 3)
}

// If the clock went back, no process waits longer than the length of a lease.
func TestALeaseEndsWithinItsLengthWhateverTheClockDid(t *testing.T) {
	f := fixed(t)
	f.setLeader(t, 7, 24*time.Hour, "a")
	_, err := f.store.Lead(t.Context(), "b", 0, time.Hour)
	leader, ok := errors.AsType[*LeaderError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, time.Minute, leader.For)
	token, till, length, owner := f.leads(t)
	require.EqualValues(t, 7, token)
	require.Equal(t, "a", owner)
	require.EqualValues(t, 60_000, length)
	require.InDelta(t, f.client.Time(t.Context()).Val().UnixMilli()+60_000, till, 30_000, "and not from each look on")
	require.NoError(t, f.store.KeepLead(t.Context(), "a", 7, time.Minute))

	// The clock went forward: a's lease is over before a knows.
	f.setLeader(t, 7, -time.Hour, "a")
	f.mustLead(t, "b", 0, 8)
	require.ErrorIs(t, f.store.KeepLead(t.Context(), "a", 7, time.Minute), ErrNotLeader)
}

func TestWhatNoLeaderWritesIsLeftAlone(t *testing.T) {
	f := fixed(t)
	for _, text := range []string{"", "x", "1", "1 2 3", "-1 2 3 a", "1.5 2 3 a"} {
		require.NoError(t, f.client.Set(t.Context(), LeaderKey(f.prefix), text, 0).Err())
		_, err := f.store.Lead(t.Context(), "a", 0, time.Minute)
		require.ErrorContains(t, err, "which no leader writes", text)
		require.Error(t, f.store.KeepLead(t.Context(), "a", 1, time.Minute))
		require.Equal(t, text, f.client.Get(t.Context(), LeaderKey(f.prefix)).Val())
	}
	for _, floor := range []int64{-1, MaxToken, MaxToken + 1} {
		_, err := f.store.Lead(t.Context(), "a", floor, time.Minute)
		require.ErrorIs(t, err, ErrNoToken)
	}
	f.setLeader(t, MaxToken-1, -time.Second, "b")
	f.mustLead(t, "a", 5, MaxToken)
	_, err := f.store.Lead(t.Context(), "a", 0, time.Minute)
	require.ErrorIs(t, err, ErrNoToken)
	require.NoError(t, f.store.KeepLead(t.Context(), "a", MaxToken, time.Minute))
}

func TestTheLeaderIsOnePerPrefixWhateverTheShards(t *testing.T) {
	require.Equal(t, "lb:{0}:leader", LeaderKey("lb"))
	f := fixed(t)
	f.mustLead(t, "a", 0, 1)
	other := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	other.mustLead(t, "b", 0, 1)
}
