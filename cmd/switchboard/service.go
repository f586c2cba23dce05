package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/cmd/switchboard/traces"
	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/consent"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
	"switchboard/realtime"
	"switchboard/realtime/models"
	"switchboard/servers"
	"switchboard/sessions"
	"switchboard/web"
	"switchboard/web/mcp"
	"switchboard/web/metrics"
	"switchboard/web/oauth"
	webresponses "switchboard/web/responses"
)

// callHold is how long a call waits for its client to come back.
const callHold = 2 * time.Minute

// httpGrace is how long open requests may take to end when the service ends.
const httpGrace = 2 * time.Second

// A service is all parts, wired together. It listens when it is made, and serves in run. Its fields are set once.
type service struct {
	log        *zap.Logger
	machineLog *machineLog
	opened     []net.Listener // close closes them, even if nothing ran
	store      store
	ready      *readiness
	audit      *sessions.Audit
	traces     *traces.Traces // nil without tracing
	trace      handoff.Tracer // nil without tracing
	stages     []stage
	drain      func(context.Context) // hands over to other instances before the stages end
	counted    []metrics.Source      // the parts with metrics
	real       string                // one line for people: which parts are real and which simulated
	base       string                // the URL at which this machine reaches the service
	voice      string                // the voice model and its host; "": simulated
	address    string                // the URL of the page
	handoffs   *homes.Homes          // the work of all callers
	api        *webresponses.API
	figures    http.Handler // of /metrics
	edge       *web.Server
	settings   *reloading
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
	s := &service{machineLog: newMachineLog()}
	s.log = log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, s.machineLog) }))
	s.settings = &reloading{load: p.Again, initial: &p.settings, current: &p.settings, setKeys: s.setKeys}
	if err := s.build(ctx, p); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build makes and connects all parts, each after those that it needs.
func (s *service) build(ctx context.Context, p plan) error {
	listen, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", p.Listen, err)
	}
	s.opened = append(s.opened, listen)
	if s.store, err = openStore(ctx, p, s.log.Named("sessions")); err != nil {
		return err
	}
	if s.audit, err = sessions.OpenAudit(p.StateDir); err != nil {
		return err
	}
	if err := s.traced(p); err != nil {
		return err
	}
	agents := s.agents(p)
	sims := &simulators{log: s.log, agents: agents}
	err = sims.speak(&p)
	s.opened = append(s.opened, sims.listeners...)
	if err != nil {
		return err
	}
	owners, queues := router.NewOwners(s.store), router.NewQueues()
	stand := &standIns{machines: &simulators{log: s.log, agents: agents}, plan: p, start: make(chan []stage, 1)}
	there, specs, err := s.fleet(ctx, p, agents, stand, owners)
	if err != nil {
		return err
	}
	fleet, counts := there.fleet, router.NewCounts(there.fleet)
	s.settings.roster = there
	routing := router.Config{
		Queues: queues, Owners: owners, Counts: counts,
		Fleet: fleet, Store: s.store, Auditor: s.audit, Log: s.log.Named("handoff"),
		AskAgain: time.Duration(p.Approvals.AskAgain), GiveUp: time.Duration(p.Approvals.GiveUp),
		Silence: time.Duration(p.Work.Silence), Patience: time.Duration(p.Work.Patience),
	}
	pushed, after, err := s.notify(ctx, p, &routing)
	if err != nil {
		return err
	}
	beside, err := s.peering(p)
	if err != nil {
		return err
	}
	after = append(after, beside.share(s, &routing)...)
	runs := beside.homes(routing)
	s.handoffs = runs
	beside.forward(s, runs, there.lines)
	calls, broken := s.calls(p, fleet, runs), sessions.NewBrokenCalls(s.store, s.store)
	front, err := s.front(p, calls, broken, beside)
	if err != nil {
		return err
	}
	if s.api, err = s.responses(fleet, runs); err != nil {
		return err
	}
	agentFront := s.mcp(backend(fleet, runs, calls), runs, beside.self.ID)
	s.describe(p, sims.voice, specs, listen.Addr())
	programs := s.oauth(p)
	keys, err := s.letIn(ctx, p)
	if err != nil {
		return err
	}
	s.ready = newReadiness(s.store, func() error { return runs.Recovered(ctx, 0) })
	limited := web.Limit(listen, p.TrustedProxies, s.log.Named("web"))
	s.edge, err = web.New(web.Config{
		Entrance: web.Entrance{
			Keys: keys, Listen: listen.Addr().String(), PublicURL: p.PublicURL, TrustedProxies: p.TrustedProxies,
		},
		Router: runs, Store: edgeMemory{s.store, broken}, Fleet: fleet, Decisions: s.audit, Push: pushed,
		VoiceFront: web.VoiceFront{Front: front, Calls: front, Levels: calls, Voice: sims.voiceInfo(p.Model, p.Speech.Language)},
		Ownership: web.Ownership{
			Owner: ownerName, Joining: joining{there.machines}, Reload: s.settings.reload, MachineLog: s.machineLog.of,
			Address: s.page, Line: there.machines.ServeHTTP,
		},
		Programs: web.Programs{Responses: s.api, MCP: agentFront, MCPPipe: agentFront.Pipe, OAuth: programs},
		Several:  beside.several(),
		Metrics:  http.HandlerFunc(s.serveFigures),
		Ready:    s.ready.check, Trace: s.trace, Log: s.log.Named("web"),
	})
	if err != nil {
		return err
	}
	beside.taken = front.Resume
	beside.leave = []func(handoff.Caller){front.Leave, s.edge.Leave}
	s.drain = func(ctx context.Context) { beside.drain(ctx, s.edge, front.Busy) }
	s.count(thisBuild(), s.store, fleet, queues, counts, calls, s.api, agentFront, programs, front, limited, s.edge,
		there.machines, beside.several().Peers)
	s.figures = metrics.Handler(s.log.Named("metrics"), s.counted...)
	absent := newAbsenceWatch(p.Gone, fleet.Known, runs.Waiting, routing.Notifier.Notify)
	desks := &watchAll{fleet: fleet, runs: runs, held: queues.Held, tried: map[string]time.Time{}}
	after = slices.Concat([]stage{{"absent machines", absent.run}, {"watch all", desks.run}}, after,
		[]stage{{"agents", agents.Run}, {"fleet", fleet.Run}, {"machines", there.machines.Run}},
		sims.stages, []stage{{"simulated machines", stand.run}, {"sessions", s.store.Run}})
	if s.traces != nil {
		after = append(after, stage{"traces", s.traces.Run})
	}
	first := append(beside.stages(s), stage{"responses", s.api.Run}, stage{"router", runs.Run}, stage{"voice", front.Run})
	return s.stage(p, limited, runs.Recovered, after, first...)
}

// front returns the voice front: it takes calls and connects to the voice model.
func (s *service) front(
	p plan, calls realtime.Router, broken realtime.Broken, beside *peering,
) (*realtime.Front, error) {
	language := wording.Language(p.Speech.Language)
	var ticks func(string, []byte)
	if p.Debug.Ticks {
		ticks = s.keepTicks(filepath.Join(p.StateDir, "ticks"))
	}
	var carried realtime.Carried
	if !p.Peers.set() { // with peers, the documents are those of all instances
		carried = sessions.CarriedCalls{Documents: s.store}
	}
	c := realtime.Config{
		Carried:  carried,
		Again:    s.grantAgain,
		Ticks:    ticks,
		ModelURL: p.Model.URL, Model: p.Model.Name, Aliases: p.Model.Aliases, Key: p.Model.Key.Reveal(),
		Router: s.tracedCalls(calls), Tools: tools.In(language), Partings: partings(language),
		Backchannel: consent.Backchannel, Echo: consent.Echoes, Spending: s.store, Tariff: p.Model.tariff(), Billed: s.billed,
		Media: p.media(), Direct: p.Model.direct(), Hold: callHold, Broken: broken, Effort: p.Model.Reasoning.Effort,
		Instance: beside.self.ID, Log: s.log.Named("realtime"),
	}
	if all, shared := beside.calls(s.store); shared {
		c.OpenCalls, c.Attached = openCalls{all}, all
	}
	return realtime.NewFront(c)
}

// oauth returns the part with which programs ask for access; nil unless the settings allow it. It needs s.address.
func (s *service) oauth(p plan) web.OAuth {
	if !p.MCP.OAuth {
		return nil
	}
	return oauth.New(oauth.Config{
		Issuer: strings.TrimSuffix(s.address, "/"), Apps: s.store, Audit: s.audit, Transport: p.Documents,
		Log: s.log.Named("oauth"),
	})
}

// partings returns the sentences before the end of a call, in the language that its client chose, or else in that of
// the settings.
func partings(configured wording.Language) func(string) realtime.Partings {
	return func(chosen string) realtime.Partings {
		l := cmp.Or(wording.Language(chosen), configured)
		return realtime.Partings{Money: l.MoneyUsedUp(), Minute: l.LastMinute()}
	}
}

// stage orders the stages by their end: the router ends before the voice, so that open requests are still answered
// there. Nothing is served before the work of an earlier process has been read, or [recoverWithin] has passed:
// otherwise callers would hear that their work does not exist.
func (s *service) stage(
	p plan, limited net.Listener, recovered func(context.Context, time.Duration) error, after []stage, first ...stage,
) error {
	verbs, err := listenControl(p.StateDir)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, verbs)
	s.stages = append(append([]stage{
		{"control", func(ctx context.Context) error {
			_ = recovered(ctx, recoverWithin) // on failure, each request gets the error
			return serveHTTP(ctx, s.control().serve(s.edge.HTTPServer()), verbs, "", "")
		}},
		{"http", func(ctx context.Context) error {
			_ = recovered(ctx, recoverWithin)
			return serveHTTP(ctx, s.edge.HTTPServer(), limited, p.TLS.CertFile, p.TLS.KeyFile)
		}},
	}, first...), after...)
	return nil
}

// calls returns what serves voice calls, with the fleet and the router.
func (s *service) calls(p plan, fleet *servers.Fleet, runs *homes.Homes) *call.Calls {
	return call.New(call.Config{
		Handoffs: runs, Attending: runs, Questions: runs, Shown: runs.Shown, Levels: sessions.Levels{Documents: s.store},
		Tools:   tools.Backend{Directory: fleet, Resolver: fleet, Namer: fleet, Trees: fleet, Work: runs, Questions: runs},
		Updates: handoff.SpeechLevel(p.Speech.Updates), Language: wording.Language(p.Speech.Language),
		AskAgain: time.Duration(p.Approvals.AskAgain), Log: s.log.Named("call"),
	})
}

// billed adds the cost of a call to its caller's history. A caller without a name has no history.
func (s *service) billed(ctx context.Context, b realtime.Bill) error {
	if b.Caller.Nameless() {
		return nil
	}
	return s.store.AddSaid(ctx, b.Caller, []sessions.Said{{
		ID: "call " + b.Call, At: b.Began.Add(b.Took), Who: sessions.WhoCall, Text: callWords(b),
	}})
}

// callWords describes an ended call: "A call of 12 minutes, about $1.48".
func callWords(b realtime.Bill) string {
	cost := fmt.Sprintf("about %s", b.Cost)
	switch {
	case b.Priced && b.Cost == 0:
		cost = "at no cost"
	case !b.Priced:
		cost = fmt.Sprintf("%d tokens", b.Tokens.Sum())
	case b.Cost < models.Dollar/200:
		cost = b.Cost.String()
	}
	return fmt.Sprintf("A call of %s, %s", wording.English.AgeWords(b.Took), cost)
}

// backend returns what the tools of a front other than calls work on.
func backend(fleet *servers.Fleet, runs *homes.Homes, calls *call.Calls) tools.Backend {
	return tools.Backend{
		Directory: fleet, Resolver: fleet, Namer: fleet, Trees: fleet,
		Work: runs, Questions: runs, Giver: runs, Handoffs: runs, Decisions: runs, Levels: calls,
	}
}

// mcp returns the front that offers the tools to other agents.
func (s *service) mcp(back tools.Backend, runs *homes.Homes, instance string) *mcp.Front {
	return mcp.New(mcp.Config{
		Backend: back, Work: runs, Version: thisBuild().String(), Page: s.page, Trace: s.trace,
		Instance: instance, Log: s.log.Named("mcp"),
	})
}

// responses returns the front that offers the fleet as models of OpenAI's Responses API.
func (s *service) responses(fleet *servers.Fleet, runs *homes.Homes) (*webresponses.API, error) {
	return webresponses.New(webresponses.Config{
		Handoffs: runs, Attending: runs, Work: runs, Questions: runs, Directory: fleet, Store: s.store,
		Log: s.log.Named("responses"),
	})
}

// count adds parts to the sources of metrics, and ignores parts without metrics.
func (s *service) count(parts ...any) {
	for _, p := range parts {
		if source, ok := p.(metrics.Source); ok {
			s.counted = append(s.counted, source)
		}
	}
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

// close closes everything that is open. Only run and a failed newService call it, at the end.
func (s *service) close() {
	for _, l := range s.opened {
		_ = l.Close() // fails if a server has closed it already
	}
	if s.audit != nil {
		if err := s.audit.Close(); err != nil {
			s.log.Error("audit not closed", zap.Error(err))
		}
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("sessions not saved", zap.Error(err))
		}
	}
}

// describe sets the texts that a start prints, and the addresses.
func (s *service) describe(p plan, simulated bool, specs []servers.Spec, listen net.Addr) {
	voice := "voice: simulated (set OPENAI_API_KEY for a real one)"
	if !simulated {
		s.voice = p.Model.Name + " at " + hostOf(p.Model.URL)
		voice = "voice: " + s.voice
	}
	names := strings.Join(namesOf(specs), ", ")
	machines := "machines: " + names
	if slices.ContainsFunc(specs, func(spec servers.Spec) bool { return spec.Simulated }) {
		machines = "machines: simulated (" + names + "; name yours in switchboard.yaml, or use --codex)"
	}
	s.real = voice + "; " + machines
	host, _, _ := net.SplitHostPort(p.Listen) // valid, since net.Listen took it
	_, port, _ := net.SplitHostPort(listen.String())
	s.base = baseOf(net.JoinHostPort(host, port), p.TLS.CertFile != "")
	s.address = cmp.Or(p.PublicURL, s.base)
	s.address = strings.TrimSuffix(s.address, "/") + "/"
}

// control returns what the verbs beside this service may do.
func (s *service) control() control {
	fleet := s.settings.roster.fleet
	return control{
		link: s.link, test: fleet.Test, machines: fleet.Machines, api: s.edge.Inside(ownerName), base: s.base, voice: s.voice,
		keys: s.settings.keys,
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
