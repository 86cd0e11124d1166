package reshard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// ban hides some members of fixed, on all boards and on one, and erases one. The small board has no other
// member left.
func (f *fixture) ban(t testing.TB) {
	t.Helper()
	all := f.of(f.number(t)).Shards()
	for n := range 20 {
		require.NoError(t, ranking.BanEach(t.Context(), all, ranking.Ban{Member: fmt.Sprint("m", 3*n)}, (*ranking.Store).Ban))
	}
	require.NoError(t, ranking.BanEach(t.Context(), all, ranking.Ban{Member: "m1", Board: "global"}, (*ranking.Store).Ban))
	require.NoError(t, ranking.BanEach(t.Context(), all, ranking.Ban{Member: "m1", Board: "eu", Erased: true}, (*ranking.Store).Ban))
	require.NoError(t, ranking.BanEach(t.Context(), all, ranking.Ban{Member: "m4", Erased: true}, (*ranking.Store).Ban))
}

// hides returns the scores in hidden sets, and the bans. It requires each to be on its member's shard.
func (f *fixture) hides(t testing.TB, of ledger.Shards) (scores map[string]map[string]float64, banned map[string]string) {
	t.Helper()
	scores, banned = map[string]map[string]float64{}, map[string]string{}
	for i, s := range f.of(of).Shards() {
		for name := range f.client.HGetAll(t.Context(), s.Keys().Windows()).Val() {
			shown, hidden := s.Keys().Both(name)
			for _, z := range f.client.ZRangeWithScores(t.Context(), hidden, 0, -1).Val() {
				member := z.Member.(string)
				if member == "" {
					continue // the placeholder
				}
				require.Equal(t, i, of.Of(xxhash.Sum64String(member)), "%s is on a shard that isn't its own", member)
				if scores[name] == nil {
					scores[name] = map[string]float64{}
				}
				scores[name][member] = z.Score
			}
			if of == f.number(t) && f.client.Exists(t.Context(), hidden).Val() == 1 && f.client.Exists(t.Context(), shown).Val() == 1 {
				want, got := f.client.PExpireTime(t.Context(), shown).Val(), f.client.PExpireTime(t.Context(), hidden).Val()
				require.InDelta(t, want.Milliseconds(), got.Milliseconds(), f.rounds(t), "%s lives for another while than what is beside it", hidden)
			}
		}
		held := f.client.HGetAll(t.Context(), s.Keys().Banned()).Val()
		if len(held) > 0 {
			require.NotEmpty(t, held["version"])
			require.EqualValues(t, -1, f.client.PTTL(t.Context(), s.Keys().Banned()).Val(), "who is banned expires")
		}
		delete(held, "version")
		for field := range held {
			_, member, _ := strings.Cut(field, ":")
			require.Equal(t, i, of.Of(xxhash.Sum64String(member)), "the ban of %s is on a shard that isn't its own", member)
		}
		maps.Copy(banned, held)
	}
	return scores, banned
}

// rounds returns how far, in ms, the expiries of two keys may differ if one was computed from the other:
// miniredis stores the time to live, not the time of expiry.
func (f *fixture) rounds(t testing.TB) float64 {
	t.Helper()
	if testenv.Redis(t).Embedded() {
		return 1000
	}
	return 0
}

func (f *fixture) unban(t testing.TB, members ...string) {
	t.Helper()
	for _, member := range members {
		require.NoError(t, ranking.BanEach(t.Context(), f.of(f.number(t)).Shards(), ranking.Ban{Member: member}, (*ranking.Store).Unban))
	}
}

func TestAReshardTakesBansAlong(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, n := range [][2]ledger.Shards{{1, 5}, {5, 1}, {2, 3}} {
		for _, page := range []int64{7, 2000} {
			t.Run(fmt.Sprintf("%d to %d, %d rows a page", n[0], n[1], page), func(t *testing.T) {
				f := fixed(t, n[0], codec.Readable)
				all := f.holds(t, n[0]).scores
				f.ban(t)
				was := f.holds(t, n[0])
				scores, banned := f.hides(t, n[0])
				require.Len(t, banned, 23)
				require.Len(t, scores, 4)
				job := f.job(t, n[1])
				job.page = pageSize{rows: page, windows: 200}
				result, err := job.Run(t.Context())
				require.NoError(t, err)
				// m4 has no standing left, and m1 has none in eu.
				require.EqualValues(t, 2*(62-2), result.Standings)
				now := f.holds(t, n[1])
				maps.DeleteFunc(was.scores, func(_ string, of map[string]float64) bool { return len(of) == 0 })
				maps.DeleteFunc(now.scores, func(_ string, of map[string]float64) bool { return len(of) == 0 })
				require.Equal(t, was.scores, now.scores)
				require.Equal(t, was.listed, now.listed)
				require.Zero(t, now.expiring)
				gotScores, gotBanned := f.hides(t, n[1])
				require.Equal(t, scores, gotScores)
				require.Equal(t, banned, gotBanned)
				// No bans of the old shards remain, and no window of the new ones is lost.
				for _, s := range f.of(n[0]).Shards() {
					require.Zero(t, f.client.Exists(t.Context(), s.Keys().Banned()).Val())
					for name := range was.listed {
						require.Zero(t, f.client.Exists(t.Context(), s.Keys().Hidden(name)).Val(), name)
					}
				}
				for _, s := range f.of(n[1]).Shards() {
					lost, err := s.Lost(t.Context())
					require.NoError(t, err)
					require.Empty(t, lost)
				}
				// Ingestion continues: hidden standings grow, and are shown again.
				f.add(t, rand.New(rand.NewPCG(9, 9)), "global", 60)
				f.unban(t, "m0", "m3")
				shown := f.holds(t, n[1]).scores
				for name := range all {
					for member := range all[name] {
						_, ok := shown[name][member]
						var number int
						_, _ = fmt.Sscanf(member, "m%d", &number)
						hidden := number%3 == 0 && number > 3 || member == "m4" || member == "m1"
						require.Equal(t, !hidden, ok, "%s in %s", member, name)
					}
				}
			})
		}
	}
}

// A ban that was interrupted stays in progress, and the process that finds it completes it.
func TestABanThatIsOnItsWayIsCopiedAsThat(t *testing.T) {
	const from, to = 3, 2
	f := fixed(t, from, codec.Readable)
	s := f.of(from).Shards()[ledger.Shards(from).Of(xxhash.Sum64String("m7"))]
	require.NoError(t, f.client.HSet(t.Context(), s.Keys().Banned(), ":m7", "hiding x", "version", "x").Err())
	was := f.holds(t, from)
	_, err := f.job(t, to).Run(t.Context())
	require.NoError(t, err)
	f.holds(t, to).sameAs(t, was)
	found, err := ranking.BannedEach(t.Context(), f.of(to).Shards())
	require.NoError(t, err)
	require.Equal(t, []ranking.Ban{{Member: "m7", Pending: true}}, found)
	require.NoError(t, ranking.BanEach(t.Context(), f.of(to).Shards(), found[0], (*ranking.Store).Ban))
	for name, of := range f.holds(t, to).scores {
		require.NotContains(t, of, "m7", name)
	}
}

// A client writes bans in spite of the hold.
func TestAReshardWhoseBansChangeDoesNotSwitch(t *testing.T) {
	const from, to = 2, 3
	f := fixed(t, from, codec.Readable)
	f.ban(t)
	j := f.job(t, to)
	j.Watch.Step = func(step Step) {
		if step == Comparing {
			require.NoError(t, f.client.HDel(t.Context(), f.of(from).Shards()[0].Keys().Banned(), "version").Err())
		}
	}
	result, err := j.Run(t.Context())
	require.ErrorContains(t, err, "shard 0 has changed while it was held")
	require.False(t, result.Switched)
	require.EqualValues(t, from, f.number(t))
}

// Bans from before any event was counted are kept, and the next copy does not contain bans that a dead copy
// left.
func TestACopyHasNoBansOfAnEarlierOne(t *testing.T) {
	const from, to = 2, 3
	f := fixed(t, from, codec.Readable)
	stale := f.of(to).Shards()[ledger.Shards(to).Of(xxhash.Sum64String("m9"))]
	require.NoError(t, f.client.HSet(t.Context(), stale.Keys().Banned(), ":m9", "hidden", "version", "x").Err())
	require.NoError(t, f.client.PExpire(t.Context(), stale.Keys().Banned(), time.Hour).Err())
	was := f.holds(t, from)
	_, err := f.job(t, to).Run(t.Context())
	require.NoError(t, err)
	f.holds(t, to).sameAs(t, was)
	_, banned := f.hides(t, to)
	require.Empty(t, banned)
}
