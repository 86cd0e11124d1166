package e2e

// One record of every unusual kind, through the whole program.

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
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
		"an id with spaces":                     `{"user_id":" a  b ","points":1}`,
		"an id with NUL":                        `{"user_id":"a\u0000b","points":1}`,
		"an id with emoji":                      `{"user_id":"🏆\ud83c\udfc6","points":1}`,
		"an id that is a number":                `{"user_id":18446744073709551616,"points":1}`,
		"an id that reads as a number":          `{"user_id":"18446744073709551616","points":2}`,
		"an id with a new line and a quote":     `{"user_id":"a\n\"'b","points":1}`,
		"points of 1e3":                         `{"user_id":"exp","points":1e3}`,
		"points of 25.0":                        `{"user_id":"dot","points":25.0}`,
		"points of 0":                           `{"user_id":"zero","points":0}`,
		"points of -0.0e-5":                     `{"user_id":"minus zero","points":-0.0e-5}`,
		"a correction alone":                    `{"user_id":"corrected","points":-5}`,
		"the most points":                       `{"user_id":"most","points":99999999}`,
		"the least points":                      `{"user_id":"least","points":-99999999}`,
		"eight boards":                          `{"user_id":"eight","points":1,"board":["a","b","c","d","e","f","g","h"]}`,
		"one board eight times":                 `{"user_id":"once","points":1,"board":["a","a","a","a","a","a","a","a"]}`,
		"a board of 64 bytes":                   `{"user_id":"long board","points":1,"board":"` + strings.Repeat("b", 64) + `"}`,
		"duplicate keys, of which the last one": `{"user_id":"first","user_id":"last","points":"x","points":3,"board":7,"board":"eu"}`,
		"an escaped name":                       `{"\u0075ser_id":"escaped","points":4}`,
		"names in capitals are unknown":         `{"USER_ID":"no","user_id":"yes","POINTS":9,"points":4}`,
		"nulls are absent":                      `{"user_id":"nulls","points":4,"board":null,"occurred_at":null}`,
		"nesting":                               nested("nested", 5000),
		"1 MiB":                                 padded("mib", 1<<20),
		"white space":                           " \n\t{ \"user_id\" : \"space\" , \"points\" : 1 } \r\n",
		"Unix milliseconds":                     fmt.Sprintf(`{"user_id":"ms","points":1,"occurred_at":%d}`, time.Now().UnixMilli()),
		"a fraction of ten digits":              `{"user_id":"nano","points":1,"occurred_at":"` + time.Now().UTC().Format("2006-01-02T15:04:05.0000000000Z") + `"}`,
		"another offset":                        `{"user_id":"offset","points":1,"occurred_at":"` + time.Now().In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339Nano) + `"}`,
		"a week's border, before":               fmt.Sprintf(`{"user_id":"border","points":1,"occurred_at":"%s"}`, ago(8*24*time.Hour)),
		"a week's border, after":                fmt.Sprintf(`{"user_id":"border","points":2,"occurred_at":"%s"}`, ago(time.Minute)),
		"late for the week, not for the year":   fmt.Sprintf(`{"user_id":"latecomer","points":2,"occurred_at":"%s"}`, time.Now().UTC().Format("2006")+"-01-01T00:00:00Z"),
		"late for all":                          `{"user_id":"too late","points":2,"occurred_at":"2001-01-01T00:00:00Z"}`,
	}
}

// oddBad returns values that are dead-lettered, with the reason that the README gives.
func oddBad() map[string][2]string {
	return map[string][2]string{
		"empty":                         {oracle.Malformed, ``},
		"half":                          {oracle.Malformed, `{"user_id":"u","poi`},
		"a list":                        {oracle.Malformed, `[{"user_id":"u","points":1}]`},
		"two objects":                   {oracle.Malformed, `{"user_id":"u","points":1}{}`},
		"invalid UTF-8 in the id":       {oracle.Malformed, "{\"user_id\":\"u\xff\",\"points\":1}"},
		"invalid UTF-8 elsewhere":       {oracle.Malformed, "{\"user_id\":\"u\",\"points\":1,\"note\":\"\xc3\x28\"}"},
		"nesting past reason":           {oracle.Malformed, nested("deep", 100_000)},
		"a byte over 1 MiB":             {oracle.Malformed, padded("over", 1<<20+1)},
		"NUL bytes":                     {oracle.Malformed, "\x00\x00"},
		"a byte order mark":             {oracle.Malformed, "\ufeff" + `{"user_id":"u","points":1}`},
		"no user_id":                    {oracle.Invalid, `{"points":1}`},
		"an empty id":                   {oracle.Invalid, `{"user_id":"","points":1}`},
		"an id of 257 bytes":            {oracle.Invalid, `{"user_id":"` + strings.Repeat("i", 257) + `","points":1}`},
		"an id that is half a pair":     {oracle.Invalid, `{"user_id":"a\udfc6","points":1}`},
		"an id that is true":            {oracle.Invalid, `{"user_id":true,"points":1}`},
		"no points":                     {oracle.Invalid, `{"user_id":"u"}`},
		"points of 2^63":                {oracle.Invalid, `{"user_id":"u","points":9223372036854775808}`},
		"points of 1e400":               {oracle.Invalid, `{"user_id":"u","points":1e400}`},
		`points of "5"`:                 {oracle.Invalid, `{"user_id":"u","points":"5"}`},
		"points of 2.5":                 {oracle.Invalid, `{"user_id":"u","points":2.5}`},
		"points past max_points":        {oracle.Invalid, `{"user_id":"u","points":100000000}`},
		"nine boards":                   {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":["a","b","c","d","e","f","g","h","i"]}`},
		"one board nine times":          {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":["a","a","a","a","a","a","a","a","a"]}`},
		"no board in the list":          {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":[]}`},
		"a board of 65 bytes":           {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":"` + strings.Repeat("b", 65) + `"}`},
		"a board with a colon":          {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":"a:b"}`},
		"the last of two boards":        {oracle.UnknownBoard, `{"user_id":"u","points":1,"board":"eu","board":{}}`},
		"a day that doesn't exist":      {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":"2026-02-29T00:00:00Z"}`},
		"no zone":                       {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":"2026-11-21T00:00:00"}`},
		"before 1970":                   {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":-1}`},
		"ten minutes ahead":             {oracle.BadTime, fmt.Sprintf(`{"user_id":"u","points":1,"occurred_at":"%s"}`, ago(-10*time.Minute))},
		"past 2106":                     {oracle.BadTime, `{"user_id":"u","points":1,"occurred_at":4294967296000}`},
		"an id and a board and no time": {oracle.Invalid, `{"user_id":"","points":1,"board":[],"occurred_at":"x"}`},
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

func TestAllCodecsAreRead(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{TopicConfig: map[string]string{"max.message.bytes": "4194304"}})
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
			kgo.ProducerBatchMaxBytes(32<<20), kgo.ProducerLinger(20*time.Millisecond))
		var all []*kgo.Record
		for i := range 500 {
			all = append(all, harness.Record(0, fmt.Sprintf(`{"user_id":"%s-%d","points":%d}`, name, i%50, i+1)))
		}
		all = append(all, harness.Record(0, `{"user_id":"`+name+`"`))
		if name == "gzip" || name == "lz4" || name == "zstd" {
			// Compressed it is small, and decompressed it exceeds the memory for one record. (franz-go's snappy
			// is one block, which must be decompressed at once.)
			all = append(all, harness.WithoutValue(harness.Record(0, padded("huge", 17<<20))))
		}
		place.ProduceBy(t, client, all...)
		place.Expect(t, all...)
	}
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}

// incompressible returns a text of n characters that no codec compresses below half.
func incompressible(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

func TestADeadLetterThatTheBrokerRefusesForItsSizeGoesWithoutItsValue(t *testing.T) {
	testenv.RealKafka(t, "a topic's max.message.bytes")
	t.Parallel()
	place := harness.New(t, harness.Options{})
	place.Kafka.CreateTopic(t, place.DeadLetterTopic(), 1, map[string]string{"max.message.bytes": "3000"})
	small := harness.Record(0, `{"user_id":"small"}`)
	large := harness.WithoutValue(harness.Record(0, `{"user_id":"large","note":"`+incompressible(10_000)+`"}`))
	large.Key = []byte("large")
	large.Headers = []kgo.RecordHeader{{Key: "own", Value: []byte("kept")}}
	// Its key and headers alone are already too large.
	laden := harness.WithoutValue(harness.Record(0, `{"user_id":"laden"}`))
	laden.Key = []byte(incompressible(8000))
	place.Publish(t, small, large, laden, harness.Record(0, `{"user_id":"good","points":1}`))

	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	for _, letter := range place.DeadLetters(t) {
		t.Logf("%.20q: %d bytes", letter.Key, len(letter.Value))
		if len(letter.Value) > 3000 || len(letter.Key) > 3000 {
			t.Errorf("the broker took %d and %d bytes, so the test shows nothing", len(letter.Key), len(letter.Value))
		}
	}
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
