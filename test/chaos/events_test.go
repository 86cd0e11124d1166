package chaos

// This file makes events of all kinds, reproducible by their seed: corrections, ties, several boards and
// rules, old, early and late events, repeats, CloudEvents, tombstones, bad events, and events that
// overflow.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// members is the number of members: enough that a burst's batch is swept in many pieces.
const members = 6000

// The first members, repeaters in number, repeat event ids. Some repeats in a partition are within the
// distance at which they are duplicates; others are further apart and count.
const (
	repeaters  = members / 10
	duplicates = 3000
)

// event returns a record with an event for a partition.
func event(r *rand.Rand, partition int) *kgo.Record {
	now, member, id := time.Now().UTC(), r.IntN(members), r.Uint64()
	if member < repeaters {
		id %= 3
	}
	value := map[string]any{"event_id": fmt.Sprintf("e%d", id), "user_id": fmt.Sprintf("m%d", member), "points": points(r)}
	switch r.IntN(8) {
	case 0:
		value["board"] = "eu"
	case 1:
		value["board"] = []string{"global", "asia"}
	case 2:
		value["board"] = []string{"eu", "asia", "eu"}
	}
	ruled := r.IntN(3) == 0
	switch r.IntN(6) {
	case 0: // at the record's time
	case 1: // to the second, so that times are equal
		value["occurred_at"] = now.Truncate(time.Second).Format(time.RFC3339)
	case 2: // usually, its week and its month are over
		value["occurred_at"] = now.Add(-time.Duration(r.IntN(60*24)) * time.Hour).UnixMilli()
	case 3: // in the last hours
		value["occurred_at"] = now.Add(-time.Duration(r.IntN(4*3600*1000)) * time.Millisecond).Format(time.RFC3339Nano)
	default:
		value["occurred_at"] = now.UnixMilli()
	}
	switch r.IntN(120) {
	case 0, 1:
		return harness.Record(partition, bad(r))
	case 2: // no window accepts it
		value["occurred_at"] = now.AddDate(-2, 0, 0).Format(time.RFC3339)
	case 3:
		record := harness.Record(partition, "")
		record.Value = nil
		return record
	case 4:
		return cloudEvent(r, partition, value)
	}
	if r.IntN(8) == 0 { // for seasons: some of these are read after a season's end although they were published before it
		value["board"], value["occurred_at"] = []string{seasonBoard, "global"}, now.Add(-time.Duration(r.IntN(30_000))*time.Millisecond).UnixMilli()
		record := harness.Record(partition, asJSON(value))
		record.Timestamp = record.Timestamp.Add(-time.Duration(r.IntN(60_000)) * time.Millisecond)
		return record
	}
	if ruled {
		return harness.RuledEvent(r, partition, value["user_id"].(string), value)
	}
	return harness.Record(partition, asJSON(value))
}

// points returns mostly small numbers, so that members are often equal, and negative ones for corrections.
func points(r *rand.Rand) int {
	if r.IntN(4) == 0 {
		return r.IntN(500) - 100
	}
	return r.IntN(4)
}

// bad returns a value that cannot be counted.
func bad(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return `{"user_id":"m1","points":`
	case 1:
		return fmt.Sprintf(`{"event_id":"bad","user_id":"m%d","points":"many"}`, r.IntN(members))
	case 2:
		return fmt.Sprintf(`{"user_id":"m%d","points":1,"board":"nowhere"}`, r.IntN(members))
	case 3:
		return fmt.Sprintf(`{"user_id":"m%d","points":1,"occurred_at":"tomorrow"}`, r.IntN(members))
	case 4:
		return fmt.Sprintf(`{"user_id":"m%d","points":1,"occurred_at":%d}`, r.IntN(members), time.Now().Add(time.Hour).UnixMilli())
	}
	return `{"points":7}`
}

func cloudEvent(r *rand.Rand, partition int, value map[string]any) *kgo.Record {
	delete(value, "occurred_at")
	record := harness.Record(partition, asJSON(value))
	for _, h := range [][2]string{
		{"ce_specversion", "1.0"}, {"ce_id", fmt.Sprintf("c%d", r.Uint64())}, {"ce_source", "/chaos"}, {"ce_type", "points"},
		{"ce_time", time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)}, {"content-type", "application/json"},
	} {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return record
}

func asJSON(value map[string]any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // built above
	}
	return string(text)
}
