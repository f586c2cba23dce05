package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/joined/mux"
)

// Times of an agent.
const (
	startWithin   = 10 * time.Second // from its start to its socket
	listensWithin = time.Minute      // after which a process without a socket counts as hung
	endWithin     = 12 * time.Second // from SIGTERM to SIGKILL: a mux kills its agent after eight
	killWithin    = 2 * time.Second  // from SIGKILL to its end
	unusedFor     = 24 * time.Hour   // after which an app-server is ended
)

// maxLog is the size in bytes above which an agent's log is emptied when the agent starts.
const maxLog = 4 << 20

// A process is an agent of this machine. The agent has a session of its own and is found by its socket, so that it
// outlives this process. It need not run.
type process struct {
	setting  Setting     // Set once
	socket   string      // Set once
	dir      string      // Set once: of its log, its locks and its processRecord
	cwd      string      // Set once: the directory that it is started in; "": ours
	log      *zap.Logger // Set once
	sessions *places     // Set once: of an agent of kind acp
	starts   mux.Starts  // Owned by who has the agent [process.alone]

	mu       sync.Mutex
	open     map[*usedConn]bool // Guarded by mu: connections to it
	lastUsed time.Time          // Guarded by mu
	greeting json.RawMessage    // Guarded by mu: an app-server's last answer to initialize; nil: it has none yet
	ending   bool               // Guarded by mu: it is being ended, since nobody used it
	rests    bool               // Guarded by mu: it was ended unused, and nobody has needed it since
}

// processFile is the suffix, after the agent's name, of the file with its processRecord.
const processFile = ".process.json"

// A processRecord identifies the process of an agent, so that a later process of ours can end it.
type processRecord struct {
	PID   int    `json:"pid"`
	Kind  string `json:"kind"`  // of the agent
	Began string `json:"began"` // see beganAt: another process may get the same number
}

// readRecord reads the record of an agent's process; the record is zero where it cannot be read.
func readRecord(dir, agent string) (r processRecord) {
	text, err := os.ReadFile(filepath.Join(dir, agent+processFile))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return processRecord{}
	}
	return r
}

// dial opens a connection to the agent, and starts it if it does not run.
func (p *process) dial(ctx context.Context) (net.Conn, error) {
	if err := p.awaken(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	usually := p.setting.listens() && slices.Equal(p.setting.Command, usual()[0].Command)
	if daemon := daemonSocket(); daemon != "" && usually {
		if conn, err := connect(ctx, daemon); err == nil {
			return conn, nil // other programs of the user share their sessions through the daemon
		}
	}
	conn, err := connect(ctx, p.socket)
	if err != nil {
		if conn, err = p.start(ctx); err != nil {
			return nil, err
		}
	}
	lock, err := p.lock(useFile, syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil { // another process of ours is ending it
		return nil, errors.Join(err, conn.Close())
	}
	u := &usedConn{Conn: conn, process: p, lock: lock}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[u] = true
	return u, nil
}

func connect(ctx context.Context, socket string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

// usedConn is a connection that counts as use of a process until it is closed.
type usedConn struct {
	net.Conn
	process *process
	lock    *os.File // on useFile: keeps other processes of ours from ending the agent
	once    sync.Once
}

// Close implements [net.Conn].
func (u *usedConn) Close() error {
	u.once.Do(func() {
		u.process.mu.Lock()
		defer u.process.mu.Unlock()
		delete(u.process.open, u)
		if u.process.greeting == nil { // else noteUse has noted each use
			u.process.lastUsed = time.Now()
		}
		_ = release(u.lock)
	})
	return u.Conn.Close()
}

// start starts the agent, unless another process of ours has just started it, and returns a connection to it.
func (p *process) start(ctx context.Context) (net.Conn, error) {
	free, err := p.alone()
	if err != nil {
		return nil, err
	}
	defer free()
	if conn, err := p.await(ctx, nil); conn != nil || err != nil && (!p.hangs() || !p.endNow()) {
		return conn, err
	}
	if err := p.starts.Next(p.setting.Name); err != nil {
		return nil, ended(fmt.Sprintf("%v, and %s tells more", err, p.logPath()))
	}
	exited, err := p.launch()
	if err != nil {
		return nil, ended(fmt.Sprintf("%s cannot be started: %v", p.setting.Name, err))
	}
	conn, err := p.await(ctx, exited)
	if err == nil {
		p.log.Info("agent started", zap.String("agent", p.setting.Name))
	}
	return conn, err
}

// hangs reports whether the agent has never listened, though it was started long ago: launch removed the socket and
// wrote the record.
func (p *process) hangs() bool {
	_, err := os.Stat(p.socket)
	about, unknown := os.Stat(filepath.Join(p.dir, p.setting.Name+processFile))
	return errors.Is(err, os.ErrNotExist) && unknown == nil && time.Since(about.ModTime()) > listensWithin
}

// ended returns the error for an agent that does not come up.
func ended(how string) error {
	return &handoff.Error{Code: handoff.CodeUnreachable, Detail: how, Reason: handoff.ReasonAgentEnded}
}

// launch starts the agent's program. exited gets how it ended.
func (p *process) launch() (exited <-chan error, err error) {
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier process
		return nil, err
	}
	if home := codexHome(); home != "" && p.setting.listens() { // Codex needs it and does not make it
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
	}
	out, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has its own copy
	command, err := p.command()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = servers.ChildEnv(os.Environ(), p.setting.Env, append(envACP, "CODEX_*")...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to our session do not reach it
	cmd.Dir = p.cwd
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the child, which may outlive us
	record := processRecord{cmd.Process.Pid, p.setting.Kind, beganAt(cmd.Process.Pid)}
	err = writeJSON(p.dir, p.setting.Name+processFile, record)
	if err != nil { // nobody could end it
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return ended, err
}

// command returns the command that makes the agent listen on its socket: its own, or that of a mux around it.
func (p *process) command() ([]string, error) {
	if p.setting.listens() {
		return append(slices.Clone(p.setting.Command), "--listen", "unix://"+p.socket), nil
	}
	own, err := os.Executable()
	return mux.Command(own, p.socket, p.setting.Command), err
}

// await waits until the agent takes connections. exited tells how a process that was just started has ended. With nil,
// await waits for one that was started earlier; if none lives, it returns nil, nil.
func (p *process) await(ctx context.Context, exited <-chan error) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for was := readRecord(p.dir, p.setting.Name); ; {
		if conn, err := connect(ctx, p.socket); err == nil {
			return conn, nil
		}
		if exited == nil && !was.lives() {
			return nil, context.Cause(ctx) // where its time is over, the agent may listen all the same
		}
		select {
		case <-tick.C:
		case err := <-exited:
			return nil, ended(fmt.Sprintf("%s ended at once (%v); %s tells more", p.setting.Name, err, p.logPath()))
		case <-ctx.Done():
			return nil, ended(fmt.Sprintf("%s does not listen; %s tells more", p.setting.Name, p.logPath()))
		}
	}
}

func (p *process) logPath() string { return filepath.Join(p.dir, p.setting.Name+".log") }

// openLog opens the log of the agent, and empties it if it is longer than maxLog.
func (p *process) openLog() (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if about, err := os.Stat(p.logPath()); err == nil && about.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(p.logPath(), flags, 0o600)
}

// end ends the agent if it runs, and reports whether it does not run any more.
func (p *process) end() bool {
	free, err := p.alone()
	if err != nil {
		return false
	}
	defer free()
	return p.endNow()
}

// endNow ends the agent if it runs: by SIGTERM, and by SIGKILL after endWithin. It reports whether the agent does not
// run any more. The caller has the agent alone.
func (p *process) endNow() bool {
	was := readRecord(p.dir, p.setting.Name)
	if was.lives() {
		p.log.Info("agent is ended", zap.String("agent", p.setting.Name))
		_ = syscall.Kill(-was.PID, syscall.SIGTERM) // to its process group
		began, killed := time.Now(), false          // what it started may listen a moment longer than it lives
		for ; (was.lives() || p.listens()) && time.Since(began) < endWithin+killWithin; time.Sleep(20 * time.Millisecond) {
			if !killed && time.Since(began) > endWithin {
				_ = syscall.Kill(-was.PID, syscall.SIGKILL)
				killed = true
			}
		}
	}
	if p.listens() {
		p.log.Warn("agent cannot be ended: its process is not the one that was noted",
			zap.String("agent", p.setting.Name), zap.Int("process", was.PID))
		return false
	}
	_ = os.Remove(p.socket) // the agent may have removed it
	p.starts = mux.Starts{}
	return true
}

// lives reports whether the process of a record runs. Earlier versions of ours wrote its start as ps prints it in the
// time zone of this process.
func (r processRecord) lives() bool {
	return r.PID > 1 && r.Began != "" && (beganAt(r.PID) == r.Began || psBegan(r.PID) == r.Began)
}

// beganAt returns the start of a process in words that no change of clock, time zone or language alters; "": there is
// none, or it is a zombie.
func beganAt(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // another system than Linux
		return psBegan(pid, "TZ=UTC", "LC_ALL=C")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	about := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // after the program's name
	if err != nil || len(about) < startTicks+1 || about[0] == "Z" || about[0] == "X" {
		return ""
	}
	return about[startTicks] + " ticks after the boot " + strings.TrimSpace(string(boot))
}

// startTicks is the place of a process's start in /proc/PID/stat, counted from its state.
const startTicks = 19

// psBegan returns the start of a process as ps prints it; "": there is none, or it is a zombie.
func psBegan(pid int, env ...string) string {
	ps := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	ps.Env = append(os.Environ(), env...)
	text, err := ps.Output()
	state, began, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(began)
}

// listens reports whether the agent takes connections.
func (p *process) listens() bool {
	conn, err := net.Dial("unix", p.socket)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
