package deadletters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Execute(t, Command, environ, args...)
}

// begun is the time of the first dead letter in these tests.
var begun = time.UnixMilli(1795248930000)

// deadLetterOf returns a dead letter of points, as a consumer writes it, a number of seconds after begun.
func deadLetterOf(partition int, offset int64, reason string, seconds int) *kgo.Record {
	r := &kgo.Record{Topic: "points.dlq", Partition: int32(partition), Timestamp: begun.Add(time.Duration(seconds) * time.Second),
		Key: []byte("u" + strconv.FormatInt(offset, 10)), Value: fmt.Appendf(nil, `{"user_id":"u%d","points":"25"}`, offset)}
	for _, h := range [][2]string{{"ce_id", "1"}, {"standings-reason", reason}, {"standings-message", "points: it isn't an integer"}, {"standings-topic", "points"},
		{"standings-partition", strconv.Itoa(partition)}, {"standings-offset", strconv.FormatInt(offset, 10)}, {"standings-timestamp", "1795248900123"}} {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return r
}

func publish(t *testing.T, addresses []string, records ...*kgo.Record) {
	t.Helper()
	client := clientOf(t, addresses)
	for _, r := range records { // each in a batch of its own
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func clientOf(t *testing.T, addresses []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// someDeadLetters publishes dead letters of two partitions, one of them twice, a record that is not a dead
// letter, and finally dead letters in a transaction that is aborted.
func someDeadLetters(t *testing.T, addresses []string) {
	t.Helper()
	publish(t, addresses,
		deadLetterOf(1, 480, "invalid", 0), deadLetterOf(1, 481, "bad_time", 10), deadLetterOf(1, 480, "invalid", 20),
		deadLetterOf(1, 500, "invalid", 30), &kgo.Record{Topic: "points.dlq", Partition: 1, Value: []byte("\x1b[2J"), Timestamp: begun.Add(40 * time.Second)},
		deadLetterOf(3, 480, "overflow", 50))
	client := clientOf(t, addresses, kgo.TransactionalID("aborted"))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), deadLetterOf(1, 999, "malformed", 60)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	// The response comes before the marker is in the log, and readers read up to the last stable offset.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ends, err := kadm.NewClient(client).ListCommittedOffsets(t.Context(), "points.dlq")
		if err != nil {
			t.Fatal(err)
		}
		end, _ := ends.Lookup("points.dlq", 1)
		if end.Offset == 7 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the end is %+v", end)
		}
	}
}

// areListed executes list --json and expects these originals, each with its number of dead letters.
func areListed(t *testing.T, environ []string, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := execute(t, environ, append([]string{"dead-letters", "list", "--json"}, args...)...)
	var got struct {
		Letters []struct {
			Times  int
			Letter struct {
				Record string
				From   Position `json:"dead_letter"`
			}
		}
		More int
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" {
		t.Fatalf("%v: code %d, %v\n%s%s", args, code, err, stdout, stderr)
	}
	var all []string
	for _, l := range got.Letters {
		if l.Letter.Record != "" {
			all = append(all, l.Letter.Record)
			continue
		}
		all = append(all, fmt.Sprintf("%s×%d", l.Letter.From, l.Times))
	}
	if got.More > 0 {
		all = append(all, fmt.Sprintf("+%d", got.More))
	}
	if text := strings.Join(all, " "); text != want {
		t.Errorf("%v: %s, want %s", args, text, want)
	}
}

func TestDeadLettersAreChosenByPartitionReasonAndTime(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	areChosen(t, c.ListenAddrs(), environ)
}

func TestDeadLettersOfARealKafkaAreChosenByPartitionReasonAndTime(t *testing.T) {
	k := testenv.PrivateKafka(t, nil)
	k.CreateTopic(t, "points.dlq", 4, map[string]string{"retention.ms": "-1"})
	areChosen(t, k.Addresses(), []string{"STANDINGS_KAFKA_BROKERS=" + k.Addr()})
}

func areChosen(t *testing.T, addresses, environ []string) {
	t.Helper()
	someDeadLetters(t, addresses)
	at := func(seconds int) string {
		return begun.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
	}
	const all = "points/1@480×2 points/1@481×1 points/1@500×1 points.dlq/1@4 points/3@480×1"
	areListed(t, environ, all, "--limit", "10")
	areListed(t, environ, all, "--topic", "points")
	areListed(t, environ, all, "--since", begun.UTC().Format(time.RFC3339))
	areListed(t, environ, "points/3@480×1", "--partition", "3")
	areListed(t, environ, "", "--partition", "0")
	areListed(t, environ, "points/1@480×2 points/1@500×1 points/3@480×1", "--reason", "invalid,overflow")
	areListed(t, environ, "points/1@480×1 points/1@500×1 points.dlq/1@4 points/3@480×1", "--since", at(20))
	areListed(t, environ, "points/1@480×1 points/1@481×1", "--until", at(20))
	areListed(t, environ, "points/1@481×1 points/1@480×1", "--since", at(10), "--until", at(30))
	areListed(t, environ, "", "--since", at(51))
	areListed(t, environ, "points/1@480×2 +4", "--limit", "1")
	areListed(t, environ, "points/1@500×1", "--since", at(21), "--reason", "invalid")

	code, stdout, stderr := execute(t, environ, "dead-letters", "list")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "points/1      invalid                2        3  2026-11-21 08:15:30  2026-11-21 08:16:00\n") ||
		!strings.Contains(stdout, "4 events in 5 letters, and 1 record that no consumer wrote as a dead letter; times are those of UTC\n") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = execute(t, environ, "dead-letters", "list", "--counts", "--partition", "3", "--json")
	if code != 0 || strings.Join(strings.Fields(stdout), "") !=
		`{"counts":[{"topic":"points","partition":3,"reason":"overflow","events":1,"letters":1,"first_written":"2026-11-21T08:16:20.000Z","last_written":"2026-11-21T08:16:20.000Z"}],"totals":[{"reason":"overflow","events":1,"letters":1}],"no_letters":[]}` {
		t.Errorf("code %d\n%s", code, stdout)
	}

	for position, want := range map[string]string{
		"points/1@480":     "letter     points.dlq/1@2, the last of 2: @0\n",
		"points.dlq/1@0":   "letter     points.dlq/1@0\n",
		"points.dlq/1@4":   "problem    it hasn't the headers of a dead letter\n",
		"points/3@480":     "reason     overflow\n",
		"points/1@481":     "time       2026-11-21 08:15:00.123 UTC\nkey        u481\nheaders    ce_id: 1\nvalue      JSON, 32 bytes\n    {\n      \"user_id\": \"u481\",\n",
		"points.dlq/3@0":   "original   points/3@480\n",
		"points/1@500":     "message    points: it isn't an integer\n",
		"points/1@999":     "consumer: no dead letter of points/1@999 in [0, 7) of points.dlq/1\n",
		"points.dlq/1@5":   "consumer: no dead letter of ", // in an aborted transaction
		"points.dlq/1@100": "consumer: no dead letter of points.dlq/1@100 in [0, 7) of points.dlq/1\n",
		"points/4@1":       "consumer: points.dlq has no partition 4: it has 4\n",
		"points":           `consumer: "points" must be topic/partition@offset, such as points/3@480` + "\n",
	} {
		code, stdout, stderr := execute(t, environ, "dead-letters", "show", position)
		if !strings.Contains(stdout+stderr, want) || strings.HasPrefix(want, "consumer: ") != (code != 0) {
			t.Errorf("%s: code %d\n%s%s", position, code, stdout, stderr)
		}
	}
	code, stdout, _ = execute(t, environ, "dead-letters", "show", "points/1@481", "--json")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(stdout)); err != nil || code != 0 {
		t.Fatalf("code %d: %v: %s", code, err, stdout)
	}
	code, exported, stderr := execute(t, environ, "dead-letters", "export", "--reason", "bad_time")
	if code != 0 || stderr != "" || exported != compact.String()+"\n" || exported !=
		`{"dead_letter":{"topic":"points","partition":1,"offset":481,"reason":"bad_time","message":"points: it isn't an integer","letter":"points.dlq/1@1","written":"2026-11-21T08:15:40.000Z"},`+
			`"time":"2026-11-21T08:15:00.123Z","key":"u481","headers":[{"key":"ce_id","value":"1"}],"value":{"user_id":"u481","points":"25"}}`+"\n" {
		t.Errorf("code %d, %s%s", code, exported, stderr)
	}
	if _, exported, _ = execute(t, environ, "dead-letters", "export", "--no-time", "--partition", "3"); strings.Contains(exported, `"time":`) || strings.Count(exported, "\n") != 1 {
		t.Errorf("%s", exported)
	}
}

func TestAnExportIsWholeOrNotThere(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	dir := t.TempDir()
	out := filepath.Join(dir, "letters.ndjson")
	code, stdout, stderr := execute(t, environ, "dead-letters", "export", "--out", out)
	if code != 0 || stdout != "" || stderr != "exported 4 dead letters to "+out+"\nnote: left out 1 record that no consumer wrote as a dead letter; list shows them\n" {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	first, err := os.ReadFile(out) //nolint:gosec // the test's own
	if err != nil || bytes.Count(first, []byte("\n")) != 4 {
		t.Errorf("%v\n%s", err, first)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read whose points these are: %v, %v", info.Mode(), err)
	}
	if code, _, stderr = execute(t, environ, "dead-letters", "export", "--out", out); code != 2 || !strings.Contains(stderr, "exists already") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(again, first) { //nolint:gosec // the test's own
		t.Errorf("it was changed: %v\n%s", err, again)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "points.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	code, _, stderr = execute(t, environ, "dead-letters", "export", "--out", filepath.Join(dir, "other"))
	if code != 1 || !strings.HasPrefix(stderr, "consumer: not authorized for topic points.dlq") || !strings.HasSuffix(stderr, "the export is incomplete\n") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// A dead letter for a whole batch has no value, so nothing in it can be fixed and published.
func TestADeadLetterForAWholeBatchIsShownWithItsOffsetsAndNotExported(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	batch := deadLetterOf(1, 480, "too_large", 0)
	batch.Key, batch.Value, batch.Headers = nil, nil, append(batch.Headers[1:], kgo.RecordHeader{Key: "standings-last-offset", Value: []byte("491")})
	publish(t, c.ListenAddrs(), batch, deadLetterOf(1, 492, "invalid", 10))
	for _, args := range []string{"list --limit 1", "list --reason too_large", "list --counts --reason too_large", "show points/1@480", "show points/1@491", "show points.dlq/1@0"} {
		code, stdout, stderr := execute(t, environ, append([]string{"dead-letters"}, strings.Fields(args)...)...)
		want := map[string]string{
			"list --limit 1":                   "12 events, and 1 more: see --limit and export; ",
			"list --reason too_large":          "\npoints/1@480 to 491       0  2026-11-21 08:15:30  too_large      1  -    ",
			"list --counts --reason too_large": "12 events in 1 letter; ",
			"show points/1@491":                "value      none: the consumer could not read these records. Raise fold_memory, and rebuild while the log has them\n",
		}[args]
		if want == "" {
			want = "original   points/1@480 to 491\n"
		}
		if code != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%s: code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	code, stdout, _ := execute(t, environ, "dead-letters", "show", "points/1@492")
	if code != 0 || !strings.HasPrefix(stdout, "original   points/1@492\n") {
		t.Errorf("code %d\n%s", code, stdout)
	}
	code, stdout, stderr := execute(t, environ, "dead-letters", "export")
	if code != 0 || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, `"offset":492,`) ||
		stderr != "note: left out 1 letter for 12 records of record batches that the consumer could not read (too_large): they have no value to fix. Raise fold_memory and rebuild; list shows them\n" {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = execute(t, environ, "dead-letters", "show", "points/1@485", "--json")
	_, err := ParseLine([]byte(strings.ReplaceAll(stdout, `"value": null`, `"value": {}`)))
	if code != 0 || !strings.Contains(stdout, `"last_offset": 491,`) || err == nil ||
		err.Error() != "is a dead letter that cannot be published: it stands for the records at offsets 480 to 491 of points/1, which the consumer could not read: raise fold_memory, and rebuild" {
		t.Errorf("code %d, %v\n%s", code, err, stdout)
	}
}

func TestWithoutDeadLettersItIsSaidThatThereAreNone(t *testing.T) {
	_, environ := clitest.FakeKafka(t)
	code, stdout, stderr := execute(t, environ, "dead-letters", "list")
	if code != 0 || stderr != "" || stdout != "0 events in 0 letters; times are those of UTC\npoints has no dead letters: points.dlq does not exist\n" {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = execute(t, environ, "dead-letters", "export"); code != 0 || stdout != "" || !strings.Contains(stderr, "points.dlq does not exist") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"1 consumer: topic pionts.dlq does not exist":  {"list", "--topic", "pionts"},
		"1 consumer: topic points.dlq does not exist":  {"show", "points/0@0"},
		"2 consumer: --reason late must be one of":     {"list", "--reason", "late"},
		"2 consumer: --since soon must be a time":      {"export", "--since", "soon"},
		"2 consumer: --since must be before --until":   {"list", "--since", "1h", "--until", "2h"},
		"2 consumer: --partition must not be negative": {"list", "--partition", "-1"},
		"2 consumer: --limit must be 1 to 10000":       {"list", "--limit", "0"},
		"2 consumer: --topic contains points twice":    {"list", "--topic", "points,points"},
		"1 consumer: can't connect to Kafka at ":       {"list", "--config", clitest.Config(t, "kafka: {brokers: ['"+clitest.ClosedPort(t)+"']}")},
	} {
		with := environ
		if strings.Contains(want, "connect") {
			with = nil
		}
		code, _, stderr := execute(t, with, append([]string{"dead-letters"}, args...)...)
		if got := fmt.Sprintf("%d %s", code, stderr); !strings.HasPrefix(got, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %s", args, got)
		}
	}
}

func TestATopicThatHasNotThePartitionIsNoReasonToReadNone(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(8, "points.dlq"), kfake.SeedTopics(3, "few", "few.dlq"))
	environ = append(environ, "STANDINGS_KAFKA_TOPICS=few,points,none")
	publish(t, c.ListenAddrs(), deadLetterOf(5, 480, "invalid", 0))
	areListed(t, environ, "points/5@480×1", "--partition", "5")
	for want, args := range map[string][]string{
		"consumer: few.dlq has no partition 8: it has 3, points.dlq has no partition 8: it has 8\n": {"--partition", "8"},
		"consumer: few.dlq has no partition 5: it has 3\n":                                          {"--partition", "5", "--topic", "points,few"},
	} {
		if code, stdout, stderr := execute(t, environ, append([]string{"dead-letters", "list"}, args...)...); code != 1 || stdout != "" || stderr != want {
			t.Errorf("%v: code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// Dead letters that are written after the start are not read, so the command ends.
func TestDeadLettersAreReadToTheEndAsOfTheStart(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	p := &cli.Program{Environ: environ, Stdout: io.Discard, Stderr: io.Discard}
	l, err := p.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(t.Context(), p, &l.Config.Kafka, scope{topics: []string{"points"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	publish(t, c.ListenAddrs(), deadLetterOf(1, 1000, "invalid", 100), deadLetterOf(2, 1000, "invalid", 100), deadLetterOf(3, 1000, "invalid", 100))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	count := func(l *deadLetter) error {
		if read++; l.source.Offset == 1000 {
			t.Errorf("%s was written after the start", l.at)
		}
		return nil
	}
	if err := r.each(ctx, false, count); err != nil || read != 6 {
		t.Errorf("%d: %v", read, err)
	}
	cancel()
	if err := r.each(ctx, false, count); !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}
