package event

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

const (
	plainData = `{"user_id":"u42","points":25}`
	timedData = `{"event_id":"own","user_id":"u42","points":25,"occurred_at":1795248930123}`
)

// binaryMode returns headers as the Kafka binding defines them, followed by others, which override them.
func binaryMode(others ...[2]string) [][2]string {
	all := [][2]string{
		{"traceparent", "00-4bf9"}, {"ce_specversion", "1.0"}, {"ce_type", "com.example.points"}, {"ce_source", "/game"},
		{"ce_id", "ce-1"}, {"ce_time", "2026-11-21T08:15:30.123Z"}, {"content-type", "application/json"},
	}
	return append(all, others...)
}

func structuredHeaders(contentType string) [][2]string {
	return [][2]string{{"content-type", contentType}}
}

// structuredValue returns an envelope with the required attributes and these members.
func structuredValue(members string) string {
	return `{"specversion":"1.0","id":"ce-1","source":"/game","type":"com.example.points",` + members + `}`
}

// decodeRecord decodes a record with headers and checks the result against the oracle.
func decodeRecord(t *testing.T, headers [][2]string, value string, recordTime int64) (Event, string, *Bad) {
	t.Helper()
	d := NewDecoder(rules())
	rec := record{headers: headers, value: []byte(value), time: recordTime}
	agreeOn(t, d, nil, rec)
	var ev Event
	bad := d.DecodeWith(rec.taken(), rec.value, recordTime, &ev)
	if bad != nil {
		checkMessage(t, bad)
	}
	return ev, string(d.ID()), bad
}

func TestACloudEventCountsWithTheTimeAndIDItHas(t *testing.T) {
	const structured = "application/cloudevents+json"
	const ceTime = now - 877
	for _, c := range []struct {
		what    string
		headers [][2]string
		value   string
		time    int64
		id      string
	}{
		{"no header at all", nil, plainData, now, ""},
		{"headers of others", [][2]string{{"traceparent", "00-4bf9"}, {"content-type", "text/plain"}, {"ce_x", ""}}, plainData, now, ""},
		{"attributes without a version are headers of others", [][2]string{{"ce_id", "x"}, {"ce_time", "2026-11-21T08:15:30.123Z"}}, plainData, now, ""},
		{"names of attributes are case-sensitive", [][2]string{{"CE_SPECVERSION", "0.3"}, {"Ce_Time", "x"}}, plainData, now, ""},

		{"binary", binaryMode(), plainData, ceTime, "ce-1"},
		{"binary, the data's own time and id", binaryMode([2]string{"ce_time", "2026-11-21T08:00:00Z"}), timedData, ceTime, "own"},
		{"binary, the data's own time before one that can't be read", binaryMode([2]string{"ce_time", "soon"}), timedData, ceTime, "own"},
		{"binary, no time", binaryMode([2]string{"ce_time", "\x00"}), plainData, now, "ce-1"},
		{"binary, no id", binaryMode([2]string{"ce_id", "\x00"}), plainData, ceTime, ""},
		{"binary, an id of the data that can't be one", binaryMode(), `{"event_id":[],"user_id":"u42","points":25}`, ceTime, "ce-1"},
		{"binary, of a repeated header the last", binaryMode([2]string{"ce_time", "2026-11-21T08:15:29Z"}, [2]string{"ce_time", "2026-11-21T08:15:30Z"}), plainData, now - 1000, "ce-1"},
		{"binary, a later 1.x", binaryMode([2]string{"ce_specversion", "1.12"}), plainData, ceTime, "ce-1"},
		{"binary, no content type", binaryMode([2]string{"content-type", "\x00"}), plainData, ceTime, "ce-1"},
		{"binary, an empty content type", binaryMode([2]string{"content-type", ""}), plainData, ceTime, "ce-1"},
		{"binary, another kind of JSON", binaryMode([2]string{"content-type", "application/vnd.game+JSON; charset=utf-8"}), plainData, ceTime, "ce-1"},
		{"binary, no record time", binaryMode(), plainData, ceTime, "ce-1"},

		{"structured", structuredHeaders(structured), structuredValue(`"time":"2026-11-21T08:15:30.123Z","data":` + plainData), ceTime, "ce-1"},
		{"structured, by a type in capitals with parameters", [][2]string{{"Content-Type", "Application/CloudEvents+JSON ; charset=UTF-8"}}, structuredValue(`"time":"2026-11-21T08:15:30.123Z","data":` + plainData), ceTime, "ce-1"},
		{"structured, the data's own time and id", structuredHeaders(structured), structuredValue(`"time":"2026-11-21T08:00:00Z","data":` + timedData), ceTime, "own"},
		{"structured, neither time nor id", structuredHeaders(structured), `{"specversion":"1.0","time":null,"id":null,"data":` + plainData + `}`, now, ""},
		{"structured, fields beside the data aren't the event's", structuredHeaders(structured), structuredValue(`"user_id":"no","points":9,"occurred_at":1,"data":` + plainData), now, "ce-1"},
		{"structured, the data first", structuredHeaders(structured), `{"data":` + plainData + `,"specversion":"1.0"}`, now, ""},
		{"structured, of repeated data the last", structuredHeaders(structured), structuredValue(`"data":{"user_id":"no","board":"-"},"data":` + plainData), now, "ce-1"},
		{"structured, escaped names", structuredHeaders(structured), `{"specversi\u006fn":"1\u002e0","d\u0061ta":` + plainData + `}`, now, ""},
		{"structured, Base64", structuredHeaders(structured), structuredValue(`"time":"2026-11-21T08:15:30.123Z","data_base64":"` + base64Of(plainData) + `"`), ceTime, "ce-1"},
		{"structured, Base64 with escaped slashes", structuredHeaders(structured), structuredValue(`"data_base64":"` + strings.ReplaceAll(base64Of(`{"x":"???>>>","user_id":"u42","points":25}`), "/", `\/`) + `"`), now, "ce-1"},
		{"structured, Base64 and no data", structuredHeaders(structured), structuredValue(`"data":null,"datacontenttype":"text/json","data_base64":"` + base64Of(plainData) + `"`), now, "ce-1"},
		{"structured before binary", append(binaryMode([2]string{"ce_specversion", "0.3"}), [2]string{"content-type", structured}), structuredValue(`"time":"2026-11-21T08:15:29Z","data":` + plainData), now - 2000, "ce-1"},
	} {
		ev, id, bad := decodeRecord(t, c.headers, c.value, now)
		if bad != nil {
			t.Errorf("%s: %v", c.what, bad)
			continue
		}
		if string(ev.User) != "u42" || ev.Points != 25 || names(ev.Boards) != "global" || ev.Time != c.time || id != c.id {
			t.Errorf("%s: %q %d of %s at %d (%+d) with id %q, want it at %d with %q", c.what, ev.User, ev.Points, names(ev.Boards), ev.Time, ev.Time-now, id, c.time, c.id)
		}
	}
	if ev, _, bad := decodeRecord(t, binaryMode(), plainData, -1); bad != nil || ev.Time != ceTime {
		t.Errorf("a record without a time: %+v, %v", ev, bad)
	}
}

func TestABadCloudEventSaysWhatIsWrongAndWhere(t *testing.T) {
	const structured = "application/cloudevents+json"
	for _, c := range []struct {
		headers [][2]string
		value   string
		reason  Reason
		message string
	}{
		{binaryMode([2]string{"ce_specversion", "0.3"}), plainData, Malformed, "ce_specversion is not 1.x, which alone is read: 0.3"},
		{binaryMode([2]string{"ce_specversion", ""}), plainData, Malformed, "ce_specversion is not 1.x, which alone is read: "},
		{binaryMode([2]string{"ce_specversion", "1.0-rc1"}), plainData, Malformed, "ce_specversion is not 1.x, which alone is read: 1.0-rc1"},
		{binaryMode([2]string{"content-type", "application/avro"}), "\x02\x04", Malformed, "the data of the CloudEvent is not JSON, by its content-type: application/avro"},
		{binaryMode([2]string{"content-type", "json"}), plainData, Malformed, "the data of the CloudEvent is not JSON, by its content-type: json"},
		{binaryMode(), "", Malformed, "the value is empty"},
		{binaryMode([2]string{"ce_time", "yesterday"}), plainData, BadTime, "ce_time is not a time by RFC 3339: yesterday"},
		{binaryMode([2]string{"ce_time", ""}), plainData, BadTime, "ce_time is not a time by RFC 3339: "},
		{binaryMode([2]string{"ce_time", "1795248930123"}), plainData, BadTime, "ce_time is not a time by RFC 3339: 1795248930123"},
		{binaryMode([2]string{"ce_time", "2026-11-21T09:15:30Z"}), plainData, BadTime, "ce_time is too far past the record's time: 2026-11-21T09:15:30Z"},
		{binaryMode([2]string{"ce_time", "1969-12-31T23:59:59Z"}), plainData, BadTime, "ce_time is before 1970: 1969-12-31T23:59:59Z"},
		{binaryMode([2]string{"ce_time", "yesterday"}), `{"points":1}`, Invalid, "user_id is missing"},

		{structuredHeaders("application/cloudevents-batch+json"), "[]", Malformed, "a batch of CloudEvents in one record, which Kafka's binding doesn't have: application/cloudevents-batch+json"},
		{structuredHeaders("application/cloudevents+avro"), "x", Malformed, "an event format of CloudEvents other than JSON: application/cloudevents+avro"},
		{structuredHeaders("application/cloudevents"), plainData, Malformed, "an event format of CloudEvents other than JSON: application/cloudevents"},
		{structuredHeaders(structured), "", Malformed, "the value is empty"},
		{structuredHeaders(structured), "[]", Malformed, "the value is not an object but a list: each event needs a record of its own"},
		{structuredHeaders(structured), plainData, Malformed, "the envelope has no specversion: it is not a CloudEvent"},
		{structuredHeaders(structured), `{"specversion":"0.3","data":` + plainData + `}`, Malformed, `specversion at byte 15 is not 1.x, which alone is read: "0.3"`},
		{structuredHeaders(structured), `{"specversion":1.0,"data":` + plainData + `}`, Malformed, `specversion at byte 15 is not 1.x, which alone is read: 1.0`},
		{structuredHeaders(structured), `{"specversion":"1.0"}`, Malformed, "the envelope has no data"},
		{structuredHeaders(structured), `{"specversion":"1.0","data":null}`, Malformed, "the envelope has no data"},
		{structuredHeaders(structured), `{"specversion":"1.0","data":"` + `{\"user_id\":1}` + `"}`, Malformed, `data at byte 28 is not an object: "{\"user_id\":1}"`},
		{structuredHeaders(structured), `{"specversion":"1.0","data":{},"data_base64":""}`, Malformed, "the envelope has both data and data_base64, at byte 28 and 45"},
		{structuredHeaders(structured), `{"specversion":"1.0","data_base64":7}`, Malformed, "data_base64 at byte 35 is not a string: 7"},
		{structuredHeaders(structured), `{"specversion":"1.0","data_base64":"e30"}`, Malformed, `data_base64 at byte 35 is not Base64: "e30"`},
		{structuredHeaders(structured), `{"specversion":"1.0","data_base64":""}`, Malformed, "the decoded data: the value is empty"},
		{structuredHeaders(structured), `{"specversion":"1.0","data_base64":"` + base64Of(`{"user_id":`) + `"}`, Malformed, "the decoded data: the JSON ends midway, at byte 11"},
		{structuredHeaders(structured), `{"specversion":"1.0","data_base64":"` + base64Of(`{"user_id":"u","points":"5"}`) + `"}`, Invalid, `points at byte 24 of the decoded data is a number in quotes: "5"`},
		{structuredHeaders(structured), `{"specversion":"1.0","datacontenttype":"application/xml","data":"<a/>"}`, Malformed, `datacontenttype at byte 39 is not JSON's: "application/xml"`},
		{structuredHeaders(structured), `{"specversion":"1.0","datacontenttype":{},"data":{}}`, Malformed, `datacontenttype at byte 39 is not JSON's: {}`},
		{structuredHeaders(structured), `{"specversion":"1.0","data":{"user_id":"u","points":1.5}}`, Invalid, "points at byte 52 is not an integer: 1.5"},
		{structuredHeaders(structured), `{"specversion":"1.0","time":5,"data":` + plainData + `}`, BadTime, "time at byte 28 is not a string: 5"},
		{structuredHeaders(structured), `{"specversion":"1.0","time":"5","data":` + plainData + `}`, BadTime, `time at byte 28 is not a time by RFC 3339, but a number in quotes: "5"`},
		{structuredHeaders(structured), `{"specversion":"1.0","time":"2026-11-22T00:00:00Z","data":` + plainData + `}`, BadTime, `time at byte 28 is too far past the record's time: "2026-11-22T00:00:00Z"`},
	} {
		_, _, bad := decodeRecord(t, c.headers, c.value, now)
		if bad == nil {
			t.Errorf("%v %s: taken", c.headers, c.value)
			continue
		}
		if bad.Reason != c.reason || bad.Message != c.message {
			t.Errorf("%s:\n got %v\nwant %s: %s", c.value, bad, c.reason, c.message)
		}
	}
}

func TestABadEventHasItsIDWhereItsJSONCouldBeRead(t *testing.T) {
	for _, c := range []struct {
		headers   [][2]string
		value, id string
	}{
		{nil, `{"event_id":"e1","points":1}`, "e1"},
		{nil, `{"event_id":17,"points":1}`, "17"},
		{nil, `{"event_id":"` + strings.Repeat("x", 257) + `","points":1}`, ""},
		{nil, `{"event_id":"e1","points":`, ""},
		{nil, `{"event_id":"\ud800","points":1}`, ""},
		{binaryMode(), `{"points":`, "ce-1"},
		{binaryMode([2]string{"ce_specversion", "7"}), `{"event_id":"e1"}`, "ce-1"},
		{structuredHeaders(structuredType), structuredValue(`"data":{"points":1}`), "ce-1"},
		{structuredHeaders(structuredType), structuredValue(`"data_base64":"e30="`), "ce-1"},
		{structuredHeaders(structuredType), structuredValue(`"data":{"event_id":"own"},"data_base64":"e30="`), "ce-1"},
	} {
		_, id, bad := decodeRecord(t, c.headers, c.value, now)
		if bad == nil || id != c.id {
			t.Errorf("%s: %v with id %q, want %q", c.value, bad, id, c.id)
		}
	}
}

func TestACloudEventsFieldsAreMappedInItsData(t *testing.T) {
	d := NewDecoder(mapped(t, Paths{UserID: "player.id", Points: "data.delta"}))
	var h Headers
	h.Note([]byte("content-type"), []byte(structuredType))
	var ev Event
	value := `{"specversion":"1.0","player":{"id":"no"},"data":{"player":{"id":"u42"},"data":{"delta":25}}}`
	if bad := d.DecodeWith(&h, []byte(value), now, &ev); bad != nil || string(ev.User) != "u42" || ev.Points != 25 {
		t.Fatalf("%v %+v", bad, ev)
	}
	bad := d.DecodeWith(&h, []byte(`{"specversion":"1.0","data":{"player":[]}}`), now, &ev)
	if bad == nil || bad.Message != "user_id is missing: player at byte 38 is not an object: []" {
		t.Fatal(bad)
	}
}

// anyRecord favours records that are almost CloudEvents.
func anyRecord(t *rapid.T) record {
	text := func(what string, usual ...string) string {
		return rapid.OneOf(rapid.SampledFrom(usual), rapid.StringN(0, 4, 12)).Draw(t, what)
	}
	rec := record{time: rapid.SampledFrom([]int64{now, now, now, -1, now - 400_000}).Draw(t, "record time")}
	for range rapid.IntRange(0, 6).Draw(t, "headers") {
		name := rapid.SampledFrom([]string{"ce_specversion", "ce_specversion", "ce_id", "ce_time", "content-type", "Content-Type", "ce_source", "x"}).Draw(t, "header")
		value := "\x00"
		if rapid.IntRange(0, 15).Draw(t, "null") > 0 {
			switch name {
			case "ce_specversion":
				value = text("version", "1.0", "1.0", "1.0", "1.1", "0.3", "1.", "1")
			case "ce_time":
				value = text("time", "2026-11-21T08:15:30.123Z", "2026-11-21T08:15:30.123Z", "2026-11-21t08:10:00+00:00", "soon")
			default:
				value = text("type", "application/json", "application/cloudevents+json", "application/cloudevents+json; charset=utf-8", "APPLICATION/cloudevents+JSON;", "application/cloudevents+json", "application/cloudevents+json", "application/cloudevents+avro", "application/cloudevents-batch+json", "text/x+json", "text/plain", "/json", "a/b/json", " application/json ;x=y")
			}
		}
		rec.headers = append(rec.headers, [2]string{name, value})
	}
	data := rapid.OneOf(anyObject(), rapid.SampledFrom([]string{plainData, timedData, `{"user_id":"u","points":1,"board":[]}`})).Draw(t, "data")
	if rapid.Bool().Draw(t, "an envelope") {
		member := func(name string, values ...string) string {
			return quoted(t, name) + ":" + rapid.OneOf(rapid.SampledFrom(values), oddValue()).Draw(t, name)
		}
		members := []string{
			member("specversion", `"1.0"`, `"1.0"`, `"1.0"`, `"1.\u0030"`, `"2.0"`),
			member("data", data, data, data, data, "null"),
		}
		more := []string{
			member("time", `"2026-11-21T08:15:30.123Z"`, `"2026-11-21T08:15:30.123Z"`, `"soon"`, "5"), member("id", `"e1"`, `"e1"`, "7"),
			member("datacontenttype", `"application/json"`, `"text/x+json;a=b"`, `"text/xml"`),
			member("data_base64", quote(base64Of(data)), quote(base64.RawStdEncoding.EncodeToString([]byte(data)))), member("data", data, "[]", "null"),
		}
		members = append(members, rapid.SliceOfN(rapid.SampledFrom(more), 0, 3).Draw(t, "members")...)
		data = "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"
	}
	rec.value = []byte(data)
	return rec
}

func TestACloudEventIsWhatAnOracleMakesOfIt(t *testing.T) {
	seen := map[string]int{}
	d := NewDecoder(rules())
	rapid.Check(t, func(t *rapid.T) {
		for range 100 { // a short run meets each reason too: the rarest is one in 140
			rec := anyRecord(t)
			reason := agreeOn(t, d, nil, rec)
			seen[fmt.Sprintf("%v %q", d.attributed, reason)]++
		}
	})
	for _, reason := range []Reason{"", Malformed, Invalid, UnknownBoard, BadTime} {
		if seen[fmt.Sprintf("true %q", reason)] == 0 {
			t.Errorf("no CloudEvent with reason %q: %v", reason, seen)
		}
	}
}

// FuzzCloudEvent compares decoder and oracle on fuzzed headers and values.
func FuzzCloudEvent(f *testing.F) {
	f.Add("", "1.0", "2026-11-21T08:15:30.123Z", "ce-1", []byte(plainData))
	f.Add(structuredType, "", "", "", []byte(structuredValue(`"time":"2026-11-21T08:15:30.123Z","data":`+plainData)))
	f.Add(structuredType+";charset=utf-8", "", "", "", []byte(structuredValue(`"data_base64":"`+base64Of(timedData)+`"`)))
	f.Fuzz(func(t *testing.T, contentType, version, at, id string, value []byte) {
		rec := record{value: value, time: now}
		for _, h := range [][2]string{{"content-type", contentType}, {"ce_specversion", version}, {"ce_time", at}, {"ce_id", id}} {
			if h[1] != "" && strings.ToValidUTF8(h[1], "") == h[1] {
				rec.headers = append(rec.headers, h)
			}
		}
		agreeOn(t, NewDecoder(rules()), nil, rec)
	})
}
