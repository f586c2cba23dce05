package main

import (
	"context"
	"errors"
	"fmt"

	"switchboard/cmd/switchboard/cli"
	"switchboard/servers/joined/host"
)

// leaveVerb is the verb that leaves the Switchboard that this machine joined.
func leaveVerb(c *console) *cli.Verb {
	return &cli.Verb{
		Name: "leave", Help: "Leave the Switchboard that was joined.", Group: otherMachine, Uses: onlyConfig,
		Examples: []string{"switchboard leave"}, Run: c.leave,
	}
}

// leave leaves the Switchboard that this machine joined, and ends its agents and its service.
func (c *console) leave(ctx context.Context) error {
	dir, err := machineDir(c.env)
	if err != nil {
		return err
	}
	at, there, err := host.ReadPlace(dir)
	if err != nil {
		return err
	}
	removed, err := removeUnit(ctx, c.env)
	if err != nil {
		return err
	}
	if !there {
		return errors.New("this machine has joined no Switchboard")
	}
	var ended string
	told := func(line string) { ended = line }
	h, err := host.TakeOver(ctx, host.Config{Dir: dir, Told: told, Log: newLog(c.stderr)})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // the end of the process releases the lock, too
	failed := h.Leave(ctx, at)
	line := fmt.Sprintf("%s has left %s; %s", at.Name, at.URL, ended)
	if err := failed; err != nil {
		line += fmt.Sprintf("; %s was not told (%v): `switchboard remove %s` forgets it there", at.URL, err, at.Name)
	}
	if removed != "" {
		line += "; " + removed + " is gone"
	}
	return c.say("%s", line)
}
