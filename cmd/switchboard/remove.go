package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/verbs"
)

// removeVerb is the verb that takes a machine out of the configuration file, if it has an entry there, and has the
// service forget it.
func removeVerb(c *console) *cli.Verb {
	var name string
	var to verbs.Reach
	return &cli.Verb{
		Name: "remove", Group: verbs.Group, Uses: verbs.Uses(), Flags: to.Flags(),
		Help: "Take a machine out of switchboard.yaml, or forget one that joined.",
		Args: []cli.Arg{{Name: "machine", Into: &name,
			Help: "The machine. Its agents go on there, and it does not come back."}},
		Examples: []string{"switchboard remove mini"},
		Run: func(ctx context.Context) error {
			wasThere, running, err := false, true, error(nil)
			if to.URL == "" {
				wasThere, running, err = c.removeEntry(ctx, name)
			}
			if err != nil || !running {
				return err
			}
			t, err := c.dial(to)
			if err != nil {
				return err
			}
			err = t.Remove(ctx, name)
			if fault, ok := errors.AsType[*verbs.Fault](err); ok && wasThere && fault.Status == http.StatusNotFound {
				return nil // no machine has joined under the entry's name, too
			}
			return err
		},
	}
}

// removeEntry removes the entry of a machine from the configuration file, and reports whether there was one. running is
// false if there was and no service runs, which would have to forget the machine.
func (c *console) removeEntry(ctx context.Context, name string) (wasThere, running bool, err error) {
	file, _ := c.configFile()
	if file == "" {
		return false, true, nil
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return false, false, err
	}
	if list, err := serversIn(before); err == nil && list.index(name) < 0 {
		return false, true, nil
	}
	after, err := dropServer(file, before, name)
	if err != nil {
		return true, false, err
	}
	if _, err := settingsOf(&c.options, c.env, file, after, kinds(nil, nil)); err != nil {
		return true, false, errors.Join(fmt.Errorf("%s was left as it is, because without %s it would be wrong", file, name), err)
	}
	outcome, err := rewrite(ctx, c.env, file, before, after)
	if err != nil {
		return true, false, err
	}
	return true, outcome.running, c.say("removed %s from %s%s", name, file, outcome.orNext("the next start is without it"))
}
