package main

import (
	"context"

	"switchboard/cmd/switchboard/cli"
)

// loginVerb is the verb that prints a link which logs a browser in.
func loginVerb(c *console) *cli.Verb {
	var name string
	return &cli.Verb{
		Name: "login", Help: "Print a link that logs a browser in: once, within ten minutes.", Uses: onlyConfig,
		Args: []cli.Arg{{Name: "name", Into: &name, Optional: true,
			Help: "Whose login it is: a principal of keys. Usually the owner's."}},
		Run: func(ctx context.Context) error {
			_, state, err := c.here()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, controlWithin)
			defer cancel()
			link, err := hereClient(state, "").Login(ctx, name)
			if err != nil {
				return asNotRunning(err)
			}
			return c.say("%s", link)
		},
	}
}
