package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
)

// codex prints where a Codex on this machine is, or that none is needed.
func (d *doctor) codex() {
	at, err := d.look(codex.Program)
	switch {
	case err == nil && len(d.s.Servers) == 0:
		d.ok("codex", "%s is there; `switchboard --codex` uses it", at)
	case err == nil:
		d.ok("codex", "%s", at)
	case errors.Is(err, exec.ErrNotFound) && len(d.s.Servers) == 0:
		d.ok("codex", "none on PATH, and none is needed for simulated machines")
	}
}

// machines checks each machine: whether it is reached, lets us in, is new enough, and can work. Those that are in no
// settings joined, or are of the flags that the service was started with: only a running service knows them.
func (d *doctor) machines(ctx context.Context) {
	var others map[string]bool // whether it joined
	if d.here != nil {
		var err error
		if others, err = d.here.Machines(ctx); err != nil {
			d.mendError("machines", err, "")
			if len(d.s.Servers) == 0 {
				return
			}
		}
	}
	for _, s := range d.s.Servers {
		delete(others, s.Name)
	}
	if len(d.s.Servers) == 0 && len(others) == 0 {
		about := "simulated; name yours in " + defaultFile
		if _, err := os.Stat(filepath.Join(d.state, machinesKey)); err == nil && d.here == nil {
			about = "none in the settings; those that joined are looked at while Switchboard runs"
		}
		d.ok("machines", "%s", about)
		return
	}
	d.configured(ctx)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		from := "not in these settings"
		if others[name] {
			from = "joined"
		}
		if took, _, err := d.here.Test(ctx, name); err != nil {
			d.mendError(name, err, "")
		} else {
			d.ok(name, "%s; answers the Switchboard that runs, in %s", from, took)
		}
	}
}

// configured checks each server of the settings.
func (d *doctor) configured(ctx context.Context) {
	if len(d.s.Servers) == 0 {
		return
	}
	test := d.testByService
	if d.here == nil {
		testHere, disconnect, err := dialAll(ctx, d.s.Servers)
		if err != nil {
			d.mend("machines", err.Error(), "")
			return
		}
		defer disconnect()
		test = testHere
	}
	for _, s := range d.s.Servers {
		if s.Joined && d.here == nil {
			d.ok(s.Name, "joins, and is looked at while Switchboard runs")
			continue
		}
		about, err := test(ctx, s)
		if err != nil {
			d.mendError(s.Name, err, remedy(err))
			continue
		}
		d.ok(s.Name, "%s", about)
		d.directories(s)
	}
}

// errOtherMachine says that the service knows a different machine by this name.
var errOtherMachine = errors.New("the Switchboard that runs has another machine of this name")

// remedy returns what to do about an error of a server if the error's own next step does not say it, or "".
func remedy(err error) string {
	code := handoff.AsError(err).Code
	if fault, ok := errors.AsType[*verbs.Fault](err); ok {
		code = fault.Code
	}
	if code == handoff.CodeUnknownServer || errors.Is(err, errOtherMachine) {
		return "the Switchboard that runs read its settings when it started: start it again"
	}
	return ""
}

// testByService has the running service test a server.
func (d *doctor) testByService(ctx context.Context, s servers.Spec) (string, error) {
	took, address, err := d.here.Test(ctx, s.Name) // also a server that is for another caller
	if err == nil && address != s.About.Address {
		return "", errOtherMachine
	}
	return fmt.Sprintf("answers the Switchboard that runs, in %s", took), err
}

// dialAll connects to servers as a service would, until disconnect is called. test waits for the answer of one of them.
func dialAll(
	ctx context.Context, all []servers.Spec,
) (test func(context.Context, servers.Spec) (string, error), disconnect func(), err error) {
	agents := responses.NewAgents(threads.NewMemory(), nil)
	var specs []servers.Spec
	for _, s := range all {
		if kind, ok := kindNamed(kinds(agents, nil), s.Kind); ok {
			s.Dial, _ = kind.Dial(s, zap.NewNop())
			specs = append(specs, s)
		}
	}
	fleet, err := servers.New(servers.Config{Specs: specs})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { _ = fleet.Run(ctx) })  // never fails
	work.Go(func() { _ = agents.Run(ctx) }) // never fails without a turn
	disconnect = func() {
		cancel()
		work.Wait()
	}
	return func(ctx context.Context, s servers.Spec) (string, error) {
		took, err := fleet.Test(ctx, handoff.Grant{}, s.Name)
		version := ""
		for _, info := range fleet.Servers(ctx, handoff.Grant{}) {
			if info.Name == s.Name {
				version = info.Version
			}
		}
		return fmt.Sprintf("%s answers in %s", strings.TrimSpace(s.Kind+" "+version),
			max(took.Round(time.Millisecond), time.Millisecond)), err
	}, disconnect, nil
}

// directories checks that the directories of a child process exist. Those of other machines are not checked.
func (d *doctor) directories(s servers.Spec) {
	if s.Program == "" {
		return
	}
	for _, dir := range append(slices.Sorted(maps.Values(s.Projects)), s.Dir) {
		if about, err := os.Stat(dir); dir != "" && (err != nil || !about.IsDir()) {
			d.mend(s.Name, dir+" is no directory on this machine", "make it, or correct cwd or projects of "+s.Name)
		}
	}
}
