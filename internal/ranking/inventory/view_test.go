package inventory

import (
	"testing"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/stretchr/testify/require"
)

func TestAPrefixSaysItselfHowItWasWritten(t *testing.T) {
	rankingtest.Alone(t)
	f := someone(t)
	v, err := NewView(t.Context(), f.Client, f.Prefix, 1, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"UTC", "monday", "c1"}, []string{v.Zone, v.WeekStart, v.Cluster})
	weekly, _ := f.Store.Period("weekly")
	require.Equal(t, weekly.Layout, v.layouts["weekly"])
	for schema, says := range map[string]string{
		"nonsense":           "is no schema",
		`{"v":1,"shards":1}`: "version 1",
		`{"v":2,"shards":3}`: "3 shards",
		`{"v":2,"shards":1,"periods":{"hourly":{}}}`:                                                 `a period "hourly"`,
		`{"v":2,"shards":1,"periods":{"weekly":{"k":26,"layout":"readable","max":5,"tick":10}}}`:     "its layout of weekly scores",
		`{"v":2,"shards":1,"periods":{"weekly":{"k":26,"layout":"other","max":99999999,"tick":10}}}`: "its layout of weekly scores",
	} {
		require.NoError(t, f.Client.Set(t.Context(), f.Store.Keys().Schema(), schema, 0).Err())
		v, err := NewView(t.Context(), f.Client, f.Prefix, 1, 20*time.Second)
		require.ErrorContains(t, err, says, schema)
		require.NotNil(t, v, "to be dropped")
	}
	require.NoError(t, f.Client.Del(t.Context(), f.Store.Keys().Schema()).Err())
	var none *ranking.SchemaError
	_, err = NewView(t.Context(), f.Client, f.Prefix, 1, 20*time.Second)
	require.ErrorAs(t, err, &none)
	require.Empty(t, none.Found)
}

// The schema of periods that aren't built in is read as it was written.
func TestASchemaOfOwnPeriodsIsReadAsItWasWritten(t *testing.T) {
	season, err := periods.Season("season", 1_793_491_200_000, 1_803_859_200_000)
	require.NoError(t, err)
	layout, err := codec.New(codec.Readable, season.Length(), 99999999)
	require.NoError(t, err)
	wanted := ranking.Schema{
		Cluster: "c1", Shards: 1, WeekDay: "monday", TimeZone: "UTC",
		Layouts: map[periods.Period]codec.Layout{"season": layout}, Own: map[periods.Period]periods.Parts{"season": season.Parts()},
	}.Text()
	v := &View{Shards: 1, Schema: wanted, layouts: map[string]codec.Layout{}, own: map[string]periods.Parts{}}
	require.NoError(t, v.read())
	same, err := v.SchemaFor(1)
	require.NoError(t, err)
	require.Equal(t, wanted, same)
	require.Equal(t, season.Parts(), v.own["season"])
}
