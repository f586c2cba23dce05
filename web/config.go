package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// Router is the source of work, its outcomes and the questions of agents.
type Router interface {
	Work
	Past
	Runs
	Queue
	Outbox
	Feeds
	Questions
	Stickies
	Rates
}

// Store persists what the page shows, and logins, codes, secrets and apps.
type Store interface {
	sessions.Documents
	sessions.Conversations
	History
	Logins
	LoginList
	sessions.Codes
	Secrets
	AppList
}

// Config is what a [Server] is made of. The parts of its fronts stand beside the handlers that use them.
type Config struct {
	Entrance
	Router    Router
	Store     Store
	Fleet     Fleet
	Decisions Decisions
	Push      Push
	VoiceFront
	Ownership
	Programs
	Several

	// Metrics answers GET /metrics for a grant that may read metrics. May be nil.
	Metrics http.Handler
	// Ready returns why the service cannot take work now. Nil: it always can.
	Ready func(context.Context) error
	// Trace traces requests that give work.
	Trace handoff.Tracer
	Log   *zap.Logger // nil: silent
}

// New checks the configuration and returns a server; it starts nothing.
func New(cfg Config) (*Server, error) {
	for name, part := range map[string]any{
		"Router": cfg.Router, "Store": cfg.Store, "Fleet": cfg.Fleet, "Front": cfg.Front, "Calls": cfg.Calls,
		"Levels": cfg.Levels, "Decisions": cfg.Decisions, "Push": cfg.Push, "Joining": cfg.Joining,
	} {
		if part == nil {
			return nil, fmt.Errorf("web: the configuration has no %s", name)
		}
	}
	if len(cfg.Keys) == 0 {
		return nil, errors.New("web: no key; whoever may connect must hold one")
	}
	access, err := newAccessPolicy(cfg.Entrance)
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Server{
		access: access, times: usual, bodies: newBodies(), rates: cfg.Router, scrape: cfg.Metrics,
		peers: cfg.Peers, ready: cfg.Ready, trace: cfg.Trace, log: cfg.Log, closed: make(chan struct{}),
		mux: http.NewServeMux(), known: map[string]route{},
		requests: openRequests{of: map[handoff.Caller]map[*openRequest]struct{}{}},
	}
	s.auth.codes.store = cfg.Store
	s.auth.logins, s.auth.secrets, s.auth.access, s.auth.log = cfg.Store, cfg.Store, access, cfg.Log
	s.SetKeys(cfg.Keys)
	s.refused = handoff.NewTally(slices.Collect(maps.Keys(handoff.Vocabulary))...)
	s.streams = &streams{
		router: cfg.Router, times: &s.times, closed: s.closed,
		life: rand.Text()[:8], open: map[streamShare]int{},
	}
	s.secrets = &clientSecrets{auth: &s.auth, store: cfg.Store, model: cfg.Voice.Model}
	s.routes(cfg)
	return s, nil
}
