package periods_test

import (
	_ "embed"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/periods"
)

// zoneNames are the names in Go's copy of the IANA database, as of Go 1.26.
//
//go:embed testdata/zones.txt
var zoneNames string

var (
	watched = time.Date(1969, time.June, 1, 0, 0, 0, 0, time.UTC).Unix()
	until   = time.Date(2041, time.February, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// odd are zones with unusual clock changes.
var odd = []string{
	"Africa/Cairo",        // midnights are skipped
	"Africa/Casablanca",   // back for Ramadan, forward after it
	"Africa/Monrovia",     // -0:44:30 until 1972
	"America/Asuncion",    // changes at midnight in both directions
	"America/Godthab",     // changes on Saturday evenings
	"America/Havana",      // 00:00 to 01:00, 01:00 to 00:00
	"America/Sao_Paulo",   // midnights are skipped, and the hour from 23:00 is repeated
	"America/St_Johns",    // changes at 00:01, so a date is shown twice
	"Antarctica/Casey",    // three hours at a time
	"Antarctica/Troll",    // two hours at a time
	"Asia/Amman",          // at 24:00
	"Asia/Beirut",         // midnights are skipped
	"Asia/Gaza",           // at 00:01, and several times a year
	"Asia/Kathmandu",      // 5:30 to 5:45
	"Asia/Manila",         // a new year
	"Asia/Pyongyang",      // half an hour, at 23:30
	"Asia/Tehran",         // at 24:00, half an hour off
	"Atlantic/Azores",     // changes at midnight in both directions
	"Australia/Lord_Howe", // half an hour
	"Europe/Dublin",       // winter time is the exception
	"Pacific/Apia",        // no 2011-12-30
	"Pacific/Fakaofo",     // no 2011-12-30
	"Pacific/Kiritimati",  // no 1994-12-31
	"Pacific/Kwajalein",   // no 1993-08-21
	"UTC",
}

func TestNoWindowInAnyZoneSince1970IsLongerThanItsPeriod(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]bool{}
	t.Run("zones", func(t *testing.T) {
		for zone := range strings.Lines(zoneNames) {
			zone = strings.TrimSpace(zone)
			t.Run(zone, func(t *testing.T) {
				t.Parallel()
				clock := watch(location(t, zone), watched, until)
				sum := clock.sum()
				mu.Lock()
				again := seen[sum]
				seen[sum] = true
				mu.Unlock()
				if again {
					return // another name for a zone that was tested
				}
				for _, p := range byDates() {
					agree(t, calendar(t, zone, "monday"), clock, p, 0)
				}
			})
		}
	})
	if len(seen) < 250 {
		t.Errorf("only %d different zones", len(seen))
	}
}

func TestTheFirstAndTheLastWindowsOfAnyZoneFitTheirPeriod(t *testing.T) {
	for zone := range strings.Lines(zoneNames) {
		c := calendar(t, strings.TrimSpace(zone), "monday")
		for _, p := range periods.All() {
			for _, ms := range []int64{0, periods.MaxTime - 1} {
				w, err := c.At(p, ms)
				require.NoError(t, err)
				if length := time.Duration(w.End-w.Start) * time.Millisecond; length > p.Length() || length <= 0 {
					t.Errorf("%s: %s %s is %v long, more than %v", c.Zone(), p, w.Name, length, p.Length())
				}
			}
		}
	}
}

func TestAWeekThatStartsOnAnotherDayIsTheOneThatTheClockShows(t *testing.T) {
	for _, zone := range odd {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			clock := watch(location(t, zone), watched, until)
			for first, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
				agree(t, calendar(t, zone, day), clock, periods.Weekly, first)
			}
		})
	}
}

// agree compares the calendar with what the clock showed, for every window of the period. For days and
// weeks it checks only a sample, and those near a clock change.
func agree(t *testing.T, c periods.Calendar, clock *clock, p periods.Period, weekStart int) {
	t.Helper()
	windows := clock.windows(p, weekStart)
	changes := clock.changes
	for i, want := range windows {
		if p.Length() <= periods.Weekly.Length() && i%17 != 0 {
			for len(changes) > 0 && changes[0]*1000 < want.Start-2*86_400_000 {
				changes = changes[1:]
			}
			if len(changes) == 0 || changes[0]*1000 > want.End+2*86_400_000 {
				continue
			}
		}
		if want.End <= 0 {
			continue
		}
		for _, at := range []int64{max(0, want.Start), want.End - 1} {
			if got, err := c.At(p, at); err != nil || got != want {
				t.Fatalf("%s at %s: got %+v, %v; the clock showed %+v", p, utc(at), got, err, want)
			}
		}
		if length := time.Duration(want.End-want.Start) * time.Millisecond; length > p.Length() || length <= 0 {
			t.Errorf("%s %s is %v long, more than the %v that scores have room for", p, want.Name, length, p.Length())
		}
	}
}
