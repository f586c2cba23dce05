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
	"switchboard/servers"
	"switchboard/servers/transport"
)

// Time limits of the checks of a machine that is added.
const (
	lookWithin    = 15 * time.Second
	installWithin = 5 * time.Minute
)

// errNotAdded is the error of add when the machine cannot be used; what is missing was printed before.
var errNotAdded = errors.New("nothing was added: do that, and add it again")

// checkSSH checks step by step whether a machine can be used by ssh, and prints each step; the first failure ends it.
// With install, it copies this program there first.
func checkSSH(ctx context.Context, s servers.Spec, remote transport.RemoteWay, install bool, stdout io.Writer) error {
	d, way := &doctor{out: stdout}, remote.SSH()
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
	if program, fault := remote.Lacks(there); fault != nil {
		return fail(program, fault)
	}
	if there.Codex != "" {
		d.ok("codex", "%s", there.Codex)
	}
	if there.Switchboard == "" {
		d.ok("switchboard", "is not there, and need not be; with it (--install), what its owner allows holds")
	} else {
		d.ok("switchboard", "%s", there.Switchboard)
	}
	test, disconnect, err := dialAll(ctx, []servers.Spec{s})
	if err != nil {
		return err
	}
	defer disconnect()
	about, err := test(ctx, s)
	if err != nil {
		d.mendError("agent", err, "")
		return errNotAdded
	}
	d.ok("agent", "%s", about)
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
