package ingest

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// One shard begins late, one is in the middle of a sweep, one is at the end already.
func TestAReplayForAllShardsBringsThoseAlongThatAreBehindAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for i := range 300 {
		w.send(0, earned{User: "u" + strconv.Itoa(i%40), Points: int64(i), At: time.Now().UnixMilli()})
	}
	const end, mid = 300, 120
	field := "events/0"
	to := func(r *Replay, shard int, at ledger.Position) error {
		return r.To(t.Context(), shard, map[string]ledger.Position{field: at})
	}
	one, reference := w.replay(1, nil)
	require.NoError(t, to(one, 0, ledger.At(end)))

	fakes := []*fake{newFake(), newFake(), newFake()}
	r, _ := w.replay(0, func(c *Config) { c.Standings = []Standings{fakes[0], fakes[1], fakes[2]} })
	for shard := range fakes {
		require.NoError(t, r.Begin(t.Context(), shard, ledger.StartPosition{Partition: ledger.Partition{Topic: topic}, At: ledger.At(0), Origin: &ledger.Origin{}}))
	}
	sweep := ledger.Position{From: 50, To: end, Hash: 0x8000000000000000}
	require.NoError(t, to(r, 1, sweep))
	require.NoError(t, to(r, 2, ledger.At(end)))
	require.Equal(t, "0", fakes[0].at(0), "what is read for one shard is for that one")

	require.NoError(t, to(r, AllShards, ledger.At(mid)))
	require.Equal(t, []string{"120", sweep.String(), "300"}, []string{fakes[0].at(0), fakes[1].at(0), fakes[2].at(0)})
	require.ErrorIs(t, to(r, 2, ledger.At(mid)), ErrWentBack)

	r.Leave(1)
	require.NoError(t, to(r, AllShards, ledger.At(end)))
	require.Equal(t, []string{"300", sweep.String(), "300"}, []string{fakes[0].at(0), fakes[1].at(0), fakes[2].at(0)})
	require.NoError(t, to(r, 1, ledger.At(end)))

	all := board{}
	for _, f := range fakes {
		for listing, members := range f.boards {
			if all[listing] == nil {
				all[listing] = map[string]total{}
			}
			maps.Copy(all[listing], members)
		}
	}
	require.Empty(t, differences(reference.boards, all))
}
