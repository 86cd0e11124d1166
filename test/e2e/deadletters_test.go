package e2e

// Dead letters that are exported, fixed and published again: the copies count where their originals would
// have counted, no matter when they are published.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// badAndMended lists bad events, each with the fix for its value.
var badAndMended = []struct {
	value   string
	headers func(at time.Time) []kgo.RecordHeader
	mend    func(line map[string]json.RawMessage)
}{
	{`{"user_id":"text","points":"25"}`, nil, inValue(`"25"`, `25`)},
	{"{\n \"user_id\": \"board\",\r\n \"points\" : 25.0, \"board\": \"no such board\"}", nil, inValue(`no such board`, `eu`)},
	{`{"user_id":"binary","points":null}`, func(at time.Time) []kgo.RecordHeader {
		return binaryMode("id-1", at.Add(-time.Hour), "traceparent", "00-4bf9\xff", "empty", "")
	}, inValue(`null`, `7`)},
	{`{"specversion":"1.0","type":"t","source":"/game","id":"2","data":{"user_id":"","points":3}}`, func(time.Time) []kgo.RecordHeader {
		return headers("content-type", structured)
	}, inValue(`"user_id":""`, `"user_id":"structured"`)},
	{`{"user_id":"cut off","points":5`, nil, asText(`}`)},
	{"{\"user_id\":\"latin \xe9\",\"points\":6}", nil, func(line map[string]json.RawMessage) {
		var coded []byte
		if json.Unmarshal(line["value_base64"], &coded) == nil {
			line["value_base64"] = json.RawMessage(`"` + base64.StdEncoding.EncodeToString(bytes.ReplaceAll(coded, []byte("\xe9"), []byte("é"))) + `"`)
		}
	}},
	{`{"user_id":"time","points":8,"occurred_at":"2199-01-01T00:00:00Z"}`, nil, inValue(`"2199-01-01T00:00:00Z"`, `null`)},
}

func inValue(old, now string) func(map[string]json.RawMessage) {
	return func(line map[string]json.RawMessage) {
		line["value"] = bytes.Replace(line["value"], []byte(old), []byte(now), 1)
	}
}

func asText(more string) func(map[string]json.RawMessage) {
	return func(line map[string]json.RawMessage) {
		var text string
		if json.Unmarshal(line["value_text"], &text) == nil {
			line["value_text"], _ = json.Marshal(text + more) // a string always marshals
		}
	}
}

func TestMendedLettersCountWhereTheirOriginalsWouldHave(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, TopicConfig: map[string]string{"retention.ms": "-1"}})
	// Created before any consumer starts: a consumer that creates it may write an extra test record.
	place.Kafka.CreateTopic(t, place.DeadLetterTopic(), 3, map[string]string{"retention.ms": "-1"})
	originals := map[string]*kgo.Record{}
	var all []*kgo.Record
	for i := range 40 * len(badAndMended) {
		bad := badAndMended[i%len(badAndMended)]
		// Most originals are far past their week and month: a copy would be late by the time it is published.
		r := harness.Record(i%3, bad.value)
		r.Timestamp = r.Timestamp.Add(-time.Duration(i) * 8 * time.Hour)
		if i%4 > 0 {
			r.Key = fmt.Appendf(nil, "key-%d", i%4-1)
		}
		if bad.headers != nil {
			r.Headers = bad.headers(r.Timestamp)
		}
		all = append(all, r, harness.Record(i%3, fmt.Sprintf(`{"user_id":"good-%d","points":1}`, i%5)))
	}
	place.Publish(t, all...)
	for i, r := range all {
		if i%2 == 0 {
			originals[fmt.Sprintf("%s/%d@%d", place.Topic, r.Partition, r.Offset)] = r
		}
	}
	count(t, place)

	// Redis is lost and the log is read again: every dead letter is written a second time.
	if err := place.RedisClient().Del(t.Context(), keysOf(t, place)...).Err(); err != nil {
		t.Fatal(err)
	}
	count(t, place)
	place.Check(t)
	if n := len(place.DeadLetters(t)); n != 2*len(originals) {
		t.Fatalf("%d letters of %d originals, want each twice", n, len(originals))
	}
	place.Command(t, "dead-letters", "list") // and as JSON:
	var counted struct {
		Counts []struct {
			Reason          string
			Events, Letters int
		}
	}
	decode(t, place.Command(t, "dead-letters", "list", "--json"), &counted)
	events := 0
	for _, c := range counted.Counts {
		if events += c.Events; c.Letters != 2*c.Events || c.Reason == "" {
			t.Errorf("%+v, want each twice", c)
		}
	}
	if events != len(originals) || len(counted.Counts) != 3*4 {
		t.Errorf("%d events in %d rows: %+v", events, len(counted.Counts), counted)
	}

	out := filepath.Join(t.TempDir(), "letters.ndjson")
	place.Command(t, "dead-letters", "export", "--out", out)
	exported, err := os.ReadFile(out) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	mended := filepath.Join(t.TempDir(), "mended.ndjson")
	if err := os.WriteFile(mended, mend(t, exported, len(originals)), 0o600); err != nil {
		t.Fatal(err)
	}
	place.Command(t, "produce", "--file", mended)

	// Copies equal their originals, except for the fixed value, and carry a header that marks them as copies.
	var copies []*kgo.Record
	for _, r := range place.ReadAll(t, place.Topic) {
		last := len(r.Headers) - 1
		if last < 0 || r.Headers[last].Key != "standings-mends" {
			continue
		}
		was := originals[string(r.Headers[last].Value)]
		delete(originals, string(r.Headers[last].Value))
		if was == nil {
			t.Fatalf("a copy of %s, or one too many", r.Headers[last].Value)
		}
		if !bytes.Equal(r.Key, was.Key) || (r.Key == nil) != (was.Key == nil) || !r.Timestamp.Equal(was.Timestamp) || fmt.Sprint(r.Headers[:last]) != fmt.Sprint(was.Headers) {
			t.Errorf("the copy of %s: key %q, time %v, headers %q; was %q, %v, %q", r.Headers[last].Value, r.Key, r.Timestamp, r.Headers[:last], was.Key, was.Timestamp, was.Headers)
		}
		copies = append(copies, r)
	}
	if len(originals) > 0 {
		t.Errorf("%d originals have no copy", len(originals))
	}
	before := place.Oracle(t).Counts()
	place.Expect(t, copies...)
	after := place.Oracle(t).Counts()
	if after.Applied != before.Applied+int64(len(copies)) || fmt.Sprint(after.Dead) != fmt.Sprint(before.Dead) || after.Late != before.Late {
		t.Errorf("mended copies don't all count: %+v, then %+v", before, after)
	}
	count(t, place)
	place.Check(t)
}

// count runs a consumer until it has caught up.
func count(t *testing.T, place *harness.Place) {
	t.Helper()
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
}

func keysOf(t *testing.T, place *harness.Place) []string {
	t.Helper()
	keys, err := place.RedisClient().Keys(t.Context(), place.Prefix+":*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	return keys
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// mend fixes every line according to its fault, as jq would.
func mend(t *testing.T, exported []byte, want int) []byte {
	t.Helper()
	var out bytes.Buffer
	n := 0
	for text := range bytes.Lines(exported) {
		n++
		var line map[string]json.RawMessage
		decode(t, text, &line)
		for _, bad := range badAndMended {
			bad.mend(line)
		}
		mended, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(mended, '\n'))
	}
	if n != want {
		t.Fatalf("%d lines, want %d", n, want)
	}
	return out.Bytes()
}
