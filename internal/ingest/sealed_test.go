package ingest

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

func TestWhatComesForAFinalWindowCountsInTheOthersOrIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	at := time.Now().AddDate(0, 0, -40).UnixMilli()
	then := func(prefix string, n int) (all []earned) {
		for _, e := range some(prefix, n, 5) {
			e.At = at
			all = append(all, e)
		}
		return all
	}
	var week, month ledger.Window
	for _, p := range w.config.Rules.Periods {
		of, _, err := p.Rule.At(at)
		require.NoError(t, err)
		window := ledger.Window{Board: "global", Period: string(of.Period), Name: of.Name}
		if of.Period == periods.Weekly {
			week = window
		} else {
			month = window
		}
	}
	sealed := func(windows ...ledger.Window) {
		w.standings.do(func() {
			w.standings.sealed = map[string]bool{}
			for _, one := range windows {
				w.standings.sealed[one.Listing()] = true
			}
		})
	}
	// sends publishes events that don't count in some windows.
	sends := func(all []earned, but ...ledger.Window) {
		kept := map[string]map[string]total{}
		for _, one := range but {
			kept[one.Listing()] = maps.Clone(w.want[one.Listing()])
		}
		w.send(0, all...)
		for listing, members := range kept {
			w.want[listing] = members
		}
	}
	sends(then("before", 30))
	worker := w.worker(0, nil)
	w.reaches(0)

	sealed(week)
	w.send(0, some("now", 50, 5)...)
	sends(then("after", 20), week)
	w.reaches(0)
	require.Positive(t, w.logged("windows that are final"))
	w.counted(100)
	require.Zero(t, w.stats.Late.Load())

	sealed(week, month)
	sends(then("later", 10), week, month)
	w.send(0, some("now", 5, 5)...)
	w.reaches(0)
	w.counted(115)
	require.Equal(t, int64(10), w.stats.Late.Load())
	require.Equal(t, int64(105), w.stats.Applied.Load())
	found := w.logged("windows that are final")

	// What is known isn't found out again, by another worker of the process either.
	sends(then("last", 10), week, month)
	w.reaches(0)
	w.counted(125)
	require.Equal(t, found, w.logged("windows that are final"))

	// A seal that was taken back.
	sealed(month)
	worker.consumer.Sealed().Remove(week)
	sends(then("reopened", 10), month)
	w.reaches(0)
	w.counted(135)
	require.Equal(t, int64(20), w.stats.Late.Load())
}
