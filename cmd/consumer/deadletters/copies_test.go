package deadletters

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/clitest"
)

// withHeaders returns a record of points with headers, given as pairs.
func withHeaders(partition int32, pairs ...string) *kgo.Record {
	r := &kgo.Record{Topic: "points", Partition: partition, Value: []byte(`{"user_id":"u","points":25}`)}
	for i := 0; i < len(pairs); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return r
}

func TestOpenDeadLettersAreThoseWithoutACopy(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points", "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	areListed(t, environ, "points/1@480×2 points/1@481×1 points/1@500×1 points.dlq/1@4 points/3@480×1", "--open")

	aCopy := deadLetterOf(0, 7, "malformed", 70) // of points/3@480, and it became a dead letter, too
	aCopy.Headers = append([]kgo.RecordHeader{{Key: FixesHeader, Value: []byte("points/3@480")}}, aCopy.Headers...)
	publish(t, c.ListenAddrs(),
		withHeaders(2, "ce_id", "1", FixesHeader, "points/1@480"),
		withHeaders(0, FixesHeader, "points/3@480"), aCopy,
		// Only the last header counts; this one was in the original.
		withHeaders(1, FixesHeader, "points/1@481", "trace", "1"),
		withHeaders(1, FixesHeader, "points"), withHeaders(1))
	client := clientOf(t, c.ListenAddrs(), kgo.TransactionalID("aborted"))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), withHeaders(1, FixesHeader, "points/1@500")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	areListed(t, environ, "points/0@7×1 points/1@481×1 points/1@500×1 points.dlq/1@4", "--open")
	areListed(t, environ, "points/1@500×1", "--open", "--reason", "invalid")

	code, stdout, stderr := execute(t, environ, "dead-letters", "export", "--open", "--reason", "bad_time")
	if code != 0 || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, `"offset":481`) {
		t.Errorf("code %d: %s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = execute(t, environ, "dead-letters", "list", "--open", "--counts")
	if code != 0 || !strings.Contains(stdout, "3 events in 3 letters") {
		t.Errorf("code %d: %s\n%s", code, stdout, stderr)
	}
}

func TestALogThatHasLostItsBeginningMayHaveLostCopies(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points", "points.dlq"))
	publish(t, c.ListenAddrs(), deadLetterOf(1, 480, "invalid", 0), withHeaders(2, FixesHeader, "points/1@480"))
	_, err := kadm.NewClient(clientOf(t, c.ListenAddrs())).DeleteRecords(t.Context(), kadm.Offsets{"points": {2: {Topic: "points", Partition: 2, At: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, environ, "dead-letters", "list", "--open")
	want := "note: Kafka has deleted the beginning of 1 partition of points: dead letters whose copies were there are shown as open\n"
	if code != 0 || stderr != want || !strings.Contains(stdout, "points/1@480") {
		t.Errorf("code %d: %s\n%s", code, stdout, stderr)
	}
}
