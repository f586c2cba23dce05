package codex

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// Name is the word for this kind of servers in the configuration.
const Name = "codex"

// Config is the configuration of an app-server. An empty setting leaves the server's own. A resumed thread keeps its
// settings.
type Config struct {
	Cwd      string `yaml:"cwd"`
	Model    string `yaml:"model"`
	Sandbox  string `yaml:"sandbox"`
	Approval string `yaml:"approval"`
	Ceiling  string `yaml:"ceiling"`

	Name      string        // of the server in the fleet; errors and questions carry it
	Way       servers.Way   // how it is reached
	Reconcile time.Duration // between two looks at a thread, see [agent.Reconcile]; 0: 2 s
	Counters  *Counters     // of all its connections; nil: none
	Log       *zap.Logger   // nil: none

	ways      servers.Ways            // that the file may choose from
	exclusive bool                    // the server ends with its connection
	remote    bool                    // its directories are on another machine, which may have a gate of its own
	died      *atomic.Pointer[string] // of a server that is a child process: how it ended last; nil: it has not
}

// Kind returns the kind of Codex app-servers that are reached by these transports.
func Kind(transports ...servers.Transport) servers.Kind {
	return servers.Kind{
		Name: Name, Doc: "an app-server of Codex",
		New:  func() servers.Settings { return &Config{ways: servers.NewWays(transports)} },
		Dial: dial, Takes: servers.Taking(transports, isAppServer), IsThread: threadID.MatchString,
		Joined: func(own servers.Settings, a servers.Arrived) servers.Settings {
			cfg, configured := own.(*Config)
			if !configured {
				cfg = &Config{Cwd: a.Dir, Way: servers.FromLine(transports)}
			}
			return cfg.Under(a.Ceiling)
		},
	}
}

// isAppServer reports whether a command starts an app-server.
func isAppServer(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool { return filepath.Base(word) == "app-server" })
}

// Program is the program of Codex.
const Program = "codex"

// Here returns a server that is the Codex of this machine, as a child process.
func Here(name string, child servers.Way) servers.Spec {
	s := servers.Spec{Name: name, Kind: Name, Own: &Config{Way: child}}
	s.Own.Describe(&s)
	return s
}

// threadID is the form of a thread's id.
var threadID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Rows implements [servers.Settings].
func (cfg *Config) Rows() []any { return append([]any{cfg}, cfg.ways.Rows()...) }

// strictFirst are the names of sandboxes in the configuration, from strict to loose. Set once.
var strictFirst = []string{"read-only", "workspace-write", "danger-full-access"}

// Check implements [servers.Settings].
func (cfg *Config) Check(to servers.Report, files servers.Files) {
	to.OneOf("sandbox", cfg.Sandbox, strictFirst...)
	to.OneOf("approval", cfg.Approval, "untrusted", "on-request", "never")
	to.OneOf("ceiling", cfg.Ceiling, strictFirst...)
	if cfg.sandboxAbove(cfg.Ceiling) {
		to.Bad("sandbox", "%s is looser than the ceiling %s, so no new session could run", cfg.Sandbox, cfg.Ceiling)
	}
	cfg.Way = cfg.ways.Choose(to, files)
	var s servers.Spec
	cfg.Describe(&s)
	cfg.Cwd = servers.CheckDir("cwd", cfg.Cwd, s.Remote, to, files)
}

// sandboxAbove reports whether the configured sandbox is looser than a ceiling.
func (cfg *Config) sandboxAbove(ceiling string) bool {
	i := slices.Index(strictFirst, ceiling)
	return i >= 0 && slices.Index(strictFirst, cfg.Sandbox) > i
}

// Under returns the settings for a machine whose owner has a ceiling; "": none.
func (cfg *Config) Under(ceiling string) *Config {
	own := *cfg
	i, most := slices.Index(strictFirst, ceiling), slices.Index(strictFirst, cfg.Ceiling)
	if i >= 0 && (most < 0 || i < most) {
		own.Ceiling = ceiling
	}
	if own.sandboxAbove(own.Ceiling) {
		own.Sandbox = "" // new sessions get that of the ceiling
	}
	return &own
}

// Describe implements [servers.Settings].
func (cfg *Config) Describe(s *servers.Spec) {
	s.Dir = cfg.Cwd
	s.About.Model, s.About.Sandbox, s.About.Approval, s.About.Ceiling = cfg.Model, cfg.Sandbox, cfg.Approval, cfg.Ceiling
	if cfg.Way == nil {
		return
	}
	s.Way = cfg.Way
	cfg.Way.Describe(s)
	address := s.About.Address
	u, err := url.Parse(address)
	switch {
	case s.Program != "":
		s.About.Start = address
	case strings.HasPrefix(address, "unix:"):
		s.About.Start = "codex app-server --listen unix://" + strings.TrimPrefix(address, "unix:")
	case err == nil && u.Host != "":
		s.About.Start = startThere(u, s.Credential.Read != nil)
	}
}

// startThere returns the command that starts an app-server at an address. Behind a proxy its port is not known: the
// command says PORT. At the other end of a tunnel the port may differ too.
func startThere(u *url.URL, withToken bool) string {
	host, port := "127.0.0.1", cmp.Or(u.Port(), "4500")
	switch {
	case u.Scheme == "wss":
		port = "PORT"
	case !servers.Loopback(u.Hostname()):
		host = "0.0.0.0"
	}
	start := "codex app-server --listen ws://" + net.JoinHostPort(host, port)
	if withToken {
		start += " --ws-auth capability-token --ws-token-file FILE"
	}
	return start
}

func dial(s servers.Spec, log *zap.Logger) (servers.Dial, iter.Seq[handoff.Metric]) {
	cfg := *s.Own.(*Config) // made by Kind's New
	cfg.Name, cfg.Log, cfg.Counters = s.Name, log.Named(Name), newCounters(s.Name)
	return Dialer(cfg), cfg.Counters.Metrics
}

// Dialer returns the dial function of an app-server.
func Dialer(cfg Config) servers.Dial {
	cfg.Counters = cmp.Or(cfg.Counters, newCounters(cfg.Name))
	cfg.Reconcile = cmp.Or(cfg.Reconcile, reconcileFor)
	cfg.Log = cmp.Or(cfg.Log, zap.NewNop()).With(zap.String("server", cfg.Name))
	cfg.died = new(atomic.Pointer[string])
	var s servers.Spec
	cfg.Way.Describe(&s)
	cfg.exclusive, cfg.remote = s.EndsWithUs, s.Remote
	end := servers.End{
		Server: cfg.Name, Dir: cfg.Cwd, Passes: []string{"CODEX_*"}, Log: cfg.Log,
		Died: func(how string) { cfg.died.Store(&how) },
	}
	return func(ctx context.Context) (*servers.Link, error) {
		wire, err := cfg.Way.Open(ctx, end)
		if err != nil {
			return nil, err
		}
		return connect(ctx, cfg, wire)
	}
}

// connect initializes a connection over a wire. The connection runs until it is lost or closed.
func connect(ctx context.Context, cfg Config, wire servers.Wire) (*servers.Link, error) {
	c := &connection{
		cfg: cfg, log: cfg.Log,
		generation:      strings.ToLower(rand.Text()[:10]),
		ended:           make(chan struct{}),
		threads:         map[string]*thread{},
		changes:         make(chan struct{}, 1),
		resubscriptions: make(chan resubscription, maxResubscriptions),
	}
	c.peer = jsonrpc.NewPeer(jsonrpc.Config{
		Wire: wire, Log: cfg.Log, Handle: c.handle, Missed: c.doubtRunning, Traced: true,
		InFlight: maxInFlight, Queued: maxQueued, QueuedBytes: maxQueuedBytes,
	})
	c.client = client{c.peer}
	uncounted := cfg.Counters.Begin(c)
	go func() { // ends with the connection; Close awaits it
		defer close(c.ended)
		var work sync.WaitGroup
		work.Go(c.resubscribe)
		defer uncounted()
		c.peer.Run()
		work.Wait()
		c.log.Debug("connection ended", zap.Error(c.peer.Lost()))
	}()
	version, err := c.client.initialize(ctx)
	if err == nil {
		err = checkVersion(cfg.Name, version)
	}
	if err != nil {
		_ = c.Close()
		fault := c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
		return nil, servers.HandshakeFault(fault, err, cfg.died.Load())
	}
	c.log.Debug("connected", zap.String("version", version))
	return &servers.Link{
		Conn: c, Catalog: catalog{c}, Done: c.peer.Done(), Version: version, Exclusive: cfg.exclusive,
		Check: c.signedIn, Unfit: c.unfit.Load, Changed: c.changes,
	}, nil
}

// signedIn returns an error if the app-server needs somebody to be signed in and nobody is. Older servers cannot say
// so: then it returns nil.
func (c *connection) signedIn(ctx context.Context) error {
	signedIn, err := c.client.account(ctx)
	if err == nil && !signedIn {
		return handoff.Fault(handoff.CodeNotSignedIn, c.cfg.Name, "")
	}
	return nil
}
