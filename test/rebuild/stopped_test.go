package rebuild

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// scores returns the live boards member by member, without the keys of a rebuild.
func scores(t *testing.T, place *harness.Place) map[string]map[string]uint64 {
	t.Helper()
	all := map[string]map[string]uint64{}
	for name := range place.Hash(t, "windows") {
		all[name] = place.Board(t, name)
	}
	return all
}

// beside returns the keys of rebuilds next to the live ones.
func beside(t *testing.T, place *harness.Place) []string {
	t.Helper()
	var all []string
	for shard := range place.Shards() {
		keys := place.RedisClient().Scan(t.Context(), 0, place.KeyIn(shard, "~*"), 1000).Iterator()
		for keys.Next(t.Context()) {
			all = append(all, keys.Val())
		}
		harness.Must(t, keys.Err())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lapse removes all keys of rebuilds from Redis, as the expiry of their lease would.
func lapse(t *testing.T, place *harness.Place) {
	t.Helper()
	ctx := t.Context()
	all := beside(t, place)
	for shard := range place.Shards() {
		all = append(all, place.KeyIn(shard, "hold"))
	}
	for _, key := range all {
		left, err := place.RedisClient().PTTL(ctx, key).Result()
		harness.Must(t, err)
		// The mark of a swap lives for ten minutes.
		if left == -1 || left > time.Minute && !strings.HasSuffix(key, ":schema") || left > 10*time.Minute {
			t.Errorf("%s lives for %v: it doesn't go by itself in time", key, left)
		}
		harness.Must(t, place.RedisClient().Unlink(ctx, key).Err())
	}
}

func TestARebuildThatIsKilledAnywhereLeavesTheLiveBoardsAndKeysThatExpire(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 3})
	place.Start(t)
	place.Publish(t, harness.Earned(40, 20_000, 5000, 3)...)
	place.AwaitCaughtUp(t, harness.Within)
	was := scores(t, place)
	began := time.Now()
	startRebuild(t, place).swapped()
	whole := time.Since(began) // on this machine, under its current load
	lapse(t, place)
	swapped, leftovers := 0, 0
	for range 12 {
		r := startRebuild(t, place)
		select {
		case <-time.After(rand.N(whole)):
			r.Kill()
		case <-r.Done():
		}
		if r.ended() == 0 {
			swapped++
		}
		same(t, was, scores(t, place))
		if len(beside(t, place)) > 0 {
			leftovers++
		}
		lapse(t, place)
		// Partitions that were held continue.
		more := harness.Earned(uint64(41), 1, 1, 1)
		place.Publish(t, more...)
		place.AwaitCaughtUp(t, harness.Within)
		was = scores(t, place)
	}
	t.Logf("%d of 12 came to their end, %d left something, and the first took %v", swapped, leftovers, whole)
	if leftovers == 0 {
		t.Error("no rebuild was killed with anything in Redis")
	}
	startRebuild(t, place).swapped()
	place.Finish(t)
}
