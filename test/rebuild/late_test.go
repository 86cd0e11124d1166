package rebuild

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/test/harness"
)

// An offline client's record, weeks old, lies among those of today, and the log is deleted
// up to it: it is the first that is left, and proves nothing of those before it. A rebuild
// that took it for a bound would put the 4 members that the log still has in the place of
// all 14.
func TestAnOldRecordAtTheHeadOfTheLogReplacesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	place.Start(t)
	now := time.Now()
	for i := range 14 {
		place.Publish(t, dated(0, now.Add(time.Duration(i-20)*time.Second), 2*i, 5))
	}
	place.Publish(t, dated(0, now.AddDate(0, 0, -45), 0, 5))
	for i := range 4 {
		place.Publish(t, dated(0, now.Add(time.Duration(i-4)*time.Second), 2*i, 5))
	}
	place.AwaitCaughtUp(t, within)
	was := scores(t, place)
	week := window(t, place, "global", "weekly")
	if n := len(was[week]); n != 14 {
		t.Fatalf("%s has %d members", week, n)
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset(place.Topic, 0, 14, -1)
	deleted, err := place.Admin().DeleteRecords(t.Context(), offsets)
	must(t, err)
	must(t, deleted.Error())

	// Whether or not Kafka was told of the times by now.
	for _, told := range []bool{false, true} {
		if told {
			place.AwaitCommitted(t, within)
		}
		said := startRebuild(t, place).swapped()
		if said.actions()["replaced"] > 0 {
			t.Errorf("it says %+v", said.Windows)
		}
		same(t, was, scores(t, place))
	}
	finish(t, place)
}

// Redis is lost, and the log no longer reaches back to what it held: a window is whole again
// where what the group has committed proves it, and named where it doesn't.
func TestALostRedisIsFilledAgainByWhatTheGroupHasCommitted(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Settings: map[string]string{
		"periods.weekly.retention": "21d", "periods.monthly.enabled": "false", "periods.yearly.enabled": "false",
	}})
	c := place.Start(t)
	now := time.Now()
	old := now.AddDate(0, 0, -60)
	for i := range 10 {
		place.Publish(t, dated(0, old, 2*i, 5))
	}
	for i := range 5 {
		place.Publish(t, dated(0, now.Add(-time.Duration(i)*time.Second), 2*i, 5))
	}
	place.AwaitCaughtUp(t, within)
	place.AwaitCommitted(t, within)
	c.Terminate(t)
	week := window(t, place, "global", "weekly")
	was := scores(t, place)[week]
	remove := func(before int64) {
		t.Helper()
		offsets := kadm.Offsets{}
		offsets.AddOffset(place.Topic, 0, before, -1)
		deleted, err := place.Admin().DeleteRecords(t.Context(), offsets)
		must(t, err)
		must(t, deleted.Error())
		wipe(t, place)
	}

	// What is gone is older than any window that lives.
	remove(10)
	c = place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.AwaitCommitted(t, within)
	if is := scores(t, place)[week]; fmt.Sprint(is) != fmt.Sprint(was) {
		t.Errorf("%s has %v, and had %v", week, is, was)
	}
	if out := shown(t, place, week); strings.Contains(strings.ToLower(out), "incomplete") {
		t.Errorf("it is shown as incomplete, and isn't:\n%s", out)
	}
	c.Terminate(t)

	// What is gone is of this week.
	remove(12)
	c = place.Start(t)
	c.Log.AwaitHalt(t, within, "gap")
	c.Terminate(t)
	place.Settings["on_gap"] = "continue"
	c = place.Start(t)
	place.AwaitCaughtUp(t, within)
	if out := shown(t, place, week); !strings.Contains(strings.ToLower(out), "incomplete") {
		t.Errorf("it lacks events, and isn't shown as incomplete:\n%s", out)
	}
	c.Terminate(t)
}

// wipe has Redis lose all that is the place's.
func wipe(t *testing.T, place *harness.Place) {
	t.Helper()
	keys, err := place.RedisClient().Keys(t.Context(), place.Prefix+":*").Result()
	must(t, err)
	must(t, place.RedisClient().Del(t.Context(), keys...).Err())
}
