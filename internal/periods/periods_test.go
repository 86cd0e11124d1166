package periods_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/periods"
)

func TestPeriodsHaveTheLengthsThatScoresAreLaidOutOver(t *testing.T) {
	lengths := map[periods.Period]time.Duration{
		"daily": 36 * time.Hour, "weekly": 180 * time.Hour, "monthly": 756 * time.Hour,
		"quarterly": 2220 * time.Hour, "yearly": 8796 * time.Hour, "all-time": 1 << 32 * time.Second,
	}
	if len(periods.All()) != len(lengths) {
		t.Errorf("there are %v", periods.All())
	}
	for _, p := range periods.All() {
		if p.Length() != lengths[p] {
			t.Errorf("%s is %v long, want %v", p, p.Length(), lengths[p])
		}
	}
	byLength := func(a, b periods.Period) int { return int((a.Length() - b.Length()) / time.Hour) }
	if !slices.IsSortedFunc(periods.All(), byLength) {
		t.Errorf("not in order of length: %v", periods.All())
	}
	all, err := periods.Calendar{}.At(periods.AllTime, 0)
	if err != nil || time.Duration(all.End-all.Start)*time.Millisecond != periods.AllTime.Length() {
		t.Errorf("all-time is %+v, %v", all, err)
	}
}

func TestPeriodsAreKeptAsLongAsTheDesignSays(t *testing.T) {
	for p, want := range map[periods.Period]int{
		"daily": 14, "weekly": 60, "monthly": 400, "quarterly": 400, "yearly": 800, "all-time": 800,
	} {
		if got := p.Retention(); got != time.Duration(want)*24*time.Hour {
			t.Errorf("%s is kept for %v, want %d days", p, got, want)
		}
	}
}

func TestAPeriodIsFoundByItsNameAlone(t *testing.T) {
	for _, p := range periods.All() {
		if got, err := periods.Parse(string(p)); err != nil || got != p {
			t.Errorf("%q: got %q, %v", p, got, err)
		}
	}
	for _, name := range []string{"", "Weekly", "weekly ", "all", "fortnightly", strings.Repeat("weekly", 1000)} {
		p, err := periods.Parse(name)
		if err == nil {
			t.Errorf("%q was taken for %s", name, p)
			continue
		}
		if says := err.Error(); !strings.HasSuffix(says, "use daily, weekly, monthly, quarterly, yearly, all-time") || len(says) > 200 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestAPeriodThatDoesntExistHasNoWindowAndNoLength(t *testing.T) {
	const p = periods.Period("fortnightly")
	if p.Length() != 0 || p.Retention() != 0 {
		t.Errorf("it is %v long and kept for %v", p.Length(), p.Retention())
	}
	if w, err := (periods.Calendar{}).At(p, 0); err == nil {
		t.Errorf("it has %+v", w)
	}
}
