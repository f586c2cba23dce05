package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A world is what an API stands on: runs that do what a test says, and a store in memory.
type world struct {
	t   *testing.T
	api *API
	mux *http.ServeMux

	mu      sync.Mutex
	docs    map[string]sessions.Document // Guarded by mu
	runs    []*scripted                  // Guarded by mu
	refuse  error                        // Guarded by mu: of every start and decision
	asked   []handoff.RecordQuestion     // Guarded by mu: that are open
	broken  bool                         // Guarded by mu: the store does not answer
	hold    bool                         // Guarded by mu: runs are not written down by themselves
	slow    time.Duration                // Guarded by mu: how long the store takes to write
	refuses string                       // Set before a request: a document that the store does not take
	begins  time.Duration                // Set before begin: how long the API takes to run
	life    *life                        // Guarded by mu: of the newest API
	stopped []string                     // Guarded by mu
	goesOn  error                        // Guarded by mu: why nothing is stopped; nil: it is
	heard   []handoff.ID                 // Guarded by mu
	left    int                          // Guarded by mu: how many listeners have left
}

// scripted is a handoff.
type scripted struct {
	owner   handoff.Caller
	req     handoff.Request
	rec     handoff.Record
	log     []handoff.Event
	changed chan struct{} // closed at the next event

	asking context.Context // whose end is that of who asked; nil: it is over
	until  time.Time       // who asked has the answer, which may be lost until then; zero: they have none
}

// inWorld runs a test in a bubble, so that time passes when nothing else happens.
func inWorld(t *testing.T, do func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, mux: http.NewServeMux(), docs: map[string]sessions.Document{}}
		w.begin()
		do(w)
	})
}

// begin gives the world an API, also another after the first was lost.
func (w *world) begin() {
	now := &life{w}
	w.mu.Lock()
	w.life = now
	for _, r := range w.runs {
		r.asking = nil
	}
	w.mu.Unlock()
	var err error
	w.api, err = New(Config{Handoffs: w, Attending: w, Work: w, Requests: w, Questions: w, Directory: w, Store: now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mux = http.NewServeMux()
	for _, pattern := range w.api.Patterns() {
		w.mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			owner := r.Header.Get("Owner")
			g := handoff.Grant{Caller: handoff.Caller{Principal: owner}, Key: owner}
			if r.Header.Get("Approve") == "" {
				g.Approve = handoff.ApproveAll
			}
			if tool := r.Header.Get("Tool"); tool != "" {
				g.Tools = []string{tool}
			}
			_ = w.api.Serve(rw, r, g) // it is always nil
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(w.begins)
		_ = w.api.Run(ctx) // likewise
	}()
	synctest.Wait()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A life is the store as an API sees it: what is written after another has begun is lost, as after a kill.
type life struct{ *world }

func (l *life) PutDocument(ctx context.Context, d sessions.Document) error {
	l.mu.Lock()
	over := l.world.life != l
	l.mu.Unlock()
	if over {
		return nil
	}
	return l.world.PutDocument(ctx, d)
}

// place lets the nth run begin in its thread.
func (w *world) place(n int) {
	r := w.run(n)
	w.mu.Lock()
	r.rec.ThreadID, r.rec.TurnID = r.req.Target.Thread, handoff.TurnID(fmt.Sprint("turn", n))
	if r.rec.ThreadID == handoff.NewThread || r.req.Mode == handoff.ModeAside {
		r.rec.ThreadID = fmt.Sprint("thread", n)
	}
	w.mu.Unlock()
	w.does(n, handoff.EventNoted{})
}

// fails notes why the nth run will have failed.
func (w *world) fails(n int, why *handoff.Error) {
	r := w.run(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	r.rec.Fault = why
}

// count is how many runs were begun.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// stops are the handoffs that were stopped, in order.
func (w *world) stops() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stopped)
}

// run returns the nth run, from 1.
func (w *world) run(n int) *scripted {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > len(w.runs) {
		w.t.Fatalf("%d runs, want %d", len(w.runs), n)
	}
	return w.runs[n-1]
}

// does lets something happen to the nth run.
func (w *world) does(n int, kinds ...handoff.EventKind) {
	r := w.run(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range kinds {
		seq := uint64(len(r.log) + 1)
		r.log = append(
			r.log, handoff.Event{ID: handoff.ID(r.rec.ID), Seq: seq, Record: r.rec, Noted: r.rec.TurnID != "", Kind: k},
		)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// ends ends the nth run.
func (w *world) ends(n int, outcome handoff.Outcome, text string) {
	r := w.run(n)
	w.mu.Lock()
	over := r.rec.Outcome != ""
	if !over {
		r.rec.Outcome, r.rec.Text = outcome, text
	}
	w.mu.Unlock()
	if !over {
		w.does(n, handoff.EventEnded{})
	}
}

func (w *world) find(c handoff.Caller, id string) (int, *scripted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.runs, func(r *scripted) bool { return r.owner == c && r.rec.ID == id })
	if i < 0 {
		return 0, nil
	}
	return i + 1, w.runs[i]
}

func (w *world) Follow(
	ctx context.Context, g handoff.Grant, id handoff.ID, after uint64,
) iter.Seq2[handoff.Event, error] {
	return func(yield func(handoff.Event, error) bool) {
		_, r := w.find(g.Caller, string(id))
		if r == nil {
			yield(handoff.Event{}, handoff.Fault(handoff.CodeNotFound, "such work", ""))
			return
		}
		for at := after; ; {
			w.mu.Lock()
			rest, changed := r.log[min(int(at), len(r.log)):], r.changed
			w.mu.Unlock()
			for _, e := range rest {
				if at = e.Seq; !yield(e, nil) || e.Kind == (handoff.EventEnded{}) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(handoff.Event{}, ctx.Err())
				return
			}
		}
	}
}

func (w *world) Heard(_ context.Context, _ handoff.Grant, id handoff.ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, id)
	return nil
}

func (w *world) HeardForGood(ctx context.Context, g handoff.Grant, id handoff.ID) error {
	return w.Heard(ctx, g, id)
}

func (w *world) Attend(handoff.Grant, handoff.Listener) func() {
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.left++
	}
}

func (w *world) Handoff(g handoff.Grant, id string) (handoff.Record, error) {
	_, r := w.find(g.Caller, id)
	if r == nil {
		return handoff.Record{}, handoff.Fault(handoff.CodeNotFound, "such work", "")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.rec, nil
}

func (w *world) Stop(_ context.Context, g handoff.Grant, id string, _ handoff.StopOf) error {
	n, _ := w.find(g.Caller, id)
	w.mu.Lock()
	err := w.goesOn
	if err == nil {
		w.stopped = append(w.stopped, id)
	}
	w.mu.Unlock()
	if err == nil {
		w.ends(n, handoff.OutcomeInterrupted, "")
		for range 100 { // its end is read at once
			runtime.Gosched()
		}
	}
	return err
}

func (w *world) Questions(handoff.Grant) []handoff.RecordQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

func (w *world) Decide(context.Context, handoff.Grant, handoff.QuestionID, handoff.Decision) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return w.refuse
	}
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

func (w *world) Reply(context.Context, handoff.Grant, handoff.QuestionID, handoff.Reply) error {
	return handoff.Fault(handoff.CodeNotPending, "", "")
}

func (w *world) Servers(context.Context, handoff.Grant) []handoff.ServerInfo {
	return []handoff.ServerInfo{
		{Name: "bigpc", Health: handoff.HealthUp, Projects: []string{"shop"}}, {Name: "laptop", Health: handoff.HealthUp},
		{Name: "mini", Health: handoff.HealthDown},
	}
}

func (w *world) PutDocument(_ context.Context, d sessions.Document) error {
	w.mu.Lock()
	slow := w.slow
	w.mu.Unlock()
	time.Sleep(slow)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken || w.refuses == d.Owner.String()+" "+d.ID {
		return handoff.Fault(handoff.CodeUnreachable, "/home/me/switchboard.db", "")
	}
	w.docs[d.Owner.String()+" "+d.ID] = d
	return nil
}

func (w *world) Document(_ context.Context, owner handoff.Caller, id string) (sessions.Document, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return sessions.Document{}, false, handoff.Fault(handoff.CodeUnreachable, "/home/me/switchboard.db", "")
	}
	d, ok := w.docs[owner.String()+" "+id]
	return d, ok && time.Now().Before(d.Ends), nil
}

func (w *world) DropDocument(_ context.Context, owner handoff.Caller, id string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.docs[owner.String()+" "+id]
	delete(w.docs, owner.String()+" "+id)
	return ok, nil
}

func (w *world) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	return handoff.SessionList{}, nil
}

func (w *world) Read(context.Context, handoff.Grant, handoff.Target, int) (handoff.Transcript, error) {
	return handoff.Transcript{}, nil
}

// kept are the names of the documents.
func (w *world) kept() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.docs))
}

// An answer is what came back to a request, or comes.
type answer struct {
	*httptest.ResponseRecorder
	t     *testing.T
	leave context.CancelCauseFunc
	done  chan struct{} // closed when the request is over

	atWrite func() error // called at each write from now on, which fails with its error; nil: nothing
}

func (a *answer) Write(p []byte) (int, error) {
	if a.atWrite != nil {
		if err := a.atWrite(); err != nil {
			return 0, err
		}
	}
	return a.ResponseRecorder.Write(p)
}

// FlushError fails as the last write has.
func (a *answer) FlushError() error {
	if a.atWrite != nil {
		return a.atWrite()
	}
	return nil
}

// asks sends a request and does not wait for its end, nor for anything but what happens without time passing.
func (w *world) asks(method, path, body string, headers ...string) *answer {
	ctx, cancel := context.WithCancelCause(context.Background())
	w.t.Cleanup(func() { cancel(nil) })
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Owner", "owner")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a := &answer{ResponseRecorder: httptest.NewRecorder(), t: w.t, leave: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer cancel(nil) // as a server does
		w.mux.ServeHTTP(a, r)
	}()
	synctest.Wait()
	return a
}

// begun posts a response that is over later.
func (w *world) begun(body string) *answer { return w.asks(http.MethodPost, "/v1/responses", body) }

// ask sends a request and returns its answer.
func (w *world) ask(method, path, body string, headers ...string) (int, map[string]any) {
	w.t.Helper()
	a := w.asks(method, path, body, headers...)
	return a.Code, a.object()
}

// object is the JSON of an answer that is whole.
func (a *answer) object() map[string]any {
	a.t.Helper()
	<-a.done
	got := map[string]any{}
	if err := json.Unmarshal(a.Body.Bytes(), &got); err != nil {
		a.t.Fatalf("%d %q: %v", a.Code, a.Body, err)
	}
	return got
}

// frames are the events of a stream that is over.
func (a *answer) frames() (frames []string, o *oracle) {
	a.t.Helper()
	<-a.done
	if a.Header().Get("Content-Type") != "text/event-stream" {
		a.t.Fatalf("%d %s", a.Code, a.Body)
	}
	o = &oracle{}
	for frame := range strings.SplitSeq(strings.TrimSuffix(a.Body.String(), "\n\n"), "\n\n") {
		if frame != "" && !strings.HasPrefix(frame, ":") {
			frames = append(frames, frame)
		}
	}
	return frames, o
}

// refusal reads an error as OpenAI's clients do, and returns its code.
func (w *world) refusal(status int, got map[string]any) string {
	w.t.Helper()
	e, _ := got["error"].(map[string]any)
	message, _ := e["message"].(string)
	typ, _ := e["type"].(string)
	_, param := e["param"]
	code, coded := e["code"]
	if status < 400 || message == "" || typ == "" || !param || !coded || len(got) != 1 {
		w.t.Errorf("%d %v is no error of OpenAI's", status, got)
	}
	text, _ := code.(string)
	return text
}

var (
	_ handoff.Handoffs   = (*world)(nil)
	_ sessions.Documents = (*world)(nil)
)

// slows lets the store take a time to write.
func (w *world) slows(to time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = to
}

// breaks lets the store answer no more, or again.
func (w *world) breaks(broken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = broken
}
