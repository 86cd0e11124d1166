package e2e

import (
	"strconv"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// kafka-go's lz4 writes blocks of 4 MiB. To read one, the consumer needs more than a sixteenth of a small
// budget.
func TestTheSmallestFoldMemoryReadsWhatOurOwnProducerWrites(t *testing.T) {
	testenv.RealKafka(t, "large batches need a broker that keeps them as they are")
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{"fold_memory": "44MiB", "redis.assume_noeviction": "true"}})
	const events = 60_000
	place.Command(t, "produce", "--count", strconv.Itoa(events), "--members", "2000")
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	if counts := consumer.Terminate(t); counts.Applied != events {
		t.Fatalf("%d events applied, want %d", counts.Applied, events)
	}
}
