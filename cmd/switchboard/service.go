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
	"switchboard/servers/responses"
	"switchboard/sessions"
	"switchboard/web"
	"switchboard/web/mcp"
	"switchboard/web/metrics"
	"switchboard/web/oauth"
	webresponses "switchboard/web/responses"
)

// callHold is how long a call waits for its client that vanished.
const callHold = 2 * time.Minute

// httpGrace is how long requests may take to end when the service does.
const httpGrace = 2 * time.Second

// A service is everything wired together, listening, and not yet running.
type service struct {
	log      *zap.Logger
	opened   []net.Listener // closed at the end, also if nothing ran
	store    store
	ready    *readiness
	test     func(context.Context, handoff.Grant, string) (time.Duration, error) // asks a machine something
	machines func(handoff.Grant) []handoff.Machine                               // what is told of machines
	audit    *sessions.Audit
	traces   *traces.Traces // nil: nothing is traced
	trace    handoff.Tracer // likewise
	stages   []stage
	drain    func(context.Context) // hands over to other instances before the stages end
	counted  []metrics.Source      // what shows its numbers to operators
	real     string                // one line: what is real and what is simulated
	base     string                // where it listens, as this machine reaches it
	address  string                // the page
	edge     *web.Server
	settings *reloading
}

// newService builds a service. What fails here fails before anything runs, and leaves nothing open.
func newService(ctx context.Context, p plan, log *zap.Logger) (*service, error) {
	s := &service{log: log}
	s.settings = &reloading{again: p.Again, first: &p.settings, now: &p.settings,
		put: func(keys []web.Key) { s.edge.SetKeys(keys) }}
	if err := s.build(ctx, p); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *service) build(ctx context.Context, p plan) error {
	listen, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; is another Switchboard running there?", p.Listen, err)
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
	var runs *homes.Homes
	var api *webresponses.API
	owners, queues := router.NewOwners(s.store), router.NewQueues()
	stand := newStandIns(&simulators{log: s.log, agents: agents}, p)
	there, specs, err := s.fleet(ctx, p, agents, stand, servers.Config{
		Changed: func() { runs.ServersChanged() }, Log: s.log.Named("servers"), Hidden: owners.Hidden,
		ByAPI: func(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
			return api.Made(ctx, c)
		},
	}, func(server string) bool { return runs.Working(server) })
	if err != nil {
		return err
	}
	fleet, counts := there.fleet, router.NewCounts(there.fleet)
	routing := router.Config{
		Queues: queues, Owners: owners, Counts: counts,
		Fleet: fleet, Stickies: s.store, Ledger: s.store, Auditor: s.audit, Log: s.log.Named("handoff"),
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
	runs = beside.homes(routing)
	beside.forward(s, runs, there.lines)
	calls, broken := s.calls(p, fleet, runs), sessions.NewBrokenCalls(s.store, s.store)
	front, err := s.front(p, calls, broken, beside)
	if err != nil {
		return err
	}
	if api, err = s.responses(fleet, runs); err != nil {
		return err
	}
	agentFront := s.mcp(backend(fleet, runs, calls), runs, beside.self.ID)
	s.describe(p, sims.voice, specs, listen.Addr())
	programs := s.oauth(p)
	keys, err := s.letIn(ctx, p, there)
	if err != nil {
		return err
	}
	s.ready = newReadiness(s.store, func() error { return runs.Recovered(ctx, 0) })
	limited := web.Limit(listen, p.TrustedProxies, s.log.Named("web"))
	var scraped http.Handler
	s.edge, err = web.New(web.Config{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { scraped.ServeHTTP(w, r) }),
		Router:  runs, Store: edgeMemory{s.store, broken}, Fleet: fleet, Front: front, Calls: front, Levels: calls,
		Decisions: s.audit, Push: pushed, Responses: api, MCP: agentFront, MCPPipe: agentFront.Pipe,
		Keys: keys, Listen: listen.Addr().String(), PublicURL: p.PublicURL, TrustedProxies: p.TrustedProxies,
		Joining: joining{there.machines}, Line: there.machines.ServeHTTP, Reload: s.settings.reload,
		Owner: ownerName, Address: func() string { return s.address },
		OAuth: programs, Voice: sims.voiceInfo(p.Model, p.Speech.Language), Ready: s.ready.check, Trace: s.trace,
		Log: s.log.Named("web"), Peers: beside.web(), Instances: beside.instances(),
	})
	if err != nil {
		return err
	}
	beside.taken = front.Resume
	beside.leave = []func(handoff.Caller){front.Leave, s.edge.Leave}
	s.drain = func(ctx context.Context) { beside.drain(ctx, s.edge, front.Busy) }
	s.count(thisBuild(), s.store, fleet, queues, counts, calls, api, agentFront, programs, front, limited, s.edge,
		there.machines, beside.web())
	scraped = metrics.Handler(s.log.Named("metrics"), s.counted...)
	absent := newAbsentees(p.Gone, fleet.Known, runs.Waiting, routing.Notifier.Notify)
	after = slices.Concat([]stage{{"absent machines", absent.run}}, after,
		[]stage{{"agents", agents.Run}, {"fleet", fleet.Run}, {"machines", there.machines.Run}},
		sims.stages, []stage{{"simulated machines", stand.run}, {"sessions", s.store.Run}})
	if s.traces != nil {
		after = append(after, stage{"traces", s.traces.Run})
	}
	first := append(beside.stages(s), stage{"responses", api.Run}, stage{"router", runs.Run}, stage{"voice", front.Run})
	return s.stage(p, limited, runs.Recovered, after, first...)
}

// front is where calls come in and the voice model is reached.
func (s *service) front(
	p plan, calls realtime.Router, broken realtime.Broken, beside *peering,
) (*realtime.Front, error) {
	language := wording.Language(p.Speech.Language)
	var ticked func(string, []byte)
	if p.Debug.Ticks {
		ticked = s.keepTicks(filepath.Join(p.StateDir, "ticks"))
	}
	var carried realtime.Carried
	if !p.Peers.set() { // of several, none has the whole store
		carried = sessions.CarriedCalls{Documents: s.store}
	}
	return realtime.NewFront(realtime.Config{
		Carried:  carried,
		Attached: beside.attached(s.store),
		Again: func(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
			return s.edge.Again(ctx, by, c)
		},
		Ticks:    ticked,
		ModelURL: p.Model.URL, Model: p.Model.Name, Aliases: p.Model.Aliases, Key: p.Model.Key.Reveal(),
		Router: s.tracedCalls(calls), Tools: tools.In(language), Partings: partings(language),
		Backchannel: consent.Backchannel, Spending: s.store, Tariff: p.Model.tariff(), Billed: s.billed,
		Media: p.media(), Direct: p.Model.direct(), Hold: callHold, Broken: broken, Effort: p.Model.Reasoning.Effort,
		Instance: beside.self.ID, OpenCalls: beside.openCalls(s), Log: s.log.Named("realtime"),
	})
}

// oauth lets programs ask for access; nil: the settings do not say so. The address is known by then.
func (s *service) oauth(p plan) web.OAuth {
	if !p.MCP.OAuth {
		return nil
	}
	return oauth.New(oauth.Config{
		Issuer: strings.TrimSuffix(s.address, "/"), Apps: s.store, Audit: s.audit, Transport: p.Documents,
		Log: s.log.Named("oauth"),
	})
}

// partings returns what is said before a call ends, in the language that its client chose, or in that of the settings.
func partings(configured wording.Language) func(string) realtime.Partings {
	return func(chosen string) realtime.Partings {
		l := cmp.Or(wording.Language(chosen), configured)
		return realtime.Partings{Money: l.MoneyUsedUp(), Minute: l.LastMinute()}
	}
}

// stage lines up what runs, in the order in which it ends: the router before the voice, so that open requests are
// answered into it. Nothing is served before recovered tells what a former life left, or that it cannot be read soon:
// nobody hears that their work does not exist.
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
			_ = recovered(ctx, knownWithin) // each request is told
			return serveHTTP(ctx, s.control().serve(s.edge.HTTPServer()), verbs, "", "")
		}},
		{"http", func(ctx context.Context) error {
			_ = recovered(ctx, knownWithin)
			return serveHTTP(ctx, s.edge.HTTPServer(), limited, p.TLS.CertFile, p.TLS.KeyFile)
		}},
	}, first...), after...)
	return nil
}

// fleet makes the registry of agent servers, and returns it with those that it begins with. The router and the API
// are there before it runs.
func (s *service) fleet(
	ctx context.Context, p plan, agents *responses.Agents, stand *standIns, c servers.Config, busy func(string) bool,
) (*roster, []servers.Spec, error) {
	there, err := s.roster(ctx, p, agents, stand, busy)
	if err != nil {
		return nil, nil, err
	}
	c.Specs, err = there.first(ctx, p.Servers)
	s.opened = append(s.opened, stand.machines.listeners...)
	if err != nil {
		return nil, nil, err
	}
	if there.fleet, err = servers.New(c); err != nil {
		return nil, nil, err
	}
	s.test, s.machines = there.fleet.Test, there.fleet.Machines
	return there, c.Specs, nil
}

// calls serves voice calls with what the fleet and the router can do.
func (s *service) calls(p plan, fleet *servers.Fleet, runs *homes.Homes) *call.Calls {
	return call.New(call.Config{
		Runs: runs, Attending: runs, Questions: runs, Shown: runs.Shown, Levels: sessions.Levels{Documents: s.store},
		Tools:   tools.Backend{Directory: fleet, Resolver: fleet, Namer: fleet, Work: runs, Questions: runs},
		Updates: handoff.SpeechLevel(p.Speech.Updates), Language: wording.Language(p.Speech.Language),
		AskAgain: time.Duration(p.Approvals.AskAgain), Log: s.log.Named("call"),
	})
}

// billed keeps what a call has cost in its caller's history; who has no name has none.
func (s *service) billed(ctx context.Context, b realtime.Bill) error {
	if b.Caller.Nameless() {
		return nil
	}
	return s.store.AddSaid(ctx, b.Caller, []sessions.Said{{
		ID: "call " + b.Call, At: b.Began.Add(b.Took), Who: sessions.WhoCall, Text: callWords(b),
	}})
}

// callWords tells of a call that is over: "A call of 12 minutes, about $1.48".
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

// backend is what the tools of a front work on that is no call.
func backend(fleet *servers.Fleet, runs *homes.Homes, calls *call.Calls) tools.Backend {
	return tools.Backend{
		Directory: fleet, Resolver: fleet, Namer: fleet,
		Work: runs, Questions: runs, Giver: runs, Runs: runs, Decisions: runs, Levels: calls,
	}
}

// mcp serves the table of tools to other agents.
func (s *service) mcp(back tools.Backend, runs *homes.Homes, instance string) *mcp.Front {
	return mcp.New(mcp.Config{
		Backend: back, Work: runs, Version: thisBuild().String(), Page: func() string { return s.address }, Trace: s.trace,
		Instance: instance, Log: s.log.Named("mcp"),
	})
}

// responses serves the fleet as OpenAI Responses.
func (s *service) responses(fleet *servers.Fleet, runs *homes.Homes) (*webresponses.API, error) {
	return webresponses.New(webresponses.Config{
		Runs: runs, Attending: runs, Work: runs, Questions: runs, Directory: fleet, Store: s.store,
		Log: s.log.Named("responses"),
	})
}

// count adds to what operators see; a part that counts nothing is left out.
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

// close releases what is open. After run nothing else uses it.
func (s *service) close() {
	for _, l := range s.opened {
		_ = l.Close() // who served it has closed it already
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

// describe words the two lines that a start prints.
func (s *service) describe(p plan, simulated bool, specs []servers.Spec, listen net.Addr) {
	voice := "voice: " + p.Model.Name + " at " + hostOf(p.Model.URL)
	if simulated {
		voice = "voice: simulated (set OPENAI_API_KEY for a real one)"
	}
	names := strings.Join(namesOf(specs), ", ")
	machines := "machines: " + names
	if slices.ContainsFunc(specs, func(spec servers.Spec) bool { return spec.Simulated }) {
		machines = "machines: simulated (" + names + "; name yours in switchboard.yaml, or use --codex)"
	}
	s.real = voice + "; " + machines
	host, _, _ := net.SplitHostPort(p.Listen) // it was listened at
	_, port, _ := net.SplitHostPort(listen.String())
	s.base = baseOf(net.JoinHostPort(host, port), p.TLS.CertFile != "")
	s.address = cmp.Or(p.PublicURL, s.base)
	s.address = strings.TrimSuffix(s.address, "/") + "/"
}

// control is what verbs may ask of this service.
func (s *service) control() control {
	api := s.edge.Inside(ownerName)
	return control{
		link: s.link, test: s.test, machines: s.machines, api: api, base: s.base, keys: s.settings.keys,
	}
}

// link makes a link that logs in a principal; without a name the owner.
func (s *service) link(ctx context.Context, principal string) (string, error) {
	code, err := s.edge.NewCode(ctx, cmp.Or(principal, ownerName))
	if err != nil {
		return "", err
	}
	return s.address + "#login=" + code, nil
}

// serveHTTP serves until ctx ends; then it stops taking requests and ends the open ones.
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
