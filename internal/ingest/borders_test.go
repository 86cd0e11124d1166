package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// zoned is a world whose processes use one of two versions of a time zone's rules, which differ by an hour. Its
// windows are months in that zone, and weeks in UTC.
type zoned struct {
	*world

	truth    settled
	versions map[string]fold.Rules
	// Two consecutive months in the past. In the later version, the border between them and the end of the
	// second are an hour earlier.
	first, second string
	begin         int64 // of first, by the later version
	middle, end   int64
	borders       [3]periods.Border
}

type settled map[periods.Border]int64

func (s settled) At(b periods.Border) (int64, bool) { ms, ok := s[b]; return ms, ok }

const hour = int64(time.Hour / time.Millisecond)

func newZoned(t *testing.T, partitions int) *zoned {
	t.Helper()
	z := &zoned{world: newWorld(t, partitions), truth: settled{}, versions: map[string]fold.Rules{}}
	lateness := (400 * 24 * time.Hour).Milliseconds()
	for version, offset := range map[string]int{"earlier": -7 * 3600, "later": -6 * 3600} {
		calendar, err := periods.CalendarIn(time.FixedZone("America/Edmonton", offset), "monday")
		require.NoError(t, err)
		rules := fold.BuiltIn(z.calendar, lateness, periods.Weekly)
		rules.Periods = append(rules.Periods, fold.BuiltIn(calendar, lateness, periods.Monthly).Periods...)
		z.versions[version] = rules
	}
	later := z.versions["later"].Periods[1].Rule
	w, _, err := later.At(time.Now().AddDate(0, -2, 0).UnixMilli())
	require.NoError(t, err)
	next, _ := later.Next(w)
	z.first, z.second, z.begin, z.middle, z.end = w.Name, next.Name, w.Start, w.End, next.End
	z.standings.zoned = func(w *ledger.Window, end int) string {
		if w.Period != string(periods.Monthly) {
			return ""
		}
		start, stop, _ := later.Borders(w.Name)
		return []periods.Border{start, stop}[end].String()
	}
	// The expected bounds are those of the earlier version in the first month, and those of the later version
	// afterwards.
	start, _, _ := later.Borders(z.first)
	_, stop, _ := later.Borders(z.second)
	middle, _, _ := later.Borders(z.second)
	z.borders = [3]periods.Border{start, middle, stop}
	z.truth[start], z.truth[middle], z.truth[stop] = w.Start+hour, z.middle+hour, z.end
	z.config.Rules = z.versions["later"]
	z.config.Rules.Periods[1].Rule = later.By(z.truth)
	z.versions["later"] = fold.Rules{Periods: append(fold.BuiltIn(z.calendar, lateness, periods.Weekly).Periods, fold.Period{Rule: later, Lateness: lateness})}
	return z
}

// by starts a worker of a version. The caller must stop it before it starts another.
func (z *zoned) by(version string) *running {
	return z.worker(0, func(c *Config) { c.Rules = z.versions[version] })
}

// at returns events of a given time.
func at(prefix string, ms int64) []earned {
	all := some(prefix, 20, 5)
	for i := range all {
		all[i].At = ms
	}
	return all
}

// If the bounds that Redis lists differ from the settled borders, the partition halts until one of the two is
// corrected.
func TestAWindowThatIsListedOtherwiseThanItsBordersAreSettledHalts(t *testing.T) {
	t.Parallel()
	z := newZoned(t, 1)
	old := z.by("earlier")
	z.send(0, at("opens", z.middle-24*hour)...)
	z.reaches(0)
	changed := func(by int64) {
		z.standings.do(func() {
			for _, s := range z.standings.shards {
				s.borders[z.borders[1].String()] += by
			}
		})
	}
	old.stop(t)
	changed(hour / 4)
	old = z.by("earlier")
	z.send(0, at("more", z.middle-24*hour)...)
	eventually(t, "it halts", func() bool { return old.status.Line().Reason == health.HaltBounds })
	changed(-hour / 4)
	z.reaches(0)
}
