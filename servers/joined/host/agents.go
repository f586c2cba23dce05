package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/servers/joined"
)

// usual are the agents that are used where they are installed, unless the owner's file lists others.
func usual() []Setting {
	return []Setting{
		{Name: "codex", Kind: "codex", Command: []string{"codex", "app-server"}},
	}
}

// Usual are the names of the agents that need no command.
func Usual() (names []string) {
	for _, s := range usual() {
		names = append(names, s.Name)
	}
	return names
}

const (
	versionsFor   = 10 * time.Minute // how long what is installed is remembered
	versionWithin = 5 * time.Second  // for one program to tell its version
	maxSocketPath = 103              // bytes; the smallest bound among the systems
)

// agents are the agents of this machine. They are safe for concurrent use.
type agents struct {
	cfg Config // Set once

	mu       sync.Mutex
	procs    map[string]*process // Guarded by mu: by name; one for each agent that was dialled
	versions map[string]string   // Guarded by mu: of programs; "": it does not tell
	looked   time.Time           // Guarded by mu: when versions were asked
}

func newAgents(cfg Config) *agents {
	return &agents{cfg: cfg, procs: map[string]*process{}, versions: map[string]string{}}
}

// settings are the agents that may be used and are installed.
func (a *agents) settings() []Setting {
	all := usual()
	if a.cfg.Policy.Agents != nil {
		all = nil
		for _, s := range a.cfg.Policy.Agents {
			if s.Command == nil {
				i := slices.IndexFunc(usual(), func(u Setting) bool { return u.Name == s.Name })
				if i < 0 {
					continue // which the reader of the file has reported
				}
				s.Command = usual()[i].Command
			}
			all = append(all, s)
		}
	}
	return slices.DeleteFunc(all, func(s Setting) bool {
		_, err := exec.LookPath(s.Command[0])
		return err != nil
	})
}

// about is what the machine tells.
func (a *agents) about(ctx context.Context) joined.About {
	host, _ := os.Hostname() // "" says nothing
	about := joined.About{
		Version: a.cfg.Version, Host: host, System: runtime.GOOS + "/" + runtime.GOARCH, Ceiling: a.cfg.Policy.Ceiling,
		Answers: a.cfg.Policy.Answers, Live: a.live(), Agents: []joined.Agent{},
	}
	dir := ""
	if len(a.cfg.Policy.Dirs) > 0 {
		dir = a.cfg.Policy.Dirs[0]
	}
	for _, s := range a.settings() {
		about.Agents = append(about.Agents,
			joined.Agent{Name: s.Name, Kind: s.Kind, Version: a.version(ctx, s.Command[0]), Dir: dir})
	}
	return about
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`)

// version is what a program says that it is.
func (a *agents) version(ctx context.Context, program string) string {
	a.mu.Lock()
	if time.Since(a.looked) > versionsFor {
		a.versions, a.looked = map[string]string{}, time.Now()
	}
	version, known := a.versions[program]
	a.mu.Unlock()
	if known {
		return version
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err == nil {
		version = versionNumber.FindString(string(text[:min(len(text), 1000)]))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions[program] = version
	return version
}

// dial opens a connection to an agent by its name, and starts it if need be.
func (a *agents) dial(ctx context.Context, name string) (net.Conn, error) {
	all := a.settings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("its machine has no agent %q that may be used", name)
	}
	p, err := a.process(all[i])
	if err != nil {
		return nil, err
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	return gated(conn, a.cfg.Policy), nil
}

// process returns the process of an agent, which may not run.
func (a *agents) process(s Setting) (*process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.procs[s.Name]; p != nil && slices.Equal(p.setting.Command, s.Command) {
		return p, nil
	}
	socket := filepath.Join(a.cfg.Dir, s.Name+".sock")
	if len(socket) > maxSocketPath {
		return nil, errors.New("the path of the state directory is too long for a socket in it: set XDG_STATE_HOME to a shorter one")
	}
	p := &process{
		setting: s, socket: socket, dir: a.cfg.Dir, log: a.cfg.Log, turn: make(chan struct{}, 1), used: time.Now(),
	}
	if len(a.cfg.Policy.Dirs) > 0 {
		p.begins = a.cfg.Policy.Dirs[0]
	}
	a.procs[s.Name] = p
	return p, nil
}

// all returns the agents that may run: those that may be used, and those that an earlier process of ours has started,
// under whatever settings.
func (a *agents) all() []*process {
	settings := a.settings()
	files, err := os.ReadDir(a.cfg.Dir)
	if err != nil {
		a.cfg.Log.Warn("agents of an earlier process not looked for", zap.Error(err))
	}
	for _, file := range files {
		name, is := strings.CutSuffix(file.Name(), processFile)
		if is && !slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name }) {
			settings = append(settings, Setting{Name: name})
		}
	}
	var found []*process
	for _, s := range settings {
		if p, err := a.process(s); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// run ends agents that nobody used for a day, until ctx ends.
func (a *agents) run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, p := range a.all() {
			p.endUnused(time.Now())
		}
	}
}

// end ends all agents.
func (a *agents) end() {
	for _, p := range a.all() {
		p.end()
	}
}

// codexHome is where Codex keeps what is its own; "": nobody knows.
func codexHome() string {
	if home := os.Getenv("CODEX_HOME"); home != "" {
		return home
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, ".codex")
}

// daemonSocket is where a Codex that its user started as a daemon listens; "": there is none.
func daemonSocket() string {
	path := filepath.Join(codexHome(), "app-server-control", "app-server-control.sock")
	if about, err := os.Stat(path); err != nil || about.Mode()&os.ModeSocket == 0 || strings.ContainsRune(path, 0) {
		return ""
	}
	return path
}
