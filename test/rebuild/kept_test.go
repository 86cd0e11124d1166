package rebuild

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// dated returns a record and event with the same time.
func dated(partition int, at time.Time, member int, points int) *kgo.Record {
	r := harness.Record(partition, fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":%q}`, member, points, []string{"global", "eu"}[member%2]))
	r.Timestamp = time.UnixMilli(at.UnixMilli())
	return r
}

// first returns the earliest listed window of a board and a period. After months of events, the earliest yearly window
// started before the start of the log; in the first weeks of a year, the latest one may not have.
func first(t *testing.T, place *harness.Place, board, period string) string {
	t.Helper()
	var all []string
	for name := range place.Hash(t, "windows") {
		if strings.HasPrefix(name, board+":"+period+":") {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no %s window of %s is listed", period, board)
	}
	return slices.Min(all)
}

// shown returns what a reader sees of a listed window.
func shown(t *testing.T, place *harness.Place, window string) string {
	t.Helper()
	part := strings.Split(window, ":")
	return string(place.Command(t, "top", part[0], part[1], "--window", part[2]))
}

// months publishes records of the last three months to two partitions, and deletes those of the first half from the
// log. It returns the number of deleted records per partition.
func months(t *testing.T, place *harness.Place) int64 {
	t.Helper()
	const half = 900
	var records []*kgo.Record
	for i := range 2 * half {
		at := time.Now().Add(-90*24*time.Hour + time.Duration(i)*90*24*time.Hour/(2*half))
		records = append(records, dated(i%2, at, i%50, i%7+1))
	}
	place.Publish(t, records...)
	place.AwaitCaughtUp(t, harness.Within)
	place.AwaitCommitted(t, harness.Within) // with the times of the records that are deleted next
	const gone = half / 2
	offsets := kadm.Offsets{}
	for p := range int32(2) {
		offsets.Add(kadm.Offset{Topic: place.Topic, Partition: p, At: gone})
	}
	deleted, err := place.Admin().DeleteRecords(t.Context(), offsets)
	harness.Must(t, err)
	harness.Must(t, deleted.Error())
	return gone
}

func TestWindowsThatTheLogNoLongerHasAreKeptAndNamed(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"periods.weekly.retention": "365d"}})
	place.Start(t)
	gone := months(t, place)
	year, week := first(t, place, "global", "yearly"), window(t, place, "global", "weekly")
	ctx, client := t.Context(), place.RedisClient()
	// Kept windows stay unchanged, even if wrong; replaced windows are correct.
	harness.Must(t, client.ZIncrBy(ctx, place.KeyOf("m4", year), 25, "m4").Err())
	harness.Must(t, client.ZIncrBy(ctx, place.KeyOf("m4", week), 25, "m4").Err())

	said := startRebuild(t, place).swapped()
	if n := said.actions(); !said.Swapped || n["kept"] == 0 || n["replaced"] == 0 || n["kept"]+n["replaced"] != len(said.Windows) {
		t.Errorf("it says %v", n)
	}
	for _, w := range said.Windows {
		if w.Action == "kept" && !strings.HasPrefix(w.Why, "it starts before ") {
			t.Errorf("%+v doesn't say why", w)
		}
		if strings.HasSuffix(year, ":yearly:"+w.Window) && w.Action != "kept" {
			t.Errorf("%+v: the log begins after its start", w)
		}
	}
	for _, p := range said.Partitions {
		if p.From != gone {
			t.Errorf("%s is read from %d, and the log begins at %d", p.Partition, p.From, gone)
		}
	}
	harness.Must(t, client.ZIncrBy(ctx, place.KeyOf("m4", year), -25, "m4").Err())
	place.Finish(t)
	if origins := place.Hash(t, "origin"); len(origins) != 2 || !strings.Contains(origins[place.Topic+"/0"], " 0 ") {
		t.Errorf("windows are shown as incomplete that aren't: %v", origins)
	}
}
