package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	ownerKey = "owner-key-0123456789"
	otherKey = "other-key-0123456789"
)

// world stands for the router, the directory and the voice front.
type world struct {
	mu          sync.Mutex
	records     []handoff.Record                      // Guarded by mu
	questions   []handoff.RecordQuestion              // Guarded by mu
	stickies    []handoff.RecordSticky                // Guarded by mu
	servers     []handoff.ServerInfo                  // Guarded by mu
	sessions    handoff.SessionList                   // Guarded by mu
	transcr     handoff.Transcript                    // Guarded by mu
	asked       []string                              // Guarded by mu: what was called, with its arguments
	answered    []handoff.ID                          // Guarded by mu: whose promise reached who asked
	unread      error                                 // Guarded by mu: why work from before a restart is not known
	fail        error                                 // Guarded by mu: what every call returns
	limited     bool                                  // Guarded by mu: nobody may give work
	feeds       map[string]*testFeed                  // Guarded by mu: by principal
	onCalls     http.HandlerFunc                      // Guarded by mu: answers calls; nil: an error
	onDecide    func() error                          // Guarded by mu: nil: the question closes
	kept        []sessions.Login                      // Guarded by mu: newest use first
	codes       []sessions.Code                       // Guarded by mu: oldest first
	secrets     map[[sha256.Size]byte]sessions.Secret // Guarded by mu
	mostSecrets int                                   // Guarded by mu: how many are kept
	apps        []sessions.App                        // Guarded by mu
	failLogins  error                                 // Guarded by mu: what the store of logins returns
	endRead     bool                                  // Guarded by mu: a login ends right after it was read
	desk        desk                                  // Guarded by mu
	archived    []handoff.SessionInfo                 // Guarded by mu
	happened    []handoff.EventKind                   // Guarded by mu: to the only run
}

func newWorld() *world {
	return &world{
		feeds: map[string]*testFeed{}, secrets: map[[sha256.Size]byte]sessions.Secret{}, mostSecrets: 8,
		desk: desk{level: handoff.LevelMilestones},
	}
}

func (w *world) note(parts ...string) error {
	w.asked = append(w.asked, strings.Join(parts, " "))
	return w.fail
}

// called is note for who does not hold the lock.
func (w *world) called(parts ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.note(parts...)
}

func (w *world) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *world) MayGive(handoff.Grant) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limited {
		return handoff.Fault(handoff.CodeLimited, "work", "")
	}
	return nil
}

func (w *world) Handoffs(c handoff.Grant) ([]handoff.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("handoffs", c.Caller.String())
	return append([]handoff.Record(nil), w.records...), w.unread
}

func (w *world) Give(_ context.Context, c handoff.Grant, req handoff.Request) (handoff.Record, error) {
	if req.Again != (req.Key != "") { // a key may be of a former life
		return handoff.Record{}, handoff.Fault(handoff.CodeInternal, "", "")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	how := map[handoff.Mode]string{
		handoff.ModeNow: "start", handoff.ModeNext: "start next", handoff.ModeAside: "start aside",
		handoff.ModeWatch: "watch",
	}[req.Mode]
	at := req.Key + req.Target.Server + string(req.Instead)
	if req.From != (handoff.Target{}) {
		how += " from " + req.From.Server + " " + req.From.Thread + " for"
	}
	if req.Worktree {
		at += " in a worktree"
	}
	return handoff.Record{ID: "h1"}, w.note(how, c.Caller.String(), at, req.Target.Thread, handoff.InputText(req.Input))
}

func (w *world) Steer(_ context.Context, c handoff.Grant, id string, req handoff.Request) (handoff.Record, error) {
	return handoff.Record{ID: "h1"}, w.called("steer", c.Caller.String(), req.Key+id, handoff.InputText(req.Input))
}

// Follow yields what happened after an event, and then waits for nothing more than the end of ctx, unless it is over.
func (w *world) Follow(
	ctx context.Context, g handoff.Grant, id handoff.ID, after uint64,
) iter.Seq2[handoff.Event, error] {
	return func(yield func(handoff.Event, error) bool) {
		w.mu.Lock()
		_ = w.note("follow", g.Caller.String(), string(id), strconv.FormatUint(after, 10))
		happened := w.happened
		w.mu.Unlock()
		for i, kind := range happened {
			e := handoff.Event{
				ID: id, Seq: uint64(i + 1), Record: handoff.Record{ID: string(id), Server: "bigpc"}, Kind: kind,
			}
			if e.Seq > after && !yield(e, nil) {
				return
			}
			if _, over := kind.(handoff.EventEnded); over {
				return
			}
		}
		<-ctx.Done()
		yield(handoff.Event{}, ctx.Err())
	}
}

func (w *world) HeardForGood(_ context.Context, g handoff.Grant, id handoff.ID) error {
	return w.called("heard", g.Caller.String(), string(id))
}

func (w *world) Handoff(c handoff.Grant, id string) (handoff.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("handoff", c.Caller.String(), id)
	for _, r := range w.records {
		if r.ID == id {
			return r, nil
		}
	}
	return handoff.Record{}, handoff.Fault(handoff.CodeNotFound, "work with this id", "")
}

func (w *world) Stop(_ context.Context, c handoff.Grant, id string, of handoff.StopOf) error {
	how := map[handoff.StopOf]string{handoff.StopTheirs: "stop theirs", handoff.StopWatching: "stop watching"}[of]
	return w.called(cmp.Or(how, "stop"), c.Caller.String(), id)
}

func (w *world) Move(_ context.Context, c handoff.Grant, id, before string) error {
	return w.called("move", c.Caller.String(), id, before)
}

func (w *world) Questions(c handoff.Grant) []handoff.RecordQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("questions", c.Caller.String())
	return append([]handoff.RecordQuestion(nil), w.questions...)
}

func (w *world) Decide(_ context.Context, c handoff.Grant, id handoff.QuestionID, d handoff.Decision) error {
	w.mu.Lock()
	by := []string{"decide", c.Caller.String(), string(id), string(d)}
	if c.Terminal {
		by = append(by, "at a terminal")
	}
	err, answer := w.note(by...), w.onDecide
	w.mu.Unlock()
	return w.closed(id, err, answer)
}

func (w *world) Reply(_ context.Context, c handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error {
	w.mu.Lock()
	err, answer := w.note("reply", c.Caller.String(), string(id), worded(reply)), w.onDecide
	w.mu.Unlock()
	return w.closed(id, err, answer)
}

func (w *world) Stickies(_ context.Context, c handoff.Grant) ([]handoff.RecordSticky, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]handoff.RecordSticky(nil), w.stickies...), w.note("stickies", c.Caller.String())
}

func (w *world) ClearSticky(_ context.Context, c handoff.Grant, server string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stickies = slices.DeleteFunc(w.stickies, func(s handoff.RecordSticky) bool { return s.Server == server })
	return w.note("clear", c.Caller.String(), server)
}

func (w *world) Login(_ context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.kept {
		if l.Sum == sum {
			if w.endRead {
				w.kept = slices.DeleteFunc(w.kept, func(k sessions.Login) bool { return k.ID == l.ID })
			}
			return l, true, w.failLogins
		}
	}
	return sessions.Login{}, false, w.failLogins
}

func (w *world) PutLogin(_ context.Context, l sessions.Login) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = slices.DeleteFunc(w.kept, func(k sessions.Login) bool { return k.ID == l.ID })
	w.kept = slices.Insert(w.kept, 0, l)
	return w.failLogins
}

func (w *world) Logins(_ context.Context, principal string) ([]sessions.Login, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(
		slices.Clone(w.kept),
		func(k sessions.Login) bool { return k.Principal != principal },
	), w.failLogins
}

func (w *world) PutSecret(_ context.Context, s sessions.Secret) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failLogins != nil || len(w.secrets) >= w.mostSecrets {
		return false, w.failLogins
	}
	w.secrets[s.Sum] = s
	return true, nil
}

func (w *world) Secret(_ context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.secrets[sum]
	return s, ok && w.failLogins == nil, w.failLogins
}

func (w *world) DropLogin(_ context.Context, principal, id string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.kept)
	w.kept = slices.DeleteFunc(w.kept, func(k sessions.Login) bool { return k.ID == id && k.Principal == principal })
	return len(w.kept) < before, w.failLogins
}

func (w *world) Apps(_ context.Context, principal string) ([]sessions.App, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(
		slices.Clone(w.apps),
		func(a sessions.App) bool { return a.Principal != principal },
	), w.failLogins
}

func (w *world) Feed(g handoff.Grant) *handoff.Feed { return &w.feed(g.Caller.Principal).Feed }

func (w *world) Servers(_ context.Context, c handoff.Grant) []handoff.ServerInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("servers", c.Caller.String())
	return append([]handoff.ServerInfo(nil), w.servers...)
}

func (w *world) Sessions(_ context.Context, c handoff.Grant, q handoff.SessionQuery) (handoff.SessionList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, err := json.Marshal(q)
	if err != nil {
		return handoff.SessionList{}, err
	}
	err = w.note("sessions", c.Caller.String(), string(text))
	out := w.sessions
	out.Items = nil
	for _, s := range w.sessions.Items {
		if q.Server == "" || s.Server == q.Server {
			out.Items = append(out.Items, s)
		}
	}
	out.Items = out.Items[min(q.Skip, len(out.Items)):]
	if left := len(out.Items) - q.Limit; q.Limit > 0 && left > 0 {
		out.Items, out.More = out.Items[:q.Limit], left
	}
	return out, err
}

func (w *world) Read(_ context.Context, c handoff.Grant, t handoff.Target, limit int) (handoff.Transcript, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, err := json.Marshal(struct {
		handoff.Target
		Limit int
	}{t, limit})
	if err != nil {
		return handoff.Transcript{}, err
	}
	return w.transcr, w.note("read", c.Caller.String(), string(text))
}

func (w *world) ServeWebSocket(rw http.ResponseWriter, _ *http.Request, c handoff.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("socket", c.Caller.String())
	rw.WriteHeader(http.StatusNoContent) // a recorder takes no 101
}

func (w *world) ServeCalls(rw http.ResponseWriter, r *http.Request, c handoff.Grant) {
	body, err := io.ReadAll(r.Body)
	w.mu.Lock()
	_ = w.note("calls", c.Caller.String(), string(body))
	answer := w.onCalls
	w.mu.Unlock()
	if err == nil && answer != nil {
		answer(rw, r)
		return
	}
	handoff.Fault(handoff.CodeVoiceUnreachable, "127.0.0.1:9", "").Reply(rw, false)
}

func (w *world) Calls(c handoff.Grant) []handoff.CallInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("live calls", c.Caller.String())
	return nil
}

func (w *world) ServeAttach(rw http.ResponseWriter, _ *http.Request, c handoff.Grant, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.note("attach", c.Caller.String(), id)
	rw.WriteHeader(http.StatusCreated)
}

func (w *world) Say(_ context.Context, c handoff.Grant, id, item, text string) error {
	return w.called("say", c.Caller.String(), id, item, text)
}

func (w *world) Hangup(c handoff.Grant, id string) error {
	return w.called("hangup", c.Caller.String(), id)
}

// feed returns the feed of a principal.
func (w *world) feed(principal string) *testFeed {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.feeds[principal]
	if f == nil {
		f = &testFeed{}
		w.feeds[principal] = f
	}
	return f
}

// change alters the world under its lock.
func (w *world) change(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// testFeed is a feed that tests fill.
type testFeed struct{ handoff.Feed }

// listening counts the listeners.
func (f *testFeed) listening() int {
	n, _ := f.Load()
	return n
}

// config is a complete configuration over a world.
func config(w *world, listen string) Config {
	return Config{
		Router: w, Store: w, Fleet: w, Decisions: w, Push: w, VoiceFront: VoiceFront{Front: w, Calls: w, Levels: w},
		Ownership: Ownership{Joining: w, Owner: "owner"},
		Entrance:  Entrance{Listen: listen, Keys: []Key{NewKey("owner", ownerKey), NewKey("other", otherKey)}},
	}
}

// newServer makes a server over a world.
func newServer(t *testing.T, w *world, adjust func(*Config)) *Server {
	t.Helper()
	cfg := config(w, "127.0.0.1:8080")
	if adjust != nil {
		adjust(&cfg)
	}
	s, err := New(cfg)
	must(t, err)
	return s
}

// serve listens on loopback; it returns the address of the page.
func serve(t *testing.T, w *world, adjust func(*Config)) (*Server, string) {
	t.Helper()
	return serveBehind(t, w, adjust, func(h http.Handler) http.Handler { return h })
}

// serveBehind is serve with something before the server.
func serveBehind(t *testing.T, w *world, adjust func(*Config), wrap func(http.Handler) http.Handler) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := newServer(t, w, func(cfg *Config) {
		cfg.Listen = l.Addr().String()
		if adjust != nil {
			adjust(cfg)
		}
	})
	h := s.HTTPServer()
	h.Handler = wrap(h.Handler)
	serveOn(t, h, l)
	return s, "http://" + l.Addr().String()
}

// serveOn serves on a listener until the test ends.
func serveOn(t *testing.T, h *http.Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
	})
}

// ask sends one request with the owner's key to a server in memory, or to one of its other entrances.
func ask(s http.Handler, method, target, body string, adjust func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Authorization", "Bearer "+ownerKey)
	if adjust != nil {
		adjust(r)
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec
}

// codeOf reads the error code of an answer.
func codeOf(t *testing.T, rec *httptest.ResponseRecorder) handoff.Code {
	t.Helper()
	var p struct{ Error handoff.Problem }
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("answer %d is not an error of ours: %q", rec.Code, rec.Body.String())
	}
	if p.Error.Message == "" {
		t.Errorf("error %s says nothing", p.Error.Code)
	}
	if want := handoff.Vocabulary[p.Error.Code].HTTP; rec.Code != want {
		t.Errorf("error %s has status %d, want %d", p.Error.Code, rec.Code, want)
	}
	return p.Error.Code
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// given are the headers that have a value; they come in pairs.
func given(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			h.Set(pairs[i], pairs[i+1])
		}
	}
	return h
}
