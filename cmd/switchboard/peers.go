package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/realtime"
	"switchboard/servers/joined"
	"switchboard/servers/responses"
	"switchboard/sessions/redis"
	"switchboard/web"
	"switchboard/web/peers"
)

// Times of the end of one of several instances.
const (
	drainFor  = 2 * time.Minute       // the longest that requests and calls are waited for
	drainLook = 50 * time.Millisecond // between two looks whether any are left
)

// drainLeast is the least time between a /readyz that refuses and the end of the instance. Tests shorten it.
var drainLeast = 5 * time.Second

// A peering is how this instance gets on with the others: who has which caller, and how requests come from them and go
// there. The zero value is that of the only instance.
type peering struct {
	self      homes.Instance
	shared    homes.Store // who has which caller; nil: there are no others
	identity  peers.Identity
	listener  net.Listener
	forwarder *peers.Forwarder // nil before [peering.forward], and where there are no others
	runs      *homes.Homes     // nil before [peering.homes], and where there are no others
	// taken is told of each caller whom this instance has taken, and may wait. Set before anything runs.
	taken func(context.Context, handoff.Caller)
	// leave end what is here of a caller whom another instance has: calls, streams, requests. Set before anything runs.
	leave []func(handoff.Caller)
}

// peering listens for the other instances of a plan.
func (s *service) peering(p plan) (*peering, error) {
	if !p.Peers.set() {
		return &peering{}, nil
	}
	store, ok := s.store.(interface{ Homes() redis.Homes })
	if !ok {
		return nil, errors.New("several instances share a Redis, and this one has none")
	}
	listen, err := net.Listen("tcp", p.Peers.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for other instances: %w", p.Peers.Listen, err)
	}
	s.opened = append(s.opened, listen)
	identity, err := peers.NewIdentity()
	if err != nil {
		return nil, err
	}
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} // few come from each
	return &peering{
		shared: store.Homes(), identity: identity, listener: web.Limit(listen, everywhere, s.log.Named("peers")),
		self: homes.Instance{
			ID: store.Homes().ID(), Address: cmp.Or(p.Peers.Address, listen.Addr().String()),
			Fingerprint: identity.Fingerprint(),
		},
	}, nil
}

// agents returns the agents that this instance runs itself, of which there are none so far.
func (s *service) agents(p plan) *responses.Agents {
	agents := responses.NewAgents(s.store.Threads(), p.StateDir)
	if p.Peers.set() {
		agents.Share()
	}
	return agents
}

// share has an instance count with the others what keys may give, and know whose sessions they make. It returns the
// stages that do so.
func (p *peering) share(s *service, routing *router.Config) []stage {
	if p.shared == nil {
		return nil
	}
	store, log := s.store.(interface {
		router.RateStore
		router.OwnedNews
		router.Gates
	}), s.log.Named("peers")
	routing.Rates = new(router.Rates)
	routing.Rates.Share()
	routing.Gates = store
	return []stage{{"rates", func(ctx context.Context) error {
		routing.Rates.Settle(ctx, store)
		return nil
	}}, {"owners", func(ctx context.Context) error {
		routing.Owners.Follow(ctx, store, log)
		return nil
	}}}
}

// openCalls counts the open calls of keys over all instances that live; nil: this is the only one.
func (p *peering) openCalls(s *service) realtime.OpenCalls {
	if p.runs == nil {
		return nil
	}
	return openCalls{s.store.(callStore), p.runs.Dead}
}

// A callStore counts open calls over all instances, those among them that are gone.
type callStore interface {
	CountCalls(
		ctx context.Context, name string, number uint64, calls, most int,
	) (fits bool, others []string, err error)
	ForgetCalls(ctx context.Context, name string, gone []string) error
}

// openCalls takes from the count what instances had that are gone.
type openCalls struct {
	store callStore
	dead  func(id string) bool
}

// CountCalls implements [realtime.OpenCalls].
func (o openCalls) CountCalls(
	ctx context.Context, name string, mine realtime.CallsHere, most int,
) (bool, error) {
	fits, others, err := o.store.CountCalls(ctx, name, mine.Number, mine.Calls, most)
	gone := slices.DeleteFunc(others, func(id string) bool { return !o.dead(id) })
	if err != nil || len(gone) == 0 {
		return fits, err
	}
	if err := o.store.ForgetCalls(ctx, name, gone); err != nil || fits {
		return fits, err
	}
	fits, _, err = o.store.CountCalls(ctx, name, mine.Number, mine.Calls, most)
	return fits, err
}

// homes has a home for each caller of this instance.
func (p *peering) homes(each router.Config) *homes.Homes {
	if p.shared == nil {
		return homes.New(each)
	}
	p.runs = homes.NewShared(each, homes.Sharing{
		Self: p.self, Store: p.shared,
		Lost: func(c handoff.Caller) {
			for _, leave := range p.leave {
				leave(c)
			}
		},
		Taken: func(ctx context.Context, c handoff.Caller) { p.taken(ctx, c) },
	})
	return p.runs
}

// attached keeps which instance is in which call of the voice model's server; nil: there are no others.
func (p *peering) attached(store any) realtime.Attached {
	if s, ok := store.(interface {
		Attached(dead func(string) bool) redis.Attached
	}); ok && p.runs != nil {
		return s.Attached(p.runs.Dead)
	}
	return nil
}

// drain hands over to the other instances what is here before this one ends, while it serves and forwards what comes
// in. It takes as long as requests and calls that are under way, [drainFor] at most, and until a balancer that asks
// /readyz can have noticed. Without others it returns at once. A second signal to end ends the wait.
func (p *peering) drain(ctx context.Context, edge *web.Server, inCall func(handoff.Caller) bool) {
	if p.runs == nil || !p.runs.Others() {
		return
	}
	noticed := time.After(drainLeast)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	edge.Drain()
	p.runs.Drain(ctx, inCall)
	tick := time.NewTicker(drainLook)
	defer tick.Stop()
	for waits := true; ctx.Err() == nil && (waits || p.forwarder.Busy()); {
		select {
		case <-noticed:
			waits = false
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// forward has requests served where their callers are, and agents reached by the lines that their machines keep to
// other instances.
func (p *peering) forward(s *service, runs *homes.Homes, lines *joined.Lines) {
	if p.shared == nil {
		return
	}
	p.forwarder = peers.New(peers.Config{
		ID: p.self.ID, Identity: p.identity, Locator: locator{runs}, Lines: lines, Log: s.log.Named("peers"),
	})
	lines.Elsewhere = p.forwarder.DialLine
}

// web is what the edge is told of the other instances; nil: there are none.
func (p *peering) web() web.Peers {
	if p.forwarder == nil {
		return nil
	}
	return p.forwarder
}

// instances returns what tells the owner of the instances that live; nil: there are no others.
func (p *peering) instances() func() []web.InstanceInfo {
	if p.runs == nil {
		return nil
	}
	return func() (there []web.InstanceInfo) {
		for _, one := range p.runs.Instances() {
			there = append(there, web.InstanceInfo{
				ID: one.ID, Address: one.Address, Draining: one.Draining, Here: one.ID == p.self.ID,
			})
		}
		return there
	}
}

// stages serve what other instances forward, and watch what this one does.
func (p *peering) stages(s *service) []stage {
	if p.forwarder == nil {
		return nil
	}
	forwarded := func(ctx context.Context) error {
		server := s.edge.HTTPServer()
		server.Handler = p.forwarder.Handler(s.edge.Forwarded())
		server.MaxHeaderBytes += 4 << 10 // what was taken there, and what an instance adds
		return serveHTTP(ctx, server, p.forwarder.Listen(p.listener), "", "")
	}
	return []stage{{"made keys", s.settings.follow}, {"forwarding", p.forwarder.Run}, {"peers", forwarded}}
}

// A locator tells the forwarder who has which caller.
type locator struct{ homes *homes.Homes }

// Where implements [peers.Locator].
func (l locator) Where(ctx context.Context, c handoff.Caller) (peers.Peer, error) {
	at, err := l.homes.Where(ctx, c)
	return peerOf(at), err
}

// Peers implements [peers.Locator].
func (l locator) Peers() (there []peers.Peer) {
	for _, one := range l.homes.Instances() {
		if one.Address != "" { // else it serves nobody else's callers
			there = append(there, peerOf(one))
		}
	}
	return there
}

// Dead implements [peers.Locator].
func (l locator) Dead(id string) bool { return l.homes.Dead(id) }

func peerOf(i homes.Instance) peers.Peer {
	return peers.Peer{ID: i.ID, Address: i.Address, Fingerprint: i.Fingerprint}
}
