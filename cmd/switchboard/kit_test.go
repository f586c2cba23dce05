package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/handoff"
	machines "switchboard/servers/simulator"
	"switchboard/web"
)

const testKey = "a-key-for-the-tests-0000"

// patience bounds every wait of a test for something that happens. It is never how long that should take: only a
// failure takes so long, also beside a busy machine.
const patience = 3 * time.Minute

// A running is a service under test.
type running struct {
	t    testing.TB
	base string                                        // http://127.0.0.1:port, or the public address
	own  string                                        // where it listens
	link func(context.Context, string) (string, error) // of the page, logs in
	logs *logBuffer
	stop func() // ends it and waits; may be called more than once
}

// start runs a whole service on loopback, simulated where the plan says nothing else.
func start(t testing.TB, change func(*plan)) *running {
	t.Helper()
	p := plan{settings: settings{Listen: "127.0.0.1:0", Access: []web.Key{ownersTestKey()}}, StateDir: t.TempDir()}
	if change != nil {
		change(&p)
	}
	logs := &logBuffer{}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), logs, zap.DebugLevel)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := newService(ctx, p, zap.New(core))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the service ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the service did not end")
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("log of the service:\n%s", logs.tail(20000))
		}
	})
	return &running{t: t, base: strings.TrimSuffix(s.address, "/"), own: s.base, link: s.link, logs: logs, stop: stop}
}

// get reads JSON of an API path.
func (r *running) get(path string, into any) {
	r.t.Helper()
	status, body := r.ask(http.MethodGet, path, "")
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		r.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

// ask sends a request with the key and returns what came back. Headers come in pairs; one whose value is "" is left
// out.
func (r *running) ask(method, path, body string, headers ...string) (int, []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, nil
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp.StatusCode, got
}

// post sends what must be taken.
func (r *running) post(path, body string) {
	r.t.Helper()
	if status, got := r.ask(http.MethodPost, path, body); status/100 != 2 {
		r.t.Fatalf("POST %s: %d %s", path, status, got)
	}
}

// again asks for work under a key.
func (r *running) again(path, key, body string) (status int, rec handoff.Record) {
	r.t.Helper()
	status, got := r.ask(http.MethodPost, path, body, "Idempotency-Key", key)
	if err := json.Unmarshal(got, &rec); err != nil {
		r.t.Fatalf("%v in %s", err, got)
	}
	return status, rec
}

// items reads a list of the API.
func items[T any](r *running, path string) []T {
	r.t.Helper()
	var list struct{ Items []T }
	r.get(path, &list)
	return list.Items
}

// question waits for the one open question.
func (r *running) question() handoff.RecordQuestion {
	r.t.Helper()
	var open []handoff.RecordQuestion
	until(r.t, "a question", func() bool {
		open = items[handoff.RecordQuestion](r, "/fleet/questions")
		return len(open) == 1
	})
	return open[0]
}

// decide answers a question.
func (r *running) decide(q handoff.RecordQuestion, decision string) {
	r.t.Helper()
	r.post("/fleet/questions/"+string(q.ID), `{"decision":"`+decision+`"}`)
}

// up waits until the servers answer.
func (r *running) up(names ...string) {
	r.t.Helper()
	for _, name := range names {
		until(r.t, name+" to be up", func() bool {
			var list struct{ Items []handoff.ServerInfo }
			status, body := r.ask(http.MethodGet, "/fleet/servers", "")
			return status == http.StatusOK && json.Unmarshal(body, &list) == nil && // else an instance that misses its Redis
				slices.ContainsFunc(list.Items, func(s handoff.ServerInfo) bool { return s.Name == name && s.Health == handoff.HealthUp })
		})
	}
}

// background runs something until stop is called or the test ends. Its error fails the test.
func background(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// loopback listens on a port of this machine that nobody has.
func loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// write writes a file.
func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// handoffs returns the pieces of work without what they did, oldest first.
func (r *running) handoffs() (all []handoff.Record) {
	r.t.Helper()
	query := ""
	for {
		var page struct {
			Items []handoff.Record
			More  int
		}
		r.get("/fleet/handoffs?limit=100"+query, &page)
		all = append(all, page.Items...)
		if page.More == 0 {
			slices.Reverse(all)
			return all
		}
		query = "&before=" + all[len(all)-1].ID
	}
}

// whole returns a piece of work with what it did.
func (r *running) whole(id string) (rec handoff.Record) {
	r.t.Helper()
	r.get("/fleet/handoffs/"+id, &rec)
	return rec
}

// holding makes simulated machines on which work whose prompt has some words goes on until the test releases them.
func holding(hurry float64, words string) *machines.World {
	return machines.NewWorld(machines.Config{Speed: hurry, Script: func(p machines.Prompt) []machines.Step {
		if !strings.Contains(strings.ToLower(p.Text), words) {
			return nil
		}
		return slices.Insert(slices.Clone(p.Known), len(p.Known)-1, machines.Step(machines.Hang{}))
	}})
}

// allHeard waits until every piece of work has ended and its outcome was heard to the end, and returns them.
func (r *running) allHeard() []handoff.Record {
	r.t.Helper()
	var works []handoff.Record
	until(r.t, "everything to be heard", func() bool {
		works = r.handoffs()
		return !slices.ContainsFunc(works, func(w handoff.Record) bool { return w.State != handoff.StatusDelivered })
	})
	return works
}

// until waits for something to become true. A look may be a request to a process that has other work, so it looks more
// and more rarely.
func until(t testing.TB, what string, true_ func() bool) {
	t.Helper()
	for begun := time.Now(); !true_(); time.Sleep(min(20*time.Millisecond+time.Since(begun)/20, 200*time.Millisecond)) {
		if time.Since(begun) > patience {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// streamsWork gives work, and holds that the stream of events tells of it as it begins.
func (r *running) streamsWork() {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.base+"/fleet/events", nil)
	must(r.t, err)
	req.Header.Set("Authorization", "Bearer "+testKey)
	feed, err := http.DefaultClient.Do(req)
	must(r.t, err)
	defer feed.Body.Close()
	events := bufio.NewScanner(feed.Body)
	events.Buffer(nil, 1<<20)
	events.Scan() // the first has come, and the stream is open
	r.post("/fleet/handoffs", `{"server":"bigpc","prompt":"run the tests"}`)
	for !strings.Contains(events.Text(), "run the tests") && events.Scan() {
	}
	if err := events.Err(); err != nil || !strings.Contains(events.Text(), "run the tests") {
		r.t.Errorf("the stream ended before its event: %v", err)
	}
}

// A phone is a stock Realtime client.
type phone struct {
	t       testing.TB
	conn    line
	goodbye func() error // hangs up, once; the other end closes then
	events  chan phoneEvent
	heard   int // sentences that hear has passed

	mu    sync.Mutex
	said  []string     // Guarded by mu: what the voice said, whole sentences
	seen  []phoneEvent // Guarded by mu
	plays time.Time    // Guarded by mu: when the sound that came has been played
}

// A phoneEvent is an event as far as tests look at it.
type phoneEvent struct {
	Type       string `json:"type"`
	Transcript string `json:"transcript"`
	Delta      string `json:"delta"`
	Item       struct {
		ID, Type, Name string
		CallID         string `json:"call_id"`
	} `json:"item"`
	Response struct{ Status string }        `json:"response"`
	Error    struct{ Code, Message string } `json:"error"`
	raw      string
}

// socket is where calls are opened.
func (r *running) socket() string { return strings.Replace(r.base, "http", "ws", 1) + "/v1/realtime" }

// call opens a call.
func (r *running) call() *phone {
	r.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + testKey}}
	conn, _, err := websocket.DefaultDialer.DialContext(r.t.Context(), r.socket(), header)
	must(r.t, err)
	return newPhone(r.t, conn)
}

// newPhone is the client of a call that was opened. It says goodbye as stock clients do.
func newPhone(t testing.TB, conn *websocket.Conn) *phone {
	t.Helper()
	return newPhoneOn(t, conn, func() error {
		end := time.Now().Add(patience)
		_ = conn.SetReadDeadline(end)
		return conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), end)
	})
}

// newPhoneOn is the client of a call on another line.
func newPhoneOn(t testing.TB, conn line, goodbye func() error) *phone {
	t.Helper()
	p := &phone{t: t, conn: conn, goodbye: sync.OnceValue(goodbye), events: make(chan phoneEvent, 4096)}
	go p.read()
	t.Cleanup(p.hangUp)
	p.await("session.created")
	return p
}

func (p *phone) read() {
	defer close(p.events)
	for {
		_, data, err := p.conn.ReadMessage()
		if err != nil {
			return
		}
		e := phoneEvent{raw: string(data)}
		if json.Unmarshal(data, &e) != nil {
			continue
		}
		if e.Type == "response.output_audio.delta" {
			p.play(len(e.Delta) * 3 / 4)
			continue
		}
		p.mu.Lock()
		p.seen = append(p.seen, e)
		if e.Type == "response.output_audio_transcript.done" {
			p.said = append(p.said, e.Transcript)
		}
		p.mu.Unlock()
		select {
		case p.events <- e:
		default: // who only listens to what is said leaves them lying
			<-p.events
			p.events <- e
		}
	}
}

// play takes bytes of sound, as long as they last at 24 kHz and 16 bits.
func (p *phone) play(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.After(p.plays) {
		p.plays = now
	}
	p.plays = p.plays.Add(time.Duration(size) * time.Second / 48000)
}

// send sends an event.
func (p *phone) send(event string) {
	p.t.Helper()
	must(p.t, p.conn.WriteMessage(websocket.TextMessage, []byte(event)))
}

// say types a sentence and asks for a response, as Realtime clients do.
func (p *phone) say(text string) {
	p.t.Helper()
	content, _ := json.Marshal(text)
	p.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":` + string(content) + `}]}}`)
	p.send(`{"type":"response.create"}`)
}

// await takes events until one of a type.
func (p *phone) await(kind string) phoneEvent {
	p.t.Helper()
	end := time.After(patience)
	for {
		select {
		case e, open := <-p.events:
			if !open {
				p.t.Fatalf("the call ended before %s", kind)
			}
			if e.Type == kind {
				return e
			}
		case <-end:
			p.t.Fatalf("no %s; the voice said %q", kind, p.spoken())
		}
	}
}

// hear waits until the voice says something with these words, after what was heard before.
func (p *phone) hear(words string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said := p.spoken()[p.heard:]
		i := slices.IndexFunc(said, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(words)) })
		if i >= 0 {
			p.heard += i + 1
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("waited in vain: the voice to say %s; it said %q", words, said)
		}
	}
}

// spoken is what the voice has said so far.
func (p *phone) spoken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.said...)
}

// all returns every event so far, but for audio.
func (p *phone) all() []phoneEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]phoneEvent(nil), p.seen...)
}

// hangUp says goodbye, and waits until the other end has closed.
func (p *phone) hangUp() {
	end := time.Now().Add(patience)
	err := p.goodbye()
	for range p.events {
	}
	if time.Now().After(end) {
		p.t.Errorf("the call goes on after it was hung up; the goodbye was sent with %v", err)
	}
	_ = p.conn.Close()
}

// A logBuffer is a buffer for several goroutines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // Guarded by mu
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) Sync() error { return nil }

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// tail returns the last n bytes, without what the WebRTC library tells of itself.
func (b *logBuffer) tail(n int) string {
	lines := strings.SplitAfter(b.String(), "\n")
	s := strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"msg":"webrtc","scope"`) }), "")
	return s[max(0, len(s)-n):]
}

// ownersTestKey is the owner's, without limits.
func ownersTestKey() web.Key {
	k := web.NewKey(ownerName, testKey)
	k.Approve, k.Instructions, k.Metrics = handoff.ApproveAll, handoff.InstructAll, true
	return k
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
