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
	"switchboard/servers/joined/keeper"
)

// Times of an agent.
const (
	startWithin = 10 * time.Second // from its start to its socket
	endWithin   = 12 * time.Second // from SIGTERM to SIGKILL: a keeper gives its agent ten
	unusedFor   = 24 * time.Hour
	livedFor    = time.Minute // one that ends sooner is started again later and later
)

// restarts says how long an agent that ends again and again is left alone.
var restarts = handoff.Backoff{First: time.Second, Longest: time.Minute}

// maxLog bounds what an agent has written to its log when it is started, in bytes; a longer one is begun anew.
const maxLog = 4 << 20

// A process is an agent that runs here, or may. It has a session of its own and is found by its socket, so that it
// outlives this process.
type process struct {
	setting Setting       // Set once
	socket  string        // Set once
	dir     string        // Set once: where its log and what is known of it are
	begins  string        // Set once: the directory that it is started in; "": the user's home
	log     *zap.Logger   // Set once
	turn    chan struct{} // capacity 1; who has put a token in may start or end it

	mu       sync.Mutex
	open     map[*used]bool  // Guarded by mu: connections to it
	used     time.Time       // Guarded by mu: when it was used last
	greeting json.RawMessage // Guarded by mu: what an app-server answered to initialize last; nil: its use is not told
	ending   bool            // Guarded by mu: it is being ended, since nobody used it
	rests    bool            // Guarded by mu: it was, and nobody needed it since
	told     int             // Guarded by mu: the number of the process that we ended last
	failures int             // Guarded by mu: starts in a row that did not last
	failed   time.Time       // Guarded by mu: when the last of them was noticed
}

// processFile ends the name of a file that has what is kept of a process, after the agent's name.
const processFile = ".process.json"

// A found is what is kept of a process, to end it in another life of ours.
type found struct {
	PID   int    `json:"pid"`
	Kind  string `json:"kind"`  // of the agent
	Began string `json:"began"` // when it was started, as the system tells: another process may get its number
}

// readFound reads what is kept of the process of an agent; nothing where that cannot be read.
func readFound(dir, agent string) (f found) {
	text, err := os.ReadFile(filepath.Join(dir, agent+processFile))
	if err != nil || json.Unmarshal(text, &f) != nil {
		return found{}
	}
	return f
}

// dial opens a connection to the agent, and starts it if it does not run.
func (p *process) dial(ctx context.Context) (net.Conn, error) {
	if err := p.awaken(ctx); err != nil {
		return nil, err
	}
	usually := p.setting.Kind == kindCodex && slices.Equal(p.setting.Command, usual()[0].Command)
	if daemon := daemonSocket(); daemon != "" && usually {
		if conn, err := connect(ctx, daemon); err == nil {
			return conn, nil // its sessions may be open in other programs of the user's through it
		}
	}
	conn, err := connect(ctx, p.socket)
	if err != nil {
		if conn, err = p.start(ctx); err != nil {
			return nil, err
		}
	}
	lock, err := p.lock(useFile, syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil { // another process ends it just now
		return nil, errors.Join(err, conn.Close())
	}
	u := &used{Conn: conn, of: p, lock: lock}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[u] = true
	return u, nil
}

func connect(ctx context.Context, socket string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}

// used is a connection that counts as use of a process until it is closed.
type used struct {
	net.Conn
	of   *process
	lock *os.File // tells other processes of ours that it is used
	once sync.Once
}

// Close implements [net.Conn].
func (u *used) Close() error {
	u.once.Do(func() {
		u.of.mu.Lock()
		defer u.of.mu.Unlock()
		delete(u.of.open, u)
		if u.of.greeting == nil { // else who uses it tells
			u.of.used = time.Now()
		}
		_ = release(u.lock)
	})
	return u.Conn.Close()
}

// start starts the agent unless somebody else just did, and returns a connection to it.
func (p *process) start(ctx context.Context) (net.Conn, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// Another process of ours may be about to; it takes at most startWithin.
	starting, err := p.lock(startFile, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release(starting) }()
	if conn, err := connect(ctx, p.socket); err == nil {
		return conn, nil
	}
	p.mu.Lock()
	failures, wait := p.failures, time.Until(p.failed.Add(restarts.Step(p.failures-1)))
	p.mu.Unlock()
	if failures > 0 && wait > 0 {
		return nil, ended(fmt.Sprintf("%s ended %d times in a row; it is started again in %v, and %s tells more",
			p.setting.Name, failures, wait.Round(time.Second), p.logPath()))
	}
	exited, err := p.launch()
	if err != nil {
		return nil, p.fails(ended(fmt.Sprintf("%s cannot be started: %v", p.setting.Name, err)))
	}
	conn, err := p.await(ctx, exited)
	if err != nil {
		return nil, p.fails(err)
	}
	p.log.Info("agent started", zap.String("agent", p.setting.Name))
	return conn, nil
}

// ended is the fault of an agent that does not come up.
func ended(how string) error {
	return &handoff.Error{Code: handoff.CodeUnreachable, Detail: how, Reason: handoff.ReasonAgentEnded}
}

// fails counts a start that came to nothing.
func (p *process) fails(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	p.failed = time.Now()
	return err
}

// launch starts the program.
func (p *process) launch() (exited <-chan error, err error) {
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that is gone
		return nil, err
	}
	if home := codexHome(); home != "" && p.setting.Kind == kindCodex { // it starts only where that is there
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
	}
	out, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has its own
	command, err := p.command()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = servers.ChildEnv(os.Environ(), p.setting.Env, append(passedACP, "CODEX_*")...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // nothing that ends us ends it
	cmd.Dir = p.where()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	began := time.Now()
	err = keep(p.dir, p.setting.Name+processFile, found{cmd.Process.Pid, p.setting.Kind, beganAt(cmd.Process.Pid)})
	ended := make(chan error, 1)
	go func() { // ends with the child, which may outlive us
		err := cmd.Wait()
		p.mu.Lock()
		ours := p.told == cmd.Process.Pid
		p.mu.Unlock()
		if time.Since(began) < livedFor && !ours {
			_ = p.fails(err)
		} else {
			p.mu.Lock()
			p.failures = 0
			p.mu.Unlock()
		}
		ended <- err
	}()
	return ended, err
}

// command is how the agent is started so that it listens on its socket: by itself, or a keeper of it does.
func (p *process) command() ([]string, error) {
	if p.setting.Kind != kindACP {
		return append(slices.Clone(p.setting.Command), "--listen", "unix://"+p.socket), nil
	}
	own, err := os.Executable()
	return keeper.Command(own, p.socket, p.setting.Command), err
}

// where is the directory that the agent is started in; "" is ours.
func (p *process) where() string {
	if p.begins != "" {
		return p.begins
	}
	home, _ := os.UserHomeDir() // which then is as good as any
	return home
}

// await waits until the agent takes connections.
func (p *process) await(ctx context.Context, exited <-chan error) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := connect(ctx, p.socket); err == nil {
			return conn, nil
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

// openLog opens the log of the agent, which is begun anew when it is long.
func (p *process) openLog() (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if about, err := os.Stat(p.logPath()); err == nil && about.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(p.logPath(), flags, 0o600)
}

// end ends the agent if it runs: SIGTERM, and SIGKILL where that is not enough.
func (p *process) end() {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.endNow()
}

// endNow ends the agent. The caller has the turn.
func (p *process) endNow() {
	was := readFound(p.dir, p.setting.Name)
	if was.PID <= 1 {
		return
	}
	lives := func() bool { return beganAt(was.PID) == was.Began && was.Began != "" }
	if !lives() {
		return
	}
	p.mu.Lock()
	p.told = was.PID
	p.mu.Unlock()
	p.log.Info("agent is ended", zap.String("agent", p.setting.Name))
	_ = syscall.Kill(-was.PID, syscall.SIGTERM) // it has a session, and with that a group, of its own
	for end := time.Now().Add(endWithin); lives(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(-was.PID, syscall.SIGKILL)
			break
		}
	}
	_ = os.Remove(p.socket) // it may be gone already
}

// beganAt tells when a process was started, in the system's words; "": there is none, or it is dead.
func beganAt(pid int) string {
	text, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, began, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(began)
}
