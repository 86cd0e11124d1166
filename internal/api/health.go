package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Reason states why a process is not ready or not healthy, or what it warns about.
type Reason struct {
	Reason    string `json:"reason"`              // a stable word, for programs
	Cause     string `json:"cause,omitempty"`     // a stable word for the cause, if the process is waiting
	Partition string `json:"partition,omitempty"` // <topic>/<number>, if the reason concerns one partition
	What      string `json:"what,omitempty"`      // a description for people
	Remedy    string `json:"remedy,omitempty"`
}

// health is the body of /healthz and /readyz: the result and its reasons.
type health struct {
	Healthy *bool    `json:"healthy,omitempty"`
	Ready   *bool    `json:"ready,omitempty"`
	Reasons []Reason `json:"reasons"`
	// Warnings are problems that should be fixed but do not stop any of the process's work.
	Warnings []Reason `json:"warnings,omitempty"`
	// Details names the command that shows what and remedy, if this answer omits them.
	Details string `json:"details,omitempty"`
}

// elsewhere is the text of details in an answer to another machine, which must not see the addresses and
// paths in what and remedy.
const elsewhere = "what and remedy are shown to requests of the same machine: consumer healthcheck --ready"

// withoutDetails omits what and remedy.
func (h *health) withoutDetails() {
	if len(h.Reasons)+len(h.Warnings) == 0 {
		return
	}
	h.Details = elsewhere
	for _, all := range []*[]Reason{&h.Reasons, &h.Warnings} {
		*all = slices.Clone(*all) // other requests share the reasons
		for i := range *all {
			(*all)[i].What, (*all)[i].Remedy = "", ""
		}
	}
}

// ReadyGauge returns the metric standings_ready.
func ReadyGauge(notReady func() []Reason) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "standings_ready", Help: "1 while /readyz reports ready, else 0."}, func() float64 {
		if len(notReady()) > 0 {
			return 0
		}
		return 1
	})
}

// scrapes is the maximum number of concurrent scrapes, so that a scraper's retries do not take the CPU from the
// consumer.
const scrapes = 4

func handler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		reasons := c.Broken()
		yes := len(reasons) == 0
		answer(w, r, yes, health{Healthy: &yes, Reasons: reasons})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		reasons := c.NotReady()
		yes := len(reasons) == 0
		answer(w, r, yes, health{Ready: &yes, Reasons: reasons, Warnings: c.Warnings()})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.Metrics, promhttp.HandlerOpts{
		// If one metric fails, the others are still reported.
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: zap.NewStdLog(c.Log),
		MaxRequestsInFlight: scrapes, Timeout: readWithin,
	}))
	return mux
}

func answer(w http.ResponseWriter, r *http.Request, yes bool, body health) {
	if !isLocal(r) {
		body.withoutDetails()
	}
	if body.Reasons == nil {
		body.Reasons = []Reason{} // an empty list instead of null
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	text := json.NewEncoder(w)
	text.SetIndent("", "  ") // makes the response readable for people
	text.SetEscapeHTML(false)
	_ = text.Encode(body) // the client may have disconnected
}
