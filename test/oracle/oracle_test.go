package oracle

import (
	"github.com/standings/standings/internal/zoneinfo"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestTheOracleSharesNoCodeWithTheProject(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps: %v\n%s", err, out)
	}
	if own := strings.Fields(string(out)); len(own) != 1 || !strings.HasSuffix(own[0], "/test/oracle") {
		t.Fatalf("the oracle depends on more than the standard library: %v", own)
	}
}

func defaults() Config {
	return Config{
		Zone: time.UTC, WeekStart: time.Monday,
		Periods: []Period{
			{Name: "weekly", Layout: "readable", Retention: 60 * 24 * time.Hour},
			{Name: "monthly", Layout: "readable", Retention: 400 * 24 * time.Hour},
			{Name: "yearly", Layout: "readable", Retention: 800 * 24 * time.Hour},
		},
		MaxPoints: 99_999_999, MaxEventBytes: 1 << 20, MaxFuture: 5 * time.Minute, Lateness: 24 * time.Hour,
	}
}

// The values that DESIGN.md gives for layouts.
func TestLayoutsComeToWhatTheDesignSays(t *testing.T) {
	for _, c := range []struct {
		kind, period string
		most         int64
		k            uint // 0: not given
		tick         int64
	}{
		{"readable", "weekly", 99_999_999, 26, 10},
		{"readable", "monthly", 99_999_999, 26, 41},
		{"readable", "yearly", 99_999_999, 26, 472},
		{"wide", "weekly", 2_000_000_000, 0, 1},
		{"wide", "monthly", 2_000_000_000, 0, 2},
		{"wide", "yearly", 2_000_000_000, 0, 15},
		{"wide", "yearly", 10_000_000_000, 0, 118},
	} {
		config := Config{MaxPoints: c.most}
		l := config.layoutOf(Period{Name: c.period, Layout: c.kind}, config.rule("global"))
		if l.tick != c.tick || c.k != 0 && l.k != c.k {
			t.Errorf("%s %s ±%d: k %d, tick %d ms; the design says %d and %d", c.kind, c.period, c.most, l.k, l.tick, c.k, c.tick)
		}
	}
}

func TestWindowsFollowTheCalendar(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		zone, period string
		start        time.Weekday
		at           string
		name         string
		hours        float64
	}{
		{"UTC", "weekly", time.Monday, "2020-12-31T12:00:00Z", "2020-W53", 168},
		{"UTC", "weekly", time.Monday, "2021-01-01T12:00:00Z", "2020-W53", 168},
		{"UTC", "weekly", time.Monday, "2024-12-30T00:00:00Z", "2025-W01", 168},
		{"UTC", "weekly", time.Sunday, "2026-11-21T12:00:00Z", "2026-11-15", 168},
		{"Europe/Berlin", "weekly", time.Monday, "2026-10-25T12:00:00Z", "2026-W43", 169},
		{"Europe/Berlin", "weekly", time.Monday, "2026-03-29T12:00:00Z", "2026-W13", 167},
		{"Europe/Berlin", "daily", time.Monday, "2026-10-24T22:00:00Z", "2026-10-25", 25},
		{"America/Sao_Paulo", "daily", time.Monday, "2018-11-04T03:00:00Z", "2018-11-04", 23},
		{"America/Sao_Paulo", "daily", time.Monday, "2018-11-04T02:59:59Z", "2018-11-03", 24},
		// The clock goes from 24:00 back to 23:00, so that hour occurs twice.
		{"America/Sao_Paulo", "daily", time.Monday, "2018-02-18T02:30:00Z", "2018-02-17", 25},
		{"UTC", "quarterly", time.Monday, "2026-12-31T23:59:59Z", "2026-Q4", 92 * 24},
		{"UTC", "yearly", time.Monday, "2024-02-29T00:00:00Z", "2024", 366 * 24},
	} {
		zone, err := zoneinfo.Load(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		w := Config{Zone: zone, WeekStart: c.start}.cut(Period{Name: c.period}, at(c.at).UnixMilli())
		if got := time.Duration(w.end-w.start) * time.Millisecond; w.name != c.name || got.Hours() != c.hours {
			t.Errorf("%s %s at %s: %s of %v hours, want %s of %v", c.zone, c.period, c.at, w.name, got.Hours(), c.name, c.hours)
		}
	}
}

func TestTheFirstFaultCounts(t *testing.T) {
	long := strings.Repeat("x", 257)
	for value, want := range map[string]string{
		`{"user_id":"u","points":5}`:                                                "",
		`{"user_id":"u","points":25.0}`:                                             "",
		`{"user_id":"u","points":1e3}`:                                              "",
		`{"user_id":7,"points":-1}`:                                                 "",
		`{"user_id":"u","points":0e999999999}`:                                      "",
		`{"user_id":"u","points":5,"board":["a","a"],"occurred_at":0}`:              "",
		`{"user_id":"u","points":5,"occurred_at":"2016-12-31T23:59:60Z"}`:           "",
		`{"user_id":"u","points":5,"occurred_at":"2026-11-21t08:15:30.1239+01:00"}`: "",
		`{"points":"x","user_id":"u","points":5}`:                                   "",
		`{"user_id":"\ud83d\ude00","points":5}`:                                     "",
		`{"user_id":"\\ud83d","points":5}`:                                          "",
		``:                                                                          Malformed,
		`[]`:                                                                        Malformed,
		`{"user_id":"u","points":5}}`:                                               Malformed,
		"{\"user_id\":\"\xff\",\"points\":5}":                                       Malformed,
		`{"points":5}`:                                                              Invalid,
		`{"USER_ID":"u","points":5}`:                                                Invalid,
		`{"user_id":"u","points":null}`:                                             Invalid,
		`{"user_id":"u","points":"5"}`:                                              Invalid,
		`{"user_id":"u","points":2.5,"board":7}`:                                    Invalid,
		`{"user_id":"u","points":1e999999999}`:                                      Invalid,
		`{"user_id":"u","points":100000000}`:                                        Invalid,
		`{"user_id":"` + long + `","points":5}`:                                     Invalid,
		`{"user_id":"\ud83d","points":5}`:                                           Invalid,
		`{"user_id":"\ud83d\\ude00","points":5}`:                                    Invalid,
		`{"user_id":4.0,"points":5}`:                                                Invalid,
		`{"user_id":"u","points":5,"board":[]}`:                                     UnknownBoard,
		`{"user_id":"u","points":5,"board":["a","a","a","a","a","a","a","a","a"]}`: UnknownBoard,
		`{"user_id":"u","points":5,"board":".a","occurred_at":"no"}`:               UnknownBoard,
		`{"user_id":"u","points":5,"occurred_at":"2026-02-30T00:00:00Z"}`:          BadTime,
		`{"user_id":"u","points":5,"occurred_at":"2026-11-21T8:15:30Z"}`:           BadTime,
		`{"user_id":"u","points":5,"occurred_at":"2026-11-21T08:15:30,123Z"}`:      BadTime,
		`{"user_id":"u","points":5,"occurred_at":"2026-11-21T12:05:00.001Z"}`:      BadTime,
		`{"user_id":"u","points":5,"occurred_at":-1}`:                              BadTime,
		`{"user_id":"u","points":5,"occurred_at":1.5}`:                             BadTime,
		`{"user_id":"u","points":5,"occurred_at":1795248930}`:                      BadTime,
	} {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixMilli()
		if _, _, got := defaults().judge(Record{Value: []byte(value), Time: now}); got != want {
			t.Errorf("%.80s: %q, want %q", value, got, want)
		}
	}
}
