package harness

// This file defines boards with several rules, and events for them.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ruledBoards defines boards with every kind of rule: best of several fields and of one; sums of fields,
// also with fewest; last of fields with ties, and of a signed field. The largest fields have ticks of 10 ms
// and more, so that some events are within one tick.
const ruledBoards = `{
	"global": {}, "eu": {}, "asia": {}, "us": {"periods": ["weekly", "sprint"]},
	"arena": {"score": "best", "fields": [{"name": "stage", "max": 999}, {"name": "revives", "max": 99, "order": "fewest"}]},
	"lap": {"score": "best", "fields": [{"name": "lap_ms", "max": 60000000, "order": "fewest"}], "periods": ["weekly", "cup"]},
	"ladder": {"fields": [{"name": "levels", "max": 9999}, {"name": "deaths", "max": 999, "order": "fewest"}, {"name": "experience", "max": 9999}]},
	"form": {"score": "last", "fields": [{"name": "elo", "max": 60000000}], "periods": ["monthly", "yearly", "weekly-us"]},
	"mood": {"score": "last", "fields": [{"name": "mood", "max": 9, "signed": true}], "periods": ["weekly", "sprint"]},
	"cup": {"score": "last", "fields": [{"name": "stage", "max": 9}, {"name": "revives", "max": 99, "order": "fewest"}], "periods": ["cup"]}
}`

// ruledNames returns the names of the boards of Ruled.
func ruledNames() []string {
	return []string{"global", "eu", "asia", "us", "arena", "lap", "ladder", "form", "mood", "cup"}
}

// Ruled returns settings with boards with several rules, and with configured periods: a season from start
// to end, windows of equal length, and another calendar.
func Ruled(start, end time.Time) map[string]string {
	instant := func(at time.Time) string { return at.UTC().Truncate(time.Second).Format(time.RFC3339) }
	return map[string]string{
		"boards":             ruledBoards,
		"event.fields.name":  "run.by",
		"event.fields.stage": "run.stage", "event.fields.revives": "run.revives",
		"periods.cup.start": instant(start), "periods.cup.end": instant(end), "periods.cup.lateness": "1h", "periods.cup.retention": "9d",
		"periods.weekly.layout": "wide",
		"periods.sprint.every":  "120h", "periods.sprint.from": "2026-01-01T00:00:00Z", "periods.sprint.retention": "60d", "periods.sprint.layout": "wide",
		"periods.weekly-us.calendar": "weekly", "periods.weekly-us.time_zone": "America/New_York", "periods.weekly-us.week_start": "sunday", "periods.weekly-us.retention": "60d",
	}
}

// ruledFields adds the fields that the boards of Ruled count to an event. There are few values, so that
// members are often equal.
func ruledFields(r *rand.Rand, event map[string]any) {
	run := map[string]any{"stage": r.IntN(10), "revives": r.IntN(4)}
	if r.IntN(3) > 0 {
		run["by"] = []string{"Ada", "Bea", "B\u202e", "Ca\u00e9", "5 5 \x00"}[r.IntN(5)]
	}
	maps.Copy(event, map[string]any{
		"points": r.IntN(9), "run": run,
		"lap_ms": 60_000 + r.IntN(20), "levels": r.IntN(3), "deaths": r.IntN(2), "experience": r.IntN(50),
		"elo": 1000 + r.IntN(20), "mood": r.IntN(19) - 9,
	})
}

// RuledEvent returns an event of a member on boards of Ruled. Most events are valid. Some have an invalid
// field, and some overflow; the latter belong to members without other events.
func RuledEvent(r *rand.Rand, partition int, member string, event map[string]any) *kgo.Record {
	ruledFields(r, event)
	event["user_id"] = member
	some := ruledNames()
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	event["board"] = some[:1+r.IntN(4)]
	switch r.IntN(480) {
	case 0, 1, 2, 3:
		event["board"] = []string{"global", "arena", "ladder"}
		lacking := []string{"points", "run", "levels", "deaths", "experience"}
		delete(event, lacking[r.IntN(len(lacking))])
	case 4, 5, 6, 7:
		event["board"], event["lap_ms"] = []string{"lap", "eu"}, -1
	case 9, 10:
		event["run"] = map[string]any{"stage": 1, "revives": 1, "by": strings.Repeat("x", 65)}
	case 8:
		delete(event, "event_id")
		delete(event, "occurred_at") // so that windows accept it
		event["user_id"] = fmt.Sprintf("%s%d", overflowing, r.Uint64())
		event["board"], event["levels"], event["experience"] = []string{"asia", "ladder", "arena"}, 1, -1
	}
	return asRecord(partition, event)
}

func asRecord(partition int, event map[string]any) *kgo.Record {
	value, err := json.Marshal(event)
	if err != nil {
		panic(err) // built above
	}
	return Record(partition, string(value))
}

// overflowing is the prefix of the ids of members whose events overflow.
const overflowing = "overflowing-"

// overflows reports whether a record is expected to be refused because of what it adds.
func overflows(r *kgo.Record) bool {
	return bytes.Contains(r.Value, []byte(`"user_id":"`+overflowing))
}
