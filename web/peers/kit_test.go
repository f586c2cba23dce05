package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
)

// patient bounds waits in tests.
const patient = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A town is what all instances know in common.
type town struct {
	mu    sync.Mutex
	homes map[string]string           // Guarded by mu: by caller, the instance that has them
	there map[string]handoff.Instance // Guarded by mu: by id
	dead  map[string]bool             // Guarded by mu
	stale []string                    // Guarded by mu: what the next questions where are answered with, whatever is so
	asked int                         // Guarded by mu: how often it was asked where somebody is
}

func newTown() *town {
	return &town{homes: map[string]string{}, there: map[string]handoff.Instance{}, dead: map[string]bool{}}
}

// A view is the town as one instance sees it.
type view struct {
	*town
	self string
}

func (v view) Where(_ context.Context, c handoff.Caller) (handoff.Instance, error) {
	caller := c.String()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	if caller == "lost" {
		return handoff.Instance{}, handoff.Fault(handoff.CodeStoreDown, "", "")
	}
	if len(v.stale) > 0 {
		id := v.stale[0]
		v.stale = v.stale[1:]
		return v.there[id], nil
	}
	id := v.homes[caller]
	if id == "" || v.town.dead[id] {
		id = v.self
		v.homes[caller] = id
	}
	return v.there[id], nil
}

func (v view) Instances() []handoff.Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.there))
}

func (v view) Dead(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.town.dead[id]
}

// change changes the town.
func (o *town) change(how func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	how()
}

// An instance is a web server whose callers name themselves, and which tells of each request who served it.
type instance struct {
	*Forwarder
	base string // where clients reach it
	peer handoff.Instance

	mu     sync.Mutex
	served []string // Guarded by mu: the paths of requests that were served here
}

// caller returns the caller of a request; nameless if the request names none.
func caller(r *http.Request) handoff.Caller {
	if name := r.Header.Get("Caller"); name != "" {
		return handoff.Caller{Principal: name}
	}
	return handoff.NamelessCaller("somebody", rand.Text())
}

// join adds an instance to a town; it serves requests with serve.
func (o *town) join(t testing.TB, id string, serve http.HandlerFunc) *instance {
	t.Helper()
	identity, err := NewIdentity()
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	one := &instance{peer: handoff.Instance{ID: id, Address: l.Addr().String(), Fingerprint: identity.Fingerprint()}}
	one.Forwarder = New(Config{ID: id, Identity: identity, Locator: view{o, id}})
	one.holdFor, one.answerIn = 5*patient, 5*patient
	edge := one.edge(serve)
	inside := httptest.NewUnstartedServer(one.Handler(edge))
	inside.Listener.Close()
	inside.Listener = one.Listen(l)
	inside.Start()
	outside := httptest.NewServer(edge)
	one.base = outside.URL
	o.change(func() { o.there[id] = one.peer })
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = one.Run(ctx) })
	t.Cleanup(func() {
		end()
		running.Wait()
		outside.Close()
		inside.Close()
	})
	return one
}

// edge routes requests as web does: it serves them here or forwards them.
func (i *instance) edge(serve http.HandlerFunc) http.Handler {
	here := func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.served = append(i.served, r.URL.Path)
		i.mu.Unlock()
		w.Header().Set("Served-By", i.self)
		serve(w, r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/calls/{id}", func(w http.ResponseWriter, r *http.Request) { i.let(w, r, here) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { i.let(w, r, here) })
	return mux
}

func (i *instance) let(w http.ResponseWriter, r *http.Request, here http.HandlerFunc) {
	w.Header().Set("Edge", i.self) // as what an edge says of each answer
	if r.Header.Get("Closes") != "" {
		w.Header().Set("Connection", "close")
	}
	forward, err := i.Route(r, caller(r))
	if err == nil && forward != nil {
		if r.Header.Get("Streams") == "" {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(body))), nil }
		}
		var served bool
		if served, err = forward(w, r); served {
			return
		}
	}
	if err != nil {
		handoff.AsError(err).Reply(w, true)
		return
	}
	here(w, r)
}

// servedHere returns the paths that an instance has served.
func (i *instance) servedHere() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.served)
}

// count returns a counter of an instance.
func (i *instance) count(name, label string) (n float64) {
	for m := range i.Metrics() {
		if m.Name == "switchboard_peer_"+name && (label == "" || slices.ContainsFunc(m.Labels, func(l handoff.MetricLabel) bool { return l.Value == label })) {
			n += m.Value
		}
	}
	return n
}

// ask sends a request as a caller, and returns the answer with its body.
func (i *instance) ask(t testing.TB, caller, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, i.base+path, in)
	must(t, err)
	r.Header.Set("Caller", caller)
	for k := 0; k < len(headers); k += 2 {
		r.Header.Add(headers[k], headers[k+1])
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols { // what comes then has no end
		return answer, ""
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return answer, string(text)
}

// until waits until so returns true.
func until(t testing.TB, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never was so")
		}
	}
}
