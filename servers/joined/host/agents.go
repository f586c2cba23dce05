package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/servers/transport"
)

// usual returns the agents that are used where they are installed, unless the owner's file lists others.
func usual() []Setting {
	return []Setting{
		{Name: codex.Program, Kind: codex.Name, Command: []string{codex.Program, "app-server"}},
		{Name: "claude", Kind: acp.Name, Command: []string{"claude-agent-acp"}},
		// Its sessions ask nothing in any mode of its own, unless its configuration says so.
		{Name: "opencode", Kind: acp.Name, Command: []string{"opencode", "acp"}, Mode: "build",
			Env: []string{`OPENCODE_CONFIG_CONTENT={"permission":{"bash":"ask","edit":"ask","webfetch":"ask"}}`}},
	}
}

// Kinds are the kinds of agents that a machine may bring. Set once.
var Kinds = []string{codex.Name, acp.Name}

// Usual returns the names of the agents that need no command in the owner's file.
func Usual() (names []string) {
	for _, s := range usual() {
		names = append(names, s.Name)
	}
	return names
}

const (
	versionsFor   = 10 * time.Minute // how long the versions of the programs are cached
	versionWithin = 5 * time.Second  // for one program to print its version
	maxSocketPath = 103              // bytes; the smallest bound among the operating systems
)

// agents are the agents of this machine. They are safe for concurrent use.
type agents struct {
	cfg Config // Set once

	mu       sync.Mutex
	procs    map[string]*process // Guarded by mu: by the agent's name
	versions map[string]string   // Guarded by mu: by program; "": it prints none
	looked   time.Time           // Guarded by mu: when versions was emptied last
}

func newAgents(cfg Config) *agents {
	return &agents{cfg: cfg, procs: map[string]*process{}, versions: map[string]string{}}
}

// allowed returns the agents that the owner lets be used, each with its command.
func (p Policy) allowed() []Setting {
	if p.Agents == nil {
		return usual()
	}
	var all []Setting
	for _, s := range p.Agents {
		if s.Command == nil {
			i := slices.IndexFunc(usual(), func(u Setting) bool { return u.Name == s.Name })
			if i < 0 {
				continue // an unknown name was reported when the file was read
			}
			u := usual()[i]
			s.Kind, s.Command, s.Mode = u.Kind, u.Command, cmp.Or(s.Mode, u.Mode)
			s.Env = append(u.Env, s.Env...) // the last of a name counts
		}
		all = append(all, s)
	}
	return all
}

var errOtherAgents = errors.New("machine.yaml there does not allow this agent: name it under agents, with its command")

// acpAgent returns the agent of kind acp that a command starts: one of those that are allowed, or any where the policy
// says AnyAgent.
func (p Policy) acpAgent(command []string) (Setting, error) {
	all := p.allowed()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Kind == acp.Name && slices.Equal(s.Command, command) })
	switch {
	case i >= 0:
		return all[i], nil
	case !p.AnyAgent || len(command) == 0:
		return Setting{}, errOtherAgents
	}
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return Setting{Name: "acp-" + hex.EncodeToString(sum[:8]), Kind: acp.Name, Command: command}, nil
}

// settings returns the agents that are allowed and installed.
func (a *agents) settings() []Setting {
	return slices.DeleteFunc(a.cfg.Policy.allowed(), func(s Setting) bool {
		_, err := exec.LookPath(s.Command[0])
		return err != nil
	})
}

// about returns what the machine tells the service about itself.
func (a *agents) about(ctx context.Context) joined.About {
	host, _ := os.Hostname() // "" is left out
	about := joined.About{
		Version: a.cfg.Version, Host: host, System: runtime.GOOS + "/" + runtime.GOARCH, Ceiling: a.cfg.Policy.Ceiling,
		Answers: a.cfg.Policy.Answers, Live: a.live(), Agents: []joined.Agent{},
	}
	for _, s := range a.settings() {
		one := joined.Agent{Name: s.Name, Kind: s.Kind, Version: a.version(ctx, s.Command[0]), Mode: s.Mode}
		if len(a.cfg.Policy.Dirs) > 0 || s.Kind == acp.Name { // its sessions need a directory
			one.Dir = a.cfg.Policy.cwd()
		}
		about.Agents = append(about.Agents, one)
	}
	return about
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`)

// version returns the version that a program prints, from the cache while that is fresh; "": it prints none.
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

// reach connects to an agent by its name, and starts it if need be. It is a [joined.Reach].
func (a *agents) reach(ctx context.Context, to joined.Opening) (serve func(net.Conn), err error) {
	all := a.settings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == to.Agent })
	if i < 0 {
		return nil, &handoff.Error{Code: handoff.CodeUnreachable, Detail: to.Agent, Reason: handoff.ReasonAgentMissing}
	}
	p, err := a.process(all[i])
	if err != nil {
		return nil, err
	}
	g := newGate(a.cfg.Policy, p.setting)
	agent, err := a.dial(ctx, p, g, to.Apart)
	if err != nil {
		return nil, err
	}
	return func(conn net.Conn) { g.serve(conn, agent) }, nil
}

// dial opens a connection to an agent behind a gate; nil: the agent rests. A connection that only reads (apart) gets a
// process of its own from an agent of kind acp, which ends with it: the process that works has one client.
func (a *agents) dial(ctx context.Context, p *process, g *gate, apart bool) (servers.Wire, error) {
	if !p.setting.listens() {
		g.sessions, g.apart = p.sessions, apart
	}
	switch {
	case g.apart:
		child := transport.Child{Command: p.setting.Command, Env: p.setting.Env}
		return child.Open(ctx, servers.End{Dir: p.cwd, Passes: envACP, Grace: readsGrace, Log: a.cfg.Log})
	case p.setting.listens():
		g.process = p
		if g.greeting = p.resting(); g.greeting != nil {
			return nil, nil
		}
	}
	conn, err := p.dial(ctx)
	switch {
	case err != nil:
		return nil, err
	case !p.setting.listens():
		return transport.LinesOver(conn), nil
	}
	agent, err := open(ctx, conn)
	if err != nil {
		return nil, err
	}
	return agent, nil
}

// envACP are the variables that agents of kind acp get besides the usual: the directories of their configuration and
// state. Keys are passed only where the owner's file lists them. Set once.
var envACP = []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"}

// readsGrace is how long an agent that only reads may take to end.
const readsGrace = 10 * time.Second

// process returns the process of an agent. The agent need not run. Without a command in its setting, it is the one that
// is known: its program may be missing for a moment.
func (a *agents) process(s Setting) (*process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.procs[s.Name]; p != nil && (s.Command == nil || slices.Equal(p.setting.Command, s.Command)) {
		return p, nil
	}
	socket := filepath.Join(a.cfg.Dir, s.Name+".sock")
	if len(socket) > maxSocketPath {
		return nil, errors.New("the path of the state directory is too long for a socket in it: " +
			"set XDG_STATE_HOME to a shorter one")
	}
	p := &process{
		setting: s, socket: socket, dir: a.cfg.Dir, log: a.cfg.Log,
		lastUsed: time.Now(), open: map[*usedConn]bool{}, sessions: newPlaces(), cwd: a.cfg.Policy.cwd(),
	}
	a.procs[s.Name] = p
	return p, nil
}

// all returns the agents that may be running: those that are allowed, and those that an earlier process of ours has
// started under other settings.
func (a *agents) all() []*process {
	settings := a.settings()
	files, err := os.ReadDir(a.cfg.Dir)
	if err != nil {
		a.cfg.Log.Warn("agents of an earlier process not looked for", zap.Error(err))
	}
	for _, file := range files {
		name, is := strings.CutSuffix(file.Name(), processFile)
		if is && !slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name }) {
			settings = append(settings, Setting{Name: name, Kind: readRecord(a.cfg.Dir, name).Kind})
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

// run ends unused app-servers (see [process.endUnused]) until ctx ends.
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
			p.endUnused(ctx, time.Now())
		}
	}
}

// end ends all agents, and returns the names of those that could not be ended.
func (a *agents) end() (goOn []string) {
	for _, p := range a.all() {
		if !p.end() {
			goOn = append(goOn, p.setting.Name)
		}
	}
	return goOn
}

// codexHome returns the directory of Codex's configuration and state; "": it is not known.
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

// daemonSocket returns the socket of a Codex that the user started as a daemon; "": there is none.
func daemonSocket() string {
	path := filepath.Join(codexHome(), "app-server-control", "app-server-control.sock")
	if about, err := os.Stat(path); err != nil || about.Mode()&os.ModeSocket == 0 || strings.ContainsRune(path, 0) {
		return ""
	}
	return path
}
