package responses

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
)

// A fake is a simulated Responses API on loopback, which can be told to misbehave. A request that the real one would
// refuse fails the test.
type fake struct {
	*simulator.API
	server *httptest.Server

	mu     sync.Mutex
	seen   []seen  // Guarded by mu: oldest first
	faults []fault // Guarded by mu: for the next requests
}

// seen is a request, and its Authorization header.
type seen struct {
	simulator.Request
	Key string
}

func newFake(t testing.TB, script func(simulator.Request) simulator.Reply) *fake {
	f := &fake{API: simulator.New(newID("fake"), 0, script)}
	f.Wrong = func(why string) { t.Error(why) }
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	t.Cleanup(f.Release)
	return f
}

// ServeHTTP notes a request, and has the next fault or else the API answer it.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(data))
	req := seen{Key: r.Header.Get("Authorization")}
	if err != nil || json.Unmarshal(data, &req.Request) != nil { // it is refused
		f.API.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	f.seen = append(f.seen, req)
	var next fault
	if len(f.faults) > 0 {
		next, f.faults = f.faults[0], f.faults[1:]
	}
	f.mu.Unlock()
	if next == nil || !next(w, req.Request) {
		f.API.ServeHTTP(w, r)
	}
}

// Misbehave answers the next request with a fault. Further faults answer the requests after it.
func (f *fake) Misbehave(next fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, next)
}

// Requests returns the requests so far, oldest first.
func (f *fake) Requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// lastSaid returns the newest words of a person, and whether a tool output came after them.
func lastSaid(r simulator.Request) (words string, answered bool) {
	for _, raw := range r.History {
		switch s := wire.Read(raw); {
		case s.Role == "user":
			words, answered = s.Text(), false
		case s.IsOutput():
			answered = true
		}
	}
	return words, answered
}

// pictures counts the pictures in items.
func pictures(items []json.RawMessage) int {
	n := 0
	for _, it := range items {
		n += strings.Count(string(it), `"input_image"`)
	}
	return n
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
