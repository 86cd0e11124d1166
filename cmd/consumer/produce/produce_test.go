package produce

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/clitest"
)

// logOf is all that a topic holds, by partition.
func logOf(t *testing.T, c *kfake.Cluster, topic string) map[int32][]*kgo.Record {
	t.Helper()
	want := int64(0)
	for _, p := range c.PartitionInfos(topic) {
		want += p.HighWatermark
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got := make(map[int32][]*kgo.Record)
	for n := int64(0); n < want; {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got[r.Partition] = append(got[r.Partition], r); n++ })
	}
	return got
}

// withoutProgress is what a command says on stderr but for how far it has come, of which
// there is a line on a machine so busy that it takes more than five seconds.
func withoutProgress(stderr string) string {
	return regexp.MustCompile(`(?m)^publishing to .*\n`).ReplaceAllString(stderr, "")
}

func count(log map[int32][]*kgo.Record) (n int) {
	for _, records := range log {
		n += len(records)
	}
	return n
}

func TestProducePublishesWhatTheGeneratorMakesInTheOrderOfEachMember(t *testing.T) {
	for compression := range compressions {
		t.Run(compression, func(t *testing.T) {
			c, environ := clitest.FakeKafka(t)
			const n = 5_000
			begun := time.Now().Truncate(time.Millisecond)
			code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", strconv.Itoa(n), "--compression", compression,
				"--members", "300", "--seed", "9", "--now", "2026-11-21T08:00:00Z", "--spread", "3h", "--boards", "eu,us",
				"--boards-per-event", "2", "--bad", "0.1", "--corrections", "0.2", "--points", "50")
			if code != 0 || withoutProgress(stderr) != "" || !strings.HasPrefix(stdout, "published 5,000 events to points in ") {
				t.Fatalf("code %d\n%s%s", code, stdout, stderr)
			}
			g, err := sample.New(sample.Options{Seed: 9, Members: 300, Skew: 1.1, Spread: 3 * time.Hour, Boards: []string{"eu", "us"},
				BoardsPerEvent: 2, Bad: 0.1, Corrections: 0.2, PointsMin: 1, PointsMax: 50, Now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)})
			if err != nil {
				t.Fatal(err)
			}
			log := logOf(t, c, "points")
			// franz-go hashes keys as Kafka's own producer does.
			partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("points")
			for i := range n {
				e, _ := g.Next(nil)
				p := int32(partitioner.Partition(&kgo.Record{Key: e.Key}, 4))
				if len(log[p]) == 0 {
					t.Fatalf("event %d isn't in partition %d", i, p)
				}
				r := log[p][0]
				log[p] = log[p][1:]
				if !bytes.Equal(r.Key, e.Key) || !bytes.Equal(r.Value, e.Value) {
					t.Fatalf("event %d in partition %d is %s=%s, want %s=%s", i, p, r.Key, r.Value, e.Key, e.Value)
				}
				if r.Timestamp.Before(begun) || r.Timestamp.After(time.Now()) {
					t.Fatalf("event %d has a record time of %v, not now", i, r.Timestamp)
				}
			}
			if left := count(log); left > 0 {
				t.Errorf("%d records too many", left)
			}
			if !strings.Contains(stdout, "bad ones made: ") {
				t.Errorf("the bad ones aren't told: %s", stdout)
			}
		})
	}
}

// The events are the same ones in every form, and the consumer's decoder finds them.
func TestProducePublishesCloudEventsThatSayTheSameAsPlainOnes(t *testing.T) {
	const n = 20_000 // several batches a partition
	rules, err := config.Defaults().EventRules()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	ids := map[string]string{}
	for _, format := range formats {
		c, environ := clitest.FakeKafka(t)
		code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", strconv.Itoa(n), "--format", format, "--compression", "none",
			"--seed", "9", "--now", "2026-11-21T08:00:00.5Z", "--no-occurred-at", "--bad", "0.1")
		if code != 0 || !strings.HasPrefix(stdout, "published 20,000 events to points in ") {
			t.Fatalf("%s: code %d\n%s%s", format, code, stdout, stderr)
		}
		decoder := event.NewDecoder(rules)
		log := logOf(t, c, "points")
		for partition := range int32(4) {
			for _, r := range log[partition] {
				var h event.Headers
				for _, header := range r.Headers {
					h.Note([]byte(header.Key), header.Value)
				}
				var e event.Event
				bad := decoder.DecodeWith(&h, r.Value, 1795248000600, &e) // 100 ms later
				line := fmt.Sprintf("%s %d %s %s", e.User, e.Points, e.Boards, r.Key)
				switch {
				case bad != nil:
					line = fmt.Sprintf("%s %s", bad.Reason, r.Key)
				case e.Time != map[string]int64{formatPlain: 1795248000600}[format] && e.Time != 1795248000500:
					t.Fatalf("%s: an event at %d: %v %s", format, e.Time, r.Headers, r.Value)
				}
				told[format] = append(told[format], line)
				for _, header := range r.Headers {
					if header.Key == "ce_id" {
						ids[string(header.Value)] = string(r.Value)
					}
				}
			}
		}
	}
	for _, format := range formats[1:] {
		for i, line := range told[format] {
			if want := told[formatPlain][i]; line != want {
				t.Fatalf("%s: record %d of all partitions says %s, want %s", format, i, line, want)
			}
		}
	}
	if len(told[formatPlain]) != n || len(ids) != n {
		t.Errorf("%d events with %d ids, want %d", len(told[formatPlain]), len(ids), n)
	}
}

func TestProduceSaysWhereTheConfigurationLooksForFieldsElsewhere(t *testing.T) {
	_, environ := clitest.FakeKafka(t)
	code, _, stderr := clitest.Execute(t, Command, append(environ, "STANDINGS_EVENT_FIELDS_USER_ID=player.id"), "produce", "--count", "1")
	if code != 0 || !strings.HasPrefix(stderr, "note: sample events have fields by their own names; ") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestProduceSaysInOneLineWhatIsWrong(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(1, "forbidden", "readonly", "compacted"))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "forbidden", Err: kerr.TopicAuthorizationFailed, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "readonly", Err: kerr.TopicAuthorizationFailed, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "compacted", Err: kerr.InvalidRecord, Count: -1})
	nobody, silent := clitest.ClosedPort(t), clitest.SilentPort(t)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"can't connect to Kafka at " + nobody + ": dial tcp", []string{"--brokers", nobody}},
		{"no answer from Kafka at " + silent, []string{"--brokers", silent}},
		{"topic absent doesn't exist on the cluster at " + c.ListenAddrs()[0] + "; --create-topic PARTITIONS creates it", []string{"--topic", "absent"}},
		{"not authorized for topic forbidden", []string{"--topic", "forbidden"}},
		{"not authorized for topic readonly", []string{"--topic", "readonly"}},
		{"topic compacted at ", []string{"--topic", "compacted"}},
	} {
		args, environ := append([]string{"produce", "--count", "10"}, test.args...), environ
		if strings.HasSuffix(test.want, silent) { // the others answer, however slow the machine is
			environ = append(environ, "STANDINGS_KAFKA_TIMEOUT=500ms")
		}
		code, _, stderr := clitest.Execute(t, Command, environ, args...)
		stderr = withoutProgress(stderr)
		if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "consumer: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: code %d, want one line with %q, got\n%s", test.args, code, test.want, stderr)
		}
	}
}

func TestProduceCreatesAMissingTopicWhenAskedTo(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	for range 2 { // the second time it is there
		if code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10", "--topic", "fresh", "--create-topic", "3"); code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
	}
	if got := len(c.PartitionInfos("fresh")); got != 3 {
		t.Errorf("%d partitions, want 3", got)
	}
	if got := count(logOf(t, c, "fresh")); got != 20 {
		t.Errorf("%d records, want 20", got)
	}
}

func TestProducePublishesTheLinesOfAFile(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	path := filepath.Join(t.TempDir(), "events.ndjson")
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "{\"user_id\":\"u%d\",\"points\":%d}\n\n", i%7, i)
	}
	text.WriteString("{\"points\":1}\nbroken\n")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--file", path)
	if code != 1 || !strings.HasPrefix(stdout, "published 1,001 events") || !strings.Contains(stderr, "line 2002 isn't a JSON object") || strings.Count(withoutProgress(stderr), "\n") != 1 {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	next := make(map[string]int)
	for _, records := range logOf(t, c, "points") {
		for _, r := range records {
			if r.Key == nil {
				continue
			}
			user := string(r.Key)
			i, seen := next[user]
			if !seen {
				i, _ = strconv.Atoi(user[1:])
			}
			if want := fmt.Sprintf(`{"user_id":"%s","points":%d}`, user, i); string(r.Value) != want {
				t.Fatalf("got %s, want %s", r.Value, want)
			}
			next[user] = i + 7
		}
	}
	if len(next) != 7 {
		t.Errorf("%d keys, want 7", len(next))
	}
}

func TestAnInterruptedProduceHasPublishedWhatItSays(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
	go func() {
		_ = seen.Wait(ctx, 20)
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := execute(ctx, []string{"produce", "--rate", "0"}, environ, strings.NewReader(""), &stdout, &stderr)
	text, _, _ := strings.Cut(strings.TrimPrefix(stdout.String(), "published "), " ")
	said, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if code != 0 || err != nil || !strings.Contains(stdout.String(), "(interrupted)") {
		t.Fatalf("code %d\n%s%s", code, &stdout, &stderr)
	}
	if got := count(logOf(t, c, "points")); got != said || said == 0 {
		t.Errorf("%d records, said %d", got, said)
	}
}

func TestAnInterruptedProduceDoesNotWaitForAPipe(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	stdin, writer := io.Pipe()
	defer writer.Close() //nolint:errcheck // never fails
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
	go func() {
		// The first line goes out without waiting for a second that never ends.
		_, _ = io.WriteString(writer, "{\"user_id\":\"a\"}\n{")
		_ = seen.Wait(ctx, 1)
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := execute(ctx, []string{"produce", "--file", "-"}, environ, stdin, &stdout, &stderr)
	if code != 0 || !strings.HasPrefix(stdout.String(), "published 1 event ") {
		t.Errorf("code %d\n%s%s", code, &stdout, &stderr)
	}
}

func TestARateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0.5, 3, 1000, 123456.7} {
			begun := time.Now()
			pace := &Pacer{rate: rate, begun: begun}
			n := int64(rate*20) + 1 // the first is due at once
			for made := range n {
				pace.Wait(t.Context(), made)
				if early := float64(made)/rate - time.Since(begun).Seconds(); early > 1/rate+0.001 {
					t.Fatalf("rate %v: event %d comes %.3f s early", rate, made, early)
				}
			}
			if took := time.Since(begun).Seconds(); took < 20-1/rate-0.01 || took > 20+0.01 {
				t.Errorf("rate %v: %d events took %.3f s, want 20", rate, n, took)
			}
		}
	})
}

func TestAWrongProduceCommandLineExitsWithTwo(t *testing.T) {
	for want, args := range map[string][]string{
		"--brokers here isn't host:port":         {"--brokers", "here"},
		"--topic a b isn't a topic's name":       {"--topic", "a b"},
		"--compression rar isn't one of":         {"--compression", "rar"},
		"--format avro isn't one of plain, ":     {"--format", "avro"},
		"can't be negative":                      {"--rate", "-1"},
		"--rate has to be 0 to 1000000000":       {"--rate", "Inf"},
		"--raw is for --file":                    {"--raw"},
		"--now noon isn't a time":                {"--now", "noon"},
		`invalid argument "1y" for "--spread"`:   {"--spread", "1y"},
		"share of bad events must be 0 to 1":     {"--bad", "2"},
		"no such file":                           {"--file", "/absent"},
		"kafka.group: hasn't":                    {"--config", clitest.Config(t, "kafka: {group: ''}")},
		"say which --topic: the configuration h": {"--config", clitest.Config(t, "kafka: {topics: [a, b]}")},
	} {
		code, stdout, stderr := clitest.Execute(t, Command, nil, append([]string{"produce"}, args...)...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
	for _, rate := range []string{"NaN", "1e20", "-Inf", "1000000001"} { // of some no event would ever be due
		if code, _, stderr := clitest.Execute(t, Command, nil, "produce", "--rate", rate); code != 2 || !strings.Contains(stderr, "--rate") {
			t.Errorf("--rate %s: code %d: %s", rate, code, stderr)
		}
	}
}

func TestProduceDoesntShowAPasswordThatIsBeforeABroker(t *testing.T) {
	for _, brokers := range []string{"kafka://user:hunter2@localhost:9092", "kafka://user:hunter2,x@localhost:9092", "hunter2@localhost:9092"} {
		code, stdout, stderr := clitest.Execute(t, Command, nil, "produce", "--brokers", brokers, "--count", "1")
		if code != 2 || strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, "(hidden)@localhost:9092 isn't host:port") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
	}
}

// Made-up events count like all others, on the boards of those who play.
func TestNoEventsAreMadeUpForATopicThatHasOthers(t *testing.T) {
	for name, others := range map[string]*kgo.Record{
		"a game's":                   {Value: []byte(`{"user_id":"u42","points":25}`), Key: []byte("u42")},
		"of a name that we make too": {Value: []byte(`{"user_id":"Kalobi","points":25}`), Key: []byte("Kalobi")},
		"a CloudEvent":               {Value: []byte(`{"specversion":"1.0","type":"points","source":"/game","id":"1","data":{"user_id":"u42","points":25}}`)},
		"no text, without a key":     {Value: []byte{0xff}},
	} {
		t.Run(name, func(t *testing.T) {
			c, environ := clitest.FakeKafka(t)
			client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for _, format := range formats { // what was made up is no reason, in whatever form, bad or not
				if code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "1000", "--bad", "0.3", "--format", format); code != 0 {
					t.Fatalf("%s: code %d %s", format, code, stderr)
				}
			}
			others.Topic, others.Partition = "points", 2
			if err := client.ProduceSync(t.Context(), others).FirstErr(); err != nil {
				t.Fatal(err)
			}
			there := count(logOf(t, c, "points"))
			code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10")
			want := fmt.Sprintf("consumer: the topic points has 3,001 records, and that at points/2@%d wasn't made up by consumer produce: "+
				"made-up events would count among them on the same boards. Use a topic of its own (--topic), or say --among-real-events\n", others.Offset)
			if code != 1 || stdout != "" || stderr != want || count(logOf(t, c, "points")) != there {
				t.Errorf("code %d %s%s\nwant %s", code, stdout, stderr, want)
			}
			if code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10", "--among-real-events"); code != 0 {
				t.Errorf("code %d %s", code, stderr)
			}
			file := filepath.Join(t.TempDir(), "events")
			if err := os.WriteFile(file, []byte(`{"user_id":"u42","points":25}`), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--file", file); code != 0 {
				t.Errorf("--file: code %d %s", code, stderr)
			}
		})
	}
}

func TestNoEventsAreMadeUpForATopicWhoseRecordsCanNotBeSeen(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10"); code != 0 {
		t.Fatalf("of an empty topic nothing has to be seen: code %d %s", code, stderr)
	}
	code, _, stderr := clitest.Execute(t, Command, environ, "produce", "--count", "10")
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "the topic points has 10 records, and whose they are can't be seen: this user has no right to Read the topic") {
		t.Errorf("code %d %s", code, stderr)
	}
}
