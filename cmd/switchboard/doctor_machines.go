package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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

// programs checks that the programs that the settings run on this machine are installed.
func (d *doctor) programs() {
	missing := false
	for _, s := range d.s.Servers {
		if d.missing(s) {
			missing = true
			d.mend("program", fmt.Sprintf("there is no program %q for %s", s.Program, s.Name),
				"install it (npm install -g @openai/codex), or name its path in servers.command")
		}
	}
	at, err := d.look(codex.Program)
	switch {
	case missing:
	case err == nil && len(d.s.Servers) == 0:
		d.ok("codex", "%s is there; `switchboard --codex` uses it", at)
	case err == nil:
		d.ok("codex", "%s", at)
	case errors.Is(err, exec.ErrNotFound) && len(d.s.Servers) == 0:
		d.ok("codex", "none on PATH, and none is needed for simulated machines")
	}
}

// machines checks each server: whether it is reached, lets us in, and is new enough.
func (d *doctor) machines(ctx context.Context) {
	others, known := d.others(ctx)
	if len(d.s.Servers) == 0 && len(others) == 0 {
		if !known {
			return
		}
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

// others returns the real machines that are not in the settings, and whether each joined; others are of the flags that
// the service was started with. Only a running service knows them. It returns false after an error of that service,
// which it prints.
func (d *doctor) others(ctx context.Context) (joined map[string]bool, known bool) {
	if d.here == nil {
		return nil, true
	}
	joined, err := d.here.Machines(ctx)
	if f, is := errors.AsType[*verbs.Fault](err); is && f.Status == http.StatusNotFound {
		d.mend("machines", "the Switchboard that runs is older than this program, and does not say which joined", "restart it")
		return nil, false
	}
	if err != nil {
		d.mendError("machines", err, "")
		return nil, false
	}
	for _, s := range d.s.Servers {
		delete(joined, s.Name)
	}
	return joined, true
}

// configured checks each server of the settings.
func (d *doctor) configured(ctx context.Context) {
	if len(d.s.Servers) == 0 {
		return
	}
	test := d.testByService
	if d.here == nil {
		testHere, disconnect, err := d.dialAll(ctx)
		if err != nil {
			d.mend("machines", err.Error(), "")
			return
		}
		defer disconnect()
		test = testHere
	}
	for _, s := range d.s.Servers {
		if d.missing(s) {
			continue // the check of the programs reported it
		}
		if s.Credential.Read != nil {
			if _, err := s.Credential.Read(); err != nil {
				d.mend(s.Name, "what lets us in cannot be read: "+err.Error(),
					"make it readable, or correct the settings of "+s.Name)
				continue
			}
		}
		about, err := test(ctx, s)
		if api, ok := s.Own.(reacher); ok && err == nil {
			if err = api.Reach(ctx, s.Name); err != nil {
				err = s.Explain(servers.DialFault(s.Name, err), time.Time{})
			}
		}
		if err != nil {
			d.mendError(s.Name, err, remedy(err))
			continue
		}
		d.ok(s.Name, "%s", about)
		d.directories(s)
		if own, ok := s.Own.(interface{ Lacks() error }); ok { // what the agent cannot do here, such as run commands
			if err := own.Lacks(); err != nil {
				d.mend(s.Name, err.Error(), "")
			}
		}
	}
}

// A reacher is implemented by the settings of a server that depends on an API elsewhere, which can be down while the
// server itself is up.
type reacher interface {
	Reach(ctx context.Context, server string) error
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

// missing reports whether a server is a child process whose program is not installed.
func (d *doctor) missing(s servers.Spec) bool {
	if s.Program == "" {
		return false
	}
	_, err := d.look(s.Program)
	return err != nil
}

// testByService has the running service test a server.
func (d *doctor) testByService(ctx context.Context, s servers.Spec) (string, error) {
	took, address, err := d.here.Test(ctx, s.Name) // also a server that is for another caller
	if err == nil && address != s.About.Address {
		return "", errOtherMachine
	}
	return fmt.Sprintf("answers the Switchboard that runs, in %s", took), err
}

// dialAll connects to all servers as a service would, until disconnect is called. test waits for the answer of one
// server.
func (d *doctor) dialAll(
	ctx context.Context,
) (test func(context.Context, servers.Spec) (string, error), disconnect func(), err error) {
	agents := responses.NewAgents(threads.NewMemory(), nil)
	var specs []servers.Spec
	for _, s := range d.s.Servers {
		if kind, ok := kindNamed(kinds(agents, nil), s.Kind); ok && !d.missing(s) {
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
