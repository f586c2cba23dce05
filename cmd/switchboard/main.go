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

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
	"switchboard/sessions"
)

// Exit codes.
const (
	exitFailed   = 1 // it could not start, or it broke
	exitSettings = 2 // the settings are wrong
)

func main() {
	sandbox.Main()
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, done, err := parseOptions(args, stdout, stderr)
	if done {
		return 0
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = do(ctx, o, env, stdout, stderr)
	}
	return exitCode(err, stderr)
}

// do does what a verb is for.
func do(ctx context.Context, o *options, env func(string) string, stdout, stderr io.Writer) error {
	switch o.verb {
	case "init":
		return initVerb(o, stdout)
	case "add":
		return o.Add.do(o, env, stdout)
	case "doctor":
		return doctorVerb(ctx, o, env, stdout)
	case "simulate":
		return o.Simulate.run(ctx, stdout, stderr)
	}
	if _, speaks := o.reach(); speaks {
		return clientVerb(ctx, o, env, stdout, stderr)
	}
	s, err := loadSettings(o, env)
	if err != nil {
		return err
	}
	if o.verb == "health" {
		return health(ctx, s)
	}
	state, err := sessions.StateDir(env)
	if err != nil {
		return err
	}
	switch o.verb {
	case "login":
		return loginVerb(ctx, state, o.Login.Name, stdout)
	case "key":
		return keyVerb(ctx, state, o.Key.Name, o.Key.Revoke, stdout)
	case "audit":
		return auditVerb(state, stdout)
	}
	return serve(ctx, s, state, stdout, stderr)
}

// exitCode tells how the program ends, and says why where that was not said.
func exitCode(err error, stderr io.Writer) int {
	outcome, ended := errors.AsType[outcomeError](err)
	_, wrong := errors.AsType[problems](err)
	switch {
	case err == nil:
		return 0
	case ended:
		return outcome.exitCode()
	case errors.Is(err, errLeft):
		return exitLeft
	case errors.Is(err, errMend):
		return exitFailed
	case wrong:
		_, _ = fmt.Fprintln(stderr, err)
		return exitSettings
	}
	_, _ = fmt.Fprintln(stderr, "switchboard:", verbs.Plain(words(err)))
	return exitFailed
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

// auditVerb reads the whole audit, also beside a Switchboard that runs, and prints what is kept of it. Its
// error says which line of which file was changed.
func auditVerb(state string, stdout io.Writer) error {
	first, last, err := sessions.VerifyAuditDir(state)
	if err != nil {
		return fmt.Errorf("the audit in %s is not as it was written: %w", state, err)
	}
	if last == 0 {
		_, err = fmt.Fprintln(stdout, "no decisions yet")
		return err
	}
	_, err = fmt.Fprintf(stdout, "decisions %d to %d are as they were written\n", first, last)
	return err
}

// serve runs the service of a state directory until ctx ends. What it prints are two lines: what is real, and where
// to go.
func serve(ctx context.Context, s *settings, state string, stdout, stderr io.Writer) error {
	p, err := s.plan(state, exec.LookPath)
	if err != nil {
		return err
	}
	log := newLog(stderr)
	defer func() { _ = log.Sync() }() // a terminal cannot be synced
	removed, err := removeOldKeys(state)
	if err != nil {
		return err
	}
	if removed {
		log.Warn("removed the key that an earlier version kept in plain text: `switchboard login` logs in, `switchboard key owner` makes one for programs")
	}
	watching, stop := context.WithCancel(ctx)
	defer outlive(watching, log)()
	defer stop()
	service, err := newService(ctx, p, log)
	if err != nil {
		return err
	}
	where := service.address + "   (`switchboard login` prints a link that logs in)"
	if terminal(stdout) { // a link is a key for ten minutes, and a journal is read by others
		if where, err = service.link(""); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(stdout, "%s\n%s\n", service.real, where)
	return service.run(ctx)
}

// terminal reports whether somebody sits before w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := f.Stat()
	if err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device too, and nobody sits before it
	return err != nil || !os.SameFile(about, null)
}

// newLog writes JSON lines, from info on; a person at a terminal gets warnings only, and lines to be read.
func newLog(w io.Writer) *zap.Logger {
	level, encode := zap.InfoLevel, zapcore.NewJSONEncoder
	if terminal(w) {
		level, encode = zap.WarnLevel, zapcore.NewConsoleEncoder
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(encode(encoder), zapcore.Lock(zapcore.AddSync(w)), level))
}
