package joined

import (
	"context"
	"net"
	"strings"
	"testing"

	"switchboard/handoff"
)

// If a machine has no line to this instance, the others are asked for its agent. If none has a line, the error is that
// of this instance.
func TestDialElsewhere(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	for _, tt := range []struct {
		name, server string
		says         handoff.Reason // the others; "": they have it
		want         handoff.Reason
		detail       string
		asked        bool
	}{
		{"they have it", "mini", "", "", "", true},
		{"nobody has it", "mini", handoff.ReasonAsleep, handoff.ReasonAsleep,
			"its machine has not come back since Switchboard was started", true},
		{"it is broken there", "mini", handoff.ReasonAgentMissing, handoff.ReasonAgentMissing, "there", true},
		{"no machine of that name", "maxi", "", handoff.ReasonNotJoined, "its machine has not joined", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			lines := Lines{Elsewhere: func(_ context.Context, server string, apart bool) (net.Conn, error) {
				asked = server == tt.server && apart
				if tt.says != "" {
					return nil, &handoff.Error{Code: handoff.CodeUnreachable, Reason: tt.says, Detail: "there"}
				}
				return near, nil
			}}
			mini := &machine{Record: Record{Name: "mini"}, details: details{Servers: map[string]string{"codex": ""}, About: codex}}
			lines.machines.Store(&Machines{all: map[string]*machine{"": mini}})
			conn, err := lines.Dial(t.Context(), tt.server, true)
			if tt.want == "" {
				if err != nil || conn != near {
					t.Errorf("%v %v", conn, err)
				}
			} else if e := handoff.AsError(err); e.Reason != tt.want || e.Detail != tt.detail {
				t.Errorf("%v, want %s %q", err, tt.want, tt.detail)
			}
			if asked != tt.asked {
				t.Errorf("asked: %t", asked)
			}
			if conn, err := lines.DialHere(t.Context(), "mini", true); err == nil {
				t.Errorf("here is %v", conn)
			}
		})
	}
}

// TestDialOnALostLine: where the line ends under a dial, that is the reason, and nobody is sent to the log of the
// agent.
func TestDialOnALostLine(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	door := s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini"), About: codex})
	until(t, "its line", func() bool { return s.counts.lines.Load() == 1 })
	dialled := make(chan error, 1)
	go func() { // nothing serves the line: it waits
		_, err := s.lines.Dial(t.Context(), "mini", false)
		dialled <- err
	}()
	stream, err := door.session.AcceptStream()
	must(t, err)
	must(t, door.Close())
	if e := handoff.AsError(<-dialled); e.Reason != handoff.ReasonLost {
		t.Errorf("%v, for the reason %q", e, e.Reason)
	}
	_ = stream.Close() // it has ended with the line
}

// TestDialAwaitsLine: the fleet dials a new agent before its machine's line is open, and the dial waits for the line:
// when a machine joins, and when it comes back with other agents.
func TestDialAwaitsLine(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	dialled := make(chan error, 8)
	s.memory.changing = func(server string) {
		go func() {
			conn, err := s.lines.Dial(t.Context(), server, false)
			if err == nil {
				err = conn.Close()
			}
			dialled <- err
		}()
	}
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	serve(t, door)
	must(t, <-dialled)
	must(t, door.Close())
	more := About{Agents: append([]Agent{{Name: "claude", Kind: "acp"}}, codex.Agents...)}
	serve(t, s.open(t, Visit{Key: key, Service: door.Service, Name: "mini", About: more}))
	for range more.Agents {
		if err := <-dialled; err != nil && !strings.Contains(err.Error(), "no agent claude") { // that machine says so
			t.Error(err)
		}
	}
}
