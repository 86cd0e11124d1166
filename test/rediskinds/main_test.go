// Package rediskinds runs the built consumer on every kind of Redis that it can be
// configured for, each a real one: over TLS with a user and a password, behind Sentinels
// and in a cluster, through failovers and a slot that moves. It holds what came of it
// against the oracle, and what is said of a configuration that doesn't fit to one line.
package rediskinds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// silent keeps go-redis from writing a line a failed dial.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	// Most of a test's time is a failover that is waited for.
	harness.MainWaiting(m)
}

const within = harness.Within

// newPlace is a place on the shared Kafka, whose consumers reach Redis by these
// settings, and whose test does by a client of its own.
func newPlace(t *testing.T, client redis.UniversalClient, settings map[string]string) *harness.Place {
	t.Helper()
	all := map[string]string{"kafka.session_timeout": "3s", "redis.timeout": "1s"}
	maps.Copy(all, settings)
	return harness.New(t, harness.Options{
		Kafka: testenv.Kafka(t), RedisClient: client, Partitions: 2, Settings: all,
	})
}

// earned are events of 300 members over two partitions.
func earned(seed uint64, events int) []*kgo.Record { return harness.Earned(seed, events, 300, 2) }

// traffic publishes a little all the time, until it is stopped.
func traffic(t *testing.T, place *harness.Place) (stop func()) {
	t.Helper()
	return place.Traffic(t, 2).Stop
}

func finish(t *testing.T, place *harness.Place) {
	t.Helper()
	place.Finish(t)
}

// wholeRun is a consumer from its start to its end, and the commands that read.
func wholeRun(t *testing.T, place *harness.Place) {
	t.Helper()
	place.Start(t)
	place.Publish(t, earned(1, 2000)...)
	place.AwaitCaughtUp(t, within)
	reads(t, place)
	finish(t, place)
}

// reads has every command that looks show what is there.
func reads(t *testing.T, place *harness.Place) {
	t.Helper()
	readsBoards(t, place)
	if out := string(place.Command(t, "check")); !strings.Contains(out, "would work") {
		t.Errorf("consumer check isn't content:\n%s", out)
	}
}

// reports has a consumer report for every partition for as long as a test needs one: consumer status exits with 1
// if a partition has no consumer.
func reports(t *testing.T, place *harness.Place) {
	t.Helper()
	for field := range place.Hash(t, "ledger") {
		must(t, place.RedisClient().HSet(t.Context(), place.KeyIn(0, "workers"), field, `{"owner":"a:1","state":"running","lag":0,"at":"2100-01-01T00:00:00Z"}`).Err())
	}
}

// readsBoards has those that a reader's rights are for.
func readsBoards(t *testing.T, place *harness.Place) {
	t.Helper()
	for want, args := range map[string][]string{
		"RANK":         {"top", "global", "weekly"},
		"m7":           {"rank", "global", "weekly", "m7", "--around", "1"},
		place.Topic:    {"status"},
		`"rank": 1`:    {"top", "eu", "monthly", "--json"},
		`"problems"`:   {"status", "--json"},
		`"member": "m`: {"rank", "eu", "yearly", "m7", "--json", "--around", "3"},
		"They agree.":  {"explain", "global", "weekly", "m7"},
	} {
		if out := string(place.Command(t, args...)); !strings.Contains(out, want) {
			t.Errorf("consumer %v doesn't show %q:\n%s", args, want, out)
		}
	}
}

// awaitPage waits until a process of the API that has been running shows a board whole, by the
// ledger that the place has now.
func awaitPage(t *testing.T, place *harness.Place, api string) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		answer, err := http.Get(api + w + "/standings") //nolint:gosec // a server of the test's own
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		must(t, answer.Body.Close())
		seen := fmt.Sprintf("the API answers %d %.600s", answer.StatusCode, body)
		if answer.StatusCode != http.StatusOK {
			return seen
		}
		var page struct {
			Trust struct {
				State  string
				Ledger map[string]string
			}
		}
		must(t, json.Unmarshal(body, &page))
		for partition, position := range place.Ledger(t) {
			if page.Trust.State != "whole" || page.Trust.Ledger[fmt.Sprintf("%s/%d", place.Topic, partition)] != position {
				return seen
			}
		}
		return ""
	})
}

// said is how a command ended and what it wrote.
type said struct {
	code           int
	stdout, stderr string
}

// line is why it ended, where that is one line.
func (s said) line() string {
	if reasons := harness.Reasons(s.stderr); len(reasons) == 1 {
		return reasons[0]
	}
	return ""
}

// command runs a command to its end, however that is.
func command(t *testing.T, place *harness.Place, settings map[string]string, args ...string) said {
	t.Helper()
	got := place.Run(t, settings, args...)
	return said{got.Code, got.Stdout, got.Stderr}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
