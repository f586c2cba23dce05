package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// neighbours stand for the other instances: they serve everybody but the callers who are here.
type neighbours struct {
	here   []string // Set once: callers
	served []string // what they served
	fault  error    // what forwarding returns; the request is served here then
	routed func()   // Set once: called when it is known that a caller is here; or nil
}

func (n *neighbours) Close() { n.served = append(n.served, "closed") }

func (n *neighbours) Route(
	r *http.Request, c handoff.Caller,
) (func(http.ResponseWriter, *http.Request) (bool, error), error) {
	if slices.Contains(n.here, c.String()) {
		if n.routed != nil {
			n.routed()
		}
		return nil, nil
	}
	return func(w http.ResponseWriter, r *http.Request) (bool, error) {
		text := ""
		if r.ContentLength > 0 {
			for range 2 { // as often as somebody asks for it
				body, err := r.GetBody()
				if err != nil {
					return false, err
				}
				all, _ := io.ReadAll(body)
				text = string(all)
			}
		}
		n.served = append(n.served, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+c.String()+" "+r.Header.Get(insideHeader)+" "+text))
		return n.fault == nil, n.fault
	}, nil
}

// TestForwarded: an authorised request of a caller is forwarded with its body; other requests are not. The limits of
// work are not checked here.
func TestForwarded(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, key, body string
		want                          string // what the others served
		status                        int
	}{
		{"of a caller elsewhere", http.MethodGet, "/fleet/servers", otherKey, "", "GET /fleet/servers other", 200},
		{"with its body", http.MethodPost, "/fleet/handoffs", otherKey, `{"prompt":"x"}`, `POST /fleet/handoffs other  {"prompt":"x"}`, 200},
		{"a long one, which is not refused here", http.MethodPost, "/fleet/handoffs", otherKey, strings.Repeat(" ", smallBody+1),
			`POST /fleet/handoffs other`, 200},
		{"of a caller here", http.MethodGet, "/fleet/servers", ownerKey, "", "", 200},
		{"with a wrong key", http.MethodGet, "/fleet/servers", "wrong", "", "", 401},
		{"OpenAI's", http.MethodPost, "/v1/realtime/calls/rtc_1/hangup", otherKey, "", "POST /v1/realtime/calls/rtc_1/hangup other", 200},
		{"of this process: its page", http.MethodGet, "/", otherKey, "", "", 200},
		{"of this process: its numbers", http.MethodGet, "/metrics", otherKey, "", "", 403},
		{"of this process: whether it is ready", http.MethodGet, "/readyz", otherKey, "", "", 200},
		{"of this process: its settings", http.MethodPost, "/fleet/settings/reload", otherKey, "", "", 403},
		{"of the store: logins", http.MethodGet, "/login", otherKey, "", "", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, n := newWorld(), &neighbours{here: []string{"owner"}}
			w.limited = true
			s := newServer(t, w, func(c *Config) { c.Peers = n })
			rec := ask(s, tt.method, tt.path, tt.body, func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+tt.key)
				r.Header.Set(insideHeader, "owner") // nobody believes that
			})
			if got := strings.TrimSpace(strings.Join(n.served, "; ")); got != tt.want || rec.Code != tt.status {
				t.Errorf("%d, the others served %.200q", rec.Code, got)
			}
		})
	}
}

// TestForwardedGivenBack: a request that the other instance does not serve is served here, and an error is answered.
func TestForwardedGivenBack(t *testing.T) {
	w, n := newWorld(), &neighbours{fault: handoff.Fault(handoff.CodeOverloaded, "Switchboard", "")}
	s := newServer(t, w, func(c *Config) { c.Peers = n })
	ask := func() *httptest.ResponseRecorder {
		return ask(s, http.MethodPost, "/fleet/handoffs", `{"server":"bigpc","prompt":"run the tests"}`, nil)
	}
	if rec := ask(); rec.Code != http.StatusServiceUnavailable || len(w.log()) > 0 {
		t.Errorf("%d %v", rec.Code, w.log())
	}
	s = newServer(t, w, func(c *Config) { c.Peers = givenBack{n} })
	if rec := ask(); rec.Code >= 300 || len(w.log()) != 1 {
		t.Errorf("%d %v", rec.Code, w.log())
	}
	s.Close()
	if n.served[len(n.served)-1] != "closed" {
		t.Errorf("the others served %v", n.served)
	}
}

// givenBack reads what it is given and serves nothing.
type givenBack struct{ *neighbours }

func (g givenBack) Route(*http.Request, handoff.Caller) (func(http.ResponseWriter, *http.Request) (bool, error), error) {
	return func(_ http.ResponseWriter, r *http.Request) (bool, error) {
		body, err := r.GetBody()
		if err == nil {
			_, err = io.Copy(io.Discard, body)
		}
		return false, err
	}, nil
}

// TestForwardedIsLetInByItsKey: for a forwarded request, Host and Origin were checked by the other instance. Its key is
// checked here, and a login is valid only at its Host; only an instance can say that a request came from inside.
func TestForwardedIsLetInByItsKey(t *testing.T) {
	for _, tt := range []struct {
		name, host, origin, key, inside string
		forwarded                       bool
		want                            int
	}{
		{"a foreign host", "far.example", "", ownerKey, "", true, 200},
		{"a foreign page", "far.example", "https://evil.example", ownerKey, "", true, 200},
		{"without a key", "far.example", "", "", "", true, 401},
		{"with a wrong key", "far.example", "", "wrong", "", true, 401},
		{"of a login", "127.0.0.1:8080", "http://127.0.0.1:8080", "login", "", true, 200},
		{"of a login of another host", "far.example", "", "login", "", true, 401},
		{"of whoever is inside there", "", "", "", "owner", true, 200},
		{"of whoever is inside there, unknown here", "", "", "", "nobody", true, 401},
		{"not forwarded, a foreign host", "far.example", "", ownerKey, "", false, 403},
		{"not forwarded, and says it is inside", "127.0.0.1:8080", "", "", "owner", false, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			s := newServer(t, w, func(c *Config) { c.Peers = &neighbours{here: []string{"owner"}} })
			if tt.key == "login" {
				tt.key = tokenFor(w, "127.0.0.1:8080")
			}
			var h http.Handler = s
			if tt.forwarded {
				h = s.Forwarded()
			}
			rec := ask(h, http.MethodGet, "/fleet/servers", "", func(r *http.Request) {
				r.Host, r.Header = tt.host, given("Origin", tt.origin, insideHeader, tt.inside)
				if tt.key != "" {
					r.Header.Set("Authorization", "Bearer "+tt.key)
				}
			})
			if rec.Code != tt.want {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
}

// TestLeaveEndsStreams: a stream ends when another instance becomes the home of its caller; streams of other callers go
// on.
func TestLeaveEndsStreams(t *testing.T) {
	s, base := serve(t, newWorld(), func(c *Config) { c.Peers = &neighbours{here: []string{"owner", "other"}} })
	streams := map[string]*http.Response{}
	for _, key := range []string{ownerKey, otherKey} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/fleet/events", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		streams[key], err = http.DefaultClient.Do(r)
		must(t, err)
		defer streams[key].Body.Close()
	}
	s.Leave(handoff.Caller{Principal: "owner"})
	if _, err := io.ReadAll(streams[ownerKey].Body); err != nil {
		t.Error(err)
	}
	s.requests.mu.Lock()
	left := len(s.requests.of)
	s.requests.mu.Unlock()
	if left != 1 {
		t.Errorf("%d callers are served", left)
	}
}

// TestLeaveAsAStreamBegins: a stream ends, too, if its caller's home changes between the check of the home and the
// stream's beginning.
func TestLeaveAsAStreamBegins(t *testing.T) {
	n := &neighbours{here: []string{"owner"}}
	s, base := serve(t, newWorld(), func(c *Config) { c.Peers = n })
	n.routed = func() { s.Leave(handoff.Caller{Principal: "owner"}) }
	readsToTheEnd(t, base+"/fleet/events")
}

// readsToTheEnd reads an answer to the owner, until it ends as answers do.
func readsToTheEnd(t *testing.T, address string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+ownerKey)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Error(err)
	}
}

// A program that listens is one of MCP's.
type listening struct{ began chan struct{} }

func (listening) Patterns() []string { return []string{"GET /mcp"} }
func (listening) Close()             {}
func (l listening) Serve(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	l.began <- struct{}{}
	<-r.Context().Done()
	return nil
}

// TestDrainEndsListening: when an instance drains, a request that only listens for messages ends, so that its caller
// can be handed over; so does a later one.
func TestDrainEndsListening(t *testing.T) {
	program := listening{make(chan struct{}, 2)}
	s, base := serve(t, newWorld(), func(c *Config) { c.Peers, c.MCP = &neighbours{here: []string{"owner"}}, program })
	go func() { <-program.began; s.Drain() }()
	readsToTheEnd(t, base+"/mcp")
	readsToTheEnd(t, base+"/mcp")
}

// TestDrainedConnections: when an instance drains, each connection is closed with its next answer, so that the load
// balancer chooses another instance for the client's next request.
func TestDrainedConnections(t *testing.T) {
	w, n := newWorld(), &neighbours{here: []string{"owner"}}
	s := newServer(t, w, func(c *Config) { c.Peers = n })
	for _, want := range []string{"", "close"} {
		for _, path := range []string{"/fleet/servers", "/readyz", "/nowhere"} {
			if got := ask(s, http.MethodGet, path, "", nil).Header().Get("Connection"); got != want {
				t.Errorf("%s: Connection is %q, not %q", path, got, want)
			}
		}
		s.Drain()
	}
}
