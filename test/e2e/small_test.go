package e2e

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/harness"
)

// generator returns a generator of sample events. The oracle does not use the generator's knowledge of
// faults; it finds them itself.
func generator(t *testing.T, o sample.Options) *sample.Generator {
	t.Helper()
	o.Now = time.Now()
	g, err := sample.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// records returns sample events, spread over partitions by member.
func records(g *sample.Generator, n, partitions int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i := range all {
		e, _ := g.Next(nil)
		sum := 0
		for _, b := range e.Key {
			sum += int(b)
		}
		all[i] = &kgo.Record{
			Partition: int32(sum % partitions), Key: e.Key, Value: e.Value,
			Timestamp: time.UnixMilli(time.Now().UnixMilli()),
		}
	}
	return all
}

// Promises 1 to 5 in one small run, on the servers that this machine has; Go alone is enough.
func TestFiveThousandEventsCountExactlyOnceAndAreAccountedFor(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: map[string]string{"lateness": "70d"}})
	g := generator(t, sample.Options{
		Seed: 1, Members: 800, Skew: 1.1, Boards: []string{"global", "eu", "us", "asia"}, BoardsPerEvent: 3,
		Spread: 65 * 24 * time.Hour, Bad: 0.02, Corrections: 0.05,
	})
	place.Publish(t, records(g, 3_000, 3)...)
	consumer := place.Start(t)
	place.Publish(t, records(g, 2_000, 3)...)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}
