package mux

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// A kept is a mux whose agent answers every request with the number of agents started so far. It answers "wait" and
// prompts when another request comes.
type kept struct {
	t      testing.TB
	starts atomic.Int64
	ended  atomic.Int64
	fail   error         // of a start
	closes bool          // it has the capability to close sessions, but never answers session/close
	slow   time.Duration // from the end of its input to its end
	deaf   bool          // it answers only one request
	unfit  bool          // it answers with errors
}

// hello is the first message of a client of the instance NAME.
const hello = `{"id":1,"method":"initialize","params":{"clientInfo":{"_meta":{"switchboard.instance":"NAME"}}}}`

// greet introduces a client of an instance.
func (a *attached) greet(instance string) *attached {
	a.t.Helper()
	_, err := fmt.Fprintln(a.conn, strings.ReplaceAll(hello, "NAME", instance))
	if got := a.next(); err != nil || !strings.Contains(got, `"keeps":true`) {
		a.t.Errorf("initialized with %s, %v", got, err)
	}
	return a
}

// inBubble runs a mux in a bubble, with clients in memory. It returns a function that attaches one, and the end.
func (k *kept) inBubble(unused time.Duration) (attach func() *attached, over <-chan error) {
	return k.attached(make(pipes), unused)
}

func (k *kept) attached(clients pipes, unused time.Duration) (attach func() *attached, over <-chan error) {
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(k.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		ended <- Serve(ctx, Config{Listener: clients, Start: k.start, Unused: unused, Log: zap.NewNop()})
	})
	k.t.Cleanup(func() { cancel(); all.Wait() })
	return func() *attached {
		near, far := net.Pipe()
		clients <- far
		k.t.Cleanup(func() { _ = near.Close() })
		return &attached{k.t, near, bufio.NewScanner(near)}
	}, ended
}

func (k *kept) start(func(string)) (servers.Wire, error) {
	n := k.starts.Add(1)
	if k.fail != nil {
		return nil, k.fail
	}
	can := ""
	if k.closes {
		can = `,"agentCapabilities":{"sessionCapabilities":{"close":{}}}`
	}
	near, far := net.Pipe()
	w := &wire{Wire: transport.LinesOver(near)}
	w.ends.Go(func() {
		defer k.ended.Add(1)
		defer func() { _ = far.Close() }()
		defer func() { time.Sleep(k.slow) }()
		var late []json.RawMessage
		for lines := bufio.NewScanner(far); lines.Scan(); {
			var f frame
			_ = json.Unmarshal(lines.Bytes(), &f)
			if f.ID == nil || f.Method == doClose {
				continue
			}
			if f.Method == "wait" || f.Method == doPrompt {
				late = append(late, f.ID)
				continue
			}
			for _, id := range append(late, f.ID) {
				answer := fmt.Sprintf(`"result":{"agent":%d%s}`, n, can)
				if k.unfit {
					answer = `"error":{"code":1,"message":"no key"}`
				}
				_, _ = fmt.Fprintf(far, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, answer)
			}
			if late = nil; k.deaf {
				_, _ = io.Copy(io.Discard, far)
			}
		}
	})
	return w, nil
}

// A wire is that of an agent. Its Close returns when the agent has ended.
type wire struct {
	servers.Wire
	ends sync.WaitGroup
}

func (w *wire) Close() error {
	err := w.Wire.Close()
	w.ends.Wait()
	return err
}

// attached is a client.
type attached struct {
	t     testing.TB
	conn  net.Conn
	lines *bufio.Scanner
}

func (a *attached) send(id int, method string) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.conn, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`+"\n", id, method); err != nil {
		a.t.Fatal(err)
	}
}

// next reads a line; "" is the end.
func (a *attached) next() string {
	a.lines.Scan()
	return a.lines.Text()
}

func (a *attached) ask(id int, method string) string {
	a.t.Helper()
	a.send(id, method)
	return a.next()
}

// TestClientOfEachInstance: instances share the agent, and a connection replaces the earlier one of its instance.
func TestClientOfEachInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t}
		attach, _ := k.inBubble(time.Hour)
		slow := attach() // its first message comes when the next one is there
		one, two := attach().greet("one"), attach().greet("two")
		if _, err := fmt.Fprintln(slow.conn, strings.ReplaceAll(hello, "NAME", "one")); err != nil || slow.next() != "" {
			t.Errorf("one that came before takes the place of a later one: %v", err)
		}
		again := attach().greet("one")
		if got := one.next(); got != "" {
			t.Errorf("the one before is told %s", got)
		}
		for _, a := range []*attached{two, again} {
			if got := a.ask(2, "go"); !strings.Contains(got, `"id":2`) {
				t.Errorf("answered %s", got)
			}
		}
		attach().greet("") // the only one
		for _, a := range []*attached{two, again} {
			if got := a.next(); got != "" {
				t.Errorf("told %s", got)
			}
		}
		if n := k.starts.Load(); n != 1 {
			t.Errorf("%d agents", n)
		}
	})
}

// TestClosingHoldsNobodyUp: while the agent closes a session that a client has left open, requests of other clients go
// on. Only requests that open a session wait, for a bounded time.
func TestClosingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, closes: true}
		attach, _ := k.inBubble(time.Hour)
		one, two := attach().greet("one"), attach().greet("two")
		one.opens("s")
		_ = one.conn.Close()
		synctest.Wait() // the agent is told to close it
		began := time.Now()
		if got := two.ask(2, "go"); !strings.Contains(got, `"id":2`) || time.Since(began) != 0 {
			t.Errorf("answered %s after %v", got, time.Since(began))
		}
		if two.opens("s"); time.Since(began) != closedBy {
			t.Errorf("opened after %v", time.Since(began))
		}
	})
}

// opens has a client open a session.
func (a *attached) opens(session string) {
	a.t.Helper()
	_, err := fmt.Fprintf(a.conn, `{"id":3,"method":"session/load","params":{"sessionId":%q,"cwd":"/"}}`+"\n", session)
	if got := a.next(); err != nil || !strings.Contains(got, `"id":3`) || strings.Contains(got, `"error"`) {
		a.t.Errorf("opened: %s, %v", got, err)
	}
}

// TestUnusedEnds: an unused agent is ended even if a client is attached. What that sends meanwhile reaches no agent: it
// loses the connection, finds no prompt when it is back, and begins it again in the next agent, also while the one
// before is still ending. The next agent is started when it is needed.
func TestUnusedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, slow: endWithin / 2}
		attach, _ := k.inBubble(time.Hour)
		a := attach().greet("")
		time.Sleep(time.Hour + time.Minute + endWithin/4) // it is looked at each minute, and then ends
		a.about("s", doPrompt)
		if got := a.next(); got != "" {
			t.Errorf("the prompt is answered %s", got)
		}
		a = attach().greet("")
		a.about("s", doAdopt)
		if got := a.next(); !strings.Contains(got, `"found":false`) || k.starts.Load() != 1 {
			t.Errorf("told %s after %d starts", got, k.starts.Load())
		}
		a.about("s", doPrompt)
		if got := a.ask(3, "go"); !strings.Contains(got, `"id":2`) || !strings.Contains(got, `"agent":2`) {
			t.Errorf("begun again: %s", got)
		}
	})
}

// about sends request 2, about a session, if the mux is there.
func (a *attached) about(session, method string) {
	_, _ = fmt.Fprintf(a.conn, `{"id":2,"method":%q,"params":{"sessionId":%q,"prompt":[]}}`+"\n", method, session)
}

// TestNoFilesLeft: connections that cannot be taken for a while end nothing.
func TestNoFilesLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t}
		clients := make(pipes)
		attach, over := k.attached(clients, time.Hour)
		attach().greet("")
		clients <- nil
		clients <- nil
		if synctest.Wait(); len(over) > 0 {
			t.Fatalf("it is over: %v", <-over)
		}
		if attach().greet(""); k.starts.Load() != 1 {
			t.Errorf("%d starts", k.starts.Load())
		}
	})
}

// TestStartsLaterAndLater: an agent that cannot be started is tried again once, and then later and later. Clients get
// the reason.
func TestStartsLaterAndLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, fail: errors.New("no such program")}
		attach, _ := k.inBubble(time.Hour)
		a := attach()
		for i, want := range []string{"no such program", "no such program", "is started again in"} {
			if got := a.ask(i, "initialize"); !strings.Contains(got, want) {
				t.Errorf("told %s, want %q", got, want)
			}
		}
		if n := k.starts.Load(); n != 2 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestDoesNotInitialize: the clients of an agent that does not initialize get the reason, and the agent is ended.
func TestDoesNotInitialize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, unfit: true}
		attach, _ := k.inBubble(time.Hour)
		a := attach()
		if got := a.ask(1, "initialize"); !strings.Contains(got, "no key") {
			t.Errorf("told %s", got)
		}
		if synctest.Wait(); k.ended.Load() != 1 {
			t.Error("the agent goes on")
		}
		if got := a.ask(2, "initialize"); !strings.Contains(got, "no key") || k.starts.Load() != 2 {
			t.Errorf("told %s after %d starts", got, k.starts.Load())
		}
	})
}

// pipes is a listener whose clients come through memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	switch {
	case !ok:
		return nil, net.ErrClosed
	case conn == nil:
		return nil, syscall.EMFILE
	}
	return conn, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// TestDeafAgent: an unused agent that answers nothing is ended, even if a client polls its list of sessions.
func TestDeafAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kept{t: t, deaf: true}
		attach, _ := k.inBubble(time.Hour)
		a := attach().greet("")
		for i := range 120 {
			if _, err := fmt.Fprintf(a.conn, `{"id":%d,"method":"session/list","params":{}}`+"\n", i+2); err != nil {
				break
			}
			time.Sleep(time.Minute)
		}
		if synctest.Wait(); k.ended.Load() != 1 {
			t.Errorf("%d agents were ended", k.ended.Load())
		}
	})
}

// TestSilentPrompt: an agent with a running prompt is not ended, however long it is silent, also without a client. When
// the prompt was told to stop or was answered, the agent is ended, and its mux ends a day later, unless the mux
// has an outcome that no client knows.
func TestSilentPrompt(t *testing.T) {
	t.Parallel()
	for end, owes := range map[string]bool{
		`{"method":"session/cancel","params":{"sessionId":"s"}}`: false, `{"id":3,"method":"go"}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &kept{t: t}
			attach, over := k.inBubble(time.Hour)
			say := func(line string) {
				a := attach()
				a.ask(1, "initialize")
				if _, err := fmt.Fprintln(a.conn, line); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				_ = a.conn.Close()
			}
			say(`{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
			time.Sleep(100 * time.Hour)
			if n := k.ended.Load(); n != 0 {
				t.Error("the agent was ended in the middle of its work")
			}
			say(end)
			time.Sleep(time.Hour + 2*time.Minute)
			if n := k.ended.Load(); n != 1 {
				t.Errorf("%d agents have ended, want one that nobody uses", n)
			}
			if owes {
				time.Sleep(100 * time.Hour)
				select {
				case <-over:
					t.Fatal("the mux has ended, and the answer with it")
				default:
				}
				a := attach()
				a.ask(1, "initialize")
				a.about("s", doAdopt)
				if a.next(); !strings.Contains(a.next(), `"agent":1`) {
					t.Fatal("the answer is lost")
				}
				a.next()
				_ = a.conn.Close()
			}
			time.Sleep(time.Hour + 2*time.Minute)
			select {
			case err := <-over:
				if err != nil {
					t.Error(err)
				}
			default:
				t.Fatal("nobody uses it, and it does not end")
			}
		})
	}
}

// TestEndsInTime: the input of an agent that does not read ends soon after its mux is told to end. The rest of its time
// is for the agent: the host kills only the mux.
func TestEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		clients, ended := make(pipes), make(chan struct{})
		go func() {
			defer close(ended)
			_ = Serve(ctx, Config{Listener: clients, Log: zap.NewNop(), Start: func(func(string)) (servers.Wire, error) {
				return transport.LinesOver(near), nil
			}})
		}()
		conn, theirs := net.Pipe()
		clients <- theirs
		a := &attached{t, conn, bufio.NewScanner(conn)}
		a.send(1, doInitialize)
		bufio.NewScanner(far).Scan() // and it reads no more
		_, _ = fmt.Fprintln(far, `{"id":1,"result":{}}`)
		a.next()
		a.about("s", doPrompt)
		synctest.Wait()
		began := time.Now()
		cancel()
		if <-ended; time.Since(began) > stopWithin {
			t.Errorf("its input ends after %v", time.Since(began))
		}
	})
}
