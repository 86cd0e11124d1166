package e2e

// Promise 5 on the metrics: the results of events add up to the events consumed, in every scrape of every
// process, through rebalances and takeovers.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// watch scrapes every consumer of a place continuously and checks each scrape against the promise, until end
// is called. end returns the number of scrapes.
func watch(t *testing.T, place *harness.Place) (end func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	seen, last := 0, map[int]harness.Counts{}
	var done sync.WaitGroup
	done.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
			for _, c := range place.Consumers() {
				m, err := c.Scrape(ctx)
				if err != nil {
					continue // it has not started, or has ended
				}
				n := m.Counts(t)
				if n.Sum() != n.Consumed {
					t.Errorf("consumer %d: %d events were consumed, and the results are of %d: %+v", c.Number, n.Consumed, n.Sum(), n)
				}
				if n.Consumed < last[c.Number].Consumed || n.Applied < last[c.Number].Applied {
					t.Errorf("consumer %d: a counter went back from %+v to %+v", c.Number, last[c.Number], n)
				}
				last[c.Number] = n
				seen++
			}
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return func() int {
		stop()
		done.Wait()
		return seen
	}
}

// A killed process has counted at least the events of its last scrape. Its successor applies the rest of the
// interrupted sweep, and counts the events that are already in Redis as repeated.
func TestAfterAKillTheSuccessorAccountsForTheRestOfTheSweep(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := harness.New(t, harness.Options{})
	more := func() (all []*kgo.Record) {
		for i := range 60_000 {
			all = append(all, harness.Record(0, fmt.Sprintf(`{"user_id":"player-%d","points":%d}`, i*7919%40_000, 1+i%9)))
		}
		return all
	}
	place.Publish(t, more()...)
	end := watch(t, place)
	var victim *harness.Consumer
	var began int64         // applied when the victim started
	var last harness.Counts // its latest scrape
	at := place.KillInSweep(t, within, harness.Sweep{
		Start: func() *harness.Consumer {
			began, last = place.Counting(t), harness.Counts{}
			victim = place.Start(t)
			return victim
		},
		More: more,
		Seen: func() bool {
			m, err := victim.Scrape(t.Context())
			if err != nil {
				return false
			}
			before := last.Applied
			last = m.Counts(t)
			return last.Applied > before
		},
	})
	successor := place.Start(t)
	place.AwaitCaughtUp(t, within)
	end()
	n := successor.Terminate(t)
	place.Check(t)
	t.Logf("killed at %v after %+v; the successor: %+v", at, last, n)
	events := int64(len(place.Published()))
	if n.Sum() != n.Consumed || n.Consumed != events-at.From {
		t.Errorf("the successor consumed %+v; %d events lay behind the ledger", n, events-at.From)
	}
	if n.Repeated == 0 {
		t.Error("nothing was repeated: it didn't take over a sweep")
	}
	if most := at.From - began + n.Repeated; last.Applied > most || last.Applied+n.Applied > events-began {
		t.Errorf("the last scrape of the killed process says %d, and %d were in", last.Applied, most)
	}
}
