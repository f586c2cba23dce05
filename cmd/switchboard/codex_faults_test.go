package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
)

// A wire is a TCP proxy before an app-server that can be cut, or lose what goes one way.
type wire struct {
	url            string
	noRequests     atomic.Bool  // what the client sends is lost
	noAnswers      atomic.Bool  // what the server sends is lost
	lost           atomic.Int64 // pieces of what either sent
	mu             sync.Mutex
	conns          []net.Conn // Guarded by mu
	clients        sync.WaitGroup
	listener       net.Listener
	upstreamTarget string
}

func startWire(t *testing.T, target string) *wire {
	t.Helper()
	l := loopback(t)
	w := &wire{url: "ws://" + l.Addr().String(), listener: l, upstreamTarget: strings.TrimPrefix(target, "ws://")}
	w.clients.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.clients.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.upstreamTarget)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		w.mu.Unlock()
		w.clients.Go(func() { w.forward(server, client, &w.noRequests) })
		w.clients.Go(func() { w.forward(client, server, &w.noAnswers) })
	}
}

func (w *wire) forward(to, from net.Conn, lose *atomic.Bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		switch {
		case n > 0 && lose.Load():
			w.lost.Add(1)
		case n > 0:
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// cut loses every connection and carries everything again.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
	w.noRequests.Store(false)
	w.noAnswers.Store(false)
}

// attached is a connection with a thread of the real codex.
type attached struct {
	handoff.Attached
	t    testing.TB
	link *servers.Link
}

// create makes a thread that ran once, so that it can be resumed.
func (c *realCodex) create(cfg codex.Config) attached {
	c.t.Helper()
	thread := c.thread("the first words")
	return c.attach(cfg, thread)
}

func (c *realCodex) attach(cfg codex.Config, thread string) attached {
	c.t.Helper()
	link := c.other(cfg)
	at, err := link.Conn.Attach(c.t.Context(), thread)
	must(c.t, err)
	return attached{at, c.t, link}
}

func (a attached) begin(id, prompt string) handoff.TurnID {
	a.t.Helper()
	turn, err := a.Agent.Start(a.t.Context(), handoff.Turn{ID: id, Input: handoff.TextInput(prompt)})
	must(a.t, err)
	return turn
}

// speaks follows a turn until its agent has begun to speak.
func (a attached) speaks(turn handoff.TurnID) {
	a.t.Helper()
	for u, err := range a.Agent.Follow(a.t.Context(), turn) {
		must(a.t, err)
		if _, words := u.(handoff.Delta); words {
			return
		}
	}
	a.t.Fatal("the turn ended without a word")
}

// ended follows a turn to its end and returns the messages that were finished, and the end, which must
// come once.
func (a attached) ended(turn handoff.TurnID) (messages []string, end handoff.TurnEnded) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	ends := 0
	for u, err := range a.Agent.Follow(ctx, turn) {
		if err != nil {
			a.t.Fatalf("following: %v", err)
		}
		switch u := u.(type) {
		case handoff.ItemDone:
			if u.Item.Kind == handoff.ItemMessage {
				messages = append(messages, u.Item.Text)
			}
		case handoff.TurnEnded:
			ends, end = ends+1, u
		}
	}
	if ends != 1 {
		a.t.Errorf("the turn ended %d times", ends)
	}
	return messages, end
}

// answered holds how a turn ended, and that its words came once.
func (a attached) answered(turn handoff.TurnID, words string) {
	a.t.Helper()
	messages, end := a.ended(turn)
	if end.Status != handoff.TurnCompleted || end.Text != words || !slices.Equal(messages, []string{words}) {
		a.t.Errorf("messages %q, end %+v, want %q once", messages, end, words)
	}
}

// TestRealCodexKilledMidTurnIsInterruptedForGood: after kill -9 and a restart, the turn is soon known as interrupted,
// and is not run again.
func TestRealCodexKilledMidTurnIsInterruptedForGood(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	a := c.create(*codexAt(c.url))
	turn := a.begin("ours-1", "slow 60")
	a.speaks(turn)
	c.kill()
	<-a.link.Done
	c.begin()
	a = c.attach(*codexAt(c.url), a.Target.Thread)
	if a.Running != "" || a.Newest != turn {
		t.Errorf("attached: running %q newest %q, want the turn %s at rest", a.Running, a.Newest, turn)
	}
	begin := time.Now()
	if _, end := a.ended(turn); end.Status != handoff.TurnInterrupted {
		t.Errorf("it ended with %+v", end)
	}
	t.Logf("told after %v", time.Since(begin))
	if got := c.provider.prompts(); !slices.Equal(got, []string{"the first words", "slow 60"}) {
		t.Errorf("the model was asked %q", got)
	}
	a.answered(a.begin("ours-2", "go on"), "answer to: go on")
}

// TestRealCodexCutMidTurnGivesTheFinalOnce: if the socket is cut while the agent speaks, its words arrive whole and
// once, whether the turn ends before the reconnection or after it.
func TestRealCodexCutMidTurnGivesTheFinalOnce(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"back in time": false, "back too late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCodex(t)
			w := startWire(t, c.url)
			a := c.create(*codexAt(w.url))
			turn := a.begin("ours-1", "held")
			a.speaks(turn)
			w.cut()
			<-a.link.Done
			thread := a.Target.Thread
			if a = c.attach(*codexAt(w.url), thread); a.Running != turn {
				t.Errorf("running %q", a.Running)
			}
			if late {
				w.cut()
				<-a.link.Done
				c.provider.letsGo()
				until(t, "the turn to end", func() bool {
					a = c.attach(*codexAt(w.url), thread)
					return a.Running == ""
				})
			}
			c.provider.letsGo()
			a.answered(turn, "held answer to: held")
		})
	}
}

// TestRealCodexSettlesALostStart: if the acknowledgement of a start is lost, it is found out whether the turn runs, in
// both cases.
func TestRealCodexSettlesALostStart(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"it runs": true, "it never arrived": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCodex(t)
			w := startWire(t, c.url)
			a := c.create(*codexAt(w.url))
			w.noAnswers.Store(runs)
			w.noRequests.Store(!runs)
			started := make(chan error, 1)
			go func() {
				_, err := a.Agent.Start(t.Context(), handoff.Turn{ID: "ours-1", Input: handoff.TextInput("held")})
				started <- err
			}()
			if runs {
				until(t, "the model to be asked", func() bool { return slices.Contains(c.provider.prompts(), "held") })
			} else {
				until(t, "the start to be lost", func() bool { return w.lost.Load() > 0 })
			}
			w.cut()
			if err := <-started; err == nil || handoff.AsError(err).Code != handoff.CodeUnknownStart {
				t.Fatalf("the lost start: %v", err)
			}
			before := a.Newest
			a = c.attach(*codexAt(w.url), a.Target.Thread)
			turn, err := a.Agent.(handoff.Reconciler).Reconcile(t.Context(), before, "ours-1")
			if err != nil || (turn != "") != runs {
				t.Fatalf("settled as %q, %v", turn, err)
			}
			if runs {
				c.provider.letsGo()
				a.answered(turn, "held answer to: held")
			}
			if n := strings.Count(strings.Join(c.provider.prompts(), "\n"), "held"); (n == 1) != runs || n > 1 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// TestRealCodexCopiesWhatAnotherProcessHolds: a thread that another codex has open is refused; a copy of it runs, even
// while the thread itself runs.
func TestRealCodexCopiesWhatAnotherProcessHolds(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	holder := c.create(*codexAt(c.url))
	turn := holder.begin("desk-1", "held")
	holder.speaks(turn)
	second := c.other(c.asChild())
	_, err := second.Conn.Attach(t.Context(), holder.Target.Thread)
	if err == nil || handoff.AsError(err).Code != handoff.CodeSessionInUse {
		t.Errorf("attaching what is held elsewhere: %v", err)
	}
	at, err := second.Conn.(servers.Forker).Fork(t.Context(), holder.Target.Thread, "")
	must(t, err)
	clone := attached{at, t, second}
	if at.Running != "" || at.Target.Thread == holder.Target.Thread || at.Workspace != c.work {
		t.Errorf("the copy: %+v", at)
	}
	clone.answered(clone.begin("ours-1", "in the copy"), "answer to: in the copy")
	read, err := second.Catalog.Read(t.Context(), at.Target.Thread, 1) // lists do not say it
	if err != nil || read.Thread.From != holder.Target.Thread {
		t.Errorf("it does not say whose copy it is: %+v, %v", read.Thread, err)
	}
	c.provider.letsGo()
	holder.answered(turn, "held answer to: held")
}

// TestRealCodexKeepsToTheCeiling: no work runs in a session that exceeds the ceiling, and a new session gets the
// configured policy.
func TestRealCodexKeepsToTheCeiling(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	loose := c.other(codex.Config{Way: byURL(c.url), Sandbox: "danger-full-access", Approval: "never"})
	at, err := loose.Conn.Create(t.Context(), c.work)
	must(t, err)
	desk := attached{at, t, loose}
	desk.answered(desk.begin("desk-1", "first"), "answer to: first")

	a := c.attach(codex.Config{Way: byURL(c.url), Ceiling: "workspace-write"}, at.Target.Thread)
	_, err = a.Agent.Start(t.Context(), handoff.Turn{ID: "ours-1", Input: handoff.TextInput("not here")})
	if e := handoff.AsError(err); e.Code != handoff.CodeRefused || !strings.HasPrefix(e.Detail, "ceiling: ") {
		t.Errorf("above the ceiling: %v", err)
	}
	_, err = a.link.Conn.Create(t.Context(), c.work) // the server's own default is stricter
	if err != nil {
		t.Errorf("a new session: %v", err)
	}
	if got := c.provider.prompts(); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the model was asked %q", got)
	}
}

// TestRealCodexInterruptedAtOnce: a stop while work is being started has effect, although for some milliseconds after
// it has acknowledged a turn the server says that none runs.
func TestRealCodexInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	a := c.create(*codexAt(c.url))
	for range 5 {
		turn := a.begin("ours-1", "slow 60")
		must(t, a.Agent.(handoff.Controls).Interrupt(t.Context(), turn))
		if _, end := a.ended(turn); end.Status != handoff.TurnInterrupted {
			t.Errorf("it ended with %+v", end)
		}
	}
}
