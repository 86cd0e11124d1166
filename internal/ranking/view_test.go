package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPrefixSaysItselfHowItWasWritten(t *testing.T) {
	alone(t)
	f := someone(t)
	v, err := NewView(t.Context(), f.client, f.prefix, 1, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"UTC", "monday", "c1"}, []string{v.Zone, v.WeekStart, v.Cluster})
	require.Equal(t, f.store.periods["weekly"].Layout, v.layouts["weekly"])
	for schema, says := range map[string]string{
		"nonsense":           "is no schema",
		`{"v":1,"shards":1}`: "version 1",
		`{"v":2,"shards":3}`: "3 shards",
		`{"v":2,"shards":1,"periods":{"hourly":{}}}`:                                                 `a period "hourly"`,
		`{"v":2,"shards":1,"periods":{"weekly":{"k":26,"layout":"readable","max":5,"tick":10}}}`:     "its layout of weekly scores",
		`{"v":2,"shards":1,"periods":{"weekly":{"k":26,"layout":"other","max":99999999,"tick":10}}}`: "its layout of weekly scores",
	} {
		require.NoError(t, f.client.Set(t.Context(), f.store.keys.Schema(), schema, 0).Err())
		v, err := NewView(t.Context(), f.client, f.prefix, 1, 20*time.Second)
		require.ErrorContains(t, err, says, schema)
		require.NotNil(t, v, "to be dropped")
	}
	require.NoError(t, f.client.Del(t.Context(), f.store.keys.Schema()).Err())
	var none *SchemaError
	_, err = NewView(t.Context(), f.client, f.prefix, 1, 20*time.Second)
	require.ErrorAs(t, err, &none)
	require.Empty(t, none.Found)
}
