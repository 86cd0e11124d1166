package ingest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ledger"
)

// One shard begins late, one is in the middle of a sweep, one is at the end already.
func TestAReplayForAllShardsBringsThoseAlongThatAreBehindAndLeavesTheOthers(t *testing.T) {
	oneShard(t, "it has three of its own")
	t.Parallel()
	w := newWorld(t, 1)
	for i := range 300 {
		w.send(0, earned{User: "u" + strconv.Itoa(i%40), Points: int64(i), At: time.Now().UnixMilli()})
	}
	const end, mid = 300, 120
	to := func(r *replay.Replay, shard int, at ledger.Position) error {
		return r.To(t.Context(), shard, map[string]ledger.Position{"events/0": at})
	}
	one, reference := w.replay(1, nil)
	require.NoError(t, to(one, replay.AllShards, ledger.At(end)))

	fake := newFakeOf(3)
	at := func(shard int) string { return fake.shards[shard].ledger["events/0"] }
	r, _ := w.replay(0, func(c *Config) { c.Standings = fake.standings() })
	w.begins(r, fake, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(0), Origin: &ledger.Origin{}})
	sweep := ledger.Position{From: 50, To: end, Hash: 0x8000000000000000}
	require.NoError(t, to(r, 1, sweep))
	require.NoError(t, to(r, 2, ledger.At(end)))
	require.Equal(t, "0", at(0), "what is read for one shard is for that one")

	require.NoError(t, to(r, replay.AllShards, ledger.At(mid)))
	require.Equal(t, []string{"120", sweep.String(), "300"}, []string{at(0), at(1), at(2)})
	require.ErrorIs(t, to(r, 2, ledger.At(mid)), replay.ErrWentBack)

	r.Leave(1)
	require.NoError(t, to(r, replay.AllShards, ledger.At(end)))
	require.Equal(t, []string{"300", sweep.String(), "300"}, []string{at(0), at(1), at(2)})
	require.NoError(t, to(r, 1, ledger.At(end)))

	require.Empty(t, differences(reference.boards(), fake.boards()))
}

func TestAPositionThatNoSweepOfAShardCanBeAtIsAnErrorAndNothingIsReadToIt(t *testing.T) {
	oneShard(t, "it has three of its own")
	t.Parallel()
	w := newWorld(t, 1)
	const end = 60
	for i := range end {
		w.send(0, earned{User: "u" + strconv.Itoa(i), Points: 1, At: time.Now().UnixMilli()})
	}
	fake := newFakeOf(3)
	r, _ := w.replay(0, func(c *Config) { c.Standings = fake.standings() })
	w.begins(r, fake, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(0), Origin: &ledger.Origin{}})
	of := ledger.Shards(3)
	for _, hash := range []uint64{1, of.From(1), of.From(2), of.From(2) + 1, 1<<64 - 1} {
		until := ledger.Position{From: 0, To: end, Hash: hash}
		var unreachable *replay.UnreachableError
		require.ErrorAs(t, r.To(t.Context(), 1, map[string]ledger.Position{"events/0": until}), &unreachable, "%x", hash)
		require.Equal(t, replay.UnreachableError{Field: "events/0", Shard: 1, Of: 3, Until: until, At: ledger.At(0)}, *unreachable)
		require.Equal(t, "0", fake.shards[1].ledger["events/0"])
	}
	for _, hash := range []uint64{of.From(1) + 1, of.From(2) - 1} {
		until := ledger.Position{From: 0, To: end, Hash: hash}
		require.NoError(t, r.To(t.Context(), 1, map[string]ledger.Position{"events/0": until}))
		require.Equal(t, until.String(), fake.shards[1].ledger["events/0"])
	}
}

func TestAShardThatIsNotAtItsEndpointOnceAllIsReadIsAnErrorUnlessThatIsTheLowestOfSeveral(t *testing.T) {
	oneShard(t, "it has two of its own")
	until := ledger.Position{From: 50, To: 60, Hash: 1 << 60}
	for _, c := range []struct {
		stood  ledger.Position
		lowest bool
		ok     bool
	}{{until, false, true}, {ledger.At(50), false, false}, {ledger.At(60), false, false}, {ledger.At(60), true, true}} {
		w := &replayer{
			Handle: &source.Handle{Field: "events/0"}, shards: newFakeOf(2).standings(),
			pipeline: &pipeline{lasting: lasting{carried: &carried{stood: ledger.Positions{c.stood, replay.Beyond}}}},
		}
		err := w.through(replay.Endpoint{At: &until, Lowest: c.lowest})
		if c.ok {
			require.NoError(t, err, "%v", c)
			continue
		}
		require.EqualError(t, err, "events/0 is at 50..60@1000000000000000 in the live ledger, and the rebuild at "+c.stood.String()+": its log has been read, and the records don't add up to that")
	}
}
