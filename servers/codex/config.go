package codex

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// Config says where an app-server is and what new threads on it get. One of URL, Unix and Command is set.
type Config struct {
	Name    string                 // of the server in the fleet; errors and questions carry it
	URL     string                 // ws://IP:PORT or wss://…
	Unix    string                 // path of its socket on this machine, which carries a WebSocket too
	Token   func() (string, error) // read at every dial and sent as bearer token; nil: none
	Command []string               // a child process that speaks on its standard streams; its end kills its turns
	Dir     string                 // of the child; "" is ours
	Env     []string               // of the child, beside what every program needs: NAME passes ours on, NAME=value sets one

	// Of new threads; empty leaves the server's own setting. A resumed thread keeps what it has.
	Model    string
	Approval string // untrusted, on-request, never
	Sandbox  string // read-only, workspace-write, danger-full-access

	// Ceiling is the loosest sandbox of a thread that turns are run in, in the words of Sandbox; "" is any.
	Ceiling string

	// Reconcile is how long two looks at a thread must agree before a lost start counts as never run; 0 is 2 s.
	Reconcile time.Duration

	Counters *Counters   // of all its connections; nil: nobody reads them
	Log      *zap.Logger // nil: none

	died *atomic.Pointer[string] // how a child ended last that was not told to; nil inside: none has
}

// Dialer returns the dial function of an app-server.
func Dialer(cfg Config) servers.Dial {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	cfg.Reconcile = cmp.Or(cfg.Reconcile, reconcileFor)
	cfg.Log = cfg.Log.With(zap.String("server", cfg.Name))
	cfg.died = new(atomic.Pointer[string])
	return func(ctx context.Context) (*servers.Link, error) {
		wire, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return connect(ctx, cfg, wire)
	}
}

// open makes the transport. Errors are [*handoff.Error].
func open(ctx context.Context, cfg Config) (transport, error) {
	if len(cfg.Command) > 0 {
		wire, err := startChild(cfg)
		if err != nil {
			return nil, handoff.Fault(handoff.CodeUnreachable, cfg.Name, err.Error())
		}
		return wire, nil
	}
	return dialWebSocket(ctx, cfg)
}

// connect shakes hands over a transport and keeps the connection running until it is lost or closed.
func connect(ctx context.Context, cfg Config, wire transport) (*servers.Link, error) {
	c := &connection{
		cfg: cfg, log: cfg.Log,
		generation: strings.ToLower(rand.Text()[:10]),
		ended:      make(chan struct{}),
		threads:    map[string]*thread{},
		errands:    make(chan errand, maxErrands),
	}
	c.peer = newPeer(wire, cfg.Log, c.handle)
	c.peer.missed = c.mistrust
	c.client = client{c.peer}
	uncounted := cfg.Counters.begin(c)
	go func() { // ends with the connection; Close awaits it
		defer close(c.ended)
		var work sync.WaitGroup
		work.Go(c.runErrands)
		defer uncounted()
		c.peer.run()
		work.Wait()
		c.logEnd()
	}()
	version, err := c.client.initialize(ctx)
	if err == nil {
		err = checkVersion(cfg.Name, version)
	}
	if err != nil {
		_ = c.Close()
		return nil, c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	c.log.Debug("connected", zap.String("version", version))
	return &servers.Link{Conn: c, Catalog: c, Done: c.peer.done, Version: version, Exclusive: len(cfg.Command) > 0}, nil
}

// logEnd tells why the connection ended and what was left out on the way.
func (c *connection) logEnd() {
	c.log.Debug("connection ended",
		zap.String("reason", c.peer.lost().Error()),
		zap.Uint64("malformed", c.peer.malformed.Load()),
		zap.Uint64("late", c.peer.late.Load()),
		zap.Uint64("too_long", c.peer.tooLong.Load()),
		zap.Uint64("full", c.peer.full.Load()),
		zap.Uint64("unasked", c.tally.unasked.Load()),
		zap.Uint64("given_up", c.tally.GivenUp.Load()),
		zap.Uint64("forgotten", c.tally.forgotten.Load()))
}
