package rebuild

import (
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/internal/ledger"
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

// awaitShadow waits until a rebuild has written its ledger, and returns its key.
func awaitShadow(t *testing.T, place *harness.Place) (shadow string) {
	t.Helper()
	harness.Eventually(t, harness.Within, func() string {
		for _, key := range beside(t, place) {
			if strings.HasSuffix(key, ":ledger") {
				shadow = key
				return ""
			}
		}
		return "no rebuild has a ledger yet"
	})
	return shadow
}

// paused starts a rebuild that cannot swap, because another job has the hold.
func paused(t *testing.T, place *harness.Place) (r *rebuilding, goOn func()) {
	t.Helper()
	harness.Must(t, place.RedisClient().Set(t.Context(), place.Key("hold"), "the test's", time.Minute).Err())
	r = startRebuild(t, place)
	shadow := awaitShadow(t, place)
	harness.Eventually(t, harness.Within, func() string {
		stands, err := place.RedisClient().HGetAll(t.Context(), shadow).Result()
		harness.Must(t, err)
		for partition, at := range place.Ledger(t) {
			if stands[ledger.Partition{Topic: place.Topic, Number: partition}.String()] != at {
				return "the rebuild hasn't come close yet"
			}
		}
		return ""
	})
	r.Signal(t, syscall.SIGSTOP)
	harness.Must(t, place.RedisClient().Del(t.Context(), place.Key("hold")).Err())
	return r, func() { r.Signal(t, syscall.SIGCONT) }
}

func TestARebuildThatIsToldToStopRemovesWhatItHas(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	place.Publish(t, harness.Earned(53, 2000, 300, 2)...)
	place.AwaitCaughtUp(t, harness.Within)
	was := scores(t, place)
	r, goOn := paused(t, place)
	r.Signal(t, syscall.SIGTERM)
	goOn()
	code, said := r.ended(), r.Log.Text()
	some := place.Shards() > 1 && strings.Contains(said, "rebuilt; ") && strings.Contains(said, " as before. Each shard is exact by itself")
	switch {
	case code == 0:
		t.Log("it had swapped before it was told")
	case some && strings.HasSuffix(strings.TrimSpace(said), "interrupted"):
		t.Log("some shards had been swapped before it was told")
	case !strings.Contains(said, "interrupted: the boards are unchanged"):
		t.Errorf("it says %s", said)
	}
	if left := beside(t, place); len(left) > 0 {
		// Stopped while it removes what it has replaced, it leaves the rest at once, and reports this.
		if code != 0 || !strings.Contains(said, "expires by itself") {
			t.Errorf("it leaves %v", left)
		}
		for _, key := range left {
			if place.RedisClient().PTTL(t.Context(), key).Val() == -1 {
				t.Errorf("it leaves %s, which doesn't expire", key)
			}
			harness.Must(t, place.RedisClient().Del(t.Context(), key).Err())
		}
	}
	same(t, was, scores(t, place))
	place.Finish(t)
}
