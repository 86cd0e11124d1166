package e2e

// Events in other formats than the plain one: CloudEvents, events with fields in other places, and several
// topics.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
)

// headers returns headers from pairs of a name and a value.
func headers(pairs ...string) []kgo.RecordHeader {
	var all []kgo.RecordHeader
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return all
}

// binaryMode returns the headers of a CloudEvent in binary mode, followed by others.
func binaryMode(id string, at time.Time, others ...string) []kgo.RecordHeader {
	return headers(append([]string{
		"ce_specversion", "1.0", "ce_type", "com.example.points", "ce_source", "/game", "ce_id", id,
		"ce_time", at.UTC().Format(time.RFC3339Nano), "content-type", "application/json",
	}, others...)...)
}

const structured = "application/cloudevents+json; charset=UTF-8"

// inEnvelope returns a CloudEvent in structured mode with these additional members.
func inEnvelope(id string, at time.Time, members string) string {
	return fmt.Sprintf(`{"specversion":"1.0","type":"com.example.points","source":"/game","id":%q,"time":%q,%s}`,
		id, at.UTC().Format(time.RFC3339Nano), members)
}

// Two games publish in their own formats, and each topic mixes several formats: only the records determine
// how each one is read.
func TestTopicsOfDifferentFormsFeedTheSameBoards(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: map[string]string{
		"event.fields.user_id": "player.id", "event.fields.points": "score.delta", "event.fields.board": `meta.board\.name`,
		"event.fields.occurred_at": "meta.at", "event.fields.event_id": "meta.id", "lateness": "20d", "max_points": "100000",
	}})
	events := place.Beside(t, 5)
	random := rand.New(rand.NewPCG(4, 2))
	var plain, cloud []*kgo.Record
	for i := range 3000 {
		at := time.Now().Add(-time.Duration(random.IntN(int(15 * 24 * time.Hour))))
		data := map[string]any{
			"player": map[string]any{"id": fmt.Sprintf("player-%d", random.IntN(60)), "points": "none"},
			"score":  map[string]any{"delta": random.IntN(100) - 10},
		}
		meta := map[string]any{"id": fmt.Sprintf("own-%d", i)}
		if random.IntN(2) == 0 {
			meta["at"] = at.UnixMilli()
		}
		if random.IntN(2) == 0 {
			meta["board.name"] = []string{"eu", "us"}[:1+random.IntN(2)]
		}
		switch random.IntN(20) {
		case 0:
			data["player"] = "a name" // not an object, so the path cannot continue: invalid
		case 1:
			meta["at"] = "soon"
		case 2:
			meta = nil
		case 3:
			meta["board.name"] = "no such board"
		}
		data["meta"] = meta
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		r := harness.Record(random.IntN(3), string(text))
		id := fmt.Sprintf("ce-%d", i)
		switch random.IntN(5) {
		case 0, 1:
			plain = append(plain, r)
			continue
		case 2:
			r.Headers = binaryMode(id, at, []string{"traceparent", "00-4bf9"}[:2*random.IntN(2)]...)
		case 3:
			r.Headers, r.Value = headers("content-type", structured), []byte(inEnvelope(id, at, `"data":`+string(text)))
		case 4:
			r.Headers, r.Value = headers("content-type", structured),
				[]byte(inEnvelope(id, at, `"datacontenttype":"application/json","data_base64":"`+base64.StdEncoding.EncodeToString(text)+`"`))
		}
		r.Partition = int32(random.IntN(5))
		cloud = append(cloud, r)
	}
	place.Publish(t, plain...)
	events.Publish(t, cloud...)

	consumer := place.Start(t)
	second := place.Start(t) // the replicas share the partitions of both topics
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	second.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	for _, p := range []*harness.Place{place, events} {
		dead := p.Oracle(t).Counts().Dead
		if len(p.DeadLetters(t)) == 0 || dead[oracle.Invalid] == 0 || dead[oracle.BadTime] == 0 || dead[oracle.UnknownBoard] == 0 {
			t.Errorf("%s: the dead letters are %v, so that the test shows little", p.Topic, dead)
		}
	}
}

func TestEveryOddCloudEventCountsOrIsDeadLetteredForItsReason(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{})
	now := time.Now()
	const good = `{"user_id":"u","points":1}`
	var all []*kgo.Record
	add := func(what, reason, value string, h []kgo.RecordHeader) {
		r := harness.Record(0, value)
		r.Key, r.Headers = []byte(what), h
		if value == "null" {
			r.Value = nil
		}
		all = append(all, r)
		if got := place.Oracle(t).Judge(oracle.Record{Value: r.Value, Headers: harness.Headers(h), Time: r.Timestamp.UnixMilli()}); got != reason {
			t.Errorf("%s: the oracle says %q, want %q", what, got, reason)
		}
	}
	add("binary", "", good, binaryMode("1", now))
	add("a tombstone in binary mode", "", "null", binaryMode("1", now))
	add("a tombstone in structured mode", "", "null", headers("content-type", structured))
	add("structured", "", inEnvelope("1", now, `"data":`+good), headers("content-type", structured))
	add("structured before binary", "", inEnvelope("1", now, `"data":`+good), binaryMode("2", now, "ce_specversion", "0.1", "content-type", structured))
	add("a type in capitals", "", inEnvelope("1", now, `"data":`+good), headers("Content-Type", strings.ToUpper(structured)))
	add("a plain event that has a content type", "", good, headers("content-type", "text/plain"))
	add("a repeated header", "", good, binaryMode("1", now, "ce_specversion", "0.1", "ce_specversion", "1.1"))
	add("many headers", "", good, append(headers(strings.Split(strings.Repeat("x,y,", 1000)+"x,y", ",")...), binaryMode("1", now)...))

	add("another version", oracle.Malformed, good, binaryMode("1", now, "ce_specversion", "0.3"))
	add("data that isn't JSON", oracle.Malformed, good, binaryMode("1", now, "content-type", "application/avro"))
	add("no envelope", oracle.Malformed, good, headers("content-type", structured))
	add("an envelope without data", oracle.Malformed, inEnvelope("1", now, `"x":1`), headers("content-type", structured))
	add("data that is text", oracle.Malformed, inEnvelope("1", now, `"data":"{}"`), headers("content-type", structured))
	add("data twice", oracle.Malformed, inEnvelope("1", now, `"data":{},"data_base64":"e30="`), headers("content-type", structured))
	add("Base64 that isn't", oracle.Malformed, inEnvelope("1", now, `"data_base64":"e30"`), headers("content-type", structured))
	add("a batch", oracle.Malformed, `[]`, headers("content-type", "application/cloudevents-batch+json"))
	add("Avro", oracle.Malformed, "\x02", headers("content-type", "application/cloudevents+avro"))
	add("an event without a user", oracle.Invalid, `{"points":1}`, binaryMode("1", now))
	add("a time that can't be read", oracle.BadTime, good, binaryMode("1", now, "ce_time", "soon"))
	add("a time ahead", oracle.BadTime, inEnvelope("1", now.Add(time.Hour), `"data":`+good), headers("content-type", structured))
	place.Produce(t, all...)
	place.Expect(t, all...)

	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}

// A second read also uses the headers and paths.
func TestAnOverflowOfCloudEventsIsFoundAgainInTheLog(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Settings: map[string]string{"max_points": "1000", "event.fields.user_id": "player.id"}})
	event := func(user string, points int) *kgo.Record {
		r := harness.Record(0, inEnvelope("ce-"+user, time.Now(), fmt.Sprintf(`"data":{"player":{"id":%q},"points":%d}`, user, points)))
		r.Headers = headers("content-type", structured)
		return r
	}
	binary := harness.Record(0, `{"player":{"id":"greedy"},"points":300}`)
	binary.Headers = binaryMode("ce-1", time.Now())
	greedy := []*kgo.Record{event("greedy", 600), binary, event("greedy", 101)}
	modest := []*kgo.Record{event("modest", 600), event("modest", 400)}
	place.Produce(t, append(append([]*kgo.Record{}, greedy...), modest...)...) // one batch: it is already in the log
	place.ExpectOverflow(t, greedy...)
	place.Expect(t, modest...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}
