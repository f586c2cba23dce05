package host

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// ends are the service and an agent with a gate between them.
type ends struct{ service, agent end }

// An end is a connection, and what it got.
type end struct {
	servers.Wire
	got chan string // closed once the connection has ended
}

func newEnd(t *testing.T, wire servers.Wire) end {
	e := end{wire, make(chan string, 10)} // more than any test sends
	go func() {
		defer close(e.got)
		for {
			data, err := wire.Read()
			if err != nil {
				e.got <- "" // nothing waits for it, or it is the end
				return
			}
			e.got <- string(data)
		}
	}()
	t.Cleanup(func() {
		_ = wire.Close() // it is gone either way
		for range e.got {
		}
	})
	return e
}

// through returns the service's end of a connection to an agent through a gate.
func through(agent servers.Wire, g *gate) net.Conn {
	near, far := net.Pipe()
	go g.serve(far, agent) // ends with near
	return near
}

// newEnds connects the service and an agent of a kind through a gate.
func newEnds(t *testing.T, kind string) ends {
	t.Helper()
	g := newGate(Policy{}, Setting{Kind: kind})
	near, far := net.Pipe()
	if kind == kindACP {
		service := through(transport.LinesOver(near), g)
		return ends{newEnd(t, transport.LinesOver(service)), newEnd(t, transport.LinesOver(far))}
	}
	agents := make(chan servers.Wire)
	go func() {
		agent, err := upgrade(far)
		if err != nil {
			t.Error(err)
		}
		agents <- agent
	}()
	wire, err := open(t.Context(), near)
	must(t, err)
	agent := <-agents
	service, err := open(t.Context(), through(wire, g))
	must(t, err)
	return ends{newEnd(t, service), newEnd(t, agent)}
}

func (e end) say(t *testing.T, text string) {
	t.Helper()
	must(t, e.Write([]byte(text)))
}

// TestGateBetween: an agent behind a gate gets only messages that may pass, the service gets errors for the others,
// also long after the last message, and long messages pass. When one end closes, so does the other. The gate closes
// both when the service uses an id that an agent may take for another one.
func TestGateBetween(t *testing.T) {
	t.Parallel()
	for kind, list := range map[string]string{kindCodex: "thread/list", kindACP: "session/list"} {
		for _, closes := range []string{"service", "agent", "gate"} {
			t.Run(kind+" "+closes, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newEnds(t, kind)
					e.agent.say(t, `{"method":"said","params":{}}`)
					<-e.service.got
					time.Sleep(2 * writeWithin)
					e.service.say(t, `{"id":1,"method":"command/exec","params":{}}`)
					if got := <-e.service.got; !strings.Contains(got, errMethod.Error()) || !strings.Contains(got, `"id":1`) {
						t.Errorf("it was told %s", got)
					}
					e.service.say(t, `{"method":"command/exec","params":{}}`)
					e.service.say(t, `{"id":9,"result":{"decision":"accept"}}`)
					e.service.say(t, `{"id":2,"method":"`+list+`","params":{}}`)
					if got := <-e.agent.got; !strings.Contains(got, list) {
						t.Errorf("the agent got %s", got)
					}
					e.agent.say(t, `{"id":2,"result":{"text":"`+strings.Repeat("x", 1<<20)+`"}}`)
					if got := <-e.service.got; len(got) < 1<<20 {
						t.Errorf("%d bytes", len(got))
					}
					from, to := e.service, e.agent
					if closes == "agent" {
						from, to = to, from
					}
					if closes == "gate" {
						e.service.say(t, `{"id":2.0,"method":"`+list+`","params":{}}`)
					} else {
						must(t, from.Close())
					}
					if got := <-to.got; got != "" {
						t.Errorf("after the end: %s", got)
					}
				})
			})
		}
	}
}

// TestGateLeavesOut: of a message of an app-server that is too long to be judged, the service learns that it was left
// out: its request fails, or the service doubts what it knows.
func TestGateLeavesOut(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	go func() {
		agent, err := upgrade(far)
		if err == nil {
			_, err = agent.Read()
		}
		for _, head := range []string{`{"id":2,"result":"`, `{"method":"item/completed","params":"`} {
			w, failed := agent.NextWriter(websocket.TextMessage)
			must(t, failed)
			_, failed = io.Copy(w, io.MultiReader(strings.NewReader(head), io.LimitReader(xs{}, servers.MaxFrame), strings.NewReader(`"}`)))
			err = errors.Join(err, failed, w.Close())
		}
		if err = errors.Join(err, agent.Write([]byte(`{"method":"next","params":{}}`))); err != nil {
			t.Error(err)
		}
	}()
	wire, err := open(t.Context(), near)
	must(t, err)
	service, err := open(t.Context(), through(wire, newGate(Policy{}, Setting{Kind: kindCodex})))
	must(t, err)
	must(t, service.Write([]byte(`{"id":2,"method":"thread/list","params":{}}`)))
	for _, want := range []string{`"message":"` + servers.ErrLongFrame.Error() + `"`, `{"method":"` + servers.LeftOut + `"}`, "next"} {
		if got, err := service.Read(); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("told %.100s, %v, want %s", got, err, want)
		}
	}
	must(t, service.Close())
}

// xs is a reader of one letter.
type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
