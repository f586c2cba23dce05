package keeper

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// flag is the first argument of this program when it is started as a keeper.
const flag = "-switchboard-keeper"

// drainFor is how long the output of an agent is read after its end.
const drainFor = time.Second

// Command returns the command that starts a keeper of an agent. The keeper listens on the socket.
func Command(program, socket string, agent []string) []string {
	return append([]string{program, flag, socket}, agent...)
}

// Main must be called first in a program that starts keepers. In the process of a keeper it does not return.
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

// run keeps an agent until a signal ends the process. Both log to standard error.
func run(socket string, agent []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(os.Stderr),
		zap.InfoLevel))
	return Keep(ctx, Config{Listener: l, Start: func() (*Agent, error) { return start(agent) }, Log: log})
}

// start starts an agent's program. It has our environment and directory, and a process group of its own, so that
// signals to ours do not reach it.
func start(command []string) (*Agent, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not a pipe of exec: Wait would wait for processes that the agent has started and that hold the pipe open.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = childOut
	err = cmd.Start()
	_ = childOut.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { // ends with the agent
		err := cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ends the processes that it has started
		_ = out.SetReadDeadline(time.Now().Add(drainFor))
		ended <- err
	}()
	return &Agent{
		In: in, Out: out,
		Wait: func() error { defer func() { _ = out.Close() }(); return <-ended },
		Kill: func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) },
	}, nil
}
