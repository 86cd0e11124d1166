package ingest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	to := func(r *Replay, shard int, at ledger.Position) error {
		return r.To(t.Context(), shard, map[string]ledger.Position{"events/0": at})
	}
	one, reference := w.replay(1, nil)
	require.NoError(t, to(one, AllShards, ledger.At(end)))

	fake := newFakeOf(3)
	at := func(shard int) string { return fake.shards[shard].ledger["events/0"] }
	r, _ := w.replay(0, func(c *Config) { c.Standings = fake.standings() })
	w.begins(r, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(0), Origin: &ledger.Origin{}})
	sweep := ledger.Position{From: 50, To: end, Hash: 0x8000000000000000}
	require.NoError(t, to(r, 1, sweep))
	require.NoError(t, to(r, 2, ledger.At(end)))
	require.Equal(t, "0", at(0), "what is read for one shard is for that one")

	require.NoError(t, to(r, AllShards, ledger.At(mid)))
	require.Equal(t, []string{"120", sweep.String(), "300"}, []string{at(0), at(1), at(2)})
	require.ErrorIs(t, to(r, 2, ledger.At(mid)), ErrWentBack)

	r.Leave(1)
	require.NoError(t, to(r, AllShards, ledger.At(end)))
	require.Equal(t, []string{"300", sweep.String(), "300"}, []string{at(0), at(1), at(2)})
	require.NoError(t, to(r, 1, ledger.At(end)))

	require.Empty(t, differences(reference.boards(), fake.boards()))
}
