package codex

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/transport"
	"switchboard/servers/turns"
)

// deep is JSON that nests n deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestTooDeep: a frame that nests deeper than any is worth is left out. Who waits for it hears so at once, all
// others go on, and a turn whose end it may have been is read.
func TestTooDeep(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		rec := record(t.Context(), at.Agent, start(t, f, at))
		f.turnStarted(turn1)
		list := callErr(func() error { _, err := link.Catalog.List(t.Context(), 1); return err })
		f.say(`{"id":%s,"result":%s}`, f.expect("thread/list").ID, deep(1_000_000))
		list.wantCode(t, handoff.CodeUnreachable)
		f.quiet()
		f.say(`{"method":"turn/completed","params":{"threadId":%q,"x":%s`, thread1, strings.Repeat(`{"a":`, 100_000))
		sleep(restGrace)
		f.turns(turnJSON(turn1, "completed", true))
		f.reply(f.expect("thread/items/list"), `{"data":[`+entryOf(turn1, userSays("m1"))+`]}`)
		want(t, rec.lines(), "started", `ended completed "" ""`)
		if c := link.Conn.(*connection); c.peer.LeftOut.Load() != 2 {
			t.Errorf("%d frames left out", c.peer.LeftOut.Load())
		}
	})
}

// TestManyValues: three bytes may become hundreds; who asked for them asks for less.
func TestManyValues(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		list := callErr(func() error { _, err := link.Catalog.List(t.Context(), 100); return err })
		f.say(`{"id":%s,"result":{"data":[%s{}]}}`, f.expect("thread/list").ID, strings.Repeat("{},", 1<<18))
		again := f.expect("thread/list")
		if !strings.Contains(string(again.Params), `"limit":14`) {
			t.Errorf("asked again with %s", again.Params)
		}
		f.reply(again, `{"data":[]}`)
		list.get(t)
	})
}

// TestUnreadTurnsShareABound: turns that nobody reads are given up before they hold more than a connection may.
func TestUnreadTurnsShareABound(t *testing.T) {
	t.Parallel()
	c := &connection{cfg: Config{Name: "x"}, threads: map[string]*thread{}, log: zap.NewNop()}
	text := strings.Repeat("x", 200<<10)
	for i := range 16 {
		th := c.acquire(fmt.Sprintf("thread-%d", i))
		for j := range maxTurns {
			id := handoff.TurnID(fmt.Sprintf("%d-%d", i, j))
			for k := range 30 {
				item := &wireItem{Type: typeAgentMessage, ID: fmt.Sprint(k), Text: text}
				th.handle(noteItemCompleted, &note{TurnID: string(id), Item: item})
			}
		}
	}
	most := int64(turns.MaxHeld + 16*maxTurns*(turns.SoftBytes+maxText))
	if held := c.tally.Bytes.Load(); held > most || held < turns.MaxHeld/2 || c.tally.GivenUp.Load() == 0 {
		t.Errorf("%d MiB held, %d given up", held>>20, c.tally.GivenUp.Load())
	}
	for _, th := range c.threads {
		_ = c.unref(th)
	}
	if held := c.tally.Bytes.Load(); held != 0 || len(c.threads) != 0 {
		t.Errorf("%d bytes of %d threads held by nobody", held, len(c.threads))
	}
}

// TestItemBounds: ids, paths and words of one item.
func TestItemBounds(t *testing.T) {
	t.Parallel()
	w := &wireItem{Type: typeFileChange, ID: "x",
		Changes: []fileChange{{Path: strings.Repeat("p", maxPaths)}, {Path: "q"}}}
	if got := w.paths(); got != nil {
		t.Errorf("%d paths that are too long", len(got))
	}
	w = &wireItem{Type: typeAgentMessage, ID: "x", Text: strings.Repeat("ä", maxText)}
	if got := len(w.item().Text); got > maxText+8 {
		t.Errorf("%d bytes of words", got)
	}
	if (&note{ThreadID: "x", Item: &wireItem{ID: strings.Repeat("i", maxID+1)}}).fit() {
		t.Error("a long id fits")
	}
}

// TestLongQuestion: it is shown, nothing of it is kept, and nobody can say yes to it here.
func TestLongQuestion(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		rec := record(t.Context(), at.Agent, start(t, f, at))
		f.turnStarted(turn1)
		f.say(`{"id":7,"method":%q,"params":{"threadId":%q,"turnId":%q,"itemId":"i","command":%q}}`,
			askCommand, thread1, turn1, strings.Repeat("x", maxQuestion))
		want(t, rec.lines(), "started",
			`question 7 other "The agent asks for something that is too long to be shown here; answer it on its machine." []`)
		id := rec.got[1].(handoff.Question).ID
		decide(t, at, id, handoff.DecisionAccept).wantCode(t, handoff.CodeMalformed)
		f.quiet()
	})
}

// wireOf is a transport that gives lines once so many frames were written, and then ends.
type wireOf struct {
	*transport.Lines
	asked chan struct{} // takes a token for each frame
	after int
}

func (w *wireOf) Read() ([]byte, error) {
	for ; w.after > 0; w.after-- {
		<-w.asked
	}
	return w.Lines.Read()
}

func (w *wireOf) Write([]byte) error { w.asked <- struct{}{}; return nil }

func (*wireOf) Close() error { return nil }

// FuzzFrame: whatever a server says, the connection neither panics nor waits, and keeps no more than it may.
func FuzzFrame(f *testing.F) {
	for _, name := range []string{"a-basic-ws", "f-approvals", "j-errors", "s-subagents"} {
		var all []byte
		for i, l := range readTranscript(f, name) {
			if l.Dir == "<" && i%7 == 0 {
				f.Add([]byte(l.Msg))
			}
			if l.Dir == "<" && i < 60 {
				all = append(append(all, l.Msg...), '\n')
			}
		}
		f.Add(all)
	}
	f.Add([]byte(`{"type":"x","a":` + strings.Repeat("[", 20_000)))
	f.Add([]byte(`{"id":1,"result":` + deep(20_000) + `}`))
	f.Add([]byte(`{"method":"item/started","params":{"threadId":"t","turnId":"u","item":{"id":"` +
		strings.Repeat("i", 2*maxID) + `"}}}`))
	f.Fuzz(func(t *testing.T, frames []byte) {
		frames = append(bytes.ReplaceAll(frames, []byte(`"threadId":"`), []byte(`"threadId":"`+thread1+`","_":"`)), '\n')
		c := &connection{cfg: Config{Name: "x"}, threads: map[string]*thread{}, log: zap.NewNop()}
		th := c.acquire(thread1)
		c.peer = jsonrpc.NewPeer(jsonrpc.Config{
			Wire: &wireOf{transport.NewLines(bytes.NewReader(frames), nil), make(chan struct{}, 2), 2}, Log: c.log,
			Handle: c.handle, Missed: c.doubtRunning, InFlight: 2, Queued: 2, QueuedBytes: 1 << 10,
		})
		var run sync.WaitGroup
		run.Go(c.peer.Run)
		resumed := inReader(func(r *threadResult) { th.snapshot(r) })
		started := inReader(func(r *turnResult) { th.claim(handoff.TurnID(r.Turn.ID), "", "m1") })
		for _, land := range []func(jsonrpc.Reply){resumed, started} {
			must(t, c.peer.Post(t.Context(), "x", nil, land))
		}
		run.Wait()
		for _, k := range th.turns {
			if len(k.id) > maxID {
				t.Fatalf("a turn's id has %d bytes", len(k.id))
			}
			for u := range th.updates(k) {
				if u == nil {
					t.Fatal("nil update")
				}
			}
		}
		if left := c.tally.Bytes.Load(); left != 0 {
			t.Fatalf("%d bytes left after reading", left)
		}
	})
}
