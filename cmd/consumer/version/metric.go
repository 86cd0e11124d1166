package version

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is standings_build_info. It is always 1; what it says is in its labels.
func Metric() prometheus.Collector {
	build, revision := Build()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "standings_build_info", Help: "1; the labels have the build.",
		ConstLabels: prometheus.Labels{"version": build, "revision": revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
