package ranking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/standings/standings/internal/codec"
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

const schemaVersion = 2

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
		"v": schemaVersion, "week": s.WeekDay, "zone": s.TimeZone,
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

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
