package inventory

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/testenv"
)

// The number of shards is part of every key: a process with another number would see an empty Redis, and count all that the
// log has once more beside what is there.
func TestTheNumberOfShardsIsFoundByTheRecordOrByWhatIsThere(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	find := func() (ledger.Shards, error) {
		return FindNumber(t.Context(), client, prefix, 3, time.Minute)
	}
	found := func() ledger.Shards {
		t.Helper()
		n, err := find()
		require.NoError(t, err)
		return n
	}
	begin := func(n ledger.Shards, shard int) {
		all := boards.New(ranking.Config{Client: client, Prefix: prefix, Shards: n, Timeout: time.Minute, Cluster: "c"})
		_, err := all.Shards()[shard].Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(0), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	require.Zero(t, found(), "nobody has written anything")
	begin(256, 255)
	require.EqualValues(t, 256, found(), "its first shard and the record are lost")
	begin(1, 0)
	_, err := find()
	var several *SeveralError
	require.ErrorAs(t, err, &several)
	require.Equal(t, []ledger.Shards{1, 256}, several.Shards)
	require.Equal(t, ledger.Halt, ranking.Classify(err), "it isn't waited out")
	claimed, err := ClaimNumber(t.Context(), client, prefix, 3, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 3, claimed)
	require.EqualValues(t, 3, found(), "the record takes precedence")
}

func TestOneOfSeveralNumbersIsRecorded(t *testing.T) {
	client, prefix := testenv.RedisClient(t), testenv.Prefix(t)
	got := make([]ledger.Shards, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			got[i], _ = ClaimNumber(t.Context(), client, prefix, ledger.Shards(1+i), time.Minute)
		})
	}
	all.Wait()
	require.NotZero(t, got[0])
	for _, n := range got {
		require.Equal(t, got[0], n)
	}
	require.NoError(t, client.Set(t.Context(), ranking.NumberKey(prefix), "no number", 0).Err())
	_, err := ClaimNumber(t.Context(), client, prefix, 3, time.Minute)
	require.ErrorContains(t, err, `"no number" is no number of shards`)
}
