package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"switchboard/cmd/switchboard/cli"
)

// keyVerb is the verb that makes a key and prints it, or revokes the made keys of a principal.
func keyVerb(c *console) *cli.Verb {
	var name string
	var revoke bool
	return &cli.Verb{
		Name: "key", Help: "Make a key for programs and print it; only its SHA-256 is kept.", Uses: onlyConfig,
		Args: []cli.Arg{{Name: "name", Into: &name, Help: "Who the holder is."}},
		Flags: []cli.Flag{{Name: "revoke", Into: &revoke,
			Help: "Revoke the keys that were made for this name instead."}},
		Run: func(ctx context.Context) error {
			s, state, err := c.here()
			if err != nil {
				return err
			}
			return changeKeys(ctx, s, state, name, revoke, c.stdout)
		},
	}
}

// changeKeys makes a key and prints it, or revokes the made keys of a principal. A service that runs here learns it at
// once, other instances within seconds. One that began before `peers` was set learns of a new key when it starts again.
func changeKeys(
	ctx context.Context, s *settings, state, principal string, revoke bool, stdout io.Writer,
) error {
	keys, done, err := openMadeKeys(ctx, s, state)
	if err != nil {
		return err
	}
	defer done()
	change := makeKey
	if revoke {
		change = revokeKeys
	}
	line, err := change(ctx, keys, principal)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlWithin)
	defer cancel()
	alone, err := hereClient(state, "").ReadKeys(ctx)
	switch {
	case err == nil && alone && s.Peers.set() && !revoke:
		return errors.New("the key is stored, and counts from the next start: the Switchboard that runs began before " +
			"`peers` was set")
	case err == nil || errors.Is(asNotRunning(err), errNotRunning):
		return nil
	}
	return fmt.Errorf("the change is stored, but the Switchboard that runs may not have read it (%w): run `switchboard "+
		"reload`", err)
}
