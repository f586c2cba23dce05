package main

import (
	"cmp"
	"iter"
	"runtime/debug"
	"slices"
	"strings"

	"switchboard/handoff"
)

// The version of a release, and the commit that it was built from. The linker sets both (.ci/release, the Dockerfile);
// they are "" in a program that was built by hand.
var releaseVersion, releaseRevision string

// A build describes this program; unknown fields are "".
type build struct {
	version  string // of the release, or else of the module
	revision string // the commit that it was built from
	changed  bool   // the files were changed since that commit
	compiler string // Go's version
}

func thisBuild() (b build) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version, b.compiler = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.modified":
			b.changed = s.Value == "true"
		}
	}
	b.version, b.revision = cmp.Or(releaseVersion, b.version), cmp.Or(releaseRevision, b.revision)
	return b
}

// String returns what `switchboard --version` prints.
func (b build) String() string {
	if b == (build{}) {
		return "switchboard, built in a way that does not tell its version"
	}
	text := strings.TrimSpace("switchboard " + b.version + " " + b.revision)
	if b.changed {
		text += ", changed since"
	}
	return text + ", " + b.compiler
}

// Metrics implements metrics.Source.
func (b build) Metrics() iter.Seq[handoff.Metric] {
	return slices.Values([]handoff.Metric{handoff.NewMetric(
		"switchboard_build_info", "Which build runs, in its labels.", 1,
		"version", b.version, "revision", b.revision, "goversion", b.compiler)})
}
