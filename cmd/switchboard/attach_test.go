package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/simulator"
)

// TestAttachedCall: a product's call goes straight to the voice model's server, and has the fleet after one request.
func TestAttachedCall(t *testing.T) {
	t.Parallel()
	l := loopback(t)
	background(t, func(ctx context.Context) error { return simulator.New(simulator.Config{Hurry: 5}).Serve(ctx, l) })
	r := start(t, func(p *plan) {
		p.Hurry = 5
		p.Model = modelSettings{URL: "ws://" + l.Addr().String() + "/v1/realtime", Name: simulator.Name}
	})
	r.up("bigpc")
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+l.Addr().String()+"/v1/realtime?model=x", nil)
	must(t, err)
	p := &phone{t: t, conn: conn, events: make(chan phoneEvent, 4096)}
	go p.read()
	t.Cleanup(p.hangUp)
	p.await("session.created")
	id := strings.TrimPrefix(answer.Header.Get("Location"), "/v1/realtime/calls/")
	if status, body := r.ask(http.MethodPost, "/v1/realtime/attach", `{"call_id":"`+id+`"}`); status != http.StatusCreated || !strings.Contains(string(body), id) {
		t.Fatalf("%d %s", status, body)
	}
	for !strings.Contains(p.await("session.updated").raw, `"codex"`) { // one more tells that the call was joined
	}
	p.say("On bigpc continue the auth session and run the tests")
	p.hear("TestRefreshExpiredToken")
	until(t, "it to be heard", func() bool { all := r.handoffs(); return len(all) == 1 && all[0].State == handoff.StatusDelivered })
	p.say("Push it from bigpc")
	p.listen("git push origin auth-refactor. Yes or no?")
	p.say("yes") // typed, which any program of the call can have done
	until(t, "it to be asked again", func() bool { return strings.Contains(r.logs.String(), `"ruling":"ask again"`) })
	r.decide(r.question(), "accept")
	p.hear("is pushed")
	told := 0
	for _, s := range p.spoken() {
		if strings.Contains(s, "TestRefreshExpiredToken") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %q", told, p.spoken())
	}
	if status, body := r.ask(http.MethodDelete, "/fleet/calls/"+id, ""); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	r.noCallIsLeft()
	p.say("Which machines are there?") // the call itself goes on, without the fleet
	p.await("response.done")
}
