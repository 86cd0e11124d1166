package ingest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// reset starts a batch of a partition with one shard at a position.
func reset(b *fold.Batch, at ledger.Position) {
	all := ledger.Positions{at}
	b.Reset(at.From, all.Next(), all, all)
}

// standsSomewhere returns a random position of a shard: an offset up to end, or one in a sweep that ends there.
func standsSomewhere(random *rand.Rand, shard int, end int64) ledger.Position {
	at := ledger.At(random.Int64N(end + 1))
	if random.IntN(2) == 0 || at.From == 0 {
		return at
	}
	width := of.From(shard+1) - of.From(shard) // 0: the whole range
	hash := random.Uint64()
	if width > 0 {
		hash %= width
	}
	return ledger.Position{From: random.Int64N(at.From), To: at.From, Hash: of.From(shard) + hash}
}

// Redis masters rolled back to different positions, in sweeps or between them.
func TestShardsThatStandAnywhereCountWhatEachLacksOnce(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			const end = 600
			random := rand.New(rand.NewPCG(seed, 7))
			b := newBubble(t, 1, func(c *Config) { c.FetchBytes = 16 << 10; c.PieceTime = 1 })
			b.standings.apply = func(int, *ledger.Piece) reply {
				time.Sleep(lookEvery / 2) // so that the ledgers are compared between any two readings
				return reply{}
			}
			var all ledger.Positions
			for i, s := range b.standings.shards {
				all = append(all, standsSomewhere(random, i, end))
				s.ledger[field(0)] = all[i].String()
			}
			want := map[string]int64{}
			for n := int64(0); n < end; n += 60 {
				var some []earned
				for i := n; i < n+60; i++ {
					e := earned{User: fmt.Sprint("u", random.IntN(200)), Points: 1 + i, At: time.Now().UnixMilli()}
					some = append(some, e)
					hash := fold.Hash([]byte(e.User))
					if at := all[of.Of(hash)]; i >= at.To || i >= at.From && hash >= at.Hash {
						want[e.User] += e.Points
					}
				}
				b.send(0, 0, some...)
			}
			stop := b.run()
			for began := time.Now(); b.standings.at(0) != fmt.Sprint(end); time.Sleep(50 * time.Millisecond) {
				require.Less(t, time.Since(began), time.Hour, "from %v it comes to %s", all, b.standings.at(0))
			}
			stop()
			got := map[string]int64{}
			for listing, members := range b.standings.boards() {
				if strings.HasPrefix(listing, "global:weekly:") {
					for m, total := range members {
						got[m] += total.points
					}
				}
			}
			require.Equal(t, want, got, "seed %d, from %v", seed, all)
		})
	}
}

// The next owner has nothing to read again.
func TestAShardThatNothingCameForIsBroughtAlongAtTheEndOfAGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, nil)
		stop := b.run()
		time.Sleep(lookEvery / 4) // between two comparisons
		b.send(0, 0, some("a", 1, 5)...)
		b.counts(lookEvery / 2)
		if of > 1 {
			require.NotEqual(t, "1", b.standings.at(0), "the others lag")
		}
		stop()
		require.Equal(t, "1", b.standings.at(0))
	})
}

// A batch without changes for a shard is done before the shard's ledger is moved. If the flow then ends, the
// next one reads the batch again.
func TestAnEventOfNoWindowCountsOnceThoughALaggingShardIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, func(c *Config) { c.PieceTime = 1 })
		var back atomic.Bool
		b.standings.apply = func(n int, _ *ledger.Piece) reply {
			if !back.Load() || n%2 == 0 { // then every second call fails, also in the middle of a sweep
				return reply{err: errHalting}
			}
			return reply{}
		}
		late, err := json.Marshal(earned{User: "late", Points: 1, At: time.Now().Add(-900 * 24 * time.Hour).UnixMilli()})
		require.NoError(t, err)
		b.logs.add(0, 0, late, nil)
		stop := b.run()
		time.Sleep(5 * lookEvery)
		b.send(0, 0, some("a", 300, 5)...)
		time.Sleep(5 * lookEvery)
		b.logs.add(0, 0, late, nil, late)
		back.Store(true)
		for began := time.Now(); b.standings.at(0) != "305"; time.Sleep(50 * time.Millisecond) {
			require.Less(t, time.Since(began), time.Hour, b.standings.at(0))
		}
		stop()
		c := b.consumer.Stats.Count()
		require.Equal(t, []int64{300, 3, 2}, []int64{c.Applied, c.Late, c.Skipped}, "%+v", c)
	})
}
