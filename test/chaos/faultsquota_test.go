package chaos

// This file sets Kafka quotas on the consumers' client id, which producers and the test do not use. The
// consumers recover once the quota is lifted and the broker's last throttle time is over.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/test/harness"
)

var quotaFaults = []fault{
	{kind: "Kafka: a quota on fetches", group: ofKafka, do: fetchQuota},
	{kind: "Kafka: a quota on dead letters", group: ofKafka, do: deadLetterQuota},
}

// fetchQuota limits fetches to about a tenth of a burst per second. A record batch larger than ten seconds'
// worth arrives only after the quota is lifted, which happens.
func fetchQuota(w *world, r *rand.Rand) (func() string, error) {
	rate := 16<<10 + r.Int64N(48<<10)
	waited, err := w.under("consumer_byte_rate", rate, between(r, 4*time.Second, 12*time.Second), func(m harness.Metrics) float64 {
		return m["standings_kafka_throttle_seconds_total"]
	})
	if err != nil || waited == 0 {
		return nothing, err
	}
	return saw("%d bytes a second, and a consumer was asked to wait for %.0f s", rate, waited), nil
}

// deadLetterQuota throttles dead letters, the only records that consumers produce.
func deadLetterQuota(w *world, r *rand.Rand) (func() string, error) {
	rate := 300 + r.Int64N(500)
	before := w.heldBack()
	_, err := w.under("producer_byte_rate", rate, between(r, 4*time.Second, 10*time.Second), func(harness.Metrics) float64 { return 0 })
	return func() string {
		if n := w.heldBack() - before; n > 0 {
			return fmt.Sprintf("%d bytes a second, and consumers said %d times that their dead letters waited for it", rate, n)
		}
		return ""
	}, err
}

// heldBack returns how often consumers have reported that a quota throttles, or throttled, dead letters.
func (w *world) heldBack() (n int) {
	for _, c := range w.place.Consumers() {
		for _, line := range c.Log.Lines() {
			for _, field := range []string{"error", "after"} {
				if why, _ := line.Fields[field].(string); strings.HasPrefix(why, "a quota of Kafka's holds back the dead letters") {
					n++
				}
			}
		}
	}
	return n
}

// under publishes bursts under a quota, and then lifts it. It returns the largest increase of a figure in a
// consumer's metrics.
func (w *world) under(key string, rate int64, lasts time.Duration, figure func(harness.Metrics) float64) (rose float64, err error) {
	ctx := w.t.Context()
	before := w.figures(ctx, figure)
	if err := w.alterQuota(ctx, kadm.AlterClientQuotaOp{Key: key, Value: float64(rate)}); err != nil {
		return 0, err
	}
	var burst time.Time
	for lifted := time.Now().Add(lasts); time.Now().Before(lifted); time.Sleep(200 * time.Millisecond) {
		if rose == 0 && time.Since(burst) > 3*time.Second {
			burst = time.Now()
			w.producers.burst()
		}
		for number, now := range w.figures(ctx, figure) {
			rose = max(rose, now-before[number])
		}
	}
	return rose, w.alterQuota(ctx, kadm.AlterClientQuotaOp{Key: key, Remove: true})
}

// alterQuota changes a quota of the consumers' client id.
func (w *world) alterQuota(ctx context.Context, op kadm.AlterClientQuotaOp) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	id := kafkaconn.ClientID
	altered, err := w.place.Admin().AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}}, Ops: []kadm.AlterClientQuotaOp{op},
	}})
	for _, a := range altered {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		return fmt.Errorf("set the quota %s: %w", op.Key, err)
	}
	return nil
}

// figures returns a figure from the metrics of every consumer that serves them, by the consumer's number.
func (w *world) figures(ctx context.Context, figure func(harness.Metrics) float64) map[int]float64 {
	all := map[int]float64{}
	for _, c := range w.running() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		if m, err := c.Scrape(ctx); err == nil {
			all[c.Number] = figure(m)
		}
		cancel()
	}
	return all
}
