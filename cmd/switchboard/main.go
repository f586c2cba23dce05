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
	"runtime/debug"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/cmd/switchboard/traces"
	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers/joined"
	"switchboard/servers/joined/keeper"
	"switchboard/servers/responses/sandbox"
	"switchboard/servers/transport"
	"switchboard/sessions"
)

// Exit codes.
const (
	exitFailed   = 1 // it could not start, or it broke
	exitSettings = 2 // the settings are wrong
	exitRefused  = 6 // the Switchboard that was joined does not take this machine any more
)

func main() {
	sandbox.Main()
	keeper.Main()
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

// do runs a verb, or the service.
func do(ctx context.Context, o *options, env func(string) string, stdout, stderr io.Writer) error {
	switch o.verb {
	case "init":
		return initVerb(o, stdout)
	case "add":
		return o.Add.do(ctx, o, env, stdout)
	case "remove":
		return o.Remove.do(ctx, o, env, stdout, stderr)
	case "join":
		return o.Join.do(ctx, env, stdout, stderr)
	case "leave":
		return o.Leave.do(ctx, env, stdout, stderr)
	case "doctor":
		return doctorVerb(ctx, o, env, stdout)
	case "health":
		return healthVerb(ctx, o, env)
	case "simulate":
		return o.Simulate.run(ctx, stdout, stderr)
	}
	if o.asks != nil {
		return clientVerb(ctx, o, env, stdout, stderr)
	}
	s, err := loadSettings(o, env)
	if err != nil {
		return err
	}
	state, err := sessions.StateDir(env)
	if err != nil {
		return err
	}
	switch o.verb {
	case "login":
		ctx, cancel := context.WithTimeout(ctx, controlWithin)
		defer cancel()
		link, err := hereClient(state, "").Login(ctx, o.Login.Name)
		if err == nil {
			_, err = fmt.Fprintln(stdout, link)
		}
		return orNobody(err)
	case "key":
		return keyVerb(ctx, s, state, o.Key.Name, o.Key.Revoke, stdout)
	case "audit": // also beside a Switchboard that runs
		return auditVerb(state, o.Audit, stdout)
	case "mcp":
		return mcpPipe(ctx, state, os.Stdin, stdout)
	case "serve":
	default: // else a verb that was forgotten here would start the service
		return fmt.Errorf("the verb %s is not wired", o.verb)
	}
	again := func() (*settings, error) {
		next, err := loadSettingsFor(o, env, s.Lines)
		if err == nil {
			err = next.localCodex(exec.LookPath)
		}
		return next, err
	}
	return serve(ctx, s, again, state, stdout, stderr)
}

// exitCode returns how the program ends, and prints why where that was not printed yet.
func exitCode(err error, stderr io.Writer) int {
	outcome, ended := errors.AsType[outcomeError](err)
	_, wrong := errors.AsType[problems](err)
	refusal, refused := errors.AsType[joined.Refusal](err)
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
	if refused && refusal.Final() {
		return exitRefused
	}
	if fault, ok := errors.AsType[*handoff.Error](err); ok && fault.Reason == handoff.ReasonAgentMissing {
		return transport.ExitNotFound
	}
	return exitFailed
}

// words returns an error in a sentence for people.
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

// serve runs the service of a state directory until ctx ends. What it prints are two lines: what is real, and where
// to go. SIGHUP reads the settings again.
func serve(
	ctx context.Context, s *settings, again func() (*settings, error), state string, stdout, stderr io.Writer,
) error {
	p, err := s.plan(state, exec.LookPath)
	if err != nil {
		return err
	}
	p.Traces = traces.Endpoint(os.Getenv)
	p.Again = again
	log := newLog(stderr)
	defer func() { _ = log.Sync() }() // a terminal cannot be synced

	if os.Getenv("GOGC") == "" { // calls that stand make next to no garbage, so a smaller headroom costs next to nothing
		debug.SetGCPercent(25)
	}
	watching, stop := context.WithCancel(ctx)
	hangups := make(chan struct{}, 1) // one that waits is enough
	defer outlive(watching, hangups)()
	defer stop()
	service, err := newService(ctx, p, log)
	if err != nil && ctx.Err() != nil { // it was to end before it had begun
		return nil
	}
	if err != nil {
		return err
	}
	where := service.address + "   (`switchboard login` prints a link that logs in)"
	if terminal(stdout) { // a link is a key for ten minutes, and a journal is read by others
		if where, err = service.link(ctx, ""); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(stdout, "%s\n%s\n", service.real, where)
	var reloads sync.WaitGroup
	defer reloads.Wait()
	defer stop()
	reloads.Go(func() { service.reloads(watching, hangups) })
	return service.run(ctx)
}

// reloads reads the settings again at each hangup until ctx ends.
func (s *service) reloads(ctx context.Context, hangups <-chan struct{}) {
	for {
		select {
		case <-hangups:
		case <-ctx.Done():
			return
		}
		told, err := s.settings.reload(ctx)
		if err != nil {
			s.log.Error("settings not taken, all stays as it was", zap.String("problem", words(err)))
			continue
		}
		if len(told.Restart) > 0 {
			s.log.Warn("settings changed that need a restart", zap.Strings("settings", told.Restart))
		}
		s.log.Info("settings read again", zap.Strings("changes", told.Did))
	}
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

// outlive lets the process live on when the terminal that it was started from closes, and when nobody reads
// any more what it prints: either would end it, with every call in it. The signals are caught and not
// ignored, because what is ignored stays so in the programs that it starts. A SIGHUP becomes a hangup, whether a
// terminal closed or somebody asks for the settings to be read again. It returns what waits for its end.
func outlive(ctx context.Context, hangups chan<- struct{}) (wait func()) {
	signals := make(chan os.Signal, 1) // one of each kind says it all
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGPIPE)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP {
					continue
				}
				select {
				case hangups <- struct{}{}:
				default: // one waits
				}
			case <-ctx.Done():
				return // the signals stay caught: the end takes its time
			}
		}
	})
	return waiting.Wait
}
