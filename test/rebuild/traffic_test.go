package rebuild

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

func TestUnderLiveTrafficTheResultIsTheOracles(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 4})
	place.Start(t)
	place.Start(t)
	place.Publish(t, earned(20, 20_000, 3000, 4)...)
	place.AwaitCaughtUp(t, within)
	ctx, stop := context.WithCancel(t.Context())
	var traffic sync.WaitGroup
	traffic.Go(func() {
		for seed := uint64(21); ctx.Err() == nil; seed++ {
			if err := place.PublishAll(t.Context(), earned(seed, 50, 3000, 4)...); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	for range 3 {
		said := startRebuild(t, place).swapped()
		if !said.Swapped {
			t.Errorf("nothing was swapped: %+v", said)
		}
		t.Logf("read %d records in %d ms, held for %d ms", said.Records, said.TookMS, said.HeldMS)
	}
	stop()
	traffic.Wait()
	finish(t, place)
}
