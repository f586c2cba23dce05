package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/realtime/models"
)

// TestMoneySpent: a call whose money is used up says so and ends, and the history tells what it cost. The next call is
// refused, also after a restart.
func TestMoneySpent(t *testing.T) { onBothStores(t, moneySpent) }

func moneySpent(t *testing.T, store string) {
	dir := t.TempDir()
	life := func() *running {
		return start(t, func(p *plan) {
			p.Hurry, p.StateDir, p.Redis = 5, dir, newSecret(store)
			p.Model.Prices = models.Prices{TextIn: 1, TextOut: 10, AudioOut: 50_000}
			p.Access[0].Limits.DollarsPerDay = 0.2
		})
	}
	r := life()
	r.up("bigpc")
	p := r.call()
	p.say("Which machines are there?")
	p.hear("bigpc")
	p.hear("money for calls is used up")
	last := phoneEvent{}
	until(t, "the call to end", func() bool {
		for _, e := range p.all() {
			if e.Type == "error" {
				last = e
			}
		}
		return last.Error.Code != "" && strings.Contains(r.logs.String(), `"code":"rate_limit_exceeded"`)
	})
	p.hangUp()
	if last.Error.Code != "rate_limit_exceeded" || !strings.Contains(last.Error.Message, "the money of today is used up") {
		t.Errorf("the client was told %q", last.raw)
	}
	dollars := regexp.MustCompile(`(?m)^switchboard_voice_cost_dollars_total (0\.[2-9]|[1-9])`)
	if _, metrics := r.ask(http.MethodGet, "/metrics", ""); !dollars.Match(metrics) {
		t.Errorf("no money in %.200s", regexp.MustCompile(`(?m)^switchboard_voice_.*$`).FindAll(metrics, -1))
	}
	spent := regexp.MustCompile(`^A call of [a-z ]+, about \$\d+\.\d\d$`)
	lines := items[struct{ Who, Text string }](r, "/fleet/conversation")
	if len(lines) != 1 || lines[0].Who != "call" || !spent.MatchString(lines[0].Text) {
		t.Errorf("the history has %+v", lines)
	}
	refusedMoney(t, "the next call", r)
	r.stop()
	refusedMoney(t, "after a restart", life())
}

// refusedMoney checks that no call begins.
func refusedMoney(t *testing.T, when string, r *running) {
	t.Helper()
	_, response, err := websocket.DefaultDialer.DialContext(t.Context(), r.socket(),
		http.Header{"Authorization": {"Bearer " + testKey}})
	if err == nil || response == nil || response.StatusCode != http.StatusTooManyRequests ||
		response.Header.Get("Retry-After") == "" {
		t.Fatalf("%s was not refused: %v %v", when, response, err)
	}
	defer response.Body.Close()
	var body struct {
		Error struct{ Code, Message string }
	}
	must(t, json.NewDecoder(response.Body).Decode(&body))
	if body.Error.Code != "rate_limit_exceeded" || !strings.Contains(body.Error.Message, "money of today") {
		t.Errorf("%s: %+v", when, body)
	}
}
