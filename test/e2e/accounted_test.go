package e2e

// Promise 5 on the metrics: what became of events adds up to what was consumed, in
// every scrape of every process, through rebalances and takeovers.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// watch scrapes every consumer of a place all the time, and holds each scrape to the
// promise, until end is called. It returns how many there were.
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
					continue // it hasn't begun, or has ended
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

func TestResultsAddUpToWhatWasConsumedThroughRebalances(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const partitions = 6
	began := time.Now()
	place := harness.New(t, harness.Options{Partitions: partitions, Settings: map[string]string{
		"periods.monthly.enabled": "false", "periods.yearly.enabled": "false", "lateness": "10d", "fold_memory": "32MiB",
		"redis.shards": "5", // each with a ledger of its own to add up over
	}})
	rich := func(points int) *kgo.Record { // in the same week, should another begin meanwhile
		return harness.Record(0, fmt.Sprintf(`{"user_id":"rich","points":%d,"occurred_at":%d}`, points, began.UnixMilli()))
	}
	place.Publish(t, rich(99999999))
	replicas := []*harness.Consumer{place.Start(t)}
	place.AwaitCaughtUp(t, within)
	end := watch(t, place)

	// Every kind of result, all the while.
	g := generator(t, sample.Options{
		Seed: 21, Members: 3000, Skew: 1.1, Boards: []string{"a", "b"}, BoardsPerEvent: 2,
		Spread: 40 * 24 * time.Hour, Bad: 0.03, Corrections: 0.05,
	})
	flowing, enough := context.WithCancel(t.Context())
	var flow sync.WaitGroup
	flow.Go(func() {
		for n := 0; flowing.Err() == nil; n++ {
			batch := append(records(g, 400, partitions), &kgo.Record{Partition: int32(n % partitions), Timestamp: time.UnixMilli(time.Now().UnixMilli())})
			if err := place.PublishAll(t.Context(), batch...); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer flow.Wait()
	defer enough()
	for step := range 5 {
		joined := place.Start(t)
		joined.AwaitReady(t, within)
		replicas = append(replicas, joined)
		over := rich(1 + step)
		place.Produce(t, over)
		place.ExpectOverflow(t, over)
		if step > 0 {
			replicas[0].Terminate(t)
			replicas = replicas[1:]
		}
		// What joined has to have work to do before the next one comes.
		harness.Eventually(t, within, func() string {
			if m, err := joined.Scrape(t.Context()); err != nil || m.Counts(t).Applied == 0 {
				return fmt.Sprintf("consumer %d has applied nothing yet: %v", joined.Number, err)
			}
			return ""
		})
	}
	enough()
	flow.Wait()
	place.AwaitCaughtUp(t, within)
	if seen := end(); seen < 50 {
		t.Errorf("%d scrapes: the test shows little", seen)
	}

	// At rest, which is a moment after the ledger's last move, each replica's metrics say
	// what its last line will.
	published, scraped := int64(len(place.Published())), map[int]harness.Counts{}
	harness.Eventually(t, within, func() string {
		sum := place.Counted()
		for _, c := range replicas {
			m, err := c.Scrape(t.Context())
			if err != nil {
				return err.Error()
			}
			scraped[c.Number] = m.Counts(t)
			sum = sum.Add(scraped[c.Number])
		}
		if n := sum.Consumed - sum.Repeated; n != published {
			return fmt.Sprintf("%d events are accounted for, and %d were published", n, published)
		}
		return ""
	})
	for _, c := range replicas {
		if said := c.Terminate(t); said != scraped[c.Number] {
			t.Errorf("consumer %d ends with %+v, and its metrics had %+v", c.Number, said, scraped[c.Number])
		}
	}
	place.Check(t)
	place.CheckCounts(t) // each result is the oracle's, over all processes
	sum := place.Counted()
	if sum.Consumed-sum.Repeated != published {
		t.Errorf("%d records were published, and %d consumed of which %d were repeated", published, sum.Consumed, sum.Repeated)
	}
	if sum.Late == 0 || sum.DeadLettered == 0 || sum.Skipped == 0 {
		t.Errorf("not every result was seen: %+v", sum)
	}
}

// What a killed process had counted is what its last scrape says, or more. The rest of
// the sweep that it died in is its successor's, which counts as repeated what is in.
func TestAfterAKillTheSuccessorAccountsForTheRestOfTheSweep(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Settings: map[string]string{"piece_time": "500us"}})
	more := func() (all []*kgo.Record) {
		for i := range 60_000 {
			all = append(all, harness.Record(0, fmt.Sprintf(`{"user_id":"player-%d","points":%d}`, i*7919%40_000, 1+i%9)))
		}
		return all
	}
	place.Publish(t, more()...)
	end := watch(t, place)
	var victim *harness.Consumer
	var began int64         // where the victim did
	var last harness.Counts // that it showed
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
