package peers

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// stand adds an instance that is alive for the others but does not answer.
func (o *town) stand(t testing.TB, id, address string) {
	t.Helper()
	identity, err := NewIdentity()
	must(t, err)
	o.change(func() { o.there[id] = handoff.Instance{ID: id, Address: address, Fingerprint: identity.Fingerprint()} })
}

// nowhere returns an address where nothing listens.
func nowhere(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestForwardAsksAgainAfter421: an instance that has lost a caller answers 421 and serves nothing; the request is
// served whole, and once, at the caller's new home.
func TestForwardAsksAgainAfter421(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stale []string // what the questions where are answered with, from the first on
		home  string
		want  string
	}{
		{"here by now", []string{"b"}, "", "a"},
		{"elsewhere by now", []string{"b", "a"}, "c", "c"}, // b asks too, and is told that it is another
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTown()
			a, b, c := o.join(t, "a", tell), o.join(t, "b", tell), o.join(t, "c", tell)
			// b is asked for the caller while it is told that they are at a
			o.change(func() { o.stale, o.homes["bob"] = []string{"b", "a"}, tt.home })
			answer, body := a.ask(t, "bob", http.MethodPost, "/fleet/handoffs", "the words")
			if answer.Header.Get("Served-By") != tt.want || !strings.HasSuffix(body, "body=the words") {
				t.Errorf("served by %v: %s", answer.Header, body)
			}
			if n := len(a.servedHere()) + len(b.servedHere()) + len(c.servedHere()); n != 1 || len(b.servedHere()) > 0 {
				t.Errorf("served %d times", n)
			}
			if a.count("again_total", "not_mine") != 1 || b.count("taken_total", "not_mine") != 1 {
				t.Error("the 421 was not counted")
			}
			if here := a.count("forwarded_total", "here"); (tt.want == "a") != (here == 1) {
				t.Errorf("%v were served here in the end", here)
			}
		})
	}
}

// TestForwardHoldsForATakeover: if an instance cannot be reached, the request is held until another one is the home of
// its callers, and is served there.
func TestForwardHoldsForATakeover(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are made, and nobody takes them
	must(t, err)
	defer silent.Close()
	for _, tt := range []struct{ name, address string }{{"dead", nowhere(t)}, {"stopped", silent.Addr().String()}} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTown()
			a := o.join(t, "a", tell)
			o.stand(t, "b", tt.address)
			o.change(func() { o.homes["bob"] = "b" })
			takeover := time.AfterFunc(100*time.Millisecond, func() { o.change(func() { o.dead["b"] = true }) })
			defer takeover.Stop()
			answer, body := a.ask(t, "bob", http.MethodPost, "/v1/responses", "the words")
			if answer.Header.Get("Served-By") != "a" || !strings.HasSuffix(body, "body=the words") {
				t.Errorf("%v %s", answer, body)
			}
			if a.count("again_total", "no_connection") == 0 || a.count("forwarded_total", "here") != 1 {
				t.Error("that was not counted")
			}
		})
	}
}

// TestForwardGivesUp: a request that no instance takes in time is refused with a Retry-After.
func TestForwardGivesUp(t *testing.T) {
	for _, tt := range []struct{ name, method, streams string }{
		{"in time", http.MethodPost, ""}, {"at once, its body cannot be sent again", http.MethodPost, "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTown()
			a := o.join(t, "a", tell)
			if tt.streams == "" {
				a.holdFor = 200 * time.Millisecond
			}
			o.stand(t, "b", nowhere(t))
			o.change(func() { o.homes["bob"] = "b" })
			answer, body := a.ask(t, "bob", tt.method, "/v1/responses", "the words", "Streams", tt.streams)
			if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
				!strings.Contains(body, "nothing was started") || answer.Header.Get("Edge") != "a" {
				t.Errorf("%v %s", answer, body)
			}
			if a.count("forwarded_total", "silent") != 1 || len(a.servedHere()) > 0 {
				t.Error("that was not counted")
			}
		})
	}
}

// TestForwardKnowsInstancesByTheirCertificates: nothing is sent to an instance's address if the certificate there is
// another one.
func TestForwardKnowsInstancesByTheirCertificates(t *testing.T) {
	o := newTown()
	a, b := o.join(t, "a", tell), o.join(t, "b", tell)
	a.holdFor = 200 * time.Millisecond
	o.stand(t, "c", b.peer.Address)
	o.change(func() { o.homes["bob"] = "c" })
	if answer, body := a.ask(t, "bob", http.MethodGet, "/fleet/servers", ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v %s", answer, body)
	}
	if a.count("again_total", "other_certificate") == 0 || len(b.servedHere()) > 0 {
		t.Error("that was not counted")
	}
}

// TestStrangersAreServedNothing: the listener for instances serves only instances, each under its own id.
func TestStrangersAreServedNothing(t *testing.T) {
	o := newTown()
	a, b := o.join(t, "a", tell), o.join(t, "b", tell)
	stranger, err := NewIdentity()
	must(t, err)
	for _, tt := range []struct {
		name    string
		who     Identity
		headers []string
		want    int
		counted string
	}{
		{"stranger", stranger, []string{"b http 192.0.2.1:1"}, http.StatusMisdirectedRequest, "stranger"},
		{"under another's name", b.identity, []string{"c http 192.0.2.1:1"}, http.StatusMisdirectedRequest, "stranger"},
		{"under the own name", a.identity, []string{"a http 192.0.2.1:1"}, http.StatusMisdirectedRequest, "stranger"},
		{"without a hop", b.identity, nil, http.StatusBadRequest, "malformed"},
		{"two hops", b.identity, []string{"b http 192.0.2.1:1", "c http 192.0.2.1:1"}, http.StatusBadRequest, "malformed"},
		{"an instance", b.identity, []string{"b http 192.0.2.1:1"}, http.StatusTeapot, "served"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: tt.who.secured(func(string) error { return nil }),
			}}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.peer.Address+"/", nil)
			must(t, err)
			r.Header.Set("Caller", "alice")
			r.Header[hopHeader] = tt.headers
			before := a.count("taken_total", tt.counted)
			o.change(func() { o.homes["alice"] = "a" })
			answer, err := client.Do(r)
			must(t, err)
			defer answer.Body.Close()
			if answer.StatusCode != tt.want || a.count("taken_total", tt.counted) != before+1 {
				t.Errorf("%d", answer.StatusCode)
			}
		})
	}
	bare := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if answer, err := bare.Get("https://" + a.peer.Address); err == nil {
		_ = answer.Body.Close()
		t.Error("served without a certificate")
	}
	if n := len(a.servedHere()); n != 1 {
		t.Errorf("%d were served", n)
	}
}

// TestHopFromOutsideIsTakenAway: the header of a hop is removed from a client's request, and has no effect at this or
// the next instance.
func TestHopFromOutsideIsTakenAway(t *testing.T) {
	o := newTown()
	a, b := o.join(t, "a", tell), o.join(t, "b", tell)
	o.change(func() { o.homes["alice"], o.homes["bob"] = "a", "b" })
	for _, caller := range []string{"alice", "bob"} {
		_, body := a.ask(t, caller, http.MethodGet, "/", "", hopHeader, "b https 192.0.2.1:1", "From", "192.0.2.1:1")
		if !strings.Contains(body, "hop=[]") || !strings.Contains(body, "tls=false remote=false") {
			t.Errorf("%s: %s", caller, body)
		}
	}
	if len(b.servedHere()) != 1 || a.count("hops_stripped_total", "") != 2 {
		t.Error("that was not counted")
	}
}

// TestForwardNeverRepeatsWhatMayHaveBeenRead: a request that a lost instance may have read is not sent again; the
// client of a request that changes something learns that the change may have been made.
func TestForwardNeverRepeatsWhatMayHaveBeenRead(t *testing.T) {
	for _, tt := range []struct {
		method string
		want   int
	}{{http.MethodPost, http.StatusBadGateway}, {http.MethodGet, http.StatusServiceUnavailable}} {
		t.Run(tt.method, func(t *testing.T) {
			o := newTown()
			reading, stuck := make(chan struct{}), make(chan struct{})
			a := o.join(t, "a", tell)
			b := o.join(t, "b", func(http.ResponseWriter, *http.Request) {
				close(reading)
				<-stuck
			})
			defer close(stuck)
			o.change(func() { o.homes["bob"] = "b" })
			go func() {
				<-reading
				o.change(func() { o.dead["b"] = true })
			}()
			answer, body := a.ask(t, "bob", tt.method, "/fleet/handoffs", "", "Idempotency-Key", "k")
			if answer.StatusCode != tt.want || answer.Header.Get("Retry-After") == "" {
				t.Errorf("%v %s", answer, body)
			}
			if len(b.servedHere()) != 1 || len(a.servedHere()) != 0 || a.count("forwarded_total", "lost") != 1 {
				t.Errorf("served %v there and %v here", b.servedHere(), a.servedHere())
			}
		})
	}
}

// TestForwardCutsWhatNobodyServesAnyMore: an answer or a socket breaks off when its instance is dead, and when this one
// ends.
func TestForwardCutsWhatNobodyServesAnyMore(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(o *town, a *instance)
	}{
		{"the other is gone", func(o *town, _ *instance) { o.change(func() { o.dead["b"] = true }) }},
		{"this one ends", func(_ *town, a *instance) { a.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTown()
			a := o.join(t, "a", tell)
			stuck := make(chan struct{})
			o.join(t, "b", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Upgrade") != "" {
					echo(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "the beginning")
				_ = http.NewResponseController(w).Flush()
				<-stuck
			})
			defer close(stuck)
			o.change(func() { o.homes["bob"] = "b" })
			conn := a.dial(t, "bob")
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.base+"/fleet/events", nil)
			must(t, err)
			r.Header.Set("Caller", "bob")
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			defer answer.Body.Close()
			tt.end(o, a)
			if rest, err := io.ReadAll(answer.Body); err == nil || string(rest) != "the beginning" {
				t.Errorf("the stream ended whole with %q: %v", rest, err)
			}
			if _, _, err := conn.ReadMessage(); !websocket.IsUnexpectedCloseError(err, 1000) {
				t.Errorf("the socket ended with %v", err)
			}
			until(t, func() bool { return a.count("open", "") == 0 && a.count("forwarded_total", "cut") == 2 })
		})
	}
}

// TestForwardAfterClose: a request that another instance took before the end is answered; after that, requests are
// refused.
func TestForwardAfterClose(t *testing.T) {
	o := newTown()
	reading, goOn := make(chan struct{}), make(chan struct{})
	a, b := o.join(t, "a", tell), o.join(t, "b", func(http.ResponseWriter, *http.Request) {
		close(reading)
		<-goOn
	})
	o.change(func() { o.homes["bob"] = "b" })
	go func() {
		<-reading
		a.Close()
		close(goOn)
	}()
	if answer, body := a.ask(t, "bob", http.MethodPost, "/", "words"); answer.StatusCode != http.StatusOK {
		t.Errorf("%v %s", answer, body)
	}
	a.end()
	answer, body := a.ask(t, "bob", http.MethodGet, "/", "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "shutting down") || len(b.servedHere()) > 1 {
		t.Errorf("%v %s", answer, body)
	}
}

// TestForwardNeedsToKnowWhere: if the locator fails, its error is answered, and the request is not forwarded.
func TestForwardNeedsToKnowWhere(t *testing.T) {
	o := newTown()
	a := o.join(t, "a", tell)
	if answer, body := a.ask(t, "lost", http.MethodGet, "/", ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "store_down") {
		t.Errorf("%v %s", answer, body)
	}
	o.change(func() { o.homes["lost"] = "a" })
}

// TestPacedWrites: each write to a client has a deadline, which is removed after it, because over HTTP/2 it would end a
// quiet stream.
func TestPacedWrites(t *testing.T) {
	out := &deadlined{ResponseWriter: httptest.NewRecorder()}
	w := paced{out, http.NewResponseController(out)}
	for _, write := range []func() error{
		func() error { _, err := io.WriteString(w, "event"); return err }, http.NewResponseController(w).Flush,
	} {
		out.during, out.now = nil, time.Time{}
		if err := write(); err != nil || len(out.during) != 1 || out.during[0].IsZero() || time.Until(out.during[0]) > writeWithin {
			t.Errorf("%v, with the deadlines %v", err, out.during)
		}
		if !out.now.IsZero() {
			t.Errorf("afterwards it is %v", out.now)
		}
	}
}

// deadlined records the deadline of each write.
type deadlined struct {
	http.ResponseWriter
	now    time.Time
	during []time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error {
	d.now = at
	return nil
}

func (d *deadlined) Write(b []byte) (int, error) {
	d.during = append(d.during, d.now)
	return len(b), nil
}

func (d *deadlined) FlushError() error {
	d.during = append(d.during, d.now)
	return nil
}

// TestForwardWaitsForASlowAnswer: a slow answer is awaited as long as its instance is alive.
func TestForwardWaitsForASlowAnswer(t *testing.T) {
	o := newTown()
	a := o.join(t, "a", tell)
	a.holdFor = time.Millisecond
	b := o.join(t, "b", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(lookEvery + 100*time.Millisecond) // it is looked meanwhile whether this instance is there
		_, _ = io.WriteString(w, "at last")
	})
	o.change(func() { o.homes["bob"] = "b" })
	if answer, body := a.ask(t, "bob", http.MethodPost, "/v1/responses", "words"); answer.StatusCode != http.StatusOK || body != "at last" {
		t.Errorf("%v %s", answer, body)
	}
	if len(b.servedHere()) != 1 || a.count("forwarded_total", "served") != 1 {
		t.Error("it was not served once")
	}
}
