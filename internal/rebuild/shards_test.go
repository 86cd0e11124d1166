package rebuild

// Rebuilds of several shards, which are finished one after the other.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/test/testenv"
)

// standsAt brings a live shard to a position.
func (p *place) standsAt(shard int, at ledger.Position) {
	p.t.Helper()
	require.NoError(p.t, p.consumer().To(p.t.Context(), shard, map[string]ledger.Position{topic + "/0": at}))
	require.Equal(p.t, at.String(), p.position(shard))
}

// points returns all members' points, over all shards.
func (p *place) points() map[string]int64 {
	p.t.Helper()
	window, err := p.config.Calendar.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(p.t, err)
	top, err := boards.New(p.config).Top(p.t.Context(), "global", window, 0, 1000)
	require.NoError(p.t, err)
	all := map[string]int64{}
	for _, s := range top.Standings {
		all[s.Member] = s.Points
	}
	return all
}

// spoil adds points to every member's score that no event has.
func (p *place) spoil() {
	p.t.Helper()
	for key, rows := range p.boards() {
		for _, row := range rows {
			require.NoError(p.t, p.redis.ZIncrBy(p.t.Context(), key, 25, row.Member.(string)).Err())
		}
	}
}

func (p *place) swappedShards(r *Result) (all []int) {
	for i := range r.Shards {
		if r.Shards[i].Swapped {
			all = append(all, i)
		}
	}
	return all
}

// One shard is at the log's end, one in mid-sweep, and one has a piece that was written in part.
func TestEachShardIsRebuiltToTheVeryPositionOfItsOwnLedger(t *testing.T) {
	const events, members = 600, 60
	sweep := ledger.Position{From: 200, To: 600, Hash: 0x8000000000000000}
	p := newPlaceOn(t, testenv.Redis(t).Client(t), 3, 0, members)
	p.job.Compare = true // so that it holds ingestion
	p.publish(events, members)
	p.begin()
	p.standsAt(0, ledger.At(events))
	p.standsAt(1, sweep)
	p.standsAt(2, ledger.At(370))

	// The expected points at these positions, computed from the events.
	counts := map[string]int64{}
	for i := range events {
		member := fmt.Sprintf("m%d", i%members)
		hash := xxhash.Sum64String(member)
		until := []int64{events, sweep.From, 370}[ledger.Shards(3).Of(hash)]
		if ledger.Shards(3).Of(hash) == 1 && hash < sweep.Hash {
			until = sweep.To
		}
		if int64(i) < until {
			counts[member] += int64(i)
		}
	}
	require.Equal(t, counts, p.points())
	was := p.boards()

	require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(2, "ledger"), topic+"/0", "torn:370").Err())
	p.spoil()
	var turns []int // shards in the order of their holds
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		for shard := range p.live {
			if calls(cmd, 2, p.keyOf(shard, "hold")) {
				for other := range p.live {
					require.Zero(t, p.redis.Exists(ctx, p.keyOf(other, "hold")).Val(), "no more than one shard is held")
				}
				turns = append(turns, shard)
			}
		}
		return do(ctx, cmd)
	}))
	began := time.Now()
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, []int{0, 1, 2}, turns)
	require.Equal(t, []string{"600", sweep.String(), "370"}, []string{p.position(0), p.position(1), p.position(2)})
	require.Equal(t, was, p.boards())
	require.Equal(t, counts, p.points())
	for i := range r.Shards {
		s := &r.Shards[i]
		require.True(t, s.At.After(began), "the answer says when it was which shard's turn")
		require.Positive(t, s.Held)
		require.Equal(t, 1, s.Holds)
		began = s.At
	}
	require.Empty(t, r.Partly())
	p.nothingLeft()

	// The live consumer continues to the log's end.
	require.NoError(t, p.consumer().To(t.Context(), replay.AllShards, map[string]ledger.Position{topic + "/0": ledger.At(events)}))
	clear(counts)
	for i := range events {
		counts[fmt.Sprintf("m%d", i%members)] += int64(i)
	}
	require.Equal(t, counts, p.points())
}

func TestTheLogIsReadOnceForAllShards(t *testing.T) {
	p := newPlace(t, 3, 400)
	p.spoil()
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, int64(400), r.Records)
}

func TestARebuildThatIsKilledAfterAShardsSwapLeavesTheOthersAsTheyWere(t *testing.T) {
	p := newPlace(t, 3, 60)
	p.job.patience.leaveTime = 50 * time.Millisecond
	whole := p.boards()
	p.spoil()
	spoilt := p.boards()
	p.job.Lease = 3 * time.Second
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var killed, alive atomic.Bool
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		if killed.Load() && !alive.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		a := cmd.Args()
		err := do(ctx, cmd)
		if len(a) > 4 && a[3] == p.keyOf(0, "hold") && a[4] == p.keyOf(0, "~rebuild") && a[2].(int) > 2 && err == nil {
			killed.Store(true) // none of its calls reach Redis any more
			kill()
		}
		return err
	}))
	r, err := p.job.Run(ctx)
	require.Error(t, err)
	alive.Store(true)
	require.False(t, r.Swapped)
	require.Equal(t, []int{0}, p.swappedShards(r))
	require.Equal(t, "shard 0 of 3 is rebuilt; shards 1 and 2 of 3 are as before", r.Partly())
	for key, rows := range p.boards() {
		if key == p.keyOf(0, nameOf(t, p, 0)) {
			require.Equal(t, whole[key], rows)
		} else {
			require.Equal(t, spoilt[key], rows)
		}
	}
	for shard := range p.live {
		keys := p.redis.Keys(t.Context(), p.keyOf(shard, "~*")).Val()
		require.NotEmpty(t, keys)
		for _, key := range keys {
			require.Positive(t, p.redis.PTTL(t.Context(), key).Val(), "%s expires", key)
		}
	}
	require.Eventually(t, func() bool { // its locks
		return p.redis.Exists(t.Context(), p.keyOf(0, "~rebuild"), p.keyOf(1, "~rebuild"), p.keyOf(2, "~rebuild")).Val() == 0
	}, within, 20*time.Millisecond)

	r, err = p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, whole, p.boards())
}

const within = 30 * time.Second

// nameOf returns the only window that a shard lists.
func nameOf(t *testing.T, p *place, shard int) string {
	t.Helper()
	names := p.redis.HKeys(t.Context(), p.keyOf(shard, "windows")).Val()
	require.Len(t, names, 1)
	return names[0]
}

func TestALedgerThatGoesBackIsBegunAnewWithoutTheShardsThatAreThrough(t *testing.T) {
	p := newPlace(t, 3, 60)
	whole := p.boards()
	p.spoil()
	var anew, swaps atomic.Int64
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		a := cmd.Args()
		swap := len(a) > 4 && a[3] == p.keyOf(0, "hold") && a[4] == p.keyOf(0, "~rebuild") && a[2].(int) > 2
		if swap && swaps.Add(1) == 1 {
			// As if the master of shard 1 was rolled back meanwhile.
			require.NoError(t, p.redis.HSet(ctx, p.keyOf(1, "ledger"), topic+"/0", "30").Err())
		}
		return do(ctx, cmd)
	}))
	p.job.Watch.Planned = func(*Plan) {
		if anew.Add(1) == 2 {
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(1, "ledger"), topic+"/0", "60").Err())
		}
	}
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, int64(2), anew.Load())
	require.Equal(t, int64(1), swaps.Load(), "a shard that is through isn't swapped again")
	require.Equal(t, whole, p.boards())
	p.nothingLeft()
}

func TestAShardThatAnotherRebuildHasIsNamedAndTheOthersAreLetGoOf(t *testing.T) {
	p := newPlace(t, 3, 20)
	other, err := shadow.Lock(t.Context(), p.live[1], "another", time.Minute)
	require.NoError(t, err)
	_, err = p.job.Run(t.Context())
	var busy *shadow.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "another", busy.Owner)
	require.ErrorContains(t, err, "shard 1 of 3 on ")
	require.Zero(t, p.redis.Exists(t.Context(), p.keyOf(0, "~rebuild"), p.keyOf(2, "~rebuild")).Val())
	require.NoError(t, other.Close(t.Context()))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	p.nothingLeft()
}

// One of several masters is empty, and no consumer has noticed it yet.
func TestAShardThatIsLostAsAWholeIsRebuiltLikeTheOthers(t *testing.T) {
	p := newPlace(t, 3, 60)
	p.commit(60)
	whole := p.boards()
	require.NoError(t, p.redis.Del(t.Context(), p.keyOf(1, "ledger"), p.keyOf(1, "schema"), p.keyOf(1, "origin"), p.keyOf(1, nameOf(t, p, 1)), p.keyOf(1, "windows")).Err())
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, whole, p.boards())
	require.Equal(t, "60", p.position(1))
	p.nothingLeft()
}

// A partition exists on one shard only, because its worker was stopped between two shards.
func TestAPartitionThatOnlySomeShardsHaveIsReadForThese(t *testing.T) {
	p := newPlace(t, 3, 60)
	whole := p.boards()
	require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(1, "ledger"), topic+"/1", "0").Err())
	p.spoil()
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, whole, p.boards())
	require.Equal(t, []int{1, 2, 1}, []int{len(r.Shards[0].Plan.Starts), len(r.Shards[1].Plan.Starts), len(r.Shards[2].Plan.Starts)})
	require.Equal(t, "0", p.redis.HGet(t.Context(), p.keyOf(1, "ledger"), topic+"/1").Val())
	require.Zero(t, p.redis.HExists(t.Context(), p.keyOf(0, "ledger"), topic+"/1").Val())
	p.nothingLeft()
}

func TestWhatDiffersIsOfAllShardsAndListedInOrder(t *testing.T) {
	p := newPlace(t, 3, 60)
	whole := p.boards()
	p.spoil()
	spoilt := p.boards()
	for _, dry := range []bool{true, false} {
		t.Run(strconv.FormatBool(dry), func(t *testing.T) {
			p.job.DryRun, p.job.Compare, p.job.List = dry, true, 4
			r, err := p.job.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, !dry, r.Swapped)
			require.True(t, r.Exact)
			require.Len(t, r.Differ, 1)
			require.Equal(t, 7, r.Differ[0].Differ)
			var members []string
			for _, d := range r.Differences {
				members = append(members, d.Member)
			}
			require.Equal(t, []string{"m0", "m1", "m2", "m3"}, members)
			if dry {
				require.Equal(t, spoilt, p.boards())
			} else {
				require.Equal(t, whole, p.boards())
			}
			p.nothingLeft()
		})
	}
}

// Before the swap only the shadow has the names from the log.
func TestListedMembersAreCalledByTheLiveBoardsOrElseByTheLog(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlaceOf(t, testenv.Redis(t).Client(t), of, 40, func(i int) []byte {
			return fmt.Appendf(nil, `{"user_id":"m%d","points":%d,"name":"Nr %d"}`, i%4, i, i%4)
		})
		fields, err := event.NewFields(event.Paths{Name: "name"})
		require.NoError(t, err)
		p.settings.Events.Fields, p.settings.Rules.Names = fields, true
		home := of.Of(xxhash.Sum64String("m1"))
		require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(home, "names"), "m1", "1 4103308800000 Eve").Err())
		p.spoil()
		p.job.Compare, p.job.List, p.job.Name = true, 10, true
		for _, p.job.DryRun = range []bool{true, false} {
			r, err := p.job.Run(t.Context())
			require.NoError(t, err)
			require.Len(t, r.Differences, 4)
			for i, name := range []string{"Nr 0", "Eve", "Nr 2", "Nr 3"} {
				require.Equal(t, name, r.Differences[i].Called)
			}
			p.nothingLeft()
		}
	})
}

// A rebuild that has swapped succeeds even if names cannot be read.
func TestNamesThatCannotBeReadAreANote(t *testing.T) {
	p := newPlace(t, 3, 60)
	p.spoil()
	p.job.Compare, p.job.List, p.job.Name = true, 4, true
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		if a := cmd.Args(); a[0] == "hmget" && strings.HasSuffix(a[1].(string), ":names") {
			cmd.SetErr(errors.New("NOPERM no such right"))
			return cmd.Err()
		}
		return do(ctx, cmd)
	}))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Len(t, r.Differences, 4)
	require.Regexp(t, "what members are called isn't shown: .*NOPERM", strings.Join(p.notes, "\n"))
	p.nothingLeft()
}

// An example is a shard whose master was lost after the log's start had advanced.
func TestAShardThatBeganPastWhereAnotherIsBeginsThereAgain(t *testing.T) {
	p := newPlaceOn(t, testenv.Redis(t).Client(t), 3, 0, 7)
	p.job.Compare = true // so that it holds ingestion
	p.publish(60, 7)
	p.begin()
	p.standsAt(0, ledger.At(30))
	p.standsAt(1, ledger.At(60))
	require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(2, "ledger"), topic+"/0", "40").Err())
	require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(2, "origin"), topic+"/0", ledger.Origin{Offset: 40, Time: 1}.String()).Err())
	p.standsAt(2, ledger.At(60))
	was := p.boards()
	p.spoil()
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, []int64{0, 0, 40}, []int64{r.Shards[0].Plan.Starts[0].At, r.Shards[1].Plan.Starts[0].At, r.Shards[2].Plan.Starts[0].At})
	require.Zero(t, r.Plan.Starts[0].At)
	require.Equal(t, int64(30), r.Plan.Until[topic+"/0"], "of all shards, that of the one furthest behind")
	require.Equal(t, was, p.boards())
	p.nothingLeft()
}
