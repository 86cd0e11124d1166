package deadletters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// runs executes a subcommand and expects this exit code.
func runs(t *testing.T, environ []string, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := clitest.Execute(t, Command, environ, append([]string{"dead-letters"}, args...)...)
	require.Equal(t, code, got, "%v\n%s%s", args, stdout, stderr)
	return stdout, stderr
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
		require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
	}
}

func clientOf(t *testing.T, addresses []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// abort publishes a record in a transaction that is aborted.
func abort(t *testing.T, addresses []string, r *kgo.Record) {
	t.Helper()
	client := clientOf(t, addresses, kgo.TransactionalID("aborted"))
	require.NoError(t, client.BeginTransaction())
	require.NoError(t, client.ProduceSync(t.Context(), r).FirstErr())
	require.NoError(t, client.EndTransaction(t.Context(), kgo.TryAbort))
}

// someDeadLetters publishes dead letters of two partitions, one of them twice, a record that is not a dead
// letter, and finally dead letters in a transaction that is aborted.
func someDeadLetters(t *testing.T, addresses []string) {
	t.Helper()
	publish(t, addresses,
		deadLetterOf(1, 480, "invalid", 0), deadLetterOf(1, 481, "bad_time", 10), deadLetterOf(1, 480, "invalid", 20),
		deadLetterOf(1, 500, "invalid", 30), &kgo.Record{Topic: "points.dlq", Partition: 1, Value: []byte("\x1b[2J"), Timestamp: begun.Add(40 * time.Second)},
		deadLetterOf(3, 480, "overflow", 50))
	abort(t, addresses, deadLetterOf(1, 999, "malformed", 60))
	// The response comes before the marker is in the log, and readers read up to the last stable offset.
	admin := kadm.NewClient(clientOf(t, addresses))
	require.Eventually(t, func() bool {
		ends, err := admin.ListCommittedOffsets(t.Context(), "points.dlq")
		end, _ := ends.Lookup("points.dlq", 1)
		return err == nil && end.Offset == 7
	}, time.Minute, 20*time.Millisecond)
}

// areListed executes list --json and expects these originals, each with its number of dead letters.
func areListed(t *testing.T, environ []string, want string, args ...string) {
	t.Helper()
	stdout, stderr := runs(t, environ, 0, append([]string{"list", "--json"}, args...)...)
	require.Empty(t, stderr)
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
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
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
	require.Equal(t, want, strings.Join(all, " "), "%v", args)
}

func TestDeadLettersAreChosenByPartitionReasonAndTime(t *testing.T) {
	k := testenv.PrivateKafka(t, nil)
	k.CreateTopic(t, "points.dlq", 4, map[string]string{"retention.ms": "-1"})
	environ := []string{"STANDINGS_KAFKA_BROKERS=" + k.Addr()}
	someDeadLetters(t, k.Addresses())
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

	stdout, stderr := runs(t, environ, 0, "list")
	require.Empty(t, stderr)
	require.Contains(t, stdout, "points/1      invalid                2        3  2026-11-21 08:15:30  2026-11-21 08:16:00\n")
	require.Contains(t, stdout, "4 events in 5 letters, and 1 record that no consumer wrote as a dead letter; times are those of UTC\n")
	stdout, _ = runs(t, environ, 0, "list", "--counts", "--partition", "3", "--json")
	require.JSONEq(t, `{"counts":[{"topic":"points","partition":3,"reason":"overflow","events":1,"letters":1,"first_written":"2026-11-21T08:16:20.000Z",
		"last_written":"2026-11-21T08:16:20.000Z"}],"totals":[{"reason":"overflow","events":1,"letters":1}],"no_letters":[]}`, stdout)

	for position, want := range map[string]string{
		"points/1@480":     "letter     points.dlq/1@2, the last of 2\n",
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
	} {
		code := 0
		if strings.HasPrefix(want, "consumer: ") {
			code = 1
		}
		stdout, stderr := runs(t, environ, code, "show", position)
		require.Contains(t, stdout+stderr, want, position)
	}
	stdout, _ = runs(t, environ, 0, "show", "points/1@481", "--json")
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(stdout)))
	exported, stderr := runs(t, environ, 0, "export", "--reason", "bad_time")
	require.Empty(t, stderr)
	require.Equal(t, compact.String()+"\n", exported)
	//nolint:testifylint // the order of the fields counts
	require.Equal(t, `{"dead_letter":{"topic":"points","partition":1,"offset":481,"reason":"bad_time","message":"points: it isn't an integer","letter":"points.dlq/1@1","written":"2026-11-21T08:15:40.000Z"},`+
		`"time":"2026-11-21T08:15:00.123Z","key":"u481","headers":[{"key":"ce_id","value":"1"}],"value":{"user_id":"u481","points":"25"}}`+"\n", exported)
	exported, _ = runs(t, environ, 0, "export", "--no-time", "--partition", "3")
	require.NotContains(t, exported, `"time":`)
	require.Equal(t, 1, strings.Count(exported, "\n"))
}

func TestAnExportIsWholeOrNotThere(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	dir := t.TempDir()
	out := filepath.Join(dir, "letters.ndjson")
	stdout, stderr := runs(t, environ, 0, "export", "--out", out)
	require.Empty(t, stdout)
	require.Equal(t, "exported 4 dead letters to "+out+"\nnote: left out 1 record that no consumer wrote as a dead letter; list shows them\n", stderr)
	first, err := os.ReadFile(out) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.Equal(t, 4, bytes.Count(first, []byte("\n")))
	info, err := os.Stat(out)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "others may read whose points these are")
	_, stderr = runs(t, environ, 2, "export", "--out", out)
	require.Contains(t, stderr, "exists already")
	again, err := os.ReadFile(out) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.Equal(t, first, again)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "points.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	_, stderr = runs(t, environ, 1, "export", "--out", filepath.Join(dir, "other"))
	require.Regexp(t, `^consumer: not authorized for topic points.dlq.*the export is incomplete\n$`, stderr)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A dead letter for a whole batch has no value, so nothing in it can be fixed and published.
func TestADeadLetterForAWholeBatchIsShownWithItsOffsetsAndNotExported(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	batch := deadLetterOf(1, 480, "too_large", 0)
	batch.Key, batch.Value, batch.Headers = nil, nil, append(batch.Headers[1:], kgo.RecordHeader{Key: "standings-last-offset", Value: []byte("491")})
	publish(t, c.ListenAddrs(), batch, deadLetterOf(1, 492, "invalid", 10))
	const original = "original   points/1@480 to 491\n"
	for args, want := range map[string]string{
		"list --limit 1":                   "12 events, and 1 more: see --limit and export; ",
		"list --reason too_large":          "\npoints/1@480 to 491       0  2026-11-21 08:15:30  too_large      1  -    ",
		"list --counts --reason too_large": "12 events in 1 letter; ",
		"show points/1@480":                original,
		"show points/1@491":                "value      none: the consumer could not read these records. Raise fold_memory, and rebuild while the log has them\n",
		"show points.dlq/1@0":              original,
		"show points/1@492":                "original   points/1@492\n",
	} {
		stdout, stderr := runs(t, environ, 0, strings.Fields(args)...)
		require.Empty(t, stderr)
		require.Contains(t, stdout, want, args)
	}
	stdout, stderr := runs(t, environ, 0, "export")
	require.Equal(t, 1, strings.Count(stdout, "\n"))
	require.Contains(t, stdout, `"offset":492,`)
	require.Equal(t, "note: left out 1 letter for 12 records of record batches that the consumer could not read (too_large): they have no value to fix. Raise fold_memory and rebuild; list shows them\n", stderr)
	stdout, _ = runs(t, environ, 0, "show", "points/1@485", "--json")
	require.Contains(t, stdout, `"last_offset": 491,`)
	_, err := ParseLine([]byte(strings.ReplaceAll(stdout, `"value": null`, `"value": {}`)))
	require.EqualError(t, err, "is a dead letter that cannot be published: it stands for the records at offsets 480 to 491 of points/1, which the consumer could not read: raise fold_memory, and rebuild")
}

func TestWithoutDeadLettersItIsSaidThatThereAreNone(t *testing.T) {
	_, environ := clitest.FakeKafka(t)
	stdout, stderr := runs(t, environ, 0, "list")
	require.Empty(t, stderr)
	require.Equal(t, "0 events in 0 letters; times are those of UTC\npoints has no dead letters: points.dlq does not exist\n", stdout)
	stdout, stderr = runs(t, environ, 0, "export")
	require.Empty(t, stdout)
	require.Contains(t, stderr, "points.dlq does not exist")
	for want, args := range map[string][]string{
		"1 consumer: topic pionts.dlq does not exist":                               {"list", "--topic", "pionts"},
		"1 consumer: topic points.dlq does not exist":                               {"show", "points/0@0"},
		`2 consumer: "points" must be topic/partition@offset, such as points/3@480`: {"show", "points"},
		"2 consumer: --reason late must be one of":                                  {"list", "--reason", "late"},
		"2 consumer: --since soon must be a time":                                   {"export", "--since", "soon"},
		"2 consumer: --since must be before --until":                                {"list", "--since", "1h", "--until", "2h"},
		"2 consumer: --partition must not be negative":                              {"list", "--partition", "-1"},
		"2 consumer: --limit must be 1 to 10000":                                    {"list", "--limit", "0"},
		"2 consumer: --topic contains points twice":                                 {"list", "--topic", "points,points"},
		"1 consumer: can't connect to Kafka at ":                                    {"list", "--config", clitest.Config(t, "kafka: {brokers: ['"+clitest.ClosedPort(t)+"']}")},
	} {
		with := environ
		if strings.Contains(want, "connect") {
			with = nil
		}
		_, stderr := runs(t, with, int(want[0]-'0'), args...)
		require.True(t, strings.HasPrefix(stderr, want[2:]), stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"))
	}
}

func TestATopicThatHasNotThePartitionIsNoReasonToReadNone(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(8, "points.dlq"), kfake.SeedTopics(3, "few", "few.dlq"))
	environ = append(environ, "STANDINGS_KAFKA_TOPICS=few,points,none")
	publish(t, c.ListenAddrs(), deadLetterOf(5, 480, "invalid", 0))
	areListed(t, environ, "points/5@480×1", "--partition", "5")
	areListed(t, environ, "points/5@480×1", "--partition", "5", "--topic", "points,few")
	_, stderr := runs(t, environ, 1, "list", "--partition", "8")
	require.Equal(t, "consumer: points.dlq has no partition 8: it has 8\n", stderr)
}

// Dead letters that are written after the start are not read, so the command ends.
func TestDeadLettersAreReadToTheEndAsOfTheStart(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	p := &cli.Program{Environ: environ, Stdout: io.Discard, Stderr: io.Discard}
	l, err := p.Configuration()
	require.NoError(t, err)
	r, err := open(t.Context(), p, &l.Config.Kafka, scope{topics: []string{"points"}})
	require.NoError(t, err)
	defer r.Close()
	publish(t, c.ListenAddrs(), deadLetterOf(1, 1000, "invalid", 100), deadLetterOf(2, 1000, "invalid", 100), deadLetterOf(3, 1000, "invalid", 100))
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	count := func(l *deadLetter) error {
		read++
		require.NotEqual(t, int64(1000), l.source.Offset, "%s was written after the start", l.at)
		return nil
	}
	require.NoError(t, r.each(ctx, false, count))
	require.Equal(t, 6, read)
	cancel()
	require.EqualError(t, r.each(ctx, false, count), "interrupted")
}

func TestOpenDeadLettersAreThoseWithoutACopy(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points", "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	areListed(t, environ, "points/1@480×2 points/1@481×1 points/1@500×1 points.dlq/1@4 points/3@480×1", "--open")

	// withHeaders returns a record of points with headers, given as pairs.
	withHeaders := func(partition int32, pairs ...string) *kgo.Record {
		r := &kgo.Record{Topic: "points", Partition: partition, Value: []byte(`{"user_id":"u","points":25}`)}
		for i := 0; i < len(pairs); i += 2 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
		}
		return r
	}
	aCopy := deadLetterOf(0, 7, "malformed", 70) // of points/3@480, and it became a dead letter, too
	aCopy.Headers = append([]kgo.RecordHeader{{Key: FixesHeader, Value: []byte("points/3@480")}}, aCopy.Headers...)
	publish(t, c.ListenAddrs(),
		withHeaders(2, "ce_id", "1", FixesHeader, "points/1@480"),
		withHeaders(0, FixesHeader, "points/3@480"), aCopy,
		// Only the last header counts; this one was in the original.
		withHeaders(1, FixesHeader, "points/1@481", "trace", "1"),
		withHeaders(1, FixesHeader, "points"), withHeaders(1))
	abort(t, c.ListenAddrs(), withHeaders(1, FixesHeader, "points/1@500"))
	areListed(t, environ, "points/0@7×1 points/1@481×1 points/1@500×1 points.dlq/1@4", "--open")
	areListed(t, environ, "points/1@500×1", "--open", "--reason", "invalid")
	stdout, _ := runs(t, environ, 0, "export", "--open", "--reason", "bad_time")
	require.Equal(t, 1, strings.Count(stdout, "\n"))
	require.Contains(t, stdout, `"offset":481`)
	stdout, _ = runs(t, environ, 0, "list", "--open", "--counts")
	require.Contains(t, stdout, "3 events in 3 letters")

	// A log that has lost its beginning may have lost copies.
	require.NoError(t, c.DeleteRecords("points", 2, 1))
	stdout, stderr := runs(t, environ, 0, "list", "--open")
	require.Equal(t, "note: Kafka has deleted the beginning of 1 partition of points: dead letters whose copies were there are shown as open\n", stderr)
	require.Contains(t, stdout, "points/1@480")
}
