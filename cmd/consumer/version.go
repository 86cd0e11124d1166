package main

// Which build this is.

import "runtime/debug"

// stampedVersion is set for a release or an image: -ldflags "-X main.stampedVersion=v1.2.3".
var stampedVersion string

const unknownBuild = "unknown"

// buildVersion is the program's version, else the module's as Go knows it, and the
// commit that it was built from; unknown where nobody said.
func buildVersion() (version, revision string) {
	version, revision = unknownBuild, unknownBuild
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
	if stampedVersion != "" {
		version = stampedVersion
	}
	return version, revision
}
