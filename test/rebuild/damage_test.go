package rebuild

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
)

// A consumer halts because a shard differs from the log, and a rebuild repairs the shard.
func TestWhatIsDamagedHaltsAConsumerAndIsRebuilt(t *testing.T) {
	t.Parallel()
	for reason, damage := range map[string]func(*harness.Place) error{
		"board_lost": func(place *harness.Place) error {
			return place.RedisClient().Del(t.Context(), place.Key(window(t, place, "global", "yearly"))).Err()
		},
		"ledger_lost": func(place *harness.Place) error {
			for shard := range place.Shards() {
				harness.Must(t, place.RedisClient().Del(t.Context(), place.KeyIn(shard, "ledger")).Err())
			}
			return nil
		},
		"foreign_score": func(place *harness.Place) error {
			return place.RedisClient().ZAdd(t.Context(), place.KeyOf("m7", window(t, place, "global", "weekly")), redis.Z{Score: 0.1, Member: "m7"}).Err()
		},
		"torn": func(place *harness.Place) error {
			// A script that died midway has written some of its scores.
			harness.Must(t, place.RedisClient().ZIncrBy(t.Context(), place.KeyOf("m3", window(t, place, "global", "monthly")), 25, "m3").Err())
			return place.RedisClient().HSet(t.Context(), place.KeyOf("m3", "ledger"), place.Topic+"/1", "torn:"+place.Ledger(t)[1]).Err()
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{Partitions: 2})
			c := place.Start(t)
			place.Publish(t, harness.Earned(1, 600, 50, 2)...)
			place.AwaitCaughtUp(t, harness.Within)
			harness.Must(t, damage(place))
			place.Publish(t, harness.Earned(2, 600, 50, 2)...)
			c.Log.AwaitHalt(t, harness.Within, reason)
			// Without a ledger the rebuild reads up to the committed offsets. If nothing is committed yet, it drops the
			// windows, and the consumer fills them.
			said := startRebuild(t, place).swapped()
			done := said.actions()["replaced"]
			if reason == "ledger_lost" {
				done += said.actions()["dropped"]
			}
			if !said.Swapped || done != len(said.Windows) {
				t.Errorf("the rebuild says %+v", said)
			}
			place.Finish(t)
		})
	}
}
