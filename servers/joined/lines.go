package joined

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"switchboard/handoff"
	"switchboard/servers"
)

// A line is a connection that a machine keeps to the service.
type line struct {
	session *yamux.Session // Set once
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
			Reason: servers.KnownReason(answer.Reason), // an older machine tells none, a newer one may tell others
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

// Lines are how the agents of machines that joined are reached. The zero value has none. It is safe for concurrent use.
type Lines struct {
	// Elsewhere opens a connection to an agent whose machine may keep its line to another instance of the service.
	// Where none has it, the reason of its error is [handoff.ReasonAsleep]. Set once, before anything is dialled; nil:
	// this is the only instance.
	Elsewhere func(ctx context.Context, server string, apart bool) (net.Conn, error)
	// Instance names this instance to what keeps agents for several. Set once, before anything is dialled; "": this is
	// the only one.
	Instance string

	mu   sync.Mutex
	ends map[string]end // Guarded by mu: by the server's name
}

// An end is where a server is reached.
type end struct {
	agent  string
	line   *line           // nil: its machine is not connected
	lost   time.Time       // when it was connected last; zero: not in this life
	coming <-chan struct{} // closed once its machine has connected, or does not; nil: it is not about to
}

// put says that servers are reached by a line; nil: that their machine is not connected, but is about to be until
// coming is closed.
func (l *Lines) put(all []Server, by *line, coming <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]end{}
	}
	for _, s := range all {
		e := end{agent: s.Agent.Name, line: by, lost: l.ends[s.Name].lost, coming: coming}
		if by == nil && l.ends[s.Name].line != nil {
			e.lost = time.Now()
		}
		l.ends[s.Name] = e
	}
}

// drop forgets servers.
func (l *Lines) drop(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.ends {
		if slices.Contains(names, name) {
			delete(l.ends, name)
		}
	}
}

func (l *Lines) end(server string) (to end, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, known = l.ends[server]
	return to, known
}

// Dial opens a connection to the agent that a server of the fleet is, wherever its machine keeps its line; apart: one
// that only reads, beside the one that works. An error is a [*handoff.Error].
func (l *Lines) Dial(ctx context.Context, server string, apart bool) (net.Conn, error) {
	conn, err := l.DialHere(ctx, server, apart)
	if err == nil || l.Elsewhere == nil || handoff.AsError(err).Reason != handoff.ReasonAsleep {
		return conn, err
	}
	conn, fault := l.Elsewhere(ctx, server, apart)
	if fault != nil && handoff.AsError(fault).Reason == handoff.ReasonAsleep {
		return nil, err // which says since when
	}
	return conn, fault
}

// DialHere is [Lines.Dial] by the lines of this instance alone.
func (l *Lines) DialHere(ctx context.Context, server string, apart bool) (net.Conn, error) {
	to, known := l.end(server)
	if to.line == nil && to.coming != nil {
		select {
		case <-to.coming:
			to, known = l.end(server)
		case <-ctx.Done():
		}
	}
	fault := func(reason handoff.Reason, why string) error {
		return &handoff.Error{Code: handoff.CodeUnreachable, Subject: server, Detail: why, Reason: reason}
	}
	switch {
	case !known:
		return nil, fault(handoff.ReasonNotJoined, "its machine has not joined")
	case to.line == nil && to.lost.IsZero():
		return nil, fault(handoff.ReasonAsleep, "its machine has not come back since Switchboard was started")
	case to.line == nil:
		return nil, fault(handoff.ReasonAsleep, "its machine is asleep or offline since "+to.lost.Format("15:04"))
	}
	conn, err := to.line.open(ctx, Opening{to.agent, apart})
	if err != nil {
		return nil, servers.DialFault(server, err)
	}
	return conn, nil
}
