// Package build says which build this is.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// stamped is set for a release or an image: scripts/static.
var stamped string

const unknown = "unknown"

// Version is the program's version, else the module's as Go knows it, and the
// commit that it was built from; unknown where nobody said.
func Version() (version, revision string) {
	version, revision = unknown, unknown
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if stamped != "" {
		version = stamped
	}
	return version, revision
}

// Metric is standings_build_info. It is always 1; what it says is in its labels.
func Metric() prometheus.Collector {
	version, revision := Version()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "standings_build_info", Help: "1; the labels describe the build.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
