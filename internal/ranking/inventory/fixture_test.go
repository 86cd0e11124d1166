package inventory

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { rankingtest.Main(m) }

// fixture is a shard and a view of its prefix.
type fixture struct{ *rankingtest.Fixture }

func newFixture(t rankingtest.Tester, client *redis.Client, prefix string) *fixture {
	return &fixture{rankingtest.New(t, client, prefix)}
}

func someone(t testing.TB) *fixture {
	t.Helper()
	return &fixture{rankingtest.Someone(t)}
}

// limited returns a fixture with a limit on windows, and the three windows of global.
func limited(t testing.TB, windows int64) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.Store = f.StoreOf(t, func(c *ranking.Config) { c.MaxWindows = windows })
	f.Begin(t)
	f.Add(t, f.Member("u1", 10))
	return f
}

func (f *fixture) view(t testing.TB) *View {
	t.Helper()
	v, err := NewView(t.Context(), f.Client, f.Prefix, rankingtest.Of, 20*time.Second)
	require.NotNil(t, v)
	if _, none := errors.AsType[*ranking.SchemaError](err); !none && rankingtest.Of == 1 { // with more shards, the other ones don't exist
		require.NoError(t, err)
	}
	return v
}

func viewOf(t *testing.T, f *fixture) *View {
	t.Helper()
	_, of := f.Store.Shard()
	v, err := NewView(t.Context(), f.Client, f.Prefix, of, 20*time.Second)
	require.NotNil(t, v, "%v", err)
	return v
}

// joined creates the other shards, with only a schema.
func (f *fixture) joined(t testing.TB) {
	t.Helper()
	for i := range int(rankingtest.Of) {
		if schema := ranking.KeysOf(f.Prefix, i, rankingtest.Of).Schema(); f.Client.Exists(t.Context(), schema).Val() == 0 {
			require.NoError(t, f.Client.Set(t.Context(), schema, f.Store.Schema(), 0).Err())
		}
	}
}

// dropEU drops the board eu and returns the number of windows dropped.
func (f *fixture) dropEU(t testing.TB) int64 {
	t.Helper()
	f.joined(t)
	v := f.view(t)
	found, err := v.SurveyBoards(t.Context(), func(name string) bool { return name == "eu" })
	require.NoError(t, err)
	n, err := v.DropBoards(t.Context(), found, 0, nil)
	require.NoError(t, err)
	return n
}

func beginning(partition int, found string, at int64, origin *ledger.Origin) ledger.StartPosition {
	return ledger.StartPosition{Partition: ledger.Partition{Topic: "events", Number: partition}, Found: found, At: ledger.At(at), Origin: origin}
}
