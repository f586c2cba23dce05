package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/transport"
)

// Time limits of the checks of a machine that is added.
const (
	lookWithin    = 15 * time.Second
	installWithin = 5 * time.Minute
)

// errNotAdded is the error of add when the machine cannot be used; what is missing was printed before.
var errNotAdded = errors.New("nothing was added: do that, and add it again")

// overSSH returns the ssh transport of a server, and false if the server is reached in another way.
func overSSH(s servers.Spec) (*transport.SSH, bool) {
	switch own := s.Own.(type) {
	case *codex.Config:
		way, ok := own.Way.(*transport.SSH)
		return way, ok
	case *acp.Config:
		if way, ok := own.Way.(*transport.SSHAgent); ok {
			return way.SSH(), true
		}
	}
	return nil, false
}

// checkSSH checks step by step whether a machine can be used by ssh, and prints each step; the first failure ends it.
// With install, it copies this program there first.
func checkSSH(ctx context.Context, s servers.Spec, way *transport.SSH, install bool, stdout io.Writer) error {
	d := &doctor{out: stdout}
	end := servers.End{Server: s.Name, Log: zap.NewNop()}
	fail := func(about string, err error) error {
		d.mendError(about, s.Explain(servers.DialFault(s.Name, err), time.Time{}), "")
		return errNotAdded
	}
	there, err := look(ctx, way, end)
	if err != nil {
		return fail("ssh", err)
	}
	d.ok("ssh", "%s lets us in, and its host key is known; it is %s on %s", way.Destination, there.System, there.Processor)
	if install {
		if err := installThere(ctx, way, end, there); err != nil {
			d.mend("switchboard", verbs.Plain(words(err)), "install it there by hand, or add the machine without --install")
			return errNotAdded
		}
		if there, err = look(ctx, way, end); err != nil {
			return fail("ssh", err)
		}
	}
	missing := func(reason handoff.Reason) error {
		return &handoff.Error{Code: handoff.CodeUnreachable, Detail: "codex", Reason: reason}
	}
	about := "agent"
	switch {
	case s.Kind == acp.Name && there.Switchboard == "":
		return fail("switchboard", missing(handoff.ReasonSwitchboardMissing))
	case s.Kind == codex.Name && there.Codex == "":
		return fail("codex", missing(handoff.ReasonAgentMissing))
	case s.Kind == codex.Name:
		d.ok("codex", "%s", there.Codex)
		about = "app-server"
	}
	if there.Switchboard == "" {
		d.ok("switchboard", "is not there, and need not be; with it (--install), what its owner allows holds")
	} else {
		d.ok("switchboard", "%s", there.Switchboard)
	}
	kind, _ := kindNamed(kinds(nil, nil), s.Kind)
	dial, _ := kind.Dial(s, zap.NewNop())
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	began := time.Now()
	link, err := dial(ctx)
	if err != nil {
		return fail(about, err)
	}
	_, err = link.Catalog.List(ctx, 1)
	if handoff.CodeOf(err) == handoff.CodeUnsupported { // not every agent lists its sessions
		err = nil
	}
	if err = errors.Join(err, link.Conn.Close()); err != nil {
		return fail(about, err)
	}
	d.ok(about, "%s %s answers, in %s", s.Kind, link.Version, time.Since(began).Round(time.Millisecond))
	return nil
}

func look(ctx context.Context, way *transport.SSH, end servers.End) (transport.There, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	return way.Look(ctx, end)
}

// installThere copies this program to a machine of the same system and processor.
func installThere(ctx context.Context, way *transport.SSH, end servers.End, there transport.There) error {
	if is := platform(there.System, there.Processor); is != runtime.GOOS+"/"+runtime.GOARCH {
		return fmt.Errorf("this program is for %s/%s, and the machine is %s", runtime.GOOS, runtime.GOARCH, is)
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(own)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	about, err := f.Stat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	return way.Install(ctx, end, f, about.Size())
}

// platform returns the output of uname -sm as GOOS/GOARCH.
func platform(system, processor string) string {
	processors := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}
	if known, ok := processors[processor]; ok {
		processor = known
	}
	return strings.ToLower(system) + "/" + processor
}
