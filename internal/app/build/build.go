// Package build identifies this build.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// stamped is the version of a release or an image, set by scripts/static.
var stamped string

const unknown = "unknown"

// Version returns the program's version, or else the module's as Go knows it, and the commit from which it was
// built; each is "unknown" if it was not recorded.
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

// Metric returns standings_build_info. Its value is always 1; its labels describe the build.
func Metric() prometheus.Collector {
	version, revision := Version()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "standings_build_info", Help: "1; the labels describe the build.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
