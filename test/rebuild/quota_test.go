package rebuild

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// quota limits the rate at which the consumer's client id may read, in bytes per second.
func quota(t *testing.T, place *harness.Place, rate int64) {
	t.Helper()
	id := "standings"
	altered, err := place.Admin().AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: float64(rate)}},
	}})
	harness.Must(t, err)
	for _, a := range altered {
		harness.Must(t, a.Err)
	}
}

// A broker answers a fetch that exceeds a quota with no topics and a time to wait, and reads nothing from
// that connection meanwhile.
func TestUnderAQuotaASweepIsTakenOverRebuiltAndItsDeadLettersAreRead(t *testing.T) {
	t.Parallel()
	testenv.RealKafka(t, "quotas")
	// Brokers measure rates over ten seconds by default, and here over three.
	kafka := testenv.PrivateKafka(t, map[string]string{"quota.window.num": "4"})
	place := newPlace(t, harness.Options{Kafka: kafka, Partitions: 2})
	place.Publish(t, harness.Earned(90, 80_000, 40_000, 2)...)
	place.KillInSweep(t, harness.Within, harness.Sweep{
		Start: func() *harness.Consumer { return place.Start(t) },
		More:  func() []*kgo.Record { return harness.Earned(91, 80_000, 40_000, 2) },
	})
	log := 2 * place.LogBytes(t) // LogBytes is for one partition
	quota(t, place, log/12)

	second := place.Start(t)
	place.AwaitCaughtUp(t, harness.Within)
	metrics, err := second.Scrape(t.Context())
	harness.Must(t, err)
	if waited := metrics["standings_kafka_throttle_seconds_total"]; waited < 1 {
		t.Errorf("brokers asked to wait for %v s: the quota was to be too small", waited)
	}
	if retried := metrics[`standings_retries_total{target="kafka"}`]; retried > 0 {
		t.Errorf("%v calls to Kafka were tried again: a throttle is no error", retried)
	}
	if n := second.Log.Count("partition halted"); n > 0 {
		t.Errorf("%d halts:\n%s", n, second.Log.Tail(20))
	}
	if fetched := int64(metrics["standings_fetched_bytes_total"]); fetched > log*3/2 {
		t.Errorf("it fetched %d bytes of a log of %d: a reading started over", fetched, log)
	}

	began := time.Now()
	if said := startRebuild(t, place, "--diff").swapped(); !said.Swapped || said.differ() != 0 {
		t.Errorf("the rebuild says %+v", said)
	}
	t.Logf("a log of %d bytes: rebuilt in %v", log, time.Since(began))

	var listed struct{ Letters []json.RawMessage }
	harness.Must(t, json.Unmarshal(place.Command(t, "dead-letters", "list", "--json", "--limit", "10000"), &listed))
	if letters := len(place.DeadLetters(t)); len(listed.Letters) == 0 || len(listed.Letters) > letters {
		t.Errorf("%d dead letters are listed, and %d written", len(listed.Letters), letters)
	}
	place.Finish(t)
}
