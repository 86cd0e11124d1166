package e2e

// The way from one layout to another, as docs/operations.md has it: a second group beside
// the first, compared, and the first removed.

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// says runs a command with settings, and returns its exit code and all that it said.
func says(t *testing.T, place *harness.Place, settings map[string]string, args ...string) (code int, said string) {
	t.Helper()
	all := maps.Clone(place.Settings)
	maps.Copy(all, settings)
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), args...)
	cmd.Env = place.Environment(all)
	out, err := cmd.CombinedOutput()
	exit := new(exec.ExitError)
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// From one shard to five, too.
func TestFromOneLayoutToAnotherBesideTheFirst(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"periods.weekly.layout": "wide", "periods.monthly.layout": "wide", "periods.yearly.layout": "wide", "redis.shards": "5",
	}})
	round := 0
	traffic := func() {
		var all []*kgo.Record
		for i := range 200 {
			all = append(all, harness.Record(i%2, fmt.Sprintf(`{"user_id":"u%d","points":%d}`, (i*7+round)%50, i%9-1)))
		}
		round++
		place.Publish(t, all...)
	}
	traffic()
	old := place.Prefix + "-old"
	readable := map[string]string{
		"redis.prefix": old, "kafka.group": place.Group + "-old", "redis.shards": "1",
		"periods.weekly.layout": "readable", "periods.monthly.layout": "readable", "periods.yearly.layout": "readable",
	}
	first := place.Start(t, readable)
	harness.Eventually(t, within, func() string {
		if code, said := says(t, place, readable, "top", "global", "weekly"); code != 0 || !strings.Contains(said, "u49") && !strings.Contains(said, "50 members") {
			return said
		}
		return ""
	})
	if code, said := says(t, place, map[string]string{"redis.prefix": old, "redis.shards": "1"}, "top", "global", "weekly"); code == 0 || !strings.Contains(said, "another configuration") {
		t.Fatalf("another layout under the same prefix: exit code %d: %s", code, said)
	}
	second := place.Start(t)
	harness.Eventually(t, within, func() string { // until it has begun there is nothing to compare with
		if code, said := says(t, place, readable, "diff", "--with", place.Prefix); code > 1 {
			return said
		}
		return ""
	})
	for range 5 {
		traffic() // to both, while they are compared
		if code, said := says(t, place, readable, "diff", "--with", place.Prefix); code > 1 || strings.Contains(said, "not compared") {
			t.Fatalf("exit code %d: %s", code, said)
		}
	}
	harness.Eventually(t, within, func() string {
		if code, said := says(t, place, readable, "diff", "--with", place.Prefix); code != 0 || !strings.Contains(said, "Both ledgers are at the same positions.") {
			return said
		}
		return ""
	})
	place.Check(t) // the second is right, so the first is
	if code, said := says(t, place, nil, "drop", "--prefix", old, "--yes"); code != 1 || !strings.Contains(said, "is in use") {
		t.Fatalf("a live prefix: exit code %d: %s", code, said)
	}

	// Readers are switched over, and the first goes.
	first.Terminate(t)
	traffic()
	harness.Eventually(t, 2*time.Minute, func() string {
		code, said := says(t, place, nil, "drop", "--prefix", old, "--yes")
		if code != 0 {
			return said
		}
		return ""
	})
	left, err := place.RedisClient().Keys(t.Context(), old+":*").Result()
	if err != nil || len(left) > 0 {
		t.Errorf("left under %s: %v %v", old, left, err)
	}
	traffic()
	place.AwaitCaughtUp(t, within)
	if !second.Running() {
		t.Error("the second has ended")
	}
	place.CheckBoards(t)
}
