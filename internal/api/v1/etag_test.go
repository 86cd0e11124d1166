package v1

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// shown returns the parts of an answer about a view that do not depend on the time of the read.
func shown(t *rapid.T, v *reading.View) string {
	w, is := windowOf(v), statusOf(v, nil)
	w.SecondsLeft = 0
	is.AsOf, is.Lag, is.BehindMS, is.ReportedAt = nil, nil, nil, nil
	if is.Final {
		is.Ledger = nil
	}
	for i := range is.Shards {
		is.Shards[i].AsOf = ""
	}
	text, err := json.Marshal([]any{w, is, rows(v, ordinal, nil), rows(v, competition, nil), rows(v, modified, nil), v.Place, v.Counts, v.InRange})
	require.NoError(t, err)
	return string(text)
}

func TestAnETagIsAnotherWhereTheAnswerIs(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", "points/0"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) reading.View {
			var v reading.View
			v.Name, v.Members, v.Listed = word.Draw(t, name), rapid.Int64Range(0, 2).Draw(t, name), rapid.Bool().Draw(t, name)
			v.Revision = rapid.Int64Range(0, 2).Draw(t, name)
			v.Incomplete = rapid.SliceOfN(word, 0, 2).Draw(t, name)
			v.Beside.Ledger = maps.Collect(maps.All(rapid.MapOfN(word, word, 0, 2).Draw(t, name)))
			v.Beside.Now = time.UnixMilli(rapid.Int64Range(1, 9).Draw(t, name))
			v.Counts = rapid.SliceOfN(rapid.Int64Range(0, 1), 0, 2).Draw(t, name)
			if rapid.Bool().Draw(t, name) {
				v.Refilling = []workers.Refilling{{Field: "points/0"}}
			}
			if rapid.Bool().Draw(t, name) {
				v.Halted = []workers.Reported{{Field: "points/0", Line: workers.Line{Reason: word.Draw(t, name)}}}
			}
			for range rapid.IntRange(0, 2).Draw(t, name) {
				v.Standings = append(v.Standings, ranking.Standing{
					Rank: rapid.Int64Range(0, 2).Draw(t, name), Member: word.Draw(t, name), Name: word.Draw(t, name), Points: rapid.Int64Range(-1, 1).Draw(t, name),
					ReachedAt: time.UnixMilli(rapid.Int64Range(0, 1).Draw(t, name)), More: rapid.Int64Range(0, 1).Draw(t, name), AtLeast: rapid.Int64Range(0, 1).Draw(t, name),
				})
			}
			return v
		}
		a, b := draw("a"), draw("b")
		if shown(t, &a) != shown(t, &b) {
			require.NotEqual(t, tagOf(&a, nil), tagOf(&b, nil))
		}
		require.NotEqual(t, tagOf(&a, new(true)), tagOf(&a, new(false)))
		later := a
		later.Beside.Now = a.Beside.Now.Add(time.Hour)
		require.Equal(t, tagOf(&a, nil), tagOf(&later, nil), "the time alone")
	})
}

func TestTimesAreRFC3339(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-1<<45, 1<<49).Draw(t, "ms")
		require.Equal(t, time.UnixMilli(ms).UTC().Format(timeFormat), timeMS(ms))
	})
}
