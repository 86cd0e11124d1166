package run

// What is looked at from time to time, as metrics.

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// reported is what was seen last; nothing where nothing is known, or another replica
// reports it.
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

// Describe names what is reported.
func (r *reported) Describe(to chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		to <- d
	}
}

// Collect reports what was seen last.
func (r *reported) Collect(to chan<- prometheus.Metric) {
	for _, m := range *r.last.Load() {
		to <- m
	}
}
