package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"switchboard/handoff"
	"switchboard/servers/joined"
)

// A Wanted names the agent that a client by ssh asks for: by its name or by its command.
type Wanted struct {
	Agent   string   // "": Command says which
	Command []string // starts an agent of kind acp
	Apart   bool     // the connection only reads, beside the one that works
}

// Pipe connects a client by ssh, at in and out, with an agent of this machine until either ends. It calls ready once
// the agent is connected. The policy holds as for a line, and the agent goes on when Pipe returns. Other processes of
// ours may use the same directory meanwhile.
func Pipe(ctx context.Context, cfg Config, wanted Wanted, in io.ReadCloser, out io.Writer, ready func() error) error {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return err
	}
	all := newAgents(cfg)
	if wanted.Agent == "" {
		s, err := cfg.Policy.acpAgent(wanted.Command)
		if err != nil {
			return err
		}
		all.cfg.Policy.Agents, wanted.Agent = []Setting{s}, s.Name
	}
	serve, err := all.reach(ctx, joined.Opening{Agent: wanted.Agent, Apart: wanted.Apart})
	fault, ok := errors.AsType[*handoff.Error](err)
	if ok && fault.Reason == handoff.ReasonAgentMissing && wanted.Command != nil {
		fault.Detail = wanted.Command[0]
	}
	if err != nil {
		return err
	}
	near, far := net.Pipe()
	go serve(far) // ends with near
	if err := ready(); err != nil {
		return errors.Join(err, near.Close(), in.Close())
	}
	joined.Join(ctx, near, struct {
		io.ReadCloser
		io.Writer
	}{in, out})
	return nil
}

// Suffixes of the files that processes of ours lock, after the name of an agent.
const (
	useFile   = ".use"   // shared by each connection to the agent; exclusive while an unused agent is ended
	aloneFile = ".start" // exclusive while the agent is started or ended
)

// lock locks a file of the agent until its release. how is an operation of flock.
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

// alone waits until nobody else starts or ends the agent, in this process or another one of ours, which takes less than
// half a minute. Until free is called, nobody else does.
func (p *process) alone() (free func(), err error) {
	lock, err := p.lock(aloneFile, syscall.LOCK_EX)
	return func() { _ = release(lock) }, err
}

// release releases a lock and closes its file. Closing alone is not enough: between its fork and its exec, a child
// process has all open files of ours, and holds the lock through them.
func release(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}
