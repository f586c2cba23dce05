package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// Name is the word for this kind of servers in the configuration.
const Name = "acp"

// Config is the configuration of an agent.
type Config struct {
	Cwd      string `yaml:"cwd"`
	Approval string `yaml:"approval"`
	Mode     string `yaml:"mode"`

	Name     string        // of the server in the fleet; errors and questions carry it
	Way      servers.Way   // how it is reached
	Rest     time.Duration // how long a session must not change before it is opened, and the wait after a turn; 0: 2 s
	Counters *Counters     // of all its connections; nil: none
	Log      *zap.Logger   // nil: none

	ways      servers.Ways  // that the file may choose from
	exclusive bool          // the agent ends with its connection
	local     bool          // its directories are on this machine
	apart     bool          // the connection only reads, beside the one that works
	instance  func() string // names this instance of the service; nil or "": it is the only one
}

// restFor is twice as long as agents still write into a session after the end of a turn: up to a second.
const restFor = 2 * time.Second

// exitGrace is how long an agent may take to end after the end of its input. One that was running a command took more
// than five seconds. Killing an agent does not stop the processes that it has started.
const exitGrace = 10 * time.Second

// Kind returns the kind of agents that are reached by these transports. instance returns the name of this instance of
// the service, by which a mux tells the instances' connections apart; "": it is the only one.
func Kind(instance func() string, transports ...servers.Transport) servers.Kind {
	return servers.Kind{
		Name: Name, Doc: "an agent of the Agent Client Protocol, such as Claude Code",
		New: func() servers.Settings { return &Config{ways: servers.NewWays(transports)} },
		Dial: func(s servers.Spec, log *zap.Logger) (servers.Dial, iter.Seq[handoff.Metric]) {
			return dial(s, log, instance)
		},
		Takes: servers.Taking(transports, speaksACP), IsThread: sessionID.MatchString,
		Joined: func(own servers.Settings, a servers.Arrived) servers.Settings {
			if own == nil {
				own = &Config{Cwd: a.Dir, Mode: a.Mode, Way: servers.FromLine(transports)}
			}
			return own
		},
	}
}

// speaksACP reports whether the name of a command says that it starts an agent of the protocol.
func speaksACP(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool {
		name := filepath.Base(word)
		return name == "acp" || strings.HasSuffix(name, "-acp")
	})
}

// sessionID is the form of a session's id: a UUID, or letters and an underscore before it.
var sessionID = regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-z]{2,8}_[0-9A-Za-z]{16,64})$`)

// Rows implements [servers.Settings].
func (cfg *Config) Rows() []any { return append([]any{cfg}, cfg.ways.Rows()...) }

// Check implements [servers.Settings].
func (cfg *Config) Check(to servers.Report, files servers.Files) {
	to.OneOf("approval", cfg.Approval, "untrusted", "on-request", "never")
	if cfg.Approval != "" && cfg.Mode != "" {
		to.Bad("mode", "goes without approval, which chooses one")
	}
	cfg.Way = cfg.ways.Choose(to, files)
	var s servers.Spec
	cfg.Describe(&s)
	cfg.Cwd = servers.CheckDir("cwd", cfg.Cwd, s.Remote, to, files)
}

// Describe implements [servers.Settings].
func (cfg *Config) Describe(s *servers.Spec) {
	s.Dir, s.Private = cfg.Cwd, true
	s.About.Approval = cfg.Approval
	switch {
	case cfg.Mode != "":
		s.About.Approval = "mode " + cfg.Mode
	case cfg.Approval == "":
		s.About.Approval = "untrusted"
	}
	if cfg.Way == nil {
		return
	}
	s.Way = cfg.Way
	cfg.Way.Describe(s)
	if s.Program != "" {
		s.About.Start = s.About.Address
	}
}

func dial(s servers.Spec, log *zap.Logger, instance func() string) (servers.Dial, iter.Seq[handoff.Metric]) {
	cfg := *s.Own.(*Config) // made by Kind's New
	cfg.instance = instance
	cfg.Name, cfg.Log, cfg.Counters = s.Name, log.Named(Name), newCounters(s.Name)
	return Dialer(cfg), cfg.Counters.Metrics
}

// Dialer returns the dial function of an agent.
func Dialer(cfg Config) servers.Dial {
	cfg.Counters = cmp.Or(cfg.Counters, newCounters(cfg.Name))
	cfg.Rest = cmp.Or(cfg.Rest, restFor)
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop()).With(zap.String("server", cfg.Name))
	var s servers.Spec
	cfg.Way.Describe(&s)
	cfg.exclusive, cfg.local = s.EndsWithUs, !s.Remote
	return func(ctx context.Context) (*servers.Link, error) {
		c, err := connect(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return &servers.Link{
			Conn: c, Catalog: c, Done: c.peer.Done(), Version: handoff.ClipRunes(c.can.Info.Version, 40), Note: c.limitations(),
			Exclusive: cfg.exclusive, Check: c.check, Unfit: c.unfit.Load,
		}, nil
	}
}

// connect opens a connection to the agent and initializes it. The connection runs until it is lost or closed.
func connect(ctx context.Context, cfg Config) (*connection, error) {
	wire, err := cfg.Way.Open(ctx, servers.End{
		Server: cfg.Name, Dir: cfg.Cwd, Passes: passedEnv, Grace: exitGrace, Apart: cfg.apart, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	c := &connection{
		cfg: cfg, log: cfg.Log, generation: strings.ToLower(rand.Text()[:10]), ended: make(chan struct{}),
		sessions: map[string]*session{}, reads: make(chan struct{}, 1),
	}
	c.peer = jsonrpc.NewPeer(jsonrpc.Config{
		Wire: wire, Log: cfg.Log, Handle: c.handle, Missed: c.missed, Version: "2.0",
		InFlight: maxInFlight, Queued: maxQueued, QueuedBytes: maxQueuedBytes,
	})
	uncounted := cfg.Counters.Begin(c)
	go func() { // ends with the connection; Close awaits it
		defer close(c.ended)
		defer uncounted()
		c.peer.Run()
		c.work.Wait()
		c.log.Debug("connection ended", zap.Error(c.peer.Lost()))
	}()
	err = c.peer.Call(ctx, doInitialize, cfg.hello(), &c.can)
	if err == nil && c.can.Protocol != 1 {
		err = handoff.Fault(handoff.CodeOutdated, fmt.Sprintf("%s speaks version %d of its protocol; 1 is needed", cfg.Name,
			c.can.Protocol), "")
	}
	if err != nil {
		_ = c.Close()
		fault := handoff.AsError(c.fault(err, "", handoff.CodeUnreachable))
		return nil, servers.HandshakeFault(fault, err, nil)
	}
	kept := c.can.Meta.Switchboard.keptCount // a copy: a pointer into c would keep the connection in memory
	cfg.Counters.kept.Store(&kept)
	return c, nil
}

// passedEnv are the variables that agents get besides the usual: the directories of their configuration and state. Keys
// are passed only where the entry lists them.
var passedEnv = []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"}

// modesFor are the modes that a session may have, by the value of approval, the strictest first. In the modes of
// "untrusted" the agent asks before it does anything but read, or only reads. Set once.
var modesFor = map[string][]string{
	"untrusted":  {"default", "read-only", "ask"},
	"on-request": {"acceptEdits", "workspace-write", "autoEdit"},
}

// chooseMode returns the mode that a session must have, of those that the agent has; "": any.
func (cfg *Config) chooseMode(available []string) (string, error) {
	if cfg.Mode != "" {
		if slices.Contains(available, cfg.Mode) {
			return cfg.Mode, nil
		}
		return "", handoff.Fault(handoff.CodeRefused, cfg.Name, "mode: the agent has no mode "+cfg.Mode+", but "+
			strings.Join(available, ", "))
	}
	word := cfg.Approval
	switch word {
	case "never":
		return "", nil
	case "":
		word = "untrusted"
	}
	for _, mode := range modesFor[word] {
		if slices.Contains(available, mode) {
			return mode, nil
		}
	}
	there, line := "has no modes", "approval: never"
	if len(available) > 0 {
		there = "has no mode that asks as " + word + " says, but " + strings.Join(available, ", ")
		line = "mode: " + available[0] + ", or another of these, or approval: never"
	}
	fault := handoff.Fault(handoff.CodeRefused, cfg.Name, "approval: the agent "+there)
	fault.Why, fault.Next = handoff.WhyNoMode, "If it may work without asking you, set this for "+cfg.Name+": "+line+"."
	return "", fault
}

// directory returns the directory for a new session: dir or the configured one. It checks that a local directory
// exists, since some agents fail only later.
func (cfg *Config) directory(dir string) (string, error) {
	dir = cmp.Or(dir, cfg.Cwd)
	if dir == "" && cfg.local {
		dir, _ = os.Getwd() // "" is reported below
	}
	if dir == "" {
		return "", handoff.Fault(handoff.CodeMalformed, "cwd of "+cfg.Name+" is not set", "")
	}
	if info, err := os.Stat(dir); cfg.local && (err != nil || !info.IsDir()) {
		return "", handoff.Fault(handoff.CodeRefused, cfg.Name, "there is no directory "+dir)
	}
	return dir, nil
}
