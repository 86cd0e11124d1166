package run

// Metrics that are measured from time to time.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking"
)

// notBegunEvery is how often a job runs before anything was written to Redis.
const notBegunEvery = time.Second

// look returns a job that reports what it measures. If a run fails, the job calls none, so that no old value is
// reported. Before anything was written to Redis there is nothing to measure, which is not a failure.
func look(name string, every time.Duration, none func(), run func(context.Context) (next time.Duration, err error)) jobs.Job {
	return jobs.Job{Name: name, Every: every, Run: func(ctx context.Context) (time.Duration, error) {
		next, err := run(ctx)
		if err == nil {
			return next, nil
		}
		none()
		if schema, ok := errors.AsType[*ranking.SchemaError](err); ok && schema.Found == "" {
			return notBegunEvery, nil
		}
		return 0, err
	}}
}

// reported has the last measurements. It is empty if nothing is known, or another replica reports them.
type reported struct {
	descs []*prometheus.Desc
	last  atomic.Pointer[[]prometheus.Metric]
}

func newReported(descs ...*prometheus.Desc) *reported {
	r := &reported{descs: descs}
	r.set()
	return r
}

func (r *reported) set(all ...prometheus.Metric) { r.last.Store(&all) }
func (r *reported) none()                        { r.set() }

func gauge(d *prometheus.Desc, n float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
}

// Describe sends the descriptions.
func (r *reported) Describe(to chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		to <- d
	}
}

// Collect sends the last measurements.
func (r *reported) Collect(to chan<- prometheus.Metric) {
	for _, m := range *r.last.Load() {
		to <- m
	}
}
