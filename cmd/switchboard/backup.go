package main

import (
	"context"
	"errors"
	"path/filepath"

	"switchboard/cmd/switchboard/cli"
	"switchboard/sessions/sqlite"
)

// backupVerb is the verb that copies the file of the state directory, also while a Switchboard runs.
func backupVerb(c *console) *cli.Verb {
	var to string
	return &cli.Verb{
		Name: "backup", Help: "Copy what Switchboard remembers to a file, also while it runs.",
		Args: []cli.Arg{{Name: "file", Into: &to, Help: "Where the copy goes; nothing may be there yet."}},
		Run: func(ctx context.Context) error {
			s, state, err := c.here()
			if err != nil {
				return err
			}
			if s.Redis.Reveal() != "" {
				return errors.New("what Switchboard remembers is in its Redis: back that up, as with redis-cli --rdb FILE")
			}
			if to, err = filepath.Abs(to); err != nil {
				return err
			}
			if err := sqlite.Backup(ctx, state, to); err != nil {
				return err
			}
			return c.say("%s is a whole copy of what was written until now; keys, machines.pem and audit.jsonl in %s are files "+
				"of their own", to, state)
		},
	}
}
