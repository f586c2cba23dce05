package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
)

// starter is the file that `switchboard init` writes. As it stands it sets nothing.
//
//go:embed starter.yaml
var starter []byte

// initVerb writes the starter file. One that is there already is left as it is.
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

// version says which Switchboard this is: the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "switchboard, built in a way that does not tell its version"
	}
	var text strings.Builder
	text.WriteString("switchboard " + info.Main.Version)
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text.WriteString(" " + s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			text.WriteString(", changed since")
		}
	}
	return text.String() + ", " + info.GoVersion
}

// about is what `--help` begins with.
const about = `A realtime voice handoff router: talk to a voice model, and it gives work to the coding agents on your machines.

Examples:
  switchboard                          simulated voice and machines: nothing to set up
  switchboard --codex                  with the Codex of this machine
  switchboard doctor                   tell what is missing, in the order to mend it
  switchboard login                    print a link that logs a browser in
  switchboard handoff bigpc fix it     give work to the Switchboard that runs here, and follow it
  switchboard key assistant            make a key for a program`
