package ranking

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestALineHasTheTimeOfRedisAndTheOneThatItReplacesIsReturned(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	before, err := f.store.Now(t.Context())
	require.NoError(t, err)
	// A worker with a wrong clock, and texts that need escaping.
	const line = `{"owner":"host-1","state":"halted","what":"100%d \u2028 \"quoted\" \\ ü\u0000","at":"1999-01-01T00:00:00Z","group":"a"}`
	third, fourth := ledger.Partition{Topic: "events", Number: 3}, ledger.Partition{Topic: "events", Number: 4}
	stored, was, err := f.store.Report(t.Context(), []ledger.Line{{Partition: third, Text: line}})
	require.NoError(t, err)
	require.Equal(t, []string{""}, was)
	after, err := f.store.Now(t.Context())
	require.NoError(t, err)

	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	found := st.Workers["events/3"]
	var want, got map[string]any
	require.NoError(t, json.Unmarshal([]byte(line), &want))
	require.NoError(t, json.Unmarshal([]byte(found), &got))
	written, ok := got["written"].(float64)
	require.True(t, ok, found)
	require.GreaterOrEqual(t, int64(written), before.UnixMilli())
	require.LessOrEqual(t, int64(written), after.UnixMilli())
	delete(got, "written")
	require.Equal(t, want, got)

	require.Equal(t, []string{found}, stored)
	last, was, err := f.store.Report(t.Context(), []ledger.Line{{Partition: fourth, Text: line}, {Partition: third, Text: `{"owner":"host-2","at":"1999-01-01T00:00:00Z"}`}})
	require.NoError(t, err)
	require.Equal(t, []string{"", found}, was)

	f.hasLine(t, "events/3", `{"owner":"host-3"}`)
	// Retract removes a line that is unchanged, and keeps one that another worker has replaced.
	require.NoError(t, f.store.Retract(t.Context(), []ledger.Line{{Partition: fourth, Text: last[0]}, {Partition: third, Text: last[1]}}))
	st, err = f.store.State(t.Context())
	require.NoError(t, err)
	require.NotContains(t, st.Workers, "events/4")
	require.Contains(t, st.Workers, "events/3")
}
