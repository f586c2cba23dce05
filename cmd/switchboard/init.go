package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"switchboard/cmd/switchboard/cli"
)

// starter is the file that `switchboard init` writes. It sets nothing: all its settings are comments.
//
//go:embed starter.yaml
var starter []byte

// initVerb is the verb that writes the starter file. It fails if the file exists.
func initVerb(c *console) *cli.Verb {
	return &cli.Verb{
		Name: "init", Help: "Write a commented switchboard.yaml to begin with.", Uses: onlyConfig,
		Run: func(context.Context) error {
			named, _ := c.configFile()
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
			return c.say("wrote %s; every line in it is optional", file)
		},
	}
}

// about is the beginning of the help.
const about = `A realtime voice handoff router: talk to a voice model, and it gives work to the
coding agents on your machines.

Examples:

    switchboard                          simulated voice and machines: nothing to set up
    switchboard --codex                  with the Codex of this machine
    switchboard doctor                   tell what is missing, in the order to mend it
    switchboard login                    print a link that logs a browser in
    switchboard handoff bigpc fix it     give work to the Switchboard that runs here, and follow it
    switchboard key assistant            make a key for a program`
