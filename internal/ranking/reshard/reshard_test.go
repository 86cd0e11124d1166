package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/test/testenv"
)

func TestAReshardCopiesEverythingAndSwitches(t *testing.T) {
	kinds, numbers := []codec.Kind{codec.Readable, codec.Wide}, [][2]ledger.Shards{{2, 3}, {1, 3}, {3, 1}, {3, 5}, {4, 2}}
	if testing.Short() {
		kinds, numbers = kinds[:1], numbers[:3]
	}
	for _, kind := range kinds {
		for _, n := range numbers {
			t.Run(fmt.Sprintf("%d to %d, %s", n[0], n[1], kind), func(t *testing.T) {
				f := fixed(t, n[0], kind)
				was := f.holds(t, n[0])
				j, marked := f.job(t, n[1]), 0
				j.Watch.Step = func(step Step) {
					if step == Removing { // readers find the marks of the old shards before any key is removed
						for _, s := range f.of(n[0]).Shards() {
							st, err := s.State(t.Context())
							require.NoError(t, err)
							require.Equal(t, n[1], ranking.LeftFor(st.Schema))
							require.NotZero(t, st.Windows)
							marked++
						}
					}
				}
				result, err := j.Run(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, n[0], marked)
				require.True(t, result.Switched)
				require.EqualValues(t, 2*62, result.Standings)
				require.Equal(t, 4, result.Windows)
				require.NotZero(t, result.Checksum)
				f.holds(t, n[1]).sameAs(t, was)
				require.Equal(t, n[1], f.number(t))
				// The schema equals the one that a consumer with that number writes.
				for _, s := range f.of(n[1]).Shards() {
					st, err := s.State(t.Context())
					require.NoError(t, err)
					require.NoError(t, s.CheckSchema(st.Schema))
					require.Equal(t, s.Schema(), st.Schema)
					require.False(t, st.Held)
				}
				// Ingestion continues from there.
				f.add(t, rand.New(rand.NewPCG(9, 9)), "global", 60)
				// Only the marks of the old shards remain, and they refuse new events.
				for _, s := range f.of(n[0]).Shards() {
					st, err := s.State(t.Context())
					require.NoError(t, err)
					require.Equal(t, n[1], ranking.LeftFor(st.Schema))
					require.Empty(t, st.Ledger)
					require.Zero(t, st.Windows)
					err = s.CheckSchema(st.Schema)
					require.ErrorContains(t, err, fmt.Sprintf("have been copied to %d shards: set redis.shards to %d", n[1], n[1]))
				}
				require.Error(t, f.apply(t.Context(), n[0], f.windows(t, "global")))
				_, err = f.of(n[0]).Shards()[0].Begin(t.Context(), []ledger.StartPosition{{Partition: partitions[0], At: ledger.At(0)}})
				require.Error(t, err)
			})
		}
	}
}

// A shard of the copy claims only what all of its old shards claim.
func TestTheCopyClaimsTheLeast(t *testing.T) {
	f := fixed(t, 3, codec.Readable) // origins at times 0, 10 and 20; refills 200 to 202
	old := f.of(3).Shards()
	require.NoError(t, f.client.HSet(t.Context(), old[0].Keys().Dropped(), "over:weekly", 5, "asia:weekly:2026-W01", 77).Err())
	require.NoError(t, f.client.HSet(t.Context(), old[1].Keys().Dropped(), "over:weekly", 12, "over:yearly", -5).Err())
	for i, since := range []int64{7, 9, 8} {
		require.NoError(t, f.client.HSet(t.Context(), old[i].Keys().Origin(), ranking.SinceField("weekly"), since).Err())
	}
	_, err := f.job(t, 2).Run(t.Context())
	require.NoError(t, err)
	for i, want := range []struct {
		origin  string
		since   int64
		refill  int64
		dropped map[string]string
	}{
		{"1 10", 9, 201, map[string]string{"over:weekly": "12", "over:yearly": "-5", "asia:weekly:2026-W01": "77"}},
		{"1 20", 9, 202, map[string]string{"over:weekly": "12", "over:yearly": "-5"}},
	} {
		s := f.of(2).Shards()[i]
		st, err := s.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.origin, st.Origins["points/1"])
		require.Equal(t, map[string]int64{"weekly": want.since}, st.Since)
		require.Equal(t, want.refill, st.Refills["points/1"])
		dropped, err := s.Hash(t.Context(), s.Keys().Dropped(), "", 0)
		require.NoError(t, err)
		require.Equal(t, want.dropped, dropped)
	}
}

func TestAReshardThatDiesAnywhereLeavesTheOldShardsOrTheNew(t *testing.T) {
	testenv.SlowEmbedded(t)
	const from, to = 2, 3
	random := rand.New(rand.NewPCG(5, 5))
	for _, executed := range []bool{false, true} {
		var calls, unswitched, switched int
		step := 1
		if testing.Short() {
			step = 11
		}
		for after := 1; ; after += step {
			f := fixed(t, from, codec.Readable)
			was, keys := f.holds(t, from), f.keys(t)
			d := &dying{after: after, executed: executed}
			client := redis.NewClient(f.client.Options())
			t.Cleanup(func() { _ = client.Close() })
			j := f.job(t, to)
			view, err := inventory.NewView(t.Context(), client, f.prefix, 1, f.config.Timeout)
			require.NoError(t, err)
			client.AddHook(d)
			j.View, j.Lease = view, time.Minute // longer than the run, as renewals count as calls
			result, err := j.Run(t.Context())
			if err == nil {
				calls = after
				break
			}
			number := f.number(t)
			if number == from {
				unswitched++
				require.False(t, result.Switched, "call %d", after)
				f.holds(t, from).sameAs(t, was)
				// All other keys expire.
				for key, expires := range f.keys(t) {
					_, before := keys[key]
					require.True(t, before || expires, "call %d leaves %s", after, key)
				}
				// A consumer of the new number uses the old one.
				found, err := inventory.FindNumber(t.Context(), f.client, f.prefix, to, f.config.Timeout)
				require.NoError(t, err)
				require.EqualValues(t, from, found, "call %d", after)
			} else {
				switched++
				require.True(t, result.Switched || result.Unsure, "call %d: %v", after, err)
				require.NoError(t, Keep(t.Context(), f.of(to).Shards()))
				f.holds(t, to).sameAs(t, was)
			}
			// The locks have expired. The same command starts again, or finishes the earlier reshard.
			for key := range f.keys(t) {
				if _, mine := ours(map[string]bool{key: true})[key]; !mine {
					require.NoError(t, f.client.Del(t.Context(), key).Err())
				}
			}
			if number == from {
				f.add(t, random, "global", 50) // the old shards went on meanwhile
				was = f.holds(t, from)
			}
			result, err = f.job(t, to).Run(t.Context())
			if number == to && errors.Is(err, ErrSame) {
				err = nil
			}
			require.NoError(t, err, "again after call %d", after)
			require.Equal(t, number == from, result.Switched)
			f.holds(t, to).sameAs(t, was)
			for key, expires := range f.keys(t) {
				require.False(t, expires && ours(map[string]bool{key: true})[key] && !isWindow(key), "%s stays, and expires", key)
			}
		}
		t.Logf("executed %v: it died at one in %d of %d calls, %d times before the switch and %d times after it", executed, step, calls-1, unswitched, switched)
		require.Greater(t, step*unswitched, 50)
		require.Positive(t, switched)
	}
}

func isWindow(key string) bool {
	for _, period := range []string{":weekly:", ":yearly:"} {
		if strings.Contains(key, period) {
			return true
		}
	}
	return false
}

func TestNothingIsCopiedThatIsNotLevel(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := fixed(t, 3, codec.Readable)
	shard := func(i int) *ranking.Store { return f.of(3).Shards()[i] }
	set := func(i int, text string) {
		require.NoError(t, f.client.HSet(t.Context(), shard(i).Keys().Ledger(), "points/0", text).Err())
	}
	at := shard(0).Keys()
	stood := f.client.HGet(t.Context(), at.Ledger(), "points/0").Val()
	for text, want := range map[string]string{
		"90":                        "points/0 is at " + stood + " on shard 0, and at 90 on shard 1",
		"100..190@00000000000000aa": "points/0 is in the middle of a sweep on shard 1, at 100..190@00000000000000aa",
		"torn:100":                  "a piece of points/0 was written in part on shard 1: consumer rebuild settles it",
	} {
		set(1, text)
		was := f.holds(t, 3)
		j := f.job(t, 2)
		j.Level = 10 * time.Millisecond
		_, err := j.Run(t.Context())
		require.ErrorContains(t, err, want)
		require.Equal(t, was, f.holds(t, 3))
		require.Zero(t, f.client.Exists(t.Context(), at.Hold(), at.Rebuild(), ranking.ReshardKey(f.prefix)).Val())
		set(1, stood)
	}
	// A consumer brings the shards to the same position while the reshard waits.
	set(1, "90")
	j := f.job(t, 2)
	j.Level = time.Minute
	j.Watch.Step = func(s Step) {
		if s == Leveling {
			time.AfterFunc(200*time.Millisecond, func() { f.client.HSet(context.Background(), shard(1).Keys().Ledger(), "points/0", stood) })
		}
	}
	_, err := j.Run(t.Context())
	require.NoError(t, err)
}

func TestWhileItCopiesNobodyElseWrites(t *testing.T) {
	f := fixed(t, 2, codec.Readable)
	j := f.job(t, 3)
	tried := false
	j.Watch.Step = func(s Step) {
		if s != Copying || tried {
			return
		}
		tried = true
		require.ErrorContains(t, f.apply(t.Context(), 2, f.windows(t, "global")), "held")
		var busy *BusyError
		_, err := f.job(t, 5).Run(t.Context())
		require.ErrorAs(t, err, &busy)
		require.ErrorContains(t, err, "a reshard is under way already, by the test; if that one is gone, its lock ends in")
		n, err := j.View.Number(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, n.Reshard.To)
		require.Zero(t, n.Shards)
	}
	_, err := j.Run(t.Context())
	require.NoError(t, err)
	require.True(t, tried)
}

func TestAReshardThatLosesItsHoldHasChangedNothing(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := fixed(t, 2, codec.Readable)
	for _, lose := range []func(k ranking.Keys) string{ranking.Keys.Hold, ranking.Keys.Rebuild, func(ranking.Keys) string { return ranking.ReshardKey(f.prefix) }} {
		for _, at := range []Step{Copying, Comparing} {
			was := f.holds(t, 2)
			j := f.job(t, 3)
			j.Watch.Step = func(s Step) {
				if s == at {
					require.NoError(t, f.client.Del(t.Context(), lose(f.of(2).Shards()[1].Keys())).Err())
				}
			}
			result, err := j.Run(t.Context())
			require.ErrorIs(t, err, ErrHeld)
			require.False(t, result.Switched)
			require.Equal(t, was, f.holds(t, 2))
			require.EqualValues(t, 2, f.number(t))
		}
	}
}

func TestACopyThatDiffersIsNeverSwitchedTo(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := fixed(t, 2, codec.Readable)
	week := f.windows(t, "global")[0]
	key := func() string { return f.of(3).Shards()[1].Keys().Window(&week) }
	member := func() string { return f.client.ZRange(t.Context(), key(), 0, 0).Val()[0] }
	for name, change := range map[string]func() error{
		"a score":  func() error { return f.client.ZIncrBy(t.Context(), key(), 1, member()).Err() },
		"one less": func() error { return f.client.ZRem(t.Context(), key(), member()).Err() },
		"one more": func() error { return f.client.ZAdd(t.Context(), key(), redis.Z{Score: 1, Member: "stranger"}).Err() },
		"a window": func() error { return f.client.Del(t.Context(), key()).Err() },
		"listing": func() error {
			return f.client.HDel(t.Context(), f.of(3).Shards()[1].Keys().Windows(), week.Listing()).Err()
		},
	} {
		j := f.job(t, 3)
		j.Watch.Step = func(s Step) {
			if s == Comparing {
				require.NoError(t, change())
			}
		}
		was := f.holds(t, 2)
		result, err := j.Run(t.Context())
		require.Error(t, err, name)
		require.False(t, result.Switched, name)
		require.Equal(t, was, f.holds(t, 2), name)
		require.EqualValues(t, 2, f.number(t), name)
	}
}

// A write of a dead reshard that was still in flight arrives late.
func TestALatePageOfADeadReshardIsRefused(t *testing.T) {
	f := fixed(t, 2, codec.Readable)
	_, err := f.job(t, 3).Run(t.Context())
	require.NoError(t, err)
	s := f.of(3).Shards()[0]
	week := f.windows(t, "global")[0]
	reply, err := s.Call(t.Context(), lua.Load, []string{s.Keys().Copy(), s.Keys().Window(&week)}, "another's", 1000, "set", 2, "1", "late")
	require.NoError(t, err)
	require.Equal(t, []any{"lost"}, reply)
	require.ErrorIs(t, f.client.ZScore(t.Context(), s.Keys().Window(&week), "late").Err(), redis.Nil)
}

func TestBoardsOfTheWantedNumberAreNotOverwritten(t *testing.T) {
	f := fixed(t, 2, codec.Readable)
	j := f.job(t, 3)
	for _, s := range f.of(3).Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: partitions[0], At: ledger.At(7)}})
		require.NoError(t, err)
	}
	keys := f.keys(t)
	_, err := j.Run(t.Context())
	var stands *StandsError
	require.ErrorAs(t, err, &stands)
	require.True(t, maps.Equal(keys, f.keys(t)))
}

func TestThereAndBackAgain(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := fixed(t, 1, codec.Readable)
	for _, to := range []ledger.Shards{3, 2, 1, 3, 1} {
		was := f.holds(t, f.number(t))
		_, err := f.job(t, to).Run(t.Context())
		require.NoError(t, err)
		f.holds(t, to).sameAs(t, was)
		f.add(t, rand.New(rand.NewPCG(1, uint64(to))), "global", 50)
	}
	_, err := f.job(t, 1).Run(t.Context())
	require.ErrorIs(t, err, ErrSame)
	f = fixed(t, 1, codec.Readable)
	_, err = f.job(t, 1).Run(t.Context())
	require.ErrorIs(t, err, ErrSame, "and no reshard has ever been")
}

// Borders are settled before a window that starts or ends there is listed.
func TestTheBordersOfWindowsAreCopiedAlsoIfNoWindowIsListed(t *testing.T) {
	f := begun(t, 3, codec.Readable)
	at := f.now.Add(-time.Hour).UnixMilli()
	want := map[string]string{}
	for i, s := range f.of(3).Shards() { // the last shard lacks one, as after a rollback
		border := ledger.Border{Name: fmt.Sprintf("monthly Europe/Berlin 2100-0%d-01", i/2+1), At: at + int64(i/2), Keep: f.now.Add(time.Hour).UnixMilli()}
		settled, err := s.Settle(t.Context(), []ledger.Border{border}, false)
		require.NoError(t, err)
		require.Equal(t, []ledger.Settled{{At: border.At, OK: true}}, settled)
		want[border.Name] = fmt.Sprintf("%d %d", border.At, border.Keep)
	}
	require.Len(t, want, 2)
	_, err := f.job(t, 2).Run(t.Context())
	require.NoError(t, err)
	for _, s := range f.of(2).Shards() {
		require.Equal(t, want, f.client.HGetAll(t.Context(), s.Keys().Borders()).Val())
	}
}
