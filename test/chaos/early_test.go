package chaos

// This file checks that no season is final too early, whatever a replica's clock is: everything that was in
// the log by its end counts in it. The oracle uses the ledger by which a season was sealed, so it would not
// notice.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// early records the seasons' windows that were sealed without records that were in the log in time.
type early struct {
	w       *world
	until   map[string]time.Time     // by season: until when it accepts events
	lacking map[string]int           // by window: number of missing records
	longest map[string]time.Duration // by window: the longest time that a missing record had been in the log before
	which   map[string]string        // that record
}

func (w *world) newEarly(t testing.TB) *early {
	t.Helper()
	e := &early{w: w, until: map[string]time.Time{}, lacking: map[string]int{}, longest: map[string]time.Duration{}, which: map[string]string{}}
	for n := range seasons {
		e.until[season(n)] = w.seasonEnd(t, n).Add(afterwards)
	}
	return e
}

// see checks a committed record that was in the log by a moment.
func (e *early) see(r *kgo.Record, by time.Time) {
	for window := range e.w.place.Without(r) {
		words := strings.SplitN(window, ":", 3)
		until, isSeason := e.until[words[1]]
		if !isSeason || !by.Before(until) {
			continue
		}
		e.lacking[window]++
		if before := until.Sub(by); before > e.longest[window] {
			e.longest[window], e.which[window] = before, fmt.Sprintf("%d/%d", r.Partition, r.Offset)
		}
	}
}

func (e *early) report(t testing.TB) {
	t.Helper()
	for _, window := range slices.Sorted(maps.Keys(e.lacking)) {
		t.Errorf("%s was sealed too early: without %d records that were in the log before it took no more, %s of them for %s",
			window, e.lacking[window], e.which[window], seconds(e.longest[window]))
	}
}
