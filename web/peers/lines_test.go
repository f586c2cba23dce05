package peers

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// agents has the agents of machines that keep a line here. Each sends back what it gets, with its name as prefix.
type agents map[string]bool

func (a agents) DialHere(_ context.Context, server string, apart bool) (net.Conn, error) {
	if server == "broken" {
		return nil, &handoff.Error{Code: handoff.CodeUnreachable, Reason: handoff.ReasonAgentMissing, Detail: "no codex"}
	}
	if !a[server] {
		return nil, &handoff.Error{Code: handoff.CodeUnreachable, Reason: handoff.ReasonAsleep}
	}
	near, far := net.Pipe()
	go func() { // ends with the connection
		defer far.Close()
		name := server
		if apart {
			name += " apart"
		}
		_, _ = io.WriteString(far, name+": ")
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// TestDialLine: an agent whose machine keeps its line to another instance is reached through that instance, wherever it
// is in the list; its error is returned.
func TestDialLine(t *testing.T) {
	o := newTown()
	a, b, c := o.join(t, "a", tell), o.join(t, "b", tell), o.join(t, "c", tell)
	b.lines, c.lines = agents{"other": true}, agents{"mini": true}
	o.stand(t, "d", nowhere(t))
	for _, apart := range []bool{false, true} {
		conn, err := a.DialLine(t.Context(), "mini", apart)
		must(t, err)
		if _, tcp := conn.(lineConn).NetConn().(*tls.Conn).NetConn().(*net.TCPConn); !tcp {
			t.Error("its TCP connection cannot be found")
		}
		_, err = io.WriteString(conn, "hello")
		must(t, err)
		want := map[bool]string{false: "mini: hello", true: "mini apart: hello"}[apart]
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Errorf("%q %v", got, err)
		}
		until(t, func() bool { return c.count("open", "") == 1 })
		must(t, conn.Close())
		until(t, func() bool { return c.count("open", "") == 0 })
	}
	for server, want := range map[string]handoff.Reason{"gone": handoff.ReasonAsleep, "broken": handoff.ReasonAgentMissing} {
		if conn, err := a.DialLine(t.Context(), server, false); err == nil || handoff.AsError(err).Reason != want {
			t.Errorf("%s: %v %v", server, conn, err)
		}
	}
	if opened, none := a.count("lines_total", "opened"), a.count("lines_total", "none"); opened != 2 || none != 2 || c.count("taken_total", "line") != 2 {
		t.Errorf("%v opened, %v not", opened, none)
	}
}

// TestLinesEndWithTheirInstances: a connection to an agent ends when the instance that uses it is dead, and when the
// instance that has the line ends.
func TestLinesEndWithTheirInstances(t *testing.T) {
	for _, end := range []func(o *town, c *instance){
		func(o *town, _ *instance) { o.change(func() { o.dead["a"] = true }) },
		func(_ *town, c *instance) { c.Close() },
	} {
		o := newTown()
		a, c := o.join(t, "a", tell), o.join(t, "c", tell)
		c.lines = agents{"mini": true}
		conn, err := a.DialLine(t.Context(), "mini", false)
		must(t, err)
		end(o, c)
		if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
		until(t, func() bool { return c.count("open", "") == 0 })
		_ = conn.Close()
	}
}

// TestLinesAreForInstances: clients get no line: not from outside, not through an instance that forwards their request,
// and not from the listener for instances.
func TestLinesAreForInstances(t *testing.T) {
	o := newTown()
	a := o.join(t, "a", tell)
	a.lines = agents{"mini": true}
	c := o.join(t, "c", tell)
	o.change(func() { o.homes["alice"] = "a" })
	for _, claimed := range []string{"a http 192.0.2.1:1", "c line "} {
		headers := []string{"Connection", "Upgrade", "Upgrade", lineProtocol, hopHeader, claimed}
		for from, at := range map[string]*instance{"outside": a, "another instance": c} {
			answer, _ := at.ask(t, "alice", http.MethodGet, "/?server=mini", "", headers...)
			if answer.StatusCode != http.StatusTeapot {
				t.Errorf("from %s: %d", from, answer.StatusCode)
			}
		}
	}
	stranger := o.join(t, "b", tell)
	o.change(func() { delete(o.there, "b") })
	if conn, err := stranger.DialLine(t.Context(), "mini", false); err == nil {
		_ = conn.Close()
		t.Error("a stranger has a line")
	}
	if a.count("taken_total", "line") != 0 || a.count("taken_total", "stranger") != 1 {
		t.Error("that was not counted")
	}
}
