// Package rediskinds runs the built consumer on every kind of real Redis that it supports: over TLS with a user and
// a password, behind Sentinels and in a cluster, through failovers and the move of a slot. It compares the result
// with the oracle, and checks that each configuration that does not match its Redis is refused in one line.
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

// silent keeps go-redis from logging failed dials.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	// The tests spend most of their time waiting for failovers.
	harness.MainWaiting(m)
}

const within = harness.Within

// newPlace returns a place on the shared Kafka. Its consumers connect to Redis with these settings, and its test
// with its own client.
func newPlace(t *testing.T, client redis.UniversalClient, settings map[string]string) *harness.Place {
	t.Helper()
	all := map[string]string{"kafka.session_timeout": "3s", "redis.timeout": "1s"}
	maps.Copy(all, settings)
	return harness.New(t, harness.Options{
		Kafka: testenv.Kafka(t), RedisClient: client, Partitions: 2, Settings: all,
	})
}

// earned returns events of 300 members in two partitions.
func earned(seed uint64, events int) []*kgo.Record { return harness.Earned(seed, events, 300, 2) }

// wholeRun runs a consumer from start to end, and the commands that read.
func wholeRun(t *testing.T, place *harness.Place) {
	t.Helper()
	place.Start(t)
	place.Publish(t, earned(1, 2000)...)
	place.AwaitCaughtUp(t, within)
	reads(t, place)
	place.Finish(t)
}

// reads requires that every reading command shows the standings.
func reads(t *testing.T, place *harness.Place) {
	t.Helper()
	readsBoards(t, place)
	if out := string(place.Command(t, "check")); !strings.Contains(out, "would work") {
		t.Errorf("consumer check isn't content:\n%s", out)
	}
}

// reports writes a consumer's report for every partition, which is valid for the whole test: consumer status exits
// with 1 if a partition has no consumer.
func reports(t *testing.T, place *harness.Place) {
	t.Helper()
	for field := range place.Hash(t, "ledger") {
		harness.Must(t, place.RedisClient().HSet(t.Context(), place.KeyIn(0, "workers"), field, `{"owner":"a:1","state":"running","lag":0,"at":"2100-01-01T00:00:00Z"}`).Err())
	}
}

// readsBoards runs the commands that a reader's rights permit.
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

// awaitPage waits until an API process that is already running shows a board as current, at the place's
// current ledger.
func awaitPage(t *testing.T, place *harness.Place, api string) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		answer, err := http.Get(api + w + "/standings") //nolint:gosec // a server of the test's own
		harness.Must(t, err)
		body, err := io.ReadAll(answer.Body)
		harness.Must(t, err)
		harness.Must(t, answer.Body.Close())
		seen := fmt.Sprintf("the API answers %d %.600s", answer.StatusCode, body)
		if answer.StatusCode != http.StatusOK {
			return seen
		}
		var page struct {
			Status struct {
				State  string
				Ledger map[string]string
			}
		}
		harness.Must(t, json.Unmarshal(body, &page))
		for partition, position := range place.Ledger(t) {
			if page.Status.State != "current" || page.Status.Ledger[fmt.Sprintf("%s/%d", place.Topic, partition)] != position {
				return seen
			}
		}
		return ""
	})
}
