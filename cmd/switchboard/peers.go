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
	"syscall"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/realtime"
	"switchboard/sessions/redis"
	"switchboard/web"
	"switchboard/web/peers"
)

// Times of the shutdown of one of several instances.
const (
	drainFor  = 2 * time.Minute       // the longest wait for open requests and calls
	drainPoll = 50 * time.Millisecond // between two checks whether any are left
)

// drainLeast is the least time from the moment that /readyz fails to the end of the instance. Tests shorten it.
var drainLeast = 5 * time.Second

// A peering is what this instance does with the others: it knows which of them is home to which caller, and forwards
// requests. The zero value is for a single instance.
type peering struct {
	self      handoff.Instance
	shared    homes.Store // the home of each caller; nil for a single instance
	identity  peers.Identity
	listener  net.Listener
	forwarder *peers.Forwarder // nil before [peering.forward], and for a single instance
	runs      *homes.Homes     // nil before [peering.homes], and for a single instance
	// taken is called for each caller whose home this instance has become; it may block. Set before anything runs.
	taken func(context.Context, handoff.Caller)
	// leave end the calls, streams and requests here of a caller whose home is now another instance. Set before
	// anything runs.
	leave []func(handoff.Caller)
}

// newPeering returns the peering of the plan, which listens for the other instances.
func (s *service) newPeering() (*peering, error) {
	p := s.plan
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
	s.closes("listener", listen)
	identity, err := peers.NewIdentity()
	if err != nil {
		return nil, err
	}
	// Every address counts like that of a proxy, so that only the total is limited: an instance has many connections.
	anywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	return &peering{
		shared: store.Homes(), identity: identity, listener: web.Limit(listen, anywhere, s.log.Named("peers")),
		self: handoff.Instance{
			ID: store.Homes().ID(), Address: cmp.Or(p.Peers.Address, listen.Addr().String()),
			Fingerprint: identity.Fingerprint(),
		},
	}, nil
}

// share makes the rate limits of keys count over all instances, and the owners of threads known to all. It returns the
// stages that do so; a single instance needs none.
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

// openCalls counts open calls over all living instances.
type openCalls struct{ redis.Calls }

// CountCalls implements [realtime.OpenCalls].
func (o openCalls) CountCalls(ctx context.Context, name string, mine realtime.CallsHere, most int) (bool, error) {
	return o.Calls.CountCalls(ctx, name, mine.Number, mine.Calls, most)
}

// calls returns what instances know of each other's calls; false for a single instance.
func (p *peering) calls(store any) (redis.Calls, bool) {
	s, shared := store.(*redis.Store)
	if !shared || p.runs == nil {
		return redis.Calls{}, false
	}
	return s.Calls(p.runs.Dead), true
}

// homes returns the homes of callers: a router for each caller of this instance.
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

// drain hands the callers of this instance over to the others before it ends, and meanwhile serves and forwards
// requests. It returns when open requests and calls have ended, or after [drainFor]; never before [drainLeast], so that
// a load balancer that polls /readyz has noticed. Without other instances it returns at once. A second signal to end,
// SIGINT or SIGTERM, makes it return.
func (p *peering) drain(ctx context.Context, edge *web.Server, inCall func(handoff.Caller) bool) {
	if p.runs == nil || !p.runs.Others() {
		return
	}
	least := time.After(drainLeast)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	edge.Drain()
	p.runs.Drain(ctx, inCall)
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for waits := true; ctx.Err() == nil && (waits || p.forwarder.Busy()); {
		select {
		case <-least:
			waits = false
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// forward makes the forwarder, which sends requests to the home of their caller, and reaches agents through the lines
// that their machines keep to other instances.
func (p *peering) forward(s *service) {
	if p.shared == nil {
		return
	}
	p.forwarder = peers.New(peers.Config{
		ID: p.self.ID, Identity: p.identity, Locator: s.handoffs, Lines: s.roster.lines,
		Log: s.log.Named("peers"),
	})
	s.roster.lines.Elsewhere = p.forwarder.DialLine
	s.counted = append(s.counted, p.forwarder)
}

// several returns what the edge knows of other instances: the forwarder, and the living instances for the owner. It is
// empty for a single instance.
func (p *peering) several() web.Several {
	if p.forwarder == nil {
		return web.Several{}
	}
	return web.Several{Peers: p.forwarder, Instances: func() (there []web.InstanceInfo) {
		for _, one := range p.runs.Instances() {
			there = append(there, web.InstanceInfo{
				ID: one.ID, Address: one.Address, Draining: one.Draining, Here: one.ID == p.self.ID,
			})
		}
		return there
	}}
}

// stages returns the stages that serve forwarded requests, run the forwarder, and follow the made keys of others.
func (p *peering) stages(s *service) []stage {
	if p.forwarder == nil {
		return nil
	}
	forwarded := func(ctx context.Context) error {
		server := s.edge.HTTPServer()
		server.Handler = p.forwarder.Handler(s.edge.Forwarded())
		server.MaxHeaderBytes += 4 << 10 // for the headers that the forwarding instance adds
		return serveHTTP(ctx, server, p.forwarder.Listen(p.listener), "", "")
	}
	return []stage{{"made keys", s.settings.follow}, {"forwarding", p.forwarder.Run}, {"peers", forwarded}}
}
