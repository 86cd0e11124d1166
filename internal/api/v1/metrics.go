package v1

// Metrics of the API: requests by operation and status, and requests refused because of a limit. For streams they
// report the number open, the events sent, and the reads of Redis. A request that opens a stream is counted when
// the stream ends, and its duration is not observed.

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/internal/reading"
)

// Metrics are the API's metrics, for Prometheus.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	shed       *prometheus.CounterVec
	unreadable *prometheus.GaugeVec

	streams     prometheus.Gauge
	streamsMax  prometheus.Gauge
	events      *prometheus.CounterVec
	streamReads prometheus.Counter

	archive *prometheus.HistogramVec
}

// NewMetrics returns the metrics, all at zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "standings_api_requests_total", Help: "API requests, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "standings_api_request_seconds", Help: "Duration of API requests, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"operation"}),
		shed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "standings_api_shed_total", Help: "API requests refused at a limit: requests, waits (for an event), exports, bans, bodies (in bytes), streams or shown (different boards and members of streams); of all clients (status 503) or of one client (429).",
		}, []string{"of", "limit"}),
		unreadable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "standings_api_tokens_unreadable", Help: "1 if a token file is missing, empty or invalid, by its setting. Clients are refused if it is missing or empty; if it is invalid, the previous tokens stay valid.",
		}, []string{"file"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "standings_api_streams", Help: "Open API streams.",
		}),
		streamsMax: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "standings_api_streams_max", Help: "The setting api.streams.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "standings_api_stream_events_total", Help: "Events sent to streams: snapshot, change or problem.",
		}, []string{"event"}),
		streamReads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "standings_api_stream_reads_total", Help: "Reads of a board for all streams that show the same.",
		}),
		archive: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "standings_api_archive_read_seconds", Help: "Duration of the API's reads of the archive, including waits, by result: found, not_found, failed (archive unavailable), slow (over api.timeout), refused (too many reads) or abandoned (client disconnected).",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"result"}),
	}
	for _, o := range operations { // create all series at zero, so that Prometheus sees the first request as an increase
		m.requests.WithLabelValues(o.id, strconv.Itoa(http.StatusOK))
		if !o.lasts {
			m.seconds.WithLabelValues(o.id)
		}
	}
	limited := []string{ofShown}
	all := newLimits(0, 0)
	for _, l := range all.all() {
		limited = append(limited, l.of)
	}
	for _, of := range limited {
		for _, limit := range []string{limitAll, limitClient} {
			m.shed.WithLabelValues(of, limit)
		}
	}
	for _, file := range []string{"api.tokens_file", "api.bans_tokens_file"} {
		m.unreadable.WithLabelValues(file)
	}
	for _, result := range reading.ReadResults() {
		m.archive.WithLabelValues(result)
	}
	for _, event := range live.Events {
		m.events.WithLabelValues(event)
	}
	return m
}

func (m *Metrics) answered(o *operation, status int, took time.Duration) {
	m.requests.WithLabelValues(o.id, strconv.Itoa(status)).Inc()
	if !o.lasts {
		m.seconds.WithLabelValues(o.id).Observe(took.Seconds())
	}
}

// Label values of refused requests: a resource that is not in limit.go, and whether the total or the client's
// limit was reached.
const (
	ofShown     = "shown"
	limitAll    = "all"
	limitClient = "client"
)

// refused counts a request that a limit refuses, and returns its problem.
func (m *Metrics) refused(of string, p *problem) *problem {
	limit := limitAll
	if p.word == tooMany {
		limit = limitClient
	}
	m.shed.WithLabelValues(of, limit).Inc()
	return p
}

// TokensRead records whether a token file, named by its setting, could be read.
func (m *Metrics) TokensRead(setting string, ok bool) {
	value := 1.0
	if ok {
		value = 0
	}
	m.unreadable.WithLabelValues(setting).Set(value)
}

// ArchiveRead records a read of the archive, by its result.
func (m *Metrics) ArchiveRead(result string, took time.Duration) {
	m.archive.WithLabelValues(result).Observe(took.Seconds())
}

// streamOpened counts a stream as open until closed is called.
func (m *Metrics) streamOpened() (closed func()) {
	m.streams.Inc()
	return m.streams.Dec
}

func (m *Metrics) streamEvent(name string) { m.events.WithLabelValues(name).Inc() }

func (m *Metrics) streamRead() { m.streamReads.Inc() }

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.shed, m.unreadable, m.streams, m.streamsMax, m.events, m.streamReads, m.archive}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}
