package ranking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Schema has every setting whose change would turn the same events into other bytes or other keys.
type Schema struct {
	Boards   map[string][]periods.Period // the periods of the boards that list theirs
	Cluster  string                      // the Kafka cluster's id
	Layouts  map[periods.Period]codec.Layout
	Own      map[periods.Period]periods.Parts // of the periods that aren't built in
	Shards   int
	WeekDay  string // first day of a week
	TimeZone string
}

// SchemaVersion is the version of the schema's text.
const SchemaVersion = 2

// Text returns the schema as it is stored in Redis: JSON with sorted keys, which is only compared as bytes.
func (s Schema) Text() string {
	cut := map[string]any{}
	for name, l := range s.Layouts {
		of := map[string]any{"k": l.K, "layout": l.Kind, "max": l.Max, "tick": l.Tick}
		if parts, ok := s.Own[name]; ok {
			of["of"] = partsText(parts)
		}
		cut[string(name)] = of
	}
	all := map[string]any{
		"cluster": s.Cluster, "hash": "xxh64", "periods": cut, "shards": s.Shards,
		"v": SchemaVersion, "week": s.WeekDay, "zone": s.TimeZone,
	}
	if len(s.Boards) > 0 {
		lists := map[string]any{}
		for name, list := range s.Boards {
			lists[name] = slices.Sorted(slices.Values(list))
		}
		all["boards"] = lists
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings and integers only
	}
	return string(text)
}

// partsText returns a period's parts as a map, so that their keys are sorted.
func partsText(p periods.Parts) map[string]any {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and integers only
	}
	all := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // keeps times as they are written
	if err := d.Decode(&all); err != nil {
		panic(err)
	}
	return all
}

// SchemaError reports that the standings in Redis were written with another schema.
type SchemaError struct {
	Prefix string
	Wanted string // by the configuration
	Found  string // in Redis; empty if it has none
}

func (e *SchemaError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("no standings under the prefix %q: nothing was written there yet, or Redis has lost it", e.Prefix)
	}
	if n := LeftFor(e.Found); n > 0 {
		return fmt.Sprintf("the standings under the prefix %q have been copied to %d shards: set redis.shards to %d", e.Prefix, int(n), int(n))
	}
	if missing := e.Missing(); len(missing) > 0 {
		return fmt.Sprintf("the standings under the prefix %q also have the periods %s, which this configuration lacks: "+
			AddMissing, e.Prefix, strings.Join(missing, ", "))
	}
	if added, ok := grown(e.Found, e.Wanted); ok && len(added) > 0 {
		return fmt.Sprintf("the standings under the prefix %q lack the periods %s: consumer run adds them when it starts with this configuration",
			e.Prefix, namesOf(added))
	}
	return fmt.Sprintf("the standings under the prefix %q were written with another configuration: %s. "+
		"Set it back, or use another redis.prefix and a group of its own for the new one",
		e.Prefix, strings.Join(e.Differences(), "; "))
}

// AddMissing is the remedy for periods that a configuration lacks.
const AddMissing = "add them, with the settings that the other replicas have. A period can't be removed under a prefix: " +
	"to do without one, shorten its retention, or use another redis.prefix and a group of its own"

// Missing returns the periods that the configuration lacks, if it differs in nothing else.
func (e *SchemaError) Missing() []string {
	all, ok := grown(e.Wanted, e.Found)
	if !ok {
		return nil
	}
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.String()
	}
	return names
}

// Differences describes the settings that differ, by their names in the configuration.
func (e *SchemaError) Differences() []string { return differences(e.Found, e.Wanted) }

// Clip shortens a text from Redis for a message.
func Clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// leftMark replaces the schema of a shard whose members have moved to another number of shards.
type leftMark struct {
	Moved   ledger.Shards `json:"moved"`
	Version int           `json:"v"`
}

// LeftMark returns the text of a leftMark.
func LeftMark(to ledger.Shards) string {
	text, err := json.Marshal(leftMark{to, SchemaVersion})
	if err != nil {
		panic(err) // two numbers
	}
	return string(text)
}

// LeftFor returns the number of shards to which the members moved if schema is a leftMark, else 0.
func LeftFor(schema string) ledger.Shards {
	var m leftMark
	if json.Unmarshal([]byte(schema), &m) != nil || m.Moved < 1 || m.Moved > ledger.MaxShards {
		return 0
	}
	return m.Moved
}

// Describes the differences of two schemas by the names of settings. A schema also holds values derived
// from settings (k and ticks from a layout and its range); they wouldn't help an operator who has to
// correct a setting.

// differences names the settings in which two schemas differ. It names a derived value only if no setting
// explains the difference.
func differences(found, wanted string) []string {
	var f, w map[string]any
	if err := json.Unmarshal([]byte(found), &f); err != nil {
		return []string{fmt.Sprintf("Redis has %q, which is no schema", Clip(found))}
	}
	if err := json.Unmarshal([]byte(wanted), &w); err != nil {
		return []string{"the configuration's schema is no JSON"}
	}
	var all []string
	differ := func(name, version string, f, w any) {
		all = append(all, fmt.Sprintf("%s is %s in Redis, %s here%s", name, shown(f), shown(w), version))
	}
	for _, field := range both(f, w) {
		switch setting := settings[field]; {
		case reflect.DeepEqual(f[field], w[field]):
		case field == "boards":
			differentLists(f[field], w[field], differ)
		case field == "periods" && isObject(f[field]) && isObject(w[field]):
			differentPeriods(f[field].(map[string]any), w[field].(map[string]any), differ) //nolint:forcetypeassert // the line above
		case setting != "":
			differ(setting, "", f[field], w[field])
		default:
			differ("the schema's "+field, anotherVersion, f[field], w[field])
		}
	}
	if len(all) == 0 {
		return []string{"the texts differ in form"}
	}
	slices.Sort(all)
	return all
}

// settings maps a schema's fields to settings.
var settings = map[string]string{
	"cluster": "the Kafka cluster at kafka.brokers", "shards": "redis.shards", "week": "week_start", "zone": "time_zone",
}

// differentLists compares the periods that boards list.
func differentLists(found, wanted any, differ func(name, version string, f, w any)) {
	f, _ := found.(map[string]any)
	w, _ := wanted.(map[string]any)
	for _, board := range both(f, w) {
		if !reflect.DeepEqual(f[board], w[board]) {
			differ("boards."+board+".periods", "", f[board], w[board])
		}
	}
}

const anotherVersion = ", by another version of this program"

// differentPeriods compares the layouts of each period's scores. All periods share one max_points.
func differentPeriods(f, w map[string]any, differ func(name, version string, f, w any)) {
	of := func(m map[string]any, period, field string) any {
		p, _ := m[period].(map[string]any)
		return p[field]
	}
	var common []string
	for _, period := range both(f, w) {
		_, there := f[period]
		_, here := w[period]
		if there && here {
			common = append(common, period)
			continue
		}
		differ("periods."+period+".enabled", "", there, here)
	}
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	points := len(common) > 0
	for _, period := range common {
		theirs, ours := of(f, period, "max"), of(w, period, "max")
		points = points && !same(theirs, ours) && same(theirs, of(f, common[0], "max")) && same(ours, of(w, common[0], "max"))
	}
	if points {
		differ("max_points", "", of(f, common[0], "max"), of(w, common[0], "max"))
	}
	for _, period := range common {
		layout := !same(of(f, period, "layout"), of(w, period, "layout"))
		if layout {
			differ("periods."+period+".layout", "", of(f, period, "layout"), of(w, period, "layout"))
		}
		fp, _ := f[period].(map[string]any)
		wp, _ := w[period].(map[string]any)
		windows := differentWindows(period, fp["of"], wp["of"], differ)
		if layout || points || windows {
			continue // the rest follows
		}
		for _, field := range both(fp, wp) {
			if !same(fp[field], wp[field]) {
				differ("the "+period+" "+field, anotherVersion, fp[field], wp[field])
			}
		}
	}
}

// ownSettings are the settings that define the windows of a period that isn't built in. Times are Unix ms.
var ownSettings = []struct {
	part, setting string
	show          func(ms float64) string
}{
	{"calendar", "calendar", nil},
	{"zone", "time_zone", nil},
	{"week", "week_start", nil},
	{"start", "start", instant},
	{"end", "end", instant},
	{"every", "every", func(ms float64) string { return (time.Duration(ms) * time.Millisecond).String() }},
	{"from", "from", instant},
}

func instant(ms float64) string { return time.UnixMilli(int64(ms)).UTC().Format(time.RFC3339) }

// differentWindows reports the settings that define the windows of a period that isn't built in and that
// differ.
func differentWindows(period string, found, wanted any, differ func(name, version string, f, w any)) bool {
	f, _ := found.(map[string]any)
	w, _ := wanted.(map[string]any)
	different := false
	for _, s := range ownSettings {
		there, here := f[s.part], w[s.part]
		if reflect.DeepEqual(there, here) {
			continue
		}
		show := func(v any) any {
			if ms, ok := v.(float64); ok && s.show != nil {
				return s.show(ms)
			}
			return v
		}
		differ("periods."+period+"."+s.setting, "", show(there), show(here))
		different = true
	}
	return different
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// both returns the sorted keys of either map.
func both(a, b map[string]any) []string {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "absent"
	case string:
		return Clip(v)
	case float64:
		return fmt.Sprintf("%.0f", v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return Clip(fmt.Sprint(v))
	}
	return Clip(strings.TrimSpace(string(text)))
}
