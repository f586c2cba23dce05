package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/servers"
)

// A wire is the far end, played by a test.
type wire struct {
	says   chan string
	gone   chan struct{}
	writes func([]byte) error
}

func (w *wire) Read() ([]byte, error) {
	select {
	case frame := <-w.says:
		return []byte(frame), nil
	case <-w.gone:
		return nil, io.EOF
	}
}

func (w *wire) Write(frame []byte) error { return w.writes(frame) }

func (w *wire) Close() error { close(w.gone); return nil }

// running runs a peer in a bubble until the test ends.
func running(t *testing.T, writes func(*wire, []byte) error) *Peer {
	w := &wire{says: make(chan string, 16), gone: make(chan struct{})}
	w.writes = func(frame []byte) error { return writes(w, frame) }
	return runningOn(t, w)
}

func runningOn(t *testing.T, w servers.Wire) *Peer {
	p := NewPeer(Config{Wire: w, Log: zap.NewNop(), Handle: func(Message) {}, InFlight: 2, Queued: 128,
		QueuedBytes: 2 * servers.MaxFrame})
	ended := make(chan struct{})
	go func() { p.Run(); close(ended) }()
	t.Cleanup(func() {
		p.Lose(servers.ErrClosed)
		<-ended
	})
	return p
}

// TestWriteDeadline: if a write fails because the far end does not read, the connection is lost and all calls return.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := running(t, func(*wire, []byte) error {
			time.Sleep(10 * time.Second)
			return errors.New("i/o timeout")
		})
		first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { first <- p.Tell(t.Context(), "a", nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { second <- p.Tell(ctx, "b", nil) }()
		go func() { third <- p.Call(ctx, "turn/start", nil, nil) }()
		if err := <-third; !servers.NotSent(err) {
			t.Errorf("a start that never reached the writer: %v", err)
		}
		if err := <-second; !servers.NotSent(err) {
			t.Errorf("a frame that never reached the writer: %v", err)
		}
		if err := <-first; err == nil || servers.NotSent(err) {
			t.Errorf("a frame that may have left: %v", err)
		}
		<-p.Done()
		if err := p.Tell(t.Context(), "c", nil); !servers.NotSent(err) {
			t.Errorf("after the loss: %v", err)
		}
	})
}

// TestReplyInHand: a response that the reader is handling when the caller gives up is not lost.
func TestReplyInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := running(t, func(w *wire, _ []byte) error {
			w.says <- `{"id":1,"result":{"turn":1}}`
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var got json.RawMessage
		if err := p.CallIn(ctx, "x", nil, &got, func(Reply) { time.Sleep(2 * time.Second) }); err != nil ||
			string(got) != `{"turn":1}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

// lingering is a wire whose Close takes until ends is closed, as that of a program that is slow to end.
type lingering struct {
	*wire
	ends chan struct{}
}

func (l lingering) Close() error { <-l.ends; return l.wire.Close() }

// TestLost: a call that waits for its response fails at once when the connection is lost, whatever its context.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := lingering{&wire{gone: make(chan struct{}), writes: func([]byte) error { return nil }}, make(chan struct{})}
		p := runningOn(t, w)
		defer close(w.ends)
		asked := make(chan error, 1)
		go func() { asked <- p.Call(context.Background(), "x", nil, nil) }()
		synctest.Wait()
		p.Lose(io.EOF)
		synctest.Wait()
		select {
		case err := <-asked:
			if _, unanswered := errors.AsType[*servers.UnansweredError](err); !unanswered {
				t.Errorf("it does not say that nobody answered: %v", err)
			}
		default:
			t.Error("it waits for the wire to close")
		}
	})
}

// A slowContext is a context whose Value waits until may is closed.
type slowContext struct {
	context.Context
	may chan struct{}
}

func (c slowContext) Value(key any) any { <-c.may; return c.Context.Value(key) }

// TestLostUnsent: a request that waited for the writer when the connection was lost counts as not sent, however late
// its sender notices.
func TestLostUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := running(t, func(w *wire, _ []byte) error { <-w.gone; return io.EOF })
		_, err := p.Send([]byte("{}")) // the writer is busy with it
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		late := slowContext{ctx, make(chan struct{})}
		asked := make(chan error, 1)
		go func() { asked <- p.Post(late, "turn/start", nil, func(r Reply) { t.Errorf("it landed: %v", r.Err) }) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		p.Lose(io.EOF)
		synctest.Wait()
		close(late.may)
		if err := <-asked; !servers.NotSent(err) {
			t.Errorf("it may have left: %v", err)
		}
	})
}

// TestQueuesHaveBytes: the queue of the writer is bounded in bytes.
func TestQueuesHaveBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := running(t, func(w *wire, _ []byte) error { <-w.gone; return io.EOF })
		big := make([]byte, servers.MaxFrame)
		for i := range 3 { // one is being written
			if _, err := p.Send(big); err != nil {
				t.Errorf("frame %d: %v", i, err)
			}
			synctest.Wait()
		}
		if _, err := p.Send(big); !errors.Is(err, servers.ErrTooMany) || p.Full.Load() != 1 {
			t.Errorf("the queue took more: %v, counted %d", err, p.Full.Load())
		}
		if _, err := p.Send(big[:0]); err != nil {
			t.Errorf("a small frame: %v", err)
		}
	})
}

// TestAnswersHaveBytes: responses that wait to be decoded are bounded in bytes. Decoded ones no longer count.
func TestAnswersHaveBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := 0
		p := running(t, func(w *wire, _ []byte) error {
			id++
			w.says <- fmt.Sprintf(`{"id":%d,"result":{}}`, id)
			return nil
		})
		p.held.Store(maxHeld - 1) // others, which wait
		if err := p.Call(t.Context(), "x", nil, nil); !errors.Is(err, servers.ErrLongFrame) || p.LeftOut.Load() != 1 {
			t.Errorf("an answer beyond the bound: %v", err)
		}
		p.held.Store(maxHeld - 2)
		for range 2 {
			if err := p.Call(t.Context(), "x", nil, new(struct{})); err != nil {
				t.Errorf("an answer found no room: %v", err)
			}
		}
	})
}

// TestLeftOutThere: what was left out on the machine, since it was too long, counts as left out here.
func TestLeftOutThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := running(t, func(w *wire, _ []byte) error {
			w.says <- `{"method":"` + servers.LeftOut + `"}`
			w.says <- `{"id":1,"error":{"code":-32600,"message":"answer longer than 16 MiB"}}`
			return nil
		})
		if err := p.Call(t.Context(), "x", nil, nil); !errors.Is(err, servers.ErrLongFrame) || p.LeftOut.Load() != 1 {
			t.Errorf("it fails with %v, and %d are left out", err, p.LeftOut.Load())
		}
	})
}

func TestEncodeSanitises(t *testing.T) {
	frame, err := encode(outgoing{Method: "x", Params: map[string]any{"text": "a\xffb\x00", "raw": json.RawMessage("\"c\xfe\"")}})
	if s := string(frame); err != nil || s != strings.ToValidUTF8(s, "!") || strings.Contains(s, "\n") {
		t.Errorf("frame %q, %v", frame, err)
	}
	if _, err := encode(outgoing{Params: strings.Repeat("x", servers.MaxFrame)}); !errors.Is(err, servers.ErrTooLarge) {
		t.Errorf("large frame: %v", err)
	}
}

func TestParse(t *testing.T) {
	for frame, want := range map[string]string{
		`{"method":"a"}`:                       "a",
		`{"method":"a","id":null}`:             "a",
		`{"method":"a","id":0,"params":{}}`:    "a 0",
		`{"method":"a","id":"x"}`:              `a "x"`,
		`{"id":1,"result":{}}`:                 " 1",
		`{"id":1,"error":{"code":1}}`:          " 1",
		`{"id":1,"result":null}`:               " 1",
		`{"jsonrpc":"2.0","id":1,"result":{}}`: " 1",
		`{"id":1}`:                             " 1", // some write nothing where there is no result
		`{}`:                                   "",
		`[]`:                                   "",
		`"x"`:                                  "",
		``:                                     "",
	} {
		m, ok := Parse([]byte(frame))
		got := m.Method
		if m.ID != nil {
			got += " " + string(m.ID)
		}
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", frame, got, ok, want)
		}
	}
	if n := values([]byte(`{"a":"{[,\",","b":[1,{}]}`)); n != 5 {
		t.Errorf("%d values", n)
	}
}

// TestCounters: the counts of a connection stay after its end, except those that are for open connections only.
func TestCounters(t *testing.T) {
	type connection struct{ n uint64 }
	counters := NewCounters("bigpc", []Counter[*connection]{
		{Name: "total", Of: func(c *connection) uint64 { return c.n }},
		{Name: "bytes", Of: func(c *connection) uint64 { return 10 * c.n }, Now: true},
	})
	look := func(want string) {
		t.Helper()
		var got strings.Builder
		for m := range counters.Metrics {
			got.WriteString(fmt.Sprintf("%s %v %v; ", m.Name, m.Labels, m.Value))
		}
		if got.String() != want {
			t.Errorf("%s, want %s", got.String(), want)
		}
	}
	one, two := &connection{1}, &connection{2}
	first, second := counters.Begin(one), counters.Begin(two)
	look("total [{server bigpc}] 3; bytes [{server bigpc}] 30; ")
	two.n = 4
	second()
	look("total [{server bigpc}] 5; bytes [{server bigpc}] 10; ")
	first()
	look("total [{server bigpc}] 5; bytes [{server bigpc}] 0; ")
}
