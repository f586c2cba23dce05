// Command switchboard is a realtime voice handoff router: people talk to a voice model, and what concerns
// code goes to the agents on their machines. This package reads the settings, wires the parts and runs
// them; it is the only place where concrete types meet, and it must not know what they do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/handoff"
	"switchboard/sessions"
)

// Exit codes.
const (
	exitFailed   = 1 // it could not start, or it broke
	exitSettings = 2 // the settings are wrong
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, done, err := parseOptions(args, stdout, stderr)
	if done {
		return 0
	}
	var s *settings
	if err == nil {
		s, err = loadSettings(o, env)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitSettings
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.verb == "health" {
		err = health(ctx, s)
	} else {
		err = serve(ctx, s, env, stdout, stderr)
	}
	switch _, wrong := errors.AsType[problems](err); {
	case wrong:
		_, _ = fmt.Fprintln(stderr, err)
		return exitSettings
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "switchboard:", words(err))
		return exitFailed
	}
	return 0
}

// words says an error to a person.
func words(err error) string {
	e, ok := errors.AsType[*handoff.Error](err)
	if !ok {
		return err.Error()
	}
	if e.Detail == "" {
		return e.Spoken()
	}
	return e.Spoken() + " (" + e.Detail + ")"
}

// serve runs the service until ctx ends. What it prints are two lines: what is real, and where to go.
func serve(ctx context.Context, s *settings, env func(string) string, stdout, stderr io.Writer) error {
	state, err := sessions.StateDir(env)
	if err != nil {
		return err
	}
	p, err := s.plan(state, exec.LookPath)
	if err != nil {
		return err
	}
	log := newLog(stderr)
	defer func() { _ = log.Sync() }() // a terminal cannot be synced
	watching, stop := context.WithCancel(ctx)
	defer outlive(watching, log)()
	defer stop()
	service, err := newService(ctx, p, log)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%s\n%s\n", service.real, service.link)
	return service.run(ctx)
}

// newLog writes JSON lines, from info on; a person at a terminal gets warnings only.
func newLog(w io.Writer) *zap.Logger {
	level := zap.InfoLevel
	if f, ok := w.(*os.File); ok {
		if about, err := f.Stat(); err == nil && about.Mode()&os.ModeCharDevice != 0 {
			level = zap.WarnLevel
		}
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), level))
}
