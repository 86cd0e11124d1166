package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Reason is why a process isn't ready, or is broken, or what it warns of.
type Reason struct {
	Reason    string `json:"reason"`              // a word that doesn't change, for programs
	Cause     string `json:"cause,omitempty"`     // of waiting, another such word
	Partition string `json:"partition,omitempty"` // <topic>/<number>, where it is about one
	What      string `json:"what,omitempty"`      // for people
	Remedy    string `json:"remedy,omitempty"`
}

// health is the body of /healthz and /readyz: the answer, and why it is no.
type health struct {
	Healthy *bool    `json:"healthy,omitempty"`
	Ready   *bool    `json:"ready,omitempty"`
	Reasons []Reason `json:"reasons"`
	// Warnings are what should be put right, and keeps the process from none of its work.
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

// ReadyGauge is standings_ready.
func ReadyGauge(notReady func() []Reason) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "standings_ready", Help: "1 while /readyz reports ready, else 0."}, func() float64 {
		if len(notReady()) > 0 {
			return 0
		}
		return 1
	})
}

// scrapes is how many are answered at a time: a scraper that is retried mustn't take
// the processor from the work.
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
		// What is known is reported: one metric that fails isn't a reason to know nothing.
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
		body.Reasons = []Reason{} // a list, also where it is empty
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	text := json.NewEncoder(w)
	text.SetIndent("", "  ") // for people
	text.SetEscapeHTML(false)
	_ = text.Encode(body) // whoever asked may be gone
}
