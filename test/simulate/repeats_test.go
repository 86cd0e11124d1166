package simulate

// Duplicates of events that precede a sweep that another process takes over, and of events that precede
// the start position of a rebuild.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"
)

// repeatedLater returns a plan of two batches. The second batch is published once the first one is
// counted, and half of it duplicates the first.
func repeatedLater(events ...fault) *plan {
	p := small()
	p.setup.Partitions, p.setup.FetchBytes, p.setup.Duplicates, p.setup.MaxPoints = 1, 64<<10, 300, 99_999_999
	p.setup.Periods = []string{"daily"} // the second batch's window begins after a start that precedes that batch
	batch := func(at int64, id func(i int) string) (s sending) {
		for i := range 240 {
			s.records = append(s.records, record{time: at, value: fmt.Appendf(nil,
				`{"event_id":%q,"user_id":"u%d","points":%d,"occurred_at":%d,"board":["eu","us","global"]}`, id(i), i, 1+i%7, at-int64(i))})
		}
		return s
	}
	originals := batch(beginning.UnixMilli(), func(i int) string { return fmt.Sprint("e", i) })
	repeats := batch(beginning.Add(26*time.Hour).UnixMilli(), func(i int) string { return fmt.Sprint("e", i+i%2*1000) })
	p.sendings, p.first = []sending{originals, repeats}, 1
	p.events = append([]fault{{at: 60, kind: publish, n: 1}}, events...)
	return p
}

// repeatedAcross returns such a plan in which another process takes over the second batch's sweep.
func repeatedAcross(n int) *plan {
	return repeatedLater(fault{at: 62, kind: crash, on: inSweep, n: n * 41})
}

// rebuiltSince returns such a plan that begins with the second batch and rebuilds from there.
func rebuiltSince(n int) *plan {
	p := repeatedLater(fault{at: 120 + n*7, kind: rebuilds, n: n})
	p.setup.Start = starts.FromLatest
	return p
}

func TestRepeatsOfWhatIsBeforeASweepAreFoundByWhoTakesItOver(t *testing.T) {
	over := 0
	for n := range 12 {
		w := holds(t, repeatedAcross(n))
		over += strings.Count(strings.Join(w.story, "\n"), "going on with a sweep")
		if w.counts[repeatsFound] != 120 {
			t.Errorf("%d duplicates", w.counts[repeatsFound])
		}
	}
	if over < 4 {
		t.Errorf("%d sweeps were gone on with", over)
	}
}

func TestRepeatsOfWhatIsBeforeTheStartAreFoundByARebuild(t *testing.T) {
	swapped := 0
	for n := range 6 {
		w := holds(t, rebuiltSince(n))
		swapped += w.counts["swap answers swapped"]
		if w.counts[repeatsFound] != 120 {
			t.Errorf("%d duplicates", w.counts[repeatsFound])
		}
	}
	if swapped < 4 {
		t.Errorf("%d rebuilds have swapped", swapped)
	}
}
