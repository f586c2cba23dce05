package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"switchboard/handoff"
	"switchboard/servers/joined"
)

// A Wanted is the agent that who comes by ssh asks for.
type Wanted struct {
	Agent   string   // its name; ""
	Command []string // where it has none: an agent of kind acp that is started so
	Apart   bool     // it only reads, beside the connection that works
}

// Pipe connects an agent of this machine with in and out until either ends: for who comes by ssh. ready is called once
// the agent is there. What the machine's owner allows holds as for a line, and the agent goes on when this ends. Other
// processes of ours may use the same directory meanwhile.
func Pipe(ctx context.Context, cfg Config, wanted Wanted, in io.ReadCloser, out io.Writer, ready func() error) error {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return err
	}
	all := newAgents(cfg)
	if wanted.Agent == "" {
		s, err := cfg.Policy.started(wanted.Command)
		if err != nil {
			return err
		}
		all.cfg.Policy.Agents, wanted.Agent = []Setting{s}, s.Name
	}
	conn, err := all.dial(ctx, joined.Opening{Agent: wanted.Agent, Apart: wanted.Apart})
	fault, ok := errors.AsType[*handoff.Error](err)
	if ok && fault.Reason == handoff.ReasonAgentMissing && wanted.Command != nil {
		fault.Detail = wanted.Command[0]
	}
	if err != nil {
		return err
	}
	end := sync.OnceFunc(func() {
		_ = conn.Close() // both are gone either way
		_ = in.Close()
	})
	defer end()
	defer context.AfterFunc(ctx, end)()
	if err := ready(); err != nil {
		return err
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		defer end()
		_, _ = io.Copy(conn, in) // the end of either is the end of both
	})
	_, _ = io.Copy(out, conn)
	end()
	sending.Wait()
	return nil
}

// The ends of names of files that processes of ours lock, after the name of an agent: shared by who is connected to it
// and alone by who ends it unused; alone by who starts it.
const (
	useFile   = ".use"
	startFile = ".start"
)

// lock locks a file of the agent in a way of flock, until its release.
func (p *process) lock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(p.dir, p.setting.Name+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// release gives a lock back. Closing its file is not enough: a child process has every file of ours between its fork
// and its exec, and the lock with them.
func release(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}
