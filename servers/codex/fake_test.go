package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/serverstest"
	"switchboard/servers/transport"
)

func TestMain(m *testing.M) { serverstest.Main(m) }

// A sent is a frame that the client sent.
type sent struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Trace  json.RawMessage `json:"trace"`
}

// A fake is the server's end of a connection, played by a test inside a bubble.
type fake struct {
	t    *testing.T
	conn net.Conn
	wg   sync.WaitGroup

	mu     sync.Mutex
	frames []sent // Guarded by mu: received and not taken
}

// startFake connects a client to a fake and answers its handshake. The client is closed at the end.
func startFake(t *testing.T, cfg Config) (*fake, *servers.Link) {
	t.Helper()
	f, wire := pipeFake(t)
	connecting := call(func() (*servers.Link, error) { return connect(t.Context(), withDefaults(cfg), wire) })
	f.reply(f.expect("initialize"), `{"userAgent":"switchboard/0.169.0 (Debian 12.0.0; x86_64) unknown"}`)
	f.expect("initialized")
	link := connecting.get(t)
	t.Cleanup(func() { _ = link.Conn.Close() })
	return f, link
}

// bubble plays a test in a bubble of fake time.
func bubble(play func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, play) }
}

// withFake plays in a bubble with a connection.
func withFake(t *testing.T, play func(t *testing.T, f *fake, link *servers.Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{})
		play(t, f, link)
	})
}

// withTurn plays in a bubble with a turn that was started, and its recorder.
func withTurn(t *testing.T, play func(t *testing.T, f *fake, at handoff.Attached, r *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, at, r := running(t)
		play(t, f, at, r)
	})
}

// withThread plays in a bubble with a thread that is attached. turns are those that its snapshot shows, as JSON.
func withThread(t *testing.T, turns string, play func(*testing.T, *fake, *servers.Link, handoff.Attached)) {
	t.Helper()
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) { play(t, f, link, attach(t, f, link, turns)) })
}

func withDefaults(cfg Config) Config {
	cfg.Name, cfg.Log = cmp.Or(cfg.Name, "bigpc"), cmp.Or(cfg.Log, zap.NewNop())
	cfg.Reconcile, cfg.Counters = cmp.Or(cfg.Reconcile, reconcileFor), cmp.Or(cfg.Counters, newCounters(cfg.Name))
	cfg.died = new(atomic.Pointer[string])
	return cfg
}

// pipeFake returns a fake and the client's transport.
func pipeFake(t *testing.T) (*fake, servers.Wire) {
	ours, theirs := net.Pipe()
	f := &fake{t: t, conn: theirs}
	f.wg.Go(f.pump)
	t.Cleanup(f.close)
	return f, transport.LinesOver(ours)
}

// pump reads what the client sends, so that it never blocks.
func (f *fake) pump() {
	s := transport.NewLines(f.conn, f.conn)
	for {
		line, err := s.Read()
		if err != nil {
			return
		}
		var frame sent
		if err := json.Unmarshal(line, &frame); err != nil {
			panic(fmt.Sprintf("client sent %q: %v", line, err))
		}
		f.mu.Lock()
		f.frames = append(f.frames, frame)
		f.mu.Unlock()
	}
}

// close drops the connection.
func (f *fake) close() {
	_ = f.conn.Close()
	f.wg.Wait()
}

// take removes the frames received so far, once nothing moves any more.
func (f *fake) take() []sent {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	frames := f.frames
	f.frames = nil
	return frames
}

// expect returns the next frame, which must be of this method ("" is an answer).
func (f *fake) expect(method string) sent {
	f.t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) == 0 {
		f.t.Fatalf("client sent nothing, want %q", method)
	}
	frame := f.frames[0]
	f.frames = f.frames[1:]
	if frame.Method != method {
		f.t.Fatalf("client sent %q %s, want %q", frame.Method, frame.Params, method)
	}
	return frame
}

// quiet fails if the client sent anything.
func (f *fake) quiet() {
	f.t.Helper()
	if frames := f.take(); len(frames) > 0 {
		f.t.Fatalf("client sent %q %s, want nothing", frames[0].Method, frames[0].Params)
	}
}

// say sends a line.
func (f *fake) say(format string, args ...any) {
	if _, err := fmt.Fprintf(f.conn, format+"\n", args...); err != nil {
		f.t.Errorf("fake cannot send: %v", err)
	}
}

func (f *fake) reply(to sent, result string) { f.say(`{"id":%s,"result":%s}`, to.ID, result) }

func (f *fake) refuse(to sent, code int, text string) {
	f.say(`{"id":%s,"error":{"code":%d,"message":%q}}`, to.ID, code, text)
}

// gone does not find the thread that is to be resumed, however often it is asked.
func (f *fake) gone() {
	for try := range goneTries {
		f.refuse(f.expect("thread/resume"), -32600, "no rollout found for thread id "+thread1)
		if try < goneTries-1 {
			sleep(overloaded.Step(try))
		}
	}
}

func (f *fake) notify(method, params string) {
	f.say(`{"method":%q,"params":%s,"emittedAtMs":1}`, method, params)
}

// Names used by scripts.
const (
	thread1 = "01a1fad6-4251-7f03-9342-b774b1666951"
	turn1   = "01a1fad6-430e-73b3-8fbc-cee15634900b"
	turn2   = "01a1fad6-4f8d-73e1-b549-791f50d2bc15"
)

// threadJSON is the result of thread/resume and thread/start.
func threadJSON(id, status, turns string) string {
	page := "null"
	if turns != "none" {
		page = `{"data":[` + turns + `],"nextCursor":null}`
	}
	return fmt.Sprintf(`{"thread":{"id":%q,"preview":"fix the login page please","name":null,"cwd":"/src","createdAt":1,"updatedAt":2,"recencyAt":2,"status":%s,"gitInfo":null},`+
		`"approvalPolicy":"never","sandbox":{"type":"readOnly"},"initialTurnsPage":%s}`, id, status, page)
}

const (
	idle   = `{"type":"idle"}`
	active = `{"type":"active","activeFlags":[]}`
)

func turnJSON(id, status string, completed bool) string {
	at := "null"
	if completed {
		at = "1795212718"
	}
	return fmt.Sprintf(`{"id":%q,"status":%q,"completedAt":%s,"items":[],"error":null}`, id, status, at)
}

func (f *fake) turnStarted(turn string) {
	f.notify("turn/started", fmt.Sprintf(`{"threadId":%q,"turn":%s}`, thread1, turnJSON(turn, "inProgress", false)))
}

func (f *fake) turnCompleted(turn, status string) {
	f.notify("turn/completed", fmt.Sprintf(`{"threadId":%q,"turn":%s}`, thread1, turnJSON(turn, status, true)))
}

func (f *fake) status(status string) {
	f.notify("thread/status/changed", fmt.Sprintf(`{"threadId":%q,"status":%s}`, thread1, status))
}

func (f *fake) item(method, turn, item string) {
	f.notify(method, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"item":%s}`, thread1, turn, item))
}

func (f *fake) messageStarted(turn, id string) {
	f.item("item/started", turn, fmt.Sprintf(`{"type":"agentMessage","id":%q,"text":"","phase":null}`, id))
}

func (f *fake) messageDone(turn, id, text string) {
	f.item("item/completed", turn, fmt.Sprintf(`{"type":"agentMessage","id":%q,"text":%q,"phase":null}`, id, text))
}

func (f *fake) delta(turn, id, text string) {
	f.notify("item/agentMessage/delta",
		fmt.Sprintf(`{"threadId":%q,"turnId":%q,"itemId":%q,"delta":%q}`, thread1, turn, id, text))
}

// async runs a function of the client while the test plays the server.
type async[T any] struct{ done chan result[T] }

type result[T any] struct {
	value T
	err   error
}

func call[T any](fn func() (T, error)) async[T] {
	a := async[T]{make(chan result[T], 1)}
	go func() {
		v, err := fn()
		a.done <- result[T]{v, err}
	}()
	return a
}

// code runs a function that gives nothing but an error.
func callErr(fn func() error) async[struct{}] {
	return call(func() (struct{}, error) { return struct{}{}, fn() })
}

func (a async[T]) get(t *testing.T) T {
	t.Helper()
	r := <-a.done
	must(t, r.err)
	return r.value
}

func (a async[T]) wantCode(t *testing.T, code handoff.Code) *handoff.Error {
	t.Helper()
	r := <-a.done
	if r.err == nil {
		t.Fatalf("no error, want %s", code)
	}
	e := handoff.AsError(r.err)
	if e.Code != code {
		t.Fatalf("error %v, want %s", r.err, code)
	}
	return e
}

// attaching attaches thread1, listing lists threads, decide answers a question.
func attaching(t *testing.T, link *servers.Link) async[handoff.Attached] {
	return call(func() (handoff.Attached, error) { return link.Conn.Attach(t.Context(), thread1) })
}

func listing(t *testing.T, link *servers.Link, limit int) async[[]servers.Thread] {
	return call(func() ([]servers.Thread, error) { return link.Catalog.List(t.Context(), limit) })
}

func decide(t *testing.T, at handoff.Attached, id handoff.QuestionID, d handoff.Decision) async[struct{}] {
	return callErr(func() error { return at.Agent.(handoff.Controls).Decide(t.Context(), id, d) })
}

// attach attaches thread1, which rests after turns.
func attach(t *testing.T, f *fake, link *servers.Link, turns string) handoff.Attached {
	t.Helper()
	a := attaching(t, link)
	f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turns))
	return a.get(t)
}

// start starts turn1.
func start(t *testing.T, f *fake, at handoff.Attached) handoff.TurnID {
	t.Helper()
	s := tryStart(t, at)
	f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
	return s.get(t)
}

// A recorder follows a turn and writes down what it yields.
type recorder struct {
	done chan struct{}
	mu   sync.Mutex
	got  []handoff.Update // Guarded by mu
	err  error            // Guarded by mu
}

func record(ctx context.Context, a handoff.Agent, turn handoff.TurnID) *recorder {
	r := &recorder{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for u, err := range a.Follow(ctx, turn) {
			r.mu.Lock()
			if err != nil {
				r.err = err
			} else {
				r.got = append(r.got, u)
			}
			r.mu.Unlock()
		}
	}()
	return r
}

// lines returns what was yielded so far, deltas of one item joined, one line each.
func (r *recorder) lines() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	joined := slices.Clone(r.got)
	for i := 1; i < len(joined); i++ {
		a, ok1 := joined[i-1].(handoff.Delta)
		b, ok2 := joined[i].(handoff.Delta)
		if ok1 && ok2 && a.ItemID == b.ItemID {
			joined[i-1] = handoff.Delta{ItemID: a.ItemID, Kind: a.Kind, Text: a.Text + b.Text}
			joined = slices.Delete(joined, i, i+1)
			i--
		}
	}
	for _, u := range joined {
		lines = append(lines, describe(u))
	}
	if r.err != nil {
		lines = append(lines, "error "+string(handoff.AsError(r.err).Code))
	}
	return lines
}

// by names the subagent that did an item.
func by(it handoff.Item) string {
	if it.By == "" {
		return ""
	}
	return " by " + it.By
}

// describe writes an update as one line.
func describe(u handoff.Update) string {
	switch u := u.(type) {
	case handoff.Started:
		return "started"
	case handoff.ItemStarted:
		return fmt.Sprintf("item %s %s %q", u.Item.Kind, u.Item.ID, u.Item.Text) + by(u.Item)
	case handoff.Delta:
		return fmt.Sprintf("delta %s %q", u.ItemID, handoff.ClipRunes(u.Text, 60))
	case handoff.ItemDone:
		s := fmt.Sprintf("done %s %s %q", u.Item.Kind, u.Item.ID, handoff.ClipRunes(u.Item.Text, 60))
		if u.Item.Arguments != "" {
			s += " arguments " + handoff.ClipRunes(u.Item.Arguments, 60)
		}
		if u.Item.Output != "" {
			s += fmt.Sprintf(" output %q", handoff.ClipRunes(u.Item.Output, 60))
		}
		if u.Item.Exit != nil {
			s += fmt.Sprintf(" exit %d", *u.Item.Exit)
		}
		if u.Item.Failed {
			s += " failed"
		}
		return s + by(u.Item)
	case handoff.ItemDropped:
		return "dropped " + u.ItemID
	case handoff.Question:
		s := fmt.Sprintf("question %s %s %q", lastPart(u.ID), u.Kind, u.Text)
		if u.Command != "" {
			s += fmt.Sprintf(" command %q", handoff.ClipRunes(u.Command, 80))
		}
		if len(u.Changes) > 0 {
			s += fmt.Sprintf(" changes %q", u.Changes)
		}
		return s + fmt.Sprintf(" %s", u.Decisions)
	case handoff.QuestionClosed:
		return "closed " + lastPart(u.ID)
	case handoff.Usage:
		return fmt.Sprintf("usage %d in, %d out", u.Input, u.Output)
	case handoff.TurnEnded:
		s := fmt.Sprintf("ended %s %q %q", [...]string{"completed", "failed", "interrupted"}[u.Status],
			handoff.ClipRunes(u.Text, 60), handoff.ClipRunes(u.Detail, 80))
		return strings.TrimSpace(s + " " + string(u.Code) + string(u.Goal))
	}
	return fmt.Sprintf("%T", u)
}

func lastPart(id handoff.QuestionID) string {
	return string(id)[strings.LastIndexByte(string(id), ':')+1:]
}

// want compares lines.
func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if !slices.Equal(got, lines) {
		t.Fatalf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(lines, "\n  "))
	}
}

// sleep lets fake time pass.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
