package rebuild

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
)

func TestADryRunSaysWhichStandingsDifferAndChangesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	place.Publish(t, harness.Earned(30, 2000, 200, 2)...)
	place.AwaitCaughtUp(t, harness.Within)
	ctx, client := t.Context(), place.RedisClient()
	weekly, yearly := window(t, place, "global", "weekly"), window(t, place, "eu", "yearly")
	harness.Must(t, client.ZIncrBy(ctx, place.KeyOf("m3", weekly), 25, "m3").Err())
	harness.Must(t, client.ZAdd(ctx, place.KeyOf("ghost", weekly), redis.Z{Score: 12.5, Member: "ghost"}).Err())
	harness.Must(t, client.ZRem(ctx, place.KeyOf("m5", yearly), "m5").Err())
	before := place.Boards(t)

	said := startRebuild(t, place, "--dry-run", "--diff").swapped()
	if said.Swapped || said.differ() != 3 || len(said.DifferWindows) != 2 {
		t.Fatalf("the dry run says %+v", said)
	}
	list := said.Standings
	if len(list) != 3 || list[0].Member != "m5" || list[0].Live != nil || list[0].Log == nil ||
		list[1].Member != "ghost" || list[1].Live == nil || list[1].Log != nil ||
		list[2].Member != "m3" || list[2].Live.Points != list[2].Log.Points+25 {
		t.Errorf("the standings that differ are %+v", list)
	}
	same(t, before, place.Boards(t))

	// The same with a swap; after that nothing differs.
	if said := startRebuild(t, place, "--diff").swapped(); !said.Swapped || said.differ() != 3 {
		t.Errorf("the rebuild says %+v", said)
	}
	if said := startRebuild(t, place, "--dry-run").swapped(); said.differ() != 0 {
		t.Errorf("the dry run after it says %+v", said)
	}
	place.Finish(t)
}
