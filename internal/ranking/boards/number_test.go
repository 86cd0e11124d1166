package boards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// The number of shards is part of every key. A process with another number would see an empty Redis, and
// count the whole log again next to the existing standings.
func TestAnotherNumberOfShardsIsNamedBeforeAnythingIsWritten(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	of := func(n ledger.Shards) *Boards {
		return New(ranking.Config{Client: client, Prefix: prefix, Shards: n, Timeout: time.Minute, Cluster: "c"})
	}
	check := func(n ledger.Shards) error {
		b := of(n)
		states, errs := b.States(t.Context())
		for _, err := range errs {
			require.NoError(t, err)
		}
		return b.CheckNumber(t.Context(), states)
	}
	for _, n := range []ledger.Shards{1, 3, 256} {
		require.NoError(t, check(n), "nobody has written anything")
	}
	begin := func(n ledger.Shards, shard int) {
		_, err := of(n).Shards()[shard].Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(0), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	begin(3, 0)
	require.NoError(t, check(3))
	for _, n := range []ledger.Shards{1, 5} {
		err := check(n)
		var other *ranking.OtherNumberError
		require.ErrorAs(t, err, &other)
		require.Equal(t, []ledger.Shards{3}, other.Found)
		require.Equal(t, ledger.Halt, ranking.Classify(err), "it isn't waited out")
		require.ErrorContains(t, err, "redis.shards is 3 in Redis, ")
	}
	begin(5, 4) // a second number of shards, whose first shard is lost
	require.NoError(t, check(5))
	begin(1, 0)
	require.ErrorContains(t, check(2), "redis.shards is 1, 3 in Redis, 2 here")
	require.NoError(t, check(3))
}
