package e2e

// Where a first start begins, and the origin that it records.

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

const maxFuture = 5 * 60 * 1000 // ms, the default

// at returns events with a given record time.
func at(user string, when time.Time, n int) []*kgo.Record {
	all := some(user, 0, n-1)
	for _, r := range all {
		r.Timestamp = time.UnixMilli(when.UnixMilli())
	}
	return all
}

// origin returns the offset and the time from which the standings contain all events.
func origin(t *testing.T, place *harness.Place) (offset, since int64) {
	t.Helper()
	text := place.Hash(t, "origin")[place.Topic+"/0"]
	if _, err := fmt.Sscanf(text, "%d %d ", &offset, &since); err != nil {
		t.Fatalf("the origin is %q", text)
	}
	return offset, since
}

// begin starts a consumer on some records before its start offset and some from there on.
func begin(t *testing.T, place *harness.Place, start string, before, after []*kgo.Record) {
	t.Helper()
	place.Produce(t, before...)
	place.Publish(t, after...)
	place.Settings["start"] = start
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}

// cut deletes a partition's first records.
func cut(t *testing.T, place *harness.Place, before int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(place.Topic, 0, before, -1)
	if r, err := place.Admin().DeleteRecords(t.Context(), offsets); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
}

// If brokers set the times, the first remaining record bounds the times of the deleted ones.
func TestWhereBrokersSetTheTimesTheFirstRecordBoundsWhatIsGone(t *testing.T) {
	t.Parallel()
	kafka := testenv.RealKafka(t, "LogAppendTime set on a topic")
	place := harness.New(t, harness.Options{Kafka: kafka, TopicConfig: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	place.Produce(t, some("gone", 0, 9)...)
	place.Produce(t, some("kept", 0, 4)...)
	cut(t, place, 10)
	place.Settings["start"] = "earliest"
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	want := place.ReadAll(t, place.Topic)[0].Timestamp.UnixMilli() + maxFuture + 1
	if offset, since := origin(t, place); offset != 10 || since != want {
		t.Errorf("the origin is %d, %d; want 10, %d", offset, since, want)
	}
}

func TestStartLatestReadsWhatComesAfter(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Settings: map[string]string{"start": "latest"}})
	place.Produce(t, some("before", 0, 9)...)
	began := place.RedisTime(t)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.CheckBoards(t) // none exist
	place.Publish(t, some("after", 0, 9)...)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	offset, since := origin(t, place)
	if offset != 10 || since < began.UnixMilli()+maxFuture || since > place.RedisTime(t).UnixMilli()+maxFuture {
		t.Errorf("the origin is %d, %v; it began at %v", offset, time.UnixMilli(since), began)
	}
	if committed := place.Committed(t); committed[0] != 20 {
		t.Errorf("committed: %v", committed)
	}
}

func TestStartAtATimeReadsFromTheFirstRecordOfThatTime(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{})
	now := time.Now()
	asked := now.Add(-90 * time.Minute).UTC().Truncate(time.Second)
	begin(t, place, asked.Format(time.RFC3339),
		at("before", now.Add(-2*time.Hour), 10), append(at("after", now.Add(-time.Hour), 10), some("now", 0, 5)...))
	if offset, since := origin(t, place); offset != 10 || since != asked.UnixMilli()+maxFuture {
		t.Errorf("the origin is %d, %d; want 10, %d", offset, since, asked.UnixMilli()+maxFuture)
	}
}

// The earliest window that lives by default is the earliest year that ended at most 800 days ago.
func TestStartWindowReadsWhatCanHoldEventsOfWindowsThatLive(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{})
	now := time.Now().UTC()
	year := time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	for year.Add(800 * 24 * time.Hour).After(now) {
		year = year.AddDate(-1, 0, 0)
	}
	// The year before this one ended too long ago: this is the first one that lives.
	first := year
	begin(t, place, "window",
		at("before", first.Add(-6*time.Minute), 10),
		append(at("within max_future of it", first.Add(-4*time.Minute), 5), some("now", 0, 5)...))
	if offset, since := origin(t, place); offset != 10 || since != first.UnixMilli() {
		t.Errorf("the origin is %d, %v; want 10, %v", offset, time.UnixMilli(since).UTC(), first)
	}
}
