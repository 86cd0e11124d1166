package ledger

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shardOf is the definition with integers of any size: floor(hash * n / 2^64).
func shardOf(hash uint64, n Shards) int {
	product := new(big.Int).Mul(new(big.Int).SetUint64(hash), big.NewInt(int64(n)))
	return int(product.Rsh(product, 64).Int64())
}

func TestAHashIsOfTheShardWhoseRangeItLiesIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Shards(rapid.IntRange(1, MaxShards).Draw(t, "shards"))
		hash := rapid.Uint64().Draw(t, "hash")
		shard := n.Of(hash)
		require.Equal(t, shardOf(hash, n), shard)
		require.GreaterOrEqual(t, hash, n.From(shard))
		if end := n.From(shard + 1); end != 0 {
			require.Less(t, hash, end)
		} else {
			require.Equal(t, int(n)-1, shard)
		}
	})
}

func TestTheRangesOfShardsMeet(t *testing.T) {
	for n := Shards(1); n <= MaxShards; n++ {
		require.Zero(t, n.From(0))
		require.Zero(t, n.From(int(n)))
		for i := 1; i < int(n); i++ {
			require.Equal(t, i, n.Of(n.From(i)), "%d shards", n)
			require.Equal(t, i-1, n.Of(n.From(i)-1), "%d shards", n)
		}
		require.Equal(t, int(n)-1, n.Of(math.MaxUint64))
	}
}

func TestShardsOverlapThatHaveAMemberInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, of := Shards(rapid.IntRange(1, MaxShards).Draw(t, "shards")), Shards(rapid.IntRange(1, MaxShards).Draw(t, "others"))
		shard := rapid.IntRange(0, int(of)-1).Draw(t, "shard")
		low, high := of.From(shard), of.From(shard+1)-1
		all := n.Overlapping(shard, of)
		require.Equal(t, n.Of(low), all[0])
		require.Equal(t, n.Of(high), all[len(all)-1])
		for i := range all {
			require.Equal(t, all[0]+i, all[i])
		}
	})
}

func TestOneShardOfAllCanBeAtAHashOfASweepAndNoneAtTheLowestOfOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Shards(rapid.IntRange(1, MaxShards).Draw(t, "shards"))
		border := n.From(rapid.IntRange(0, int(n)-1).Draw(t, "border"))
		hash := rapid.OneOf(rapid.Uint64(), rapid.Just(border), rapid.Just(border+1), rapid.Just(border-1)).Draw(t, "hash")
		var can []int
		for shard := range int(n) {
			require.True(t, n.CanBeAt(shard, At(120)))
			if n.CanBeAt(shard, Position{From: 120, To: 480, Hash: hash}) {
				can = append(can, shard)
			}
		}
		if of := n.Of(hash); hash == n.From(of) {
			require.Empty(t, can)
		} else {
			require.Equal(t, []int{of}, can)
		}
	})
}
