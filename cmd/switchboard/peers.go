package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"switchboard/servers/joined"
	"switchboard/web"
	"switchboard/web/peers"
)

// A peersPlan is what several instances need that serve one another's callers.
type peersPlan struct {
	ID      string                              // of this instance
	Listen  string                              // where the others reach it, as host:port
	Locator func(self peers.Peer) peers.Locator // what knows the others, of whom this instance is then one
}

// instance is what the ids of calls and sessions name; "": there is one instance.
func (p plan) instance() string {
	if p.Peers == nil {
		return ""
	}
	return p.Peers.ID
}

// A peering is how requests come from other instances, and go there. The zero value is that of the only instance.
type peering struct {
	forwarder *peers.Forwarder // nil: there are no others
	listener  net.Listener
}

// peering listens for the other instances of a plan. An agent whose machine keeps its line to one of them is reached
// through that.
func (s *service) peering(p plan, lines *joined.Lines) (peering, error) {
	if p.Peers == nil {
		return peering{}, nil
	}
	listen, err := net.Listen("tcp", p.Peers.Listen)
	if err != nil {
		return peering{}, fmt.Errorf("cannot listen on %s for other instances: %w", p.Peers.Listen, err)
	}
	s.opened = append(s.opened, listen)
	identity, err := peers.NewIdentity()
	if err != nil {
		return peering{}, err
	}
	self := peers.Peer{ID: p.Peers.ID, Address: listen.Addr().String(), Fingerprint: identity.Fingerprint()}
	forwarder := peers.New(peers.Config{
		ID: self.ID, Identity: identity, Locator: p.Peers.Locator(self), Lines: lines, Log: s.log.Named("peers"),
	})
	lines.Elsewhere = forwarder.DialLine
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} // few come from each
	return peering{forwarder, forwarder.Listen(web.Limit(listen, everywhere, s.log.Named("peers")))}, nil
}

// web is what the edge is told of the other instances; nil: there are none.
func (p peering) web() web.Peers {
	if p.forwarder == nil {
		return nil
	}
	return p.forwarder
}

// stages serve what other instances forward, and watch what this one does.
func (p peering) stages(edge *web.Server) []stage {
	if p.forwarder == nil {
		return nil
	}
	return []stage{{"forwarding", p.forwarder.Run}, {"peers", func(ctx context.Context) error {
		server := edge.HTTPServer()
		server.Handler = p.forwarder.Handler(edge.Forwarded())
		server.MaxHeaderBytes += 4 << 10 // what was taken there, and what an instance adds
		return serveHTTP(ctx, server, p.listener, "", "")
	}}}
}
