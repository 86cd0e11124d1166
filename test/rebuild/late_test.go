package rebuild

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// Redis is lost, and the log no longer contains everything that Redis held. A window is whole again if the group's
// committed metadata proves that it is complete.
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
	place.AwaitCaughtUp(t, harness.Within)
	place.AwaitCommitted(t, harness.Within)
	c.Terminate(t)
	week := window(t, place, "global", "weekly")
	was := scores(t, place)[week]
	place.DeleteBefore(t, 0, 10) // the deleted records are older than all windows that live
	harness.Must(t, place.RedisClient().FlushAll(t.Context()).Err())

	c = place.Start(t)
	place.AwaitCaughtUp(t, harness.Within)
	if is := scores(t, place)[week]; fmt.Sprint(is) != fmt.Sprint(was) {
		t.Errorf("%s has %v, and had %v", week, is, was)
	}
	if out := shown(t, place, week); strings.Contains(strings.ToLower(out), "incomplete") {
		t.Errorf("it is shown as incomplete, and isn't:\n%s", out)
	}
	c.Terminate(t)
}

// dated returns a record and event with the same time.
func dated(partition int, at time.Time, member int, points int) *kgo.Record {
	r := harness.Record(partition, fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":%q}`, member, points, []string{"global", "eu"}[member%2]))
	r.Timestamp = time.UnixMilli(at.UnixMilli())
	return r
}

// shown returns what a reader sees of a listed window.
func shown(t *testing.T, place *harness.Place, window string) string {
	t.Helper()
	part := strings.Split(window, ":")
	return string(place.Command(t, "top", part[0], part[1], "--window", part[2]))
}
