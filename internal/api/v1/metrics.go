package v1

// What is asked and how it is answered, by operation and status: both are few.

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the API's, for Prometheus.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// NewMetrics makes them.
func NewMetrics() *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "standings_api_requests_total", Help: "Requests to the API, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "standings_api_request_seconds", Help: "How long requests to the API took, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"operation"}),
	}
	for _, o := range operations { // from the start, so that the first of them is seen as one more
		m.requests.WithLabelValues(o.id, strconv.Itoa(http.StatusOK))
		m.seconds.WithLabelValues(o.id)
	}
	return m
}

func (m *Metrics) answered(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Describe names what is reported.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.requests.Describe(to)
	m.seconds.Describe(to)
}

// Collect reports it.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.requests.Collect(to)
	m.seconds.Collect(to)
}
