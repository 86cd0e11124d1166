package rebuild

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
)

// What a rebuild is for: boards that aren't what the log says, while a consumer runs or
// is halted by it.

func TestABoardThatIsLostIsRebuiltAndItsHaltEnds(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	place.Publish(t, earned(1, 600, 100, 2)...)
	place.AwaitCaughtUp(t, within)
	must(t, place.RedisClient().Del(t.Context(), place.Key(window(t, place, "global", "yearly"))).Err())
	place.Publish(t, earned(2, 600, 100, 2)...)
	c.Log.AwaitHalt(t, within, "board_lost")

	said := startRebuild(t, place).swapped()
	if !said.Swapped || said.actions()["replaced"] != len(said.Windows) {
		t.Errorf("the rebuild says %+v", said)
	}
	finish(t, place)
}

func TestATornShardIsSettled(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	place.Publish(t, earned(3, 600, 100, 2)...)
	place.AwaitCaughtUp(t, within)
	ctx, client := t.Context(), place.RedisClient()
	// A script that died midway has written some of its scores.
	must(t, client.ZIncrBy(ctx, place.KeyOf("m3", window(t, place, "global", "monthly")), 25, "m3").Err())
	must(t, client.HSet(ctx, place.KeyOf("m3", "ledger"), place.Topic+"/1", "torn:"+place.Ledger(t)[1]).Err())
	c.Log.AwaitHalt(t, within, "torn")
	place.Publish(t, earned(4, 600, 100, 2)...)

	startRebuild(t, place).swapped()
	finish(t, place)
}

func TestAScoreThatSomethingElseWroteIsRebuilt(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1})
	c := place.Start(t)
	place.Publish(t, earned(5, 600, 50, 1)...)
	place.AwaitCaughtUp(t, within)
	key := place.KeyOf("m7", window(t, place, "eu", "weekly"))
	must(t, place.RedisClient().ZAdd(t.Context(), key, redis.Z{Score: 0.1, Member: "m7"}).Err())
	place.Publish(t, earned(6, 600, 50, 1)...)
	c.Log.AwaitHalt(t, within, "foreign_score")
	startRebuild(t, place).swapped()
	finish(t, place)
}

func TestALedgerThatIsLostIsRebuilt(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	place.Publish(t, earned(7, 600, 50, 2)...)
	place.AwaitCaughtUp(t, within)
	must(t, place.RedisClient().Del(t.Context(), place.Key("ledger")).Err())
	c.Log.AwaitHalt(t, within, "ledger_lost")
	place.Publish(t, earned(8, 600, 50, 2)...)
	startRebuild(t, place).swapped()
	finish(t, place)
}

func TestAWindowThatNobodyIsInAccordingToTheLogIsDropped(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1})
	place.Start(t)
	place.Publish(t, earned(9, 300, 50, 1)...)
	place.AwaitCaughtUp(t, within)
	name := window(t, place, "global", "weekly")
	listing := place.Hash(t, "windows")[name]
	ctx, client := t.Context(), place.RedisClient()
	must(t, client.HSet(ctx, place.Key("windows"), "nobody"+name[len("global"):], listing).Err())
	must(t, client.ZAdd(ctx, place.Key("nobody"+name[len("global"):]), redis.Z{Score: 1, Member: "ghost"}).Err())
	if n := startRebuild(t, place).swapped().actions()["dropped"]; n != 1 {
		t.Errorf("%d windows were dropped, want 1", n)
	}
	finish(t, place)
}

func TestTheLiveBoardsOfNobodyAreNothingToRebuild(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 1})
	startRebuild(t, place).refused("nothing was counted here yet")
}
