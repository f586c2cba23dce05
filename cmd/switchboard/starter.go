package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"switchboard/handoff"
)

// starter is the file that `switchboard init` writes. It sets nothing: all its settings are comments.
//
//go:embed starter.yaml
var starter []byte

// initVerb writes the starter file, and fails if the file exists.
func initVerb(o *options, stdout io.Writer) error {
	named, _ := o.configFile()
	file := cmp.Or(named, defaultFile)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and was left as it is", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(starter)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "wrote %s; every line in it is optional\n", file)
	return err
}

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

// about is the beginning of the text of `--help`.
const about = `A realtime voice handoff router: talk to a voice model, and it gives work to the coding agents on your machines.

Examples:
  switchboard                          simulated voice and machines: nothing to set up
  switchboard --codex                  with the Codex of this machine
  switchboard doctor                   tell what is missing, in the order to mend it
  switchboard login                    print a link that logs a browser in
  switchboard handoff bigpc fix it     give work to the Switchboard that runs here, and follow it
  switchboard key assistant            make a key for a program`
