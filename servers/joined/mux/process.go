package mux

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// flag is the first argument of this program when it is started as a mux.
const flag = "-switchboard-mux"

// Command returns the command that starts a mux of an agent. The mux listens on the socket.
func Command(program, socket string, agent []string) []string {
	return append([]string{program, flag, socket}, agent...)
}

// Main must be called first in a program that starts muxes. In the process of a mux it does not return.
func Main() {
	if len(os.Args) < 4 || os.Args[1] != flag {
		return
	}
	if err := run(os.Args[2], os.Args[3:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run keeps an agent until a signal ends the process. Both log to standard error. The agent has our environment and
// directory.
func run(socket string, command []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(os.Stderr),
		zap.InfoLevel))
	child := transport.Child{Command: command, Stderr: os.Stderr, Waits: true}
	return Serve(ctx, Config{Listener: l, Log: log, Start: func(died func(string)) (servers.Wire, error) {
		return child.Open(ctx, servers.End{Passes: []string{"*"}, Grace: endWithin, Died: died, Log: log})
	}})
}
