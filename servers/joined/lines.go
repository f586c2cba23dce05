package joined

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"switchboard/handoff"
	"switchboard/servers"
)

// A line is a connection that a machine keeps to the service.
type line struct {
	session *yamux.Session // Set once
	visit   uint64         // Set once: visits are numbered as they are let in
}

// open opens a stream to an agent.
func (l *line) open(ctx context.Context, to Opening) (net.Conn, error) {
	raw, err := l.session.OpenStream()
	if err != nil {
		return nil, err
	}
	stream := stream{raw}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	err = errors.Join(stream.SetDeadline(time.Now().Add(openTimeout)), writeFrame(stream, to))
	var answer opened
	if err == nil {
		err = readFrame(stream, &answer)
	}
	if err == nil && answer.Error != "" {
		err = &handoff.Error{
			Code: handoff.CodeUnreachable, Detail: handoff.Clip(answer.Error, maxText),
			Reason: servers.KnownReason(answer.Reason), // older machines send none, newer ones may send others
		}
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err = errors.Join(err, stream.SetDeadline(time.Time{})); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// Lines connects to the agents of machines that joined. The zero value knows none. It is safe for concurrent use.
type Lines struct {
	// Elsewhere opens a connection to an agent whose machine may keep its line to another instance of the service. If
	// no instance has the line, the reason of the error is [handoff.ReasonAsleep]. Set once, before the first Dial;
	// nil: this is the only instance.
	Elsewhere func(ctx context.Context, server string, apart bool) (net.Conn, error)
	// Instance names this instance to muxes of agents, which several may share. Set once, before the first Dial; "":
	// this is the only instance.
	Instance string

	machines atomic.Pointer[Machines] // nil: none are known yet
}

// Dial opens a connection to the agent behind a server of the fleet, at whichever instance its machine keeps its line.
// A connection that is apart only reads, beside the one that works. An error is a [*handoff.Error].
func (l *Lines) Dial(ctx context.Context, server string, apart bool) (net.Conn, error) {
	conn, err := l.DialHere(ctx, server, apart)
	if err == nil || l.Elsewhere == nil || handoff.AsError(err).Reason != handoff.ReasonAsleep {
		return conn, err
	}
	conn, fault := l.Elsewhere(ctx, server, apart)
	if fault != nil && handoff.AsError(fault).Reason == handoff.ReasonAsleep {
		return nil, err // it says since when
	}
	return conn, fault
}

// DialHere is like [Lines.Dial], but uses the lines of this instance only.
func (l *Lines) DialHere(ctx context.Context, server string, apart bool) (net.Conn, error) {
	to, agent, known := l.machines.Load().withServer(server)
	if to.line == nil && to.connecting != nil {
		select {
		case <-to.connecting:
			to, agent, known = l.machines.Load().withServer(server)
		case <-ctx.Done():
		}
	}
	fault := func(reason handoff.Reason, why string) error {
		return &handoff.Error{Code: handoff.CodeUnreachable, Subject: server, Detail: why, Reason: reason}
	}
	switch {
	case !known:
		return nil, fault(handoff.ReasonNotJoined, "its machine has not joined")
	case to.line == nil && to.seen.IsZero():
		return nil, fault(handoff.ReasonAsleep, "its machine has not come back since Switchboard was started")
	case to.line == nil:
		return nil, fault(handoff.ReasonAsleep, "its machine is asleep or offline since "+to.seen.Format("15:04"))
	}
	conn, err := to.line.open(ctx, Opening{agent, apart})
	if err != nil && to.line.session.IsClosed() {
		return nil, fault(handoff.ReasonLost, "its line was lost")
	}
	if err != nil {
		return nil, servers.DialFault(server, err)
	}
	return conn, nil
}

// withServer returns the machine that has a server, and the agent behind it; false: no machine has.
func (m *Machines) withServer(server string) (one *machine, agent string, known bool) {
	if m == nil {
		return new(machine), "", false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		for _, s := range m.serversOf(one) {
			if s.Name == server {
				return one, s.Agent.Name, true
			}
		}
	}
	return new(machine), "", false
}
