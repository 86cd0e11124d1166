package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// foundWithin is how soon an idle consumer sees that its Redis isn't where it was:
// it looks every second. The rest is the machine's.
const foundWithin = 30 * time.Second

// stream is traffic that goes on while something else happens.
type stream struct {
	place     *harness.Place
	published atomic.Int64
	cancel    context.CancelFunc
	done      sync.WaitGroup
}

// traffic publishes a little all the time, until it is stopped.
func traffic(t *testing.T, place *harness.Place, partitions int) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stream{place: place, cancel: cancel}
	s.done.Go(func() {
		for seed := uint64(1000); ; seed++ {
			for _, r := range earned(seed, 50, 300, partitions) {
				// Not cancelled itself: what is published counts.
				place.Stream(context.WithoutCancel(ctx), t, r)
			}
			s.published.Add(50)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(s.stop)
	return s
}

// stop ends the traffic, and waits until all of it is acknowledged.
func (s *stream) stop() {
	s.cancel()
	s.done.Wait()
	s.place.Await()
}

// more waits until so many events more were published.
func (s *stream) more(t *testing.T, events int64) {
	t.Helper()
	until := s.published.Load() + events
	harness.Eventually(t, within, func() string {
		if n := s.published.Load(); n < until {
			return fmt.Sprintf("%d events are published, of %d", n, until)
		}
		return ""
	})
}

func TestARedisThatWentBackInTimeIsReadUpToWithoutAnyTraffic(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	place.Publish(t, earned(40, 1000, 300, 2)...)
	place.AwaitCaughtUp(t, within)
	older := place.Redis.Dump()
	place.Publish(t, earned(41, 1000, 300, 2)...)
	place.AwaitCaughtUp(t, within)

	place.Redis.Restart(older)
	began := time.Now()
	harness.Eventually(t, foundWithin, func() string { return place.Behind(t.Context()) })
	t.Logf("found and mended after %v", time.Since(began).Round(time.Millisecond))
	c.Log.Await(t, within, "the ledger has moved")
	finish(t, place)
}

func TestARedisThatGoesBackInTimeUnderTrafficLosesNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"piece_time": "500us"}})
	place.Start(t)
	events := traffic(t, place, 2)
	for range 3 {
		place.AwaitBegun(t, within)
		older := place.Redis.Dump()
		events.more(t, 1000)
		place.Redis.Restart(older)
	}
	events.stop()
	finish(t, place)
}

func TestARedisThatGoesBackIntoASweepGoesOnWithThatSweep(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Settings: map[string]string{"piece_time": "500us"}})
	place.Publish(t, earned(42, 60_000, 40_000, 1)...)
	c := place.Start(t)
	var older []byte
	place.CatchSweep(t, within, harness.Sweep{More: another, Seen: func() bool {
		before, _, _ := strings.Cut(place.Ledger(t)[0], "@")
		older = place.Redis.Dump()
		after, _, sweeping := strings.Cut(place.Ledger(t)[0], "@")
		return sweeping && before == after // so is the dump in that sweep
	}})
	place.AwaitCaughtUp(t, within)

	place.Redis.Restart(older)
	resumed := c.Log.Await(t, within, "going on with a sweep")
	t.Logf("resumed at %v", resumed.Fields["position"])
	finish(t, place)
}

func TestAWipedRedisIsFilledAgainFromTheLog(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"idle", "under traffic", "in a sweep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"piece_time": "500us"}})
			if name == "in a sweep" { // a backlog: what comes bit by bit is swept at once
				place.Publish(t, earned(43, 60_000, 40_000, 2)...)
			}
			c := place.Start(t)
			stop := func() {}
			switch name {
			case "in a sweep":
				awaitSweep(t, place)
			case "under traffic":
				events := traffic(t, place, 2)
				stop = events.stop
				events.more(t, 1000)
				harness.Eventually(t, within, func() string { // else there is nothing to lose yet
					if n := c.Log.Count("partition running"); n < 2 {
						return fmt.Sprintf("%d partitions run", n)
					}
					return ""
				})
			default:
				place.Publish(t, earned(44, 1000, 300, 2)...)
				place.AwaitCaughtUp(t, within)
			}
			if err := place.RedisClient().FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			c.Log.Await(t, foundWithin, "Redis was lost")
			stop()
			place.AwaitCaughtUp(t, within)
			t.Logf("found and mended after %v", time.Since(began).Round(time.Millisecond))
			finish(t, place)
		})
	}
}

func TestAWipedRedisWhoseLogNoLongerReachesBackHaltsOrGoesOnIncomplete(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	records := earned(45, 1000, 300, 2)
	place.Produce(t, records...)
	place.AwaitCaughtUp(t, within)
	const gone = 200
	place.DeleteBefore(t, 1, gone)
	if err := place.RedisClient().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	halt := c.Log.AwaitHalt(t, foundWithin, "gap")
	if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, fmt.Sprintf("%s/1 begins only at offset %d", place.Topic, gone)) {
		t.Errorf("the halt says %q", what)
	}
	if at := place.Ledger(t); len(at) != 0 {
		t.Errorf("a halted consumer has written a ledger: %v", at)
	}
	awaitLine(t, place, 1, "halted", "gap")
	c.Terminate(t)

	expectKept(t, place, records, 1, gone)
	place.Settings["on_gap"] = "continue"
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.CheckBoards(t)
	for _, period := range []string{"weekly", "yearly"} {
		out := place.Command(t, "top", "global", period, "--json")
		var top struct{ Incomplete []string }
		if err := json.Unmarshal(out, &top); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if want := place.Topic + "/1"; len(top.Incomplete) != 1 || top.Incomplete[0] != want {
			t.Errorf("consumer top of the %s board says %q is incomplete, want %s", period, top.Incomplete, want)
		}
	}
	place.TerminateAll(t)
}

func TestEventsThatAreGoneBeforeTheyCountedHaltTheirPartitionAlone(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	first := place.Start(t)
	place.Publish(t, earned(46, 400, 100, 2)...)
	place.AwaitCaughtUp(t, within)
	first.Terminate(t)
	counted := place.Ledger(t)[0]
	records := earned(47, 400, 100, 2)
	place.Produce(t, records...)
	end := place.Ends(t)[0]
	place.DeleteBefore(t, 0, end-50)

	c := place.Start(t)
	c.Log.AwaitHalt(t, within, "gap")
	harness.Eventually(t, within, func() string {
		if at, want := place.Ledger(t)[1], fmt.Sprint(place.Ends(t)[1]); at != want {
			return fmt.Sprintf("the other partition stands at %s of %s", at, want)
		}
		return ""
	})
	awaitLine(t, place, 0, "halted", "gap")
	c.Terminate(t)
	if at := place.Ledger(t)[0]; at != counted {
		t.Errorf("a halted partition has moved from %s to %s", counted, at)
	}

	expectKept(t, place, records, 0, end-50)
	place.Settings["on_gap"] = "continue"
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	place.CheckBoards(t)
}

// expectKept expects what Kafka still has: a partition's records before an offset
// are gone.
func expectKept(t *testing.T, place *harness.Place, records []*kgo.Record, partition int32, from int64) {
	t.Helper()
	for _, r := range records {
		if r.Partition != partition || r.Offset >= from {
			place.Expect(t, r)
		}
	}
}

// awaitLine waits until a partition's line for status has a state and a reason.
func awaitLine(t *testing.T, place *harness.Place, partition int, state, reason string) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		text := place.Hash(t, "workers")[fmt.Sprintf("%s/%d", place.Topic, partition)]
		var line struct{ State, Reason, Remedy string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return fmt.Sprintf("the line of partition %d is %q", partition, text)
		}
		if line.State != state || line.Reason != reason || state == "halted" && line.Remedy == "" {
			return fmt.Sprintf("the line of partition %d is %s, want %s for %q", partition, text, state, reason)
		}
		return ""
	})
}
