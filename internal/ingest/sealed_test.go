package ingest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// past has a week and a month in the past, and events in them.
type past struct {
	*world

	at          int64
	week, month ledger.Window
}

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{world: newWorld(t, 1), at: time.Now().AddDate(0, 0, -40).UnixMilli()}
	for _, period := range p.config.Rules.Periods {
		of, _, err := period.Rule.At(p.at)
		require.NoError(t, err)
		window := ledger.Window{Board: "global", Period: string(of.Period), Name: of.Name}
		if of.Period == periods.Weekly {
			p.week = window
		} else {
			p.month = window
		}
	}
	return p
}

func (p *past) then(prefix string, n int) (all []earned) {
	for _, e := range some(prefix, n, 5) {
		e.At = p.at
		all = append(all, e)
	}
	return all
}

// seals makes exactly these windows final.
func (p *past) seals(windows ...ledger.Window) {
	p.standings.do(func() {
		p.standings.sealed = map[string]bool{}
		for _, one := range windows {
			p.standings.sealed[one.Listing()] = true
		}
	})
}

// comesTo waits until so many events are applied or late, each once. How many are read again for other shards
// varies.
func (p *past) comesTo(applied, late int64) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%d events are applied, and %d late", applied, late), func() bool {
		c := p.stats.Count()
		return c.Applied == applied && c.Late == late && c.Consumed == applied+late+c.Repeated
	})
}

// sends publishes events that don't count in some windows.
func (p *past) sends(all []earned, but ...ledger.Window) {
	p.t.Helper()
	kept := map[string]map[string]total{}
	for _, one := range but {
		kept[one.Listing()] = maps.Clone(p.want[one.Listing()])
	}
	p.send(0, all...)
	for listing, members := range kept {
		p.want[listing] = members
	}
}

func TestWhatComesForAFinalWindowCountsInTheOthersOrIsLate(t *testing.T) {
	t.Parallel()
	w := newPast(t)
	w.sends(w.then("before", 30))
	worker := w.worker(0, nil)
	w.reaches(0)

	w.seals(w.week)
	w.send(0, some("now", 50, 5)...)
	w.sends(w.then("after", 20), w.week)
	w.reaches(0)
	require.Positive(t, w.logged("windows that are final"))
	w.comesTo(100, 0)

	w.seals(w.week, w.month)
	w.sends(w.then("later", 10), w.week, w.month)
	w.send(0, some("now", 5, 5)...)
	w.reaches(0)
	w.comesTo(105, 10)
	found := w.logged("windows that are final")

	// A shard that knows that a window is final isn't refused again.
	w.sends(w.then("later", 10), w.week, w.month)
	w.reaches(0)
	w.comesTo(105, 20)
	require.Equal(t, found, w.logged("windows that are final"))

	// A seal that is undone.
	w.seals(w.month)
	for shard := range worker.shards {
		require.Subset(t, []ledger.Window{w.week, w.month}, worker.pipeline.sealed.Windows(shard))
	}
	w.sends(w.then("reopened", 10), w.month)
	w.reaches(0)
	w.comesTo(115, 20)
	require.Positive(t, w.logged("take events again"))
}

// Redis rolls back to before a seal, and loses events that counted after that point. They count again, also in
// the window. Events that came after the seal are late as before if the window is still final.
func TestWhatWasBeforeASealCountsAgainAfterRedisHasGoneBack(t *testing.T) {
	t.Parallel()
	for _, undone := range []bool{true, false} {
		w := newPast(t)
		w.sends(w.then("first", 30))
		w.worker(0, nil)
		w.reaches(0)
		restore := w.standings.snapshot()
		if undone {
			w.sends(w.then("in time", 30))
		}
		w.reaches(0)
		w.seals(w.week)
		late := w.then("late", 30)
		w.sends(late, w.week)
		w.reaches(0)
		require.Positive(t, w.logged("windows that are final"))
		if undone {
			w.seals()
			for _, e := range late { // the next seal includes them
				w.want[w.week.Listing()][e.User] = w.want[w.month.Listing()][e.User]
			}
		}
		restore()
		w.send(0, some("now", 5, 5)...)
		w.reaches(0)
	}
}
