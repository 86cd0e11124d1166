package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// One of several masters loses a window that is final and in the archive. When the log is read again, late events
// count on that master's shards, so the standings differ from those of the archived revision. That revision stays,
// and the next revision is sealed. On the other shards the window is unchanged and equals what their seals denote.
func TestWhereAMasterLosesAFinalWindowItsNextRevisionIsWhatItsSealsSay(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	const lost, before, after = 1, 300, 60
	path := filepath.Join(t.TempDir(), "archive.db")
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{
		"seal": "true", "lateness": "1h", "redis.shards": "3", "archive.url": "sqlite:" + path, "archive.interval": "0",
	}})
	then := time.Now().UTC().AddDate(0, 0, -10)
	year, week := then.ISOWeek()
	name := fmt.Sprintf("%d-W%02d", year, week)
	earned := func(from, to int, at time.Time) {
		var all []*kgo.Record
		for i := from; i < to; i++ { // each has different points, so the order does not depend on the time
			r := harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":%d}`, i, 10_000-10*i))
			r.Timestamp = at
			all = append(all, r)
		}
		place.Produce(t, all...)
	}
	archived := func(revision int64, want []string) {
		t.Helper()
		harness.Eventually(t, 2*within, func() string {
			if found, is := archivedRows(t, path, "weekly", name); found != revision || !slices.Equal(is, want) {
				return fmt.Sprintf("the archive has revision %d, with %d rows, and not %d with %d", found, len(is), revision, len(want))
			}
			return ""
		})
	}
	var was, is []string
	points := map[int]int{}
	for i := range before + after {
		points[i] = 10_000 - 10*i
		if place.ShardOf(fmt.Sprint("m", i)) == lost && i >= before-after && i < before {
			points[i] *= 2 // no other member has that many
		}
	}
	order := make([]int, 0, before+after)
	for i := range before + after {
		if i < before {
			was = append(was, fmt.Sprintf("m%d %d", i, 10_000-10*i))
		}
		if i < before || place.ShardOf(fmt.Sprint("m", i)) == lost {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return points[b] - points[a] })
	for _, i := range order {
		is = append(is, fmt.Sprintf("m%d %d", i, points[i]))
	}

	earned(0, before, then)
	earned(0, 1, time.Now())
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	archived(1, was)
	earned(before-after, before+after, then) // these events are late
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)

	var keys []string
	if err := place.EachName(t.Context(), func(key, _ string) {
		if strings.HasPrefix(key, place.KeyIn(lost, "")) {
			keys = append(keys, key)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := place.RedisClient().Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	archived(2, is)
	place.TerminateAll(t)
	place.TakeSeals(t)
	place.EachRecord(t, place.Topic, func(r *kgo.Record) { place.Expect(t, r) })
	place.CheckBoards(t)

	// A member of a shard that was not lost, who earned points both in time and late.
	for i := before - after; ; i++ {
		member := fmt.Sprint("m", i)
		if place.ShardOf(member) == lost {
			continue
		}
		var says struct {
			Agree  *bool `json:"agree"`
			Counts struct{ Counted, Final int }
		}
		if err := json.Unmarshal(place.Command(t, "explain", "global", "weekly", member, "--window", name, "--json"), &says); err != nil {
			t.Fatal(err)
		}
		if says.Agree == nil || !*says.Agree || says.Counts.Counted != 1 || says.Counts.Final != 1 {
			t.Errorf("explain says of %s: %+v", member, says)
		}
		return
	}
}
