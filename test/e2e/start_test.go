package e2e

// Where a first start begins, and the origin that it records.

import (
	"fmt"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

const maxFuture = 5 * 60 * 1000 // ms, the default

// origin returns the offset and the time from which the standings contain all events.
func origin(t *testing.T, place *harness.Place) (offset, since int64) {
	t.Helper()
	text := place.Hash(t, "origin")[place.Topic+"/0"]
	if _, err := fmt.Sscanf(text, "%d %d ", &offset, &since); err != nil {
		t.Fatalf("the origin is %q", text)
	}
	return offset, since
}

// If brokers set the times, the first remaining record bounds the times of the deleted ones.
func TestWhereBrokersSetTheTimesTheFirstRecordBoundsWhatIsGone(t *testing.T) {
	t.Parallel()
	kafka := testenv.RealKafka(t, "LogAppendTime set on a topic")
	place := harness.New(t, harness.Options{Kafka: kafka, TopicConfig: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	place.Produce(t, some("gone", 0, 9)...)
	place.Produce(t, some("kept", 0, 4)...)
	place.DeleteBefore(t, 0, 10)
	place.Settings["start"] = "earliest"
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	want := place.ReadAll(t, place.Topic)[0].Timestamp.UnixMilli() + maxFuture + 1
	if offset, since := origin(t, place); offset != 10 || since != want {
		t.Errorf("the origin is %d, %d; want 10, %d", offset, since, want)
	}
}
