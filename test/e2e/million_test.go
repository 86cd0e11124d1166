package e2e

// A million events, while replicas start, stop and crash.

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

const (
	millionPartitions = 6
	million           = 1_000_000
	backlog           = 300_000 // of these, published before any replica reads
	ahead             = 150_000 // how far publishing stays ahead of the replicas after that
	burst             = 10_000  // records between two checks of the ledger
)

// feed generates the events of the million: most for one or two boards, some for up to eight. Their times spread
// over more than the past year, across the bounds of weeks, months and years, and are not in order.
type feed struct {
	t      *testing.T
	place  *harness.Place
	narrow *sample.Generator
	broad  *sample.Generator
	count  int
}

func newFeed(t *testing.T, place *harness.Place) *feed {
	t.Helper()
	o := sample.Options{
		Seed: 1, Members: 6000, Skew: 1.1, Boards: []string{"global", "eu", "us", "asia", "duel", "team", "solo", "clan"},
		BoardsPerEvent: 2, Spread: 400 * 24 * time.Hour, Bad: 0.02, Corrections: 0.05,
	}
	narrow := generator(t, o)
	o.Seed, o.BoardsPerEvent, o.Spread = 2, 8, 20*24*time.Hour
	return &feed{t: t, place: place, narrow: narrow, broad: generator(t, o)}
}

// publish streams n records.
func (f *feed) publish(ctx context.Context, n int) {
	for range n {
		g := f.narrow
		if f.count%8 == 0 {
			g = f.broad
		}
		e, _ := g.Next(nil)
		r := &kgo.Record{
			// Not by key: the events of a member are in several partitions, in no order.
			Partition: int32(f.count * 7 / 5 % millionPartitions), Key: e.Key, Value: e.Value,
			Timestamp: time.UnixMilli(time.Now().UnixMilli()),
		}
		switch f.count % 50_000 {
		case 49_999:
			r.Value = nil // a tombstone
		case 49_998:
			r.Value = []byte(`{"user_id":"late","points":5,"occurred_at":"2001-09-09T01:46:40Z"}`)
		}
		f.count++
		f.place.Stream(ctx, f.t, r)
	}
}

// Promises 1, 2, 3 and 5 on real servers: of three replicas some shut down, some are killed, one is paused
// past its session, and new ones join, while events arrive.
func TestAMillionEventsCountExactlyOnceWhileReplicasComeAndGo(t *testing.T) {
	testenv.Slow(t)
	testenv.RealKafka(t, "a million events, and replicas that are killed")
	testenv.RealRedis(t, "a million events")
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: millionPartitions, Forgetful: true, Settings: map[string]string{
		"lateness": "400d", "periods.weekly.retention": "1000d", "periods.monthly.retention": "1000d",
		"fold_memory": "64MiB", "kafka.session_timeout": "6s", "redis.timeout": "20s", "redis.shards": harness.ShardsByTurns(t),
	}})
	f := newFeed(t, place)
	ctx := t.Context()
	f.publish(ctx, backlog)
	place.Await()
	t.Logf("%d records are in the log before anyone reads", backlog)

	// The steps, each with the number of counted records at which it happens.
	var a, b, c, d *harness.Consumer
	running := func(of *harness.Consumer) { of.Log.Await(t, within, "partition running") }
	steps := []struct {
		at   int64
		what string
		do   func()
	}{
		{0, "the first starts", func() { a = place.Start(t); running(a) }},
		{20_000, "two more join", func() { b, c = place.Start(t), place.Start(t) }},
		{100_000, "the first leaves in order", func() { running(b); a.Terminate(t) }},
		{200_000, "one is killed", func() { running(c); b.Kill() }},
		{350_000, "two start", func() { a, b = place.Start(t), place.Start(t) }},
		{450_000, "one of them leaves, another joins", func() { running(a); d = place.Start(t); a.Terminate(t) }},
		{550_000, "one is killed, another starts at once", func() { running(d); c.Kill(); c = place.Start(t) }},
		{650_000, "one is paused for longer than its session, and wakes", func() {
			running(c)
			generations := c.Log.Count("generation began")
			b.Signal(t, syscall.SIGSTOP)
			harness.Eventually(t, within, func() string {
				if c.Log.Count("generation began") == generations {
					return "nobody has taken over from the one that is paused"
				}
				return ""
			})
			b.Signal(t, syscall.SIGCONT)
		}},
		{750_000, "one leaves", func() { running(c); d.Terminate(t) }},
		{900_000, "one is killed, and one is left", func() { b.Kill() }},
	}
	began := time.Now()
	for _, step := range steps {
		place.Eventually(t, within, func() string {
			counted := place.Counting(t)
			if f.count < million && int64(f.count) < counted+ahead {
				f.publish(ctx, burst)
			}
			if counted < step.at {
				return fmt.Sprintf("%d of %d published records are counted", counted, f.count)
			}
			return ""
		})
		t.Logf("%5.1f s, %d published, %d counted: %s", time.Since(began).Seconds(), f.count, place.Counting(t), step.what)
		step.do()
	}
	f.publish(ctx, million-f.count)
	place.Await()
	place.AwaitCaughtUp(t, within)
	t.Logf("%6.1f s, all is read", time.Since(began).Seconds())
	place.TerminateAll(t)
	place.Check(t)
	t.Logf("%6.1f s, all is compared: %+v; the consumers that ended in order counted %+v",
		time.Since(began).Seconds(), place.Oracle(t).Counts(), place.Counted())

	// Killed consumers cannot report their counts, and their work is not counted twice, so the others
	// report at most the number of records.
	for _, consumer := range place.Consumers() {
		n, ok := consumer.Log.Counts()
		if sum := n.Sum(); ok && n.Consumed != sum {
			t.Errorf("consumer %d: consumed %d isn't the sum of what became of them, %d: %+v", consumer.Number, n.Consumed, sum, n)
		}
	}
	got, want := place.Counted(), place.Oracle(t).Counts()
	if got.Applied > want.Applied || got.DeadLettered > want.DeadLettered() || got.Late > want.Late || got.Skipped > want.Skipped {
		t.Errorf("the consumers counted %+v, which is more than %+v", got, want)
	}
}
