// Command switchboard is a realtime voice handoff router: people talk to a voice model, and coding work goes to the
// agents on their machines. This package reads the settings, wires the parts and runs them. It is the only place
// where concrete types meet, and it must not know what they do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/traces"
	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers/joined"
	"switchboard/servers/joined/mux"
	"switchboard/servers/responses/sandbox"
	"switchboard/servers/transport"
	"switchboard/sessions"
)

// Exit codes.
const (
	exitFailed   = 1 // it could not start, or it broke
	exitSettings = 2 // the settings are wrong
	exitRefused  = 6 // the Switchboard that this machine joined no longer takes it
)

func main() {
	sandbox.Main()
	mux.Main()
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run runs the program with these arguments and returns its exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	c := &console{env: env, stdout: stdout, stderr: stderr}
	verb, text, err := c.commands().Parse(args)
	switch {
	case err == nil && verb == nil: // the help, or the version
		_, err = io.WriteString(stdout, text)
	case err == nil:
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = verb.Run(ctx)
	}
	return exitCode(err, stderr)
}

// serveVerb is the verb that runs the service.
func serveVerb(c *console) *cli.Verb {
	return &cli.Verb{Name: "serve", Help: "Run Switchboard. This is the default.", Run: func(ctx context.Context) error {
		s, state, err := c.here()
		if err == nil {
			err = sessions.Writable(state)
		}
		if err != nil {
			return err
		}
		again := func() (*settings, error) {
			next, err := loadSettings(&c.options, c.env, s.Lines)
			if err == nil {
				err = next.localCodex(exec.LookPath)
			}
			return next, err
		}
		return serve(ctx, s, again, state, c.stdout, c.stderr)
	}}
}

// exitCode returns the exit code for an error, and prints the error unless the verb has printed it already.
func exitCode(err error, stderr io.Writer) int {
	outcome, ended := errors.AsType[verbs.Outcome](err)
	_, wrong := errors.AsType[problems](err)
	mistake, mistyped := errors.AsType[cli.Mistake](err)
	refusal, refused := errors.AsType[joined.Refusal](err)
	switch {
	case err == nil:
		return 0
	case ended:
		return outcome.ExitCode()
	case errors.Is(err, verbs.ErrLeft):
		return verbs.ExitLeft
	case errors.Is(err, errMend):
		return exitFailed
	case wrong:
		_, _ = fmt.Fprintln(stderr, err)
		return exitSettings
	case mistyped:
		_, _ = fmt.Fprintln(stderr, "switchboard:", mistake)
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
		return err.Error() + strings.TrimSuffix("; "+listenNext(err), "; ")
	}
	if e.Detail == "" {
		return e.Spoken()
	}
	return e.Spoken() + " (" + e.Detail + ")"
}

// listenNext says what to do about the error of a port that cannot be listened on; "" for any other error.
func listenNext(err error) string {
	op, listens := errors.AsType[*net.OpError](err)
	switch {
	case !listens || op.Op != "listen":
		return ""
	case errors.Is(err, syscall.EADDRINUSE):
		return "end the program that listens there, or set another port"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "your user may not open that port: set one from 1024 on, with a proxy in front, or allow it " +
			"(sysctl net.ipv4.ip_unprivileged_port_start)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address: set one that it has"
	}
	return ""
}

// serve runs the service of a state directory until ctx ends. It prints two lines: which parts are real and which are
// simulated, and the address of the page. At each SIGHUP it reads the settings again, with the function again.
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

	if os.Getenv("GOGC") == "" { // open calls make almost no garbage, so a smaller headroom costs almost nothing
		debug.SetGCPercent(25)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	// The process outlives its terminal (SIGHUP) and whoever reads its output (SIGPIPE). It catches the signals instead
	// of ignoring them, because child processes would inherit an ignored signal. SIGHUP also asks to read the settings
	// again; a closed terminal cannot be told from that.
	hangups := make(chan os.Signal, 1) // one pending reload covers all hangups that come before it
	signal.Notify(hangups, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	service, err := newService(ctx, p, log)
	if err != nil && ctx.Err() != nil { // ctx ended during the start
		return nil
	}
	if err != nil {
		return err
	}
	where := service.address + "   (`switchboard login` prints a link that logs in)"
	if terminal(stdout) { // the link logs in for ten minutes, and others may read a journal
		if where, err = service.link(ctx, ""); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(stdout, "%s\n%s\n", service.summary, where)
	var reloads sync.WaitGroup
	defer reloads.Wait()
	defer stop()
	reloads.Go(func() { service.reloadAtHangups(watching, hangups) })
	return service.run(ctx)
}

// reloadAtHangups reads the settings again at each hangup until ctx ends.
func (s *service) reloadAtHangups(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-hangups:
		case <-ctx.Done():
			return
		}
		reloaded, err := s.settings.reload(ctx)
		if err != nil {
			s.log.Error("settings not taken, all stays as it was", zap.String("problem", words(err)))
			continue
		}
		if len(reloaded.Restart) > 0 {
			s.log.Warn("settings changed that need a restart", zap.Strings("settings", reloaded.Restart))
		}
		s.log.Info("settings read again", zap.Strings("changes", reloaded.Did))
	}
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := f.Stat()
	if err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device too, but no terminal
	return err != nil || !os.SameFile(about, null)
}

// newLog returns a logger that writes JSON lines from info on. A terminal gets lines for people, from warnings on.
func newLog(w io.Writer) *zap.Logger {
	level, encode := zap.InfoLevel, zapcore.NewJSONEncoder
	if terminal(w) {
		level, encode = zap.WarnLevel, zapcore.NewConsoleEncoder
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(encode(encoder), zapcore.Lock(zapcore.AddSync(w)), level))
}
