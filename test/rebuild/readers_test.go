package rebuild

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// twins returns events with no negative points that count equally in two boards.
func twins(seed uint64, events, members int) []*kgo.Record {
	random := rand.New(rand.NewPCG(seed, 7))
	records := make([]*kgo.Record, events)
	for i := range records {
		records[i] = harness.Record(random.IntN(2), fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":["left","right"]}`, random.IntN(members), random.IntN(50)))
	}
	return records
}

// sums returns the points of the two boards in one window, as of one moment.
var sums = redis.NewScript(`
local all = {}
for i, key in ipairs(KEYS) do
  local sum, rows = 0, redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for n = 2, #rows, 2 do sum = sum + math.floor(tonumber(rows[n])) end
  all[i] = sum
end
return all`)

func TestNoReaderSeesABoardThatIsHalfSwappedOrNone(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	place.Publish(t, twins(1, 5000, 300)...)
	place.AwaitCaughtUp(t, harness.Within)
	left, right := place.Key(window(t, place, "left", "weekly")), place.Key(window(t, place, "right", "weekly"))
	monthly := place.Key(window(t, place, "left", "monthly"))

	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer func() { stop(); beside.Wait() }()
	beside.Go(func() { // producers
		for seed := uint64(2); ctx.Err() == nil; seed++ {
			for _, r := range twins(seed, 30, 300) {
				place.Stream(t.Context(), t, r)
			}
			place.Await()
			time.Sleep(10 * time.Millisecond)
		}
	})
	var reads atomic.Int64
	for range 2 { // readers of keys
		beside.Go(func() {
			for ctx.Err() == nil {
				all, err := sums.Run(t.Context(), place.RedisClient(), []string{left, right, monthly}).Int64Slice()
				switch {
				case err != nil:
					t.Errorf("a read failed: %v", err)
					return
				case all[0] == 0 || all[0] != all[1] || all[2] < all[0]:
					t.Errorf("a read saw %d points left, %d right and %d in the month", all[0], all[1], all[2])
					return
				}
				reads.Add(1)
			}
		})
	}
	var commands atomic.Int64
	beside.Go(func() { // readers that use the command
		for ctx.Err() == nil {
			cmd := exec.Command(harness.Binary(t), "top", "left", "weekly")
			cmd.Env = place.Environment(nil)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "m") {
				t.Errorf("top failed: %v\n%s", err, out)
				return
			}
			commands.Add(1)
		}
	})
	for n := range 6 {
		// Both boards have the same error until the swap, and are correct afterwards.
		pipe := place.RedisClient().TxPipeline()
		for _, key := range []string{left, right, monthly} {
			pipe.ZIncrBy(ctx, key, 1000, fmt.Sprint("m", n))
		}
		_, err := pipe.Exec(t.Context())
		harness.Must(t, err)
		if said := startRebuild(t, place, "--diff").swapped(); !said.Swapped || said.differ() != 3 {
			t.Errorf("rebuild %d says %+v", n, said)
		}
	}
	stop()
	beside.Wait()
	t.Logf("%d reads of keys, %d by the command", reads.Load(), commands.Load())
	if reads.Load() < 100 || commands.Load() == 0 {
		t.Error("hardly anything was read")
	}
	place.Finish(t)
}
