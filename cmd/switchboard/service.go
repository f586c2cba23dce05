package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/cmd/switchboard/traces"
	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/realtime"
	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/sessions"
	"switchboard/web"
	"switchboard/web/mcp"
	"switchboard/web/metrics"
	browsers "switchboard/web/push"
	webresponses "switchboard/web/responses"
)

// httpGrace is how long open requests may take to end when the service ends.
const httpGrace = 2 * time.Second

// A service is all parts, wired together. It listens when it is made, and serves in run. Its fields are set once, while
// it is made.
type service struct {
	log        *zap.Logger
	machineLog *machineLog
	plan       plan
	closers    []func()         // called by close, the last first, even if nothing ran
	counted    []metrics.Source // the parts with metrics
	settings   *reloading
	stages     []stage
	drain      func(context.Context) // hands over to other instances before the stages end

	// The base, made by openStorage.

	listen net.Listener
	store  store
	audit  *sessions.Audit
	traces *traces.Traces // nil without tracing
	trace  handoff.Tracer // nil without tracing

	// The machines, made by makeMachines.

	agents     *responses.Agents // those that this instance runs itself; empty at first
	owners     *router.Owners
	simulators *simulators
	roster     *roster
	fleet      *servers.Fleet
	specs      []servers.Spec // those that the fleet starts with

	// The work of all callers, made by makeWork.

	queues   *router.Queues
	counts   *router.Counts
	notices  notifiers
	push     *browsers.Sender
	notifies []stage // those of notices
	peers    *peering
	shares   []stage // what instances share with the others
	handoffs *homes.Homes

	// The fronts, made by makeFronts.

	simulated bool // the voice model is simulated
	calls     *call.Calls
	broken    *sessions.BrokenCalls
	front     *realtime.Front
	api       *webresponses.API
	mcp       *mcp.Front

	// The edge, made by makeEdge.

	limited *web.Listener
	ready   *readiness
	edge    *web.Server
	figures http.Handler // of /metrics

	// Texts, made by describe.

	summary string // one line for people: which parts are real and which simulated
	base    string // the URL at which this machine reaches the service
	model   string // the voice model and its host; "": simulated
	address string // the URL of the page
}

// Parts that are made early reach those that are made late through these methods, none of which is called before all
// parts are made.

func (s *service) setKeys(keys []web.Key)     { s.edge.SetKeys(keys) }
func (s *service) serversChanged()            { s.handoffs.ServersChanged() }
func (s *service) working(server string) bool { return s.handoffs.Working(server) }
func (s *service) page() string               { return s.address }

func (s *service) madeByAPI(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
	return s.api.Made(ctx, c)
}

func (s *service) serveFigures(w http.ResponseWriter, r *http.Request) { s.figures.ServeHTTP(w, r) }

func (s *service) grantAgain(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
	return s.edge.Again(ctx, by, c)
}

// newService builds a service. After an error nothing runs, and nothing is left open.
func newService(ctx context.Context, p plan, log *zap.Logger) (*service, error) {
	s := &service{machineLog: newMachineLog(), plan: p}
	s.log = log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, s.machineLog) }))
	own := p.settings // a simulated voice model changes those of the plan
	s.settings = &reloading{load: p.Again, initial: &own, current: &own, setKeys: s.setKeys}
	s.counted = []metrics.Source{thisBuild()}
	for _, step := range []func(context.Context) error{
		s.openStorage, s.makeMachines, s.makeWork, s.makeFronts, s.makeEdge, s.orderStages,
	} {
		if err := step(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// openStorage opens the port, the store, the audit and the traces.
func (s *service) openStorage(ctx context.Context) (err error) {
	if s.listen, err = net.Listen("tcp", s.plan.Listen); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", s.plan.Listen, err)
	}
	s.closes("listener", s.listen)
	if s.store, err = openStore(ctx, s.plan, s.log.Named("sessions")); err != nil {
		return err
	}
	s.closes("store", s.store)
	s.counted = append(s.counted, s.store)
	if s.audit, err = sessions.OpenAudit(s.plan.StateDir); err != nil {
		return err
	}
	s.closes("audit", s.audit)
	return s.openTraces()
}

// makeMachines makes the fleet: the machines of the settings, those that joined, or simulated ones.
func (s *service) makeMachines(ctx context.Context) error {
	ours := func() []string { return append(s.settings.ours(), s.plan.StateDir) }
	s.agents = responses.NewAgents(s.store.Threads(), ours)
	s.owners = router.NewOwners(s.store)
	s.simulators = newSimulators(s.log)
	s.closers = append(s.closers, s.simulators.close)
	if err := s.makeFleet(ctx); err != nil {
		return err
	}
	s.settings.roster = s.roster
	s.counted = append(s.counted, s.fleet, s.roster.machines)
	return nil
}

// makeWork makes what gives work to machines and reports on it, with what instances share of it.
func (s *service) makeWork(ctx context.Context) (err error) {
	p := s.plan
	s.queues, s.counts = router.NewQueues(), router.NewCounts(s.fleet)
	if err := s.makeNotices(ctx); err != nil {
		return err
	}
	if s.peers, err = s.newPeering(); err != nil {
		return err
	}
	routing := router.Config{
		Queues: s.queues, Owners: s.owners, Counts: s.counts, Notifier: s.notices,
		Fleet: s.fleet, Store: s.store, Auditor: s.audit, Log: s.log.Named("handoff"),
		AskAgain: time.Duration(p.Approvals.AskAgain), GiveUp: time.Duration(p.Approvals.GiveUp),
		Silence: time.Duration(p.Work.Silence), Patience: time.Duration(p.Work.Patience),
	}
	s.shares = s.peers.share(s, &routing)
	s.handoffs = s.peers.homes(routing)
	s.peers.forward(s)
	s.counted = append(s.counted, s.queues, s.counts)
	return nil
}

// makeEdge makes the server that lets requests in.
func (s *service) makeEdge(ctx context.Context) error {
	p := s.plan
	s.describe()
	keys, err := s.letIn(ctx)
	if err != nil {
		return err
	}
	s.ready = newReadiness(s.store, func() error { return s.handoffs.Recovered(ctx, 0) })
	s.limited = web.Limit(s.listen, p.TrustedProxies, s.log.Named("web"))
	s.edge, err = web.New(web.Config{
		Entrance: web.Entrance{
			Keys: keys, Listen: s.listen.Addr().String(), PublicURL: p.PublicURL, TrustedProxies: p.TrustedProxies,
		},
		Router: s.handoffs, Store: edgeMemory{s.store, s.broken}, Fleet: s.fleet, Decisions: s.audit, Push: s.push,
		VoiceFront: web.VoiceFront{
			Front: s.front, Calls: s.front, Levels: s.calls, Voice: voiceInfo(p.Model, s.simulated, p.Speech.Language),
		},
		Ownership: web.Ownership{
			Owner: ownerName, Joining: s.roster.machines, Reload: s.settings.reload,
			MachineLog: s.machineLog.of, Address: s.page, Line: s.roster.machines.ServeHTTP,
		},
		Programs: web.Programs{Responses: s.api, MCP: s.mcp, MCPPipe: s.mcp.Pipe, OAuth: s.newOAuth()},
		Several:  s.peers.several(),
		Metrics:  http.HandlerFunc(s.serveFigures),
		Ready:    s.ready.check, Trace: s.trace, Log: s.log.Named("web"),
	})
	if err != nil {
		return err
	}
	s.counted = append(s.counted, s.limited, s.edge)
	s.figures = metrics.Handler(s.log.Named("metrics"), s.counted...)
	return nil
}

// orderStages orders the stages by their end: the router ends before the voice, so that open requests are still
// answered there. Nothing is served before the work of an earlier process has been read, or [recoverWithin] has passed:
// otherwise callers would hear that their work does not exist.
func (s *service) orderStages(context.Context) error {
	verbs, err := listenControl(s.plan.StateDir)
	if err != nil {
		return err
	}
	s.closes("listener", verbs)
	s.peers.taken = s.front.Resume
	s.peers.leave = []func(handoff.Caller){s.front.Leave, s.edge.Leave}
	s.drain = func(ctx context.Context) { s.peers.drain(ctx, s.edge, s.front.Busy) }
	absent := newAbsenceWatch(s.plan.Gone, s.fleet.Known, s.handoffs.Waiting, s.notices.Notify)
	watches := &watchAll{self: s.peers.self.ID, fleet: s.fleet, runs: s.handoffs, held: s.queues.Held,
		log: s.log.Named("watch"), tried: map[string]time.Time{}}
	s.stages = slices.Concat(
		[]stage{
			{"control", func(ctx context.Context) error {
				_ = s.handoffs.Recovered(ctx, recoverWithin) // on failure, each request gets the error
				h := s.edge.HTTPServer()                     // with the deadlines of the API
				h.Handler = s.control().handler()
				return serveHTTP(ctx, h, verbs, "", "")
			}},
			{"http", func(ctx context.Context) error {
				_ = s.handoffs.Recovered(ctx, recoverWithin)
				return serveHTTP(ctx, s.edge.HTTPServer(), s.limited, s.plan.TLS.CertFile, s.plan.TLS.KeyFile)
			}},
		},
		s.peers.stages(s),
		[]stage{
			{"responses", s.api.Run}, {"router", s.handoffs.Run}, {"calls", s.calls.Run}, {"voice", s.front.Run},
			{"absent machines", absent.run}, {"watch all", watches.run},
		},
		s.notifies, s.shares,
		[]stage{
			{"agents", s.agents.Run}, {"fleet", s.fleet.Run}, {"machines", s.roster.machines.Run}, {"sessions", s.store.Run},
		},
	)
	if s.traces != nil {
		s.stages = append(s.stages, stage{"traces", s.traces.Run})
	}
	return nil
}

// run runs the service until ctx ends.
func (s *service) run(ctx context.Context) error {
	defer s.close()
	defer context.AfterFunc(ctx, func() { s.ready.stopping.Store(true) })()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	drained := make(chan struct{})
	go func() { // awaited below
		defer close(drained)
		defer end()
		select {
		case <-ctx.Done():
			s.drain(running)
		case <-running.Done():
		}
	}()
	err := runStages(running, s.log, s.stages)
	end()
	<-drained
	return err
}

// closes has close close a part. A listener that its server has closed already is no error.
func (s *service) closes(name string, part io.Closer) {
	s.closers = append(s.closers, func() {
		if err := part.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.log.Error("not closed", zap.String("part", name), zap.Error(err))
		}
	})
}

// close closes everything that is open. Only run and a failed newService call it, at the end.
func (s *service) close() {
	for _, close := range slices.Backward(s.closers) {
		close()
	}
}

// describe sets the texts that a start prints, and the addresses.
func (s *service) describe() {
	p := s.plan
	voice := "voice: simulated (set OPENAI_API_KEY for a real one)"
	if !s.simulated {
		s.model = p.Model.Name + " at " + hostOf(p.Model.URL)
		voice = "voice: " + s.model
	}
	names := strings.Join(namesOf(s.specs), ", ")
	machines := "machines: " + names
	if slices.ContainsFunc(s.specs, func(spec servers.Spec) bool { return spec.Simulated }) {
		machines = "machines: simulated (" + names + "; name yours in switchboard.yaml, or use --codex)"
	}
	s.summary = voice + "; " + machines
	host, _, _ := net.SplitHostPort(p.Listen) // valid, since net.Listen took it
	_, port, _ := net.SplitHostPort(s.listen.Addr().String())
	s.base = baseOf(net.JoinHostPort(host, port), p.TLS.CertFile != "")
	s.address = strings.TrimSuffix(cmp.Or(p.PublicURL, s.base), "/") + "/"
}

// control returns what the verbs beside this service may do.
func (s *service) control() control {
	return control{
		link: s.link, test: s.fleet.Test, machines: s.fleet.Machines, api: s.edge.Inside(ownerName), base: s.base,
		voice: s.model, keys: s.settings.keys, alone: !s.plan.Peers.set(),
	}
}

// link makes a login link for a principal; "" means the owner.
func (s *service) link(ctx context.Context, principal string) (string, error) {
	code, err := s.edge.NewCode(ctx, cmp.Or(principal, ownerName))
	if err != nil {
		return "", err
	}
	return s.address + "#login=" + code, nil
}

// serveHTTP serves HTTP until ctx ends; then it gives open requests [httpGrace] to end.
func serveHTTP(ctx context.Context, server *http.Server, l net.Listener, cert, key string) error {
	failed := make(chan error, 1)
	go func() { // ends with the listener
		if cert != "" {
			failed <- server.ServeTLS(l, cert, key)
			return
		}
		failed <- server.Serve(l)
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // a request that does not end is cut
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
