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

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/test/clitest"
)

// logOf returns all records of a topic by partition.
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

// withoutProgress removes the progress lines from stderr. They appear if a run takes more than five seconds
// on a busy machine.
func withoutProgress(stderr string) string {
	return regexp.MustCompile(`(?m)^publishing to .*\n`).ReplaceAllString(stderr, "")
}

func count(log map[int32][]*kgo.Record) (n int) {
	for _, records := range log {
		n += len(records)
	}
	return n
}

func TestProducePublishesMadeUpEventsByTheirMember(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	const n, spread = 5_000, 3 * time.Hour
	begun := time.Now().Truncate(time.Millisecond)
	code, stdout, stderr := clitest.Execute(t, Command, append(environ, "STANDINGS_BOARDS=eu,us"), "produce", "--count", strconv.Itoa(n), "--members", "300", "--spread", "3h")
	if code != 0 || withoutProgress(stderr) != "" || !strings.HasPrefix(stdout, "published 5,000 events to points in ") {
		t.Fatalf("code %d\n%s%s", code, stdout, stderr)
	}
	// franz-go hashes keys as Kafka's own producer does.
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("points")
	decoder := event.NewDecoder(event.Rules{MaxEventBytes: 1 << 20, MaxPoints: 100, MaxFuture: 300_000, Boards: []string{"eu", "us"}})
	members := map[string]bool{}
	log := logOf(t, c, "points")
	for partition, records := range log {
		for _, r := range records {
			var e event.Event
			if bad := decoder.Decode(r.Value, r.Timestamp.UnixMilli(), &e); bad != nil || string(e.User) != string(r.Key) || e.Time < begun.Add(-spread).UnixMilli() {
				t.Fatalf("%s=%s: %v", r.Key, r.Value, bad)
			}
			if want := int32(partitioner.Partition(&kgo.Record{Key: r.Key}, 4)); partition != want {
				t.Fatalf("an event of %s is in partition %d, want %d", r.Key, partition, want)
			}
			if r.Timestamp.Before(begun) || r.Timestamp.After(time.Now()) {
				t.Fatalf("a record's time is %v, not now", r.Timestamp)
			}
			members[string(r.Key)] = true
		}
	}
	if count(log) != n || len(members) < 200 || len(members) > 300 {
		t.Errorf("%d records of %d members", count(log), len(members))
	}
}

func TestProduceSaysInOneLineWhatIsWrong(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(1, "forbidden", "readonly", "compacted"))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "forbidden", Err: kerr.TopicAuthorizationFailed, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "readonly", Err: kerr.TopicAuthorizationFailed, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "compacted", Err: kerr.InvalidRecord, Count: -1})
	nobody, silent := clitest.ClosedPort(t), clitest.SilentPort(t)
	for _, test := range []struct {
		want, topic string
		environ     []string
	}{
		{"can't connect to Kafka at " + nobody + ": dial tcp", "points", []string{"STANDINGS_KAFKA_BROKERS=" + nobody}},
		{"no answer from Kafka at " + silent, "points", []string{"STANDINGS_KAFKA_BROKERS=" + silent, "STANDINGS_KAFKA_TIMEOUT=500ms"}},
		{"topic absent does not exist on the cluster at " + c.ListenAddrs()[0] + "; --create-topic PARTITIONS creates it", "absent", environ},
		{"not authorized for topic forbidden", "forbidden", environ},
		{"not authorized for topic readonly", "readonly", environ},
		{"topic compacted at ", "compacted", environ},
	} {
		code, _, stderr := clitest.Execute(t, Command, test.environ, "produce", "--count", "10", "--topic", test.topic)
		stderr = withoutProgress(stderr)
		if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "consumer: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: code %d, want one line with %q, got\n%s", test.topic, code, test.want, stderr)
		}
	}
}

func TestProduceCreatesAMissingTopicWhenAskedTo(t *testing.T) {
	c, environ := clitest.FakeKafka(t)
	for range 2 { // the second time it exists
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
	if code != 1 || !strings.HasPrefix(stdout, "published 1,001 events") || !strings.Contains(stderr, "line 2002 is not a JSON object") || strings.Count(withoutProgress(stderr), "\n") != 1 {
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
	code := execute(ctx, []string{"produce", "--rate", "1e6"}, environ, strings.NewReader(""), &stdout, &stderr)
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
		// The first line is published without waiting for a second one, which never ends.
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
			pace := newPace(rate)
			n := int64(rate*20) + 1 // the first event is due at once
			for made := range n {
				if err := pace.wait(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				if early := float64(made)/rate - time.Since(begun).Seconds(); early > 0.001 {
					t.Fatalf("rate %v: event %d comes %.3f s early", rate, made, early)
				}
			}
			if took := time.Since(begun).Seconds(); took < 20-1/rate-0.01 || took > 20+0.01 {
				t.Errorf("rate %v: %d events took %.3f s, want 20", rate, n, took)
			}
			pace.tick.Stop()
		}
	})
}

func TestAWrongProduceCommandLineExitsWithTwo(t *testing.T) {
	for want, args := range map[string][]string{
		"give --file for the lines of a file, or": {},
		"--topic a b is not a topic name":         {"--topic", "a b"},
		"must not be negative":                    {"--rate", "-1"},
		"--rate must be 0 to 1000000000":          {"--rate", "NaN"}, // no event would ever be due
		"--check is for --file":                   {"--check"},
		"--json is for --check":                   {"--json", "--file", "x"},
		`invalid argument "1y" for "--spread"`:    {"--spread", "1y"},
		"members must be 1 to 2^40":               {"--count", "1", "--members", "-1"},
		"no such file":                            {"--file", "/absent"},
		"kafka.group: must be":                    {"--config", clitest.Config(t, "kafka: {group: ''}")},
		"give --topic: the configuration has sev": {"--config", clitest.Config(t, "kafka: {topics: [a, b]}")},
	} {
		code, stdout, stderr := clitest.Execute(t, Command, nil, append([]string{"produce"}, args...)...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
}
