package e2e

// Events in other formats than the plain one: CloudEvents, events with fields in other places, and several
// topics.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
