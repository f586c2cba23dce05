package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/web"
)

// Of two instances of one Redis each takes any request, and the one serves it that has the caller: a call, work and its
// events, and what has no caller by the id that it names. When an instance has ended, the other one serves its callers.
func TestPeers(t *testing.T) {
	t.Parallel()
	const assistants = "assistants-key-0123456789"
	url := startRedis(t)
	shares := func(p *plan) {
		assistant := web.NewKey("assistant", assistants)
		assistant.NamesCallers = true
		p.Keys, p.Hurry, p.Redis, p.Peers = append(p.Keys, assistant), 5, url, &peersPlan{Listen: "127.0.0.1:0"}
	}
	a, b := start(t, shares), start(t, shares)
	b.up("bigpc") // and the owner is there from now on

	a.streamsWork()

	p := a.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	var calls [2]struct {
		Items []struct{ ID string } `json:"items"`
	}
	a.get("/fleet/calls", &calls[0])
	b.get("/fleet/calls", &calls[1])
	if len(calls[0].Items) != 1 || len(calls[1].Items) != 1 || calls[0].Items[0] != calls[1].Items[0] {
		t.Fatalf("the calls: %v", calls)
	}
	// nobody has named this caller: the call is where it came in, and ends by its id from anywhere
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), a.socket(), http.Header{
		"Authorization": {"Bearer " + assistants},
	})
	must(t, err)
	defer conn.Close()
	call := answer.Header.Get("Location")
	instance := func(id string) string { return strings.Split(id, "_")[1] }
	if instance(call) == instance(calls[0].Items[0].ID) {
		t.Errorf("%s is where %s is", call, calls[0].Items[0].ID)
	}
	if status, body := b.ask(http.MethodPost, call+"/hangup", "", "Authorization", "Bearer "+assistants); status >= 300 {
		t.Errorf("hanging up %s: %d %s", call, status, body)
	}

	p.hangUp() // else it would end with the call
	b.stop()
	a.get("/fleet/calls", &calls[0])
	if len(calls[0].Items) != 0 {
		t.Errorf("after the other has ended: %v", calls[0])
	}
	p = a.call()
	p.say("Which machines do I have?")
	p.hear("bigpc")
	if _, body := a.ask(http.MethodGet, "/metrics", ""); !strings.Contains(string(body), `switchboard_peer_forwarded_total{outcome="served"}`) {
		t.Errorf("the metrics tell nothing of forwards: %.500s", body)
	}
}
