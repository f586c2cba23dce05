package main

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/web"
	"switchboard/web/peers"
)

// A town says where callers are, to several instances in this process.
type town struct {
	mu    sync.Mutex
	homes map[string]string     // Guarded by mu: by caller, the instance that has them
	there map[string]peers.Peer // Guarded by mu: by id
}

// A townView is the town as one instance sees it.
type townView struct {
	*town
	self string
}

func (v townView) Where(_ context.Context, c handoff.Caller) (peers.Peer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, lives := v.there[v.homes[c.String()]]
	if !lives {
		v.homes[c.String()], at = v.self, v.there[v.self]
	}
	return at, nil
}

func (v townView) Peers() []peers.Peer {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.there))
}

func (v townView) Dead(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, lives := v.there[id]
	return !lives
}

// joins makes a plan one of an instance of the town.
func (o *town) joins(id string, p *plan) {
	p.Peers = &peersPlan{ID: id, Listen: "127.0.0.1:0", Locator: func(self peers.Peer) peers.Locator {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.there[id] = self
		return townView{o, id}
	}}
	assistant := web.NewKey("assistant", "assistants-key-0123456789")
	assistant.NamesCallers = true
	p.Keys, p.Hurry = append(p.Keys, assistant), 5
}

// Of two instances each takes any request, and the one serves it that has the caller: a call, work and its events, and
// what has no caller by the id that it names. When an instance is gone the other goes on.
func TestPeers(t *testing.T) {
	t.Parallel()
	o := &town{homes: map[string]string{"owner": "IB"}, there: map[string]peers.Peer{}}
	a := start(t, func(p *plan) { o.joins("IA", p) })
	b := start(t, func(p *plan) { o.joins("IB", p) })
	b.up("bigpc")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.base+"/fleet/events", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+testKey)
	feed, err := http.DefaultClient.Do(req)
	must(t, err)
	defer feed.Body.Close()
	events := bufio.NewScanner(feed.Body)
	events.Buffer(nil, 1<<20)
	events.Scan() // the first has come, and the stream is open
	a.post("/fleet/handoffs", `{"server":"bigpc","prompt":"run the tests"}`)
	for !strings.Contains(events.Text(), "run the tests") && events.Scan() {
	}
	if err := events.Err(); err != nil || !strings.Contains(events.Text(), "run the tests") {
		t.Errorf("the stream ended before its event: %v", err)
	}

	p := a.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	for _, r := range []*running{a, b} {
		if _, body := r.ask(http.MethodGet, "/fleet/calls", ""); !strings.Contains(string(body), `"rtc_IB_`) {
			t.Errorf("the calls: %s", body)
		}
	}

	// nobody has named this caller: the call is where it came in, and ends by its id from anywhere
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), a.socket(), http.Header{
		"Authorization": {"Bearer assistants-key-0123456789"},
	})
	must(t, err)
	defer conn.Close()
	call := answer.Header.Get("Location")
	if status, body := b.ask(http.MethodPost, call+"/hangup", "", "Authorization", "Bearer assistants-key-0123456789"); status >= 300 ||
		!strings.Contains(call, "/rtc_IA_") {
		t.Errorf("hanging up %s: %d %s", call, status, body)
	}

	o.mu.Lock()
	delete(o.there, "IB")
	o.mu.Unlock()
	b.stop()
	if status, body := a.ask(http.MethodGet, "/fleet/calls", ""); status != http.StatusOK || strings.Contains(string(body), "rtc_IB_") {
		t.Errorf("after the other is gone: %d %s", status, body)
	}
	if _, body := a.ask(http.MethodGet, "/metrics", ""); !strings.Contains(string(body), `switchboard_peer_forwarded_total{outcome="served"}`) {
		t.Errorf("the metrics tell nothing of forwards: %.500s", body)
	}
}
