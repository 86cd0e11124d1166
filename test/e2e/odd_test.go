package e2e

// One record of every unusual kind, through the whole program.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
)

// padded returns an event of exactly size bytes.
func padded(user string, size int) string {
	e := fmt.Sprintf(`{"user_id":%q,"points":1,"note":""}`, user)
	return e[:len(e)-2] + strings.Repeat("x", size-len(e)) + e[len(e)-2:]
}

func nested(user string, depth int) string {
	return fmt.Sprintf(`{"user_id":%q,"points":1,"note":%s%s}`, user, strings.Repeat("[", depth), strings.Repeat("]", depth))
}

// ago formats the time that lies d before now.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }

// oddGood returns values that count.
func oddGood() map[string]string {
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	return map[string]string{
		"an id of 256 bytes":                    `{"user_id":` + quoted(strings.Repeat("i", 256)) + `,"points":1}`,
		"an id with NUL":                        `{"user_id":"a\u0000b","points":1}`,
		"an id with emoji":                      `{"user_id":"🏆\ud83c\udfc6","points":1}`,
		"an id that is a number":                `{"user_id":18446744073709551616,"points":1}`,
		"points of 1e3":                         `{"user_id":"exp","points":1e3}`,
		"a correction alone":                    `{"user_id":"corrected","points":-5}`,
		"the most points":                       `{"user_id":"most","points":99999999}`,
		"the least points":                      `{"user_id":"least","points":-99999999}`,
		"eight boards":                          `{"user_id":"eight","points":1,"board":["a","b","c","d","e","f","g","h"]}`,
		"one board eight times":                 `{"user_id":"once","points":1,"board":["a","a","a","a","a","a","a","a"]}`,
		"a board of 64 bytes":                   `{"user_id":"long board","points":1,"board":"` + strings.Repeat("b", 64) + `"}`,
		"duplicate keys, of which the last one": `{"user_id":"first","user_id":"last","points":"x","points":3,"board":7,"board":"eu"}`,
		"nesting":                               nested("nested", 5000),
		"1 MiB":                                 padded("mib", 1<<20),
		"white space":                           " \n\t{ \"user_id\" : \"space\" , \"points\" : 1 } \r\n",
		"Unix milliseconds":                     fmt.Sprintf(`{"user_id":"ms","points":1,"occurred_at":%d}`, time.Now().UnixMilli()),
		"a fraction of ten digits":              `{"user_id":"nano","points":1,"occurred_at":"` + time.Now().UTC().Format("2006-01-02T15:04:05.0000000000Z") + `"}`,
		"a week's border, before":               fmt.Sprintf(`{"user_id":"border","points":1,"occurred_at":"%s"}`, ago(8*24*time.Hour)),
		"a week's border, after":                fmt.Sprintf(`{"user_id":"border","points":2,"occurred_at":"%s"}`, ago(time.Minute)),
		"late for the week, not for the year":   fmt.Sprintf(`{"user_id":"latecomer","points":2,"occurred_at":"%s"}`, time.Now().UTC().Format("2006")+"-01-01T00:00:00Z"),
		"late for all":                          `{"user_id":"too late","points":2,"occurred_at":"2001-01-01T00:00:00Z"}`,
	}
}

// oddBad returns values that are dead-lettered, with the reason that the README gives.
func oddBad() map[string][2]string {
	return map[string][2]string{
		"empty":                     {oracle.Malformed, ``},
		"half":                      {oracle.Malformed, `{"user_id":"u","poi`},
		"invalid UTF-8 in the id":   {oracle.Malformed, "{\"user_id\":\"u\xff\",\"points\":1}"},
		"nesting past reason":       {oracle.Malformed, nested("deep", 100_000)},
		"a byte over 1 MiB":         {oracle.Malformed, padded("over", 1<<20+1)},
		"NUL bytes":                 {oracle.Malformed, "\x00\x00"},
		"an id of 257 bytes":        {oracle.Invalid, `{"user_id":"` + strings.Repeat("i", 257) + `","points":1}`},
		"an id that is half a pair": {oracle.Invalid, `{"user_id":"a\udfc6","points":1}`},
		"points of 1e400":           {oracle.Invalid, `{"user_id":"u","points":1e400}`},
		`points of "5"`:             {oracle.Invalid, `{"user_id":"u","points":"5"}`},
		"points past max_points":    {oracle.Invalid, `{"user_id":"u","points":100000000}`},
		"nine boards":               {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":["a","b","c","d","e","f","g","h","i"]}`},
		"a board with a colon":      {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":"a:b"}`},
		"a day that doesn't exist":  {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":"2026-02-29T00:00:00Z"}`},
		"ten minutes ahead":         {oracle.BadTime, fmt.Sprintf(`{"user_id":"u","points":1,"occurred_at":"%s"}`, ago(-10*time.Minute))},
		"past 2106":                 {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":4294967296000}`},
	}
}

func TestEveryOddRecordCountsOrIsDeadLetteredForItsReason(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{
		TopicConfig: map[string]string{"max.message.bytes": "8388608"},
		Settings:    map[string]string{"lateness": "10d"}, // the previous week still accepts events
	})
	large := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(7<<20))
	var all []*kgo.Record
	add := func(what string, r *kgo.Record, reason string) {
		r.Key = []byte(what)
		all = append(all, r)
		if got := place.Oracle(t).Judge(oracle.Record{Value: r.Value, Time: r.Timestamp.UnixMilli()}); got != reason {
			t.Errorf("%s: the oracle says %q, want %q", what, got, reason)
		}
	}
	for what, value := range oddGood() {
		add(what, harness.Record(0, value), "")
	}
	for what, bad := range oddBad() {
		add(what, harness.Record(0, bad[1]), bad[0])
	}

	// Faults outside of the value.
	none := time.UnixMilli(-1)
	r := harness.Record(0, fmt.Sprintf(`{"user_id":"no time","points":1,"occurred_at":"%s"}`, ago(0)))
	r.Timestamp = none
	add("no record time, which never is late nor ahead", r, "")
	r = harness.Record(0, `{"user_id":"no time","points":1}`)
	r.Timestamp = none
	add("no time at all", r, oracle.BadTime)
	r = harness.Record(0, "")
	r.Value = nil
	add("a tombstone", r, "")
	for _, bad := range []string{`{"user_id":"headers","points":1}`, `{"user_id":"headers"}`} {
		r = harness.Record(0, bad)
		for i := range 2000 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprintf("header-%d", i), Value: []byte(strings.Repeat("h", i%40))})
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "null"}, kgo.RecordHeader{Key: "", Value: []byte{}}, kgo.RecordHeader{Key: "standings-reason", Value: []byte("none")})
		add("many headers", r, map[bool]string{true: "", false: oracle.Invalid}[strings.Contains(bad, "points")])
	}
	for _, key := range [][]byte{nil, {}} {
		r = harness.Record(0, `no event, and the key is null or empty`)
		add("", r, oracle.Malformed)
		r.Key = key
		r = harness.Record(0, `{"user_id":"keyless","points":1}`)
		add("", r, "")
		r.Key = key
	}
	place.ProduceBy(t, large, all...)
	place.Expect(t, all...)

	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}

// Near max_points the script refuses the events of one member, and no others.
func TestAnOverflowTakesAllOfTheMembersEventsInTheBatchAndNoOthers(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Settings: map[string]string{"max_points": "1000"}})
	event := func(user string, points int, more string) *kgo.Record {
		return harness.Record(0, fmt.Sprintf(`{"user_id":%q,"points":%d%s}`, user, points, more))
	}
	first := event("greedy", 600, "")
	place.Publish(t, first, event("modest", 600, ""), event("down", -900, ""))
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)

	// One batch, since it is complete in the log before the consumer starts.
	greedy := []*kgo.Record{event("greedy", 300, ""), event("greedy", 101, ""), event("greedy", 1, `,"board":"eu"`), event("down", -101, "")}
	others := []*kgo.Record{event("modest", 400, ""), event("late greedy", 1, `,"occurred_at":"2001-01-01T00:00:00Z"`), event("other", 1000, "")}
	place.Produce(t, append(append([]*kgo.Record{}, greedy...), others...)...)
	place.ExpectOverflow(t, greedy...)
	place.Expect(t, others...)
	consumer = place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.Publish(t, event("greedy", 400, ""), event("down", -100, ""))
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}
