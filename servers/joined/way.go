package joined

import (
	"context"
	"net"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// A Way reaches an agent of a machine that joined, by the machine's line.
type Way struct {
	Joined bool `yaml:"joined"`

	Lines *Lines // Set once
	Plain bool   // Set once: the agent's messages are lines; else it speaks WebSocket
}

// Transport returns the transport to agents that speak WebSocket.
func Transport(lines *Lines) servers.Transport {
	return servers.Transport{Row: "joined", New: func() servers.Way { return &Way{Lines: lines} }}
}

// PlainTransport returns the transport to agents whose messages are lines.
func PlainTransport(lines *Lines) servers.Transport {
	return servers.Transport{Row: "joined", New: func() servers.Way { return &Way{Lines: lines, Plain: true} }}
}

// Check implements [servers.Way].
func (w *Way) Check(to servers.Report, _ servers.Files) {
	if !w.Joined {
		to.Bad("joined", "is true, or not there")
	}
}

// Describe implements [servers.Way]. Work on the machine goes on without us.
func (w *Way) Describe(s *servers.Spec) {
	s.Remote, s.Joined = true, true
	s.About.Address = "joined"
}

// Open implements [servers.Way].
func (w *Way) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	conn, err := w.Lines.Dial(ctx, end.Server, end.Apart)
	if err != nil {
		return nil, err
	}
	if w.Plain {
		return transport.LinesOver(conn), nil
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	return transport.OverSocket(ctx, end.Server, "ws://localhost/", nil, dial)
}
