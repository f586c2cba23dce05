package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// A resident is one of several people on the same machines, with a word of their own in all that they ask for.
type resident struct {
	r           *running
	key, secret string
	works       []handoff.Record
	heard       *logBuffer // what came on their stream of events
}

func (p *resident) ask(method, path, body string) (int, string) {
	status, text := p.r.ask(method, path, body, "Authorization", "Bearer "+p.key)
	return status, string(text)
}

// give has work done in a session of its own, and waits until that has an id.
func (p *resident) give(n int) {
	p.r.t.Helper()
	status, text := p.ask(http.MethodPost, "/fleet/handoffs",
		fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"say %s %d"}`, p.secret, n))
	var rec handoff.Record
	if err := json.Unmarshal([]byte(text), &rec); err != nil || rec.ID == "" {
		p.r.t.Fatalf("work: %d %s", status, text)
	}
	until(p.r.t, "a session", func() bool {
		_, text := p.ask(http.MethodGet, "/fleet/handoffs/"+rec.ID, "")
		return json.Unmarshal([]byte(text), &rec) == nil && rec.ThreadID != ""
	})
	p.works = append(p.works, rec)
}

// listen reads the stream of events until the test ends.
func (p *resident) listen() {
	req, err := http.NewRequestWithContext(p.r.t.Context(), http.MethodGet, p.r.base+"/fleet/events", nil)
	must(p.r.t, err)
	req.Header.Set("Authorization", "Bearer "+p.key)
	resp, err := http.DefaultClient.Do(req)
	must(p.r.t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(p.heard, resp.Body)
	}()
	p.r.t.Cleanup(func() { _ = resp.Body.Close(); <-ended })
}

// TestProofApart: two callers on the same machine can neither read nor change each other's work, even with its ids, and
// each hears only of their own work.
func TestProofApart(t *testing.T) {
	t.Parallel()
	other := ownersTestKey()
	other.Principal, other.Sum = "bob", sha256.Sum256([]byte("bobs-key-for-the-tests"))
	r := start(t, func(p *plan) { p.Hurry, p.Access = 20, append(p.Access, other) })
	r.up("bigpc")
	people := []*resident{
		{r: r, key: testKey, secret: "xylophone", heard: &logBuffer{}},
		{r: r, key: "bobs-key-for-the-tests", secret: "zeppelin", heard: &logBuffer{}},
	}
	for i, p := range people {
		p.listen()
		p.give(i)
	}
	operations, each := scale(270, 50_000), scale(3, 15)
	for n := range operations {
		me, you := people[n%2], people[(n+1)%2]
		if n/2%(operations/2/each) == 0 && len(me.works) < each {
			me.give(n)
		}
		yours := you.works[n/2%len(you.works)]
		work, session := "/fleet/handoffs/"+yours.ID, "/fleet/sessions/bigpc/"+yours.ThreadID
		ask := []struct {
			method, path, body string
			refused            bool
		}{
			{"GET", "/fleet/handoffs", "", false}, {"GET", work, "", true}, {"GET", work + "/events", "", true},
			{"POST", work + "/steer", `{"text":"stop"}`, true}, {"POST", work + "/stop", `{}`, true},
			{"POST", work + "/heard", `{}`, true}, {"POST", work + "/move", `{"to":"first"}`, true},
			{"GET", "/fleet/sessions?query=" + you.secret, "", false}, {"GET", "/fleet/sessions?limit=40", "", false},
			{"GET", session, "", true}, {"POST", session + "/rename", `{"name":"mine"}`, true},
			{"POST", session + "/archive", `{}`, true},
			{"GET", "/fleet/history?search=" + you.secret, "", false}, {"GET", "/fleet/history/" + yours.ID, "", true},
			{"GET", "/fleet/conversation?search=" + you.secret, "", false}, {"GET", "/fleet/questions", "", false},
			{"GET", "/fleet/decisions", "", false}, {"GET", "/fleet/sticky", "", false}, {"GET", "/fleet/status", "", false},
			{"GET", "/fleet/cleared", "", false}, {"GET", "/fleet/calls", "", false}, {"GET", "/fleet/servers", "", false},
			{"GET", "/fleet/machines", "", false}, {"GET", "/fleet/apps", "", false}, {"GET", "/login", "", false},
			{"GET", "/v1/responses/" + yours.ID, "", true}, {"DELETE", "/v1/responses/" + yours.ID, "", true},
		}[n/2%27]
		status, text := me.ask(ask.method, ask.path, ask.body)
		if strings.Contains(text, you.secret+" ") || ask.refused != (status/100 == 4) || status/100 == 5 {
			t.Fatalf("%s %s: %d %s", ask.method, ask.path, status, text)
		}
	}
	for i, me := range people {
		you := people[1-i]
		until(t, "the end of their own work", func() bool { return strings.Contains(me.heard.String(), me.secret) })
		if strings.Contains(me.heard.String(), you.secret) {
			t.Error("the other's work is in their events")
		}
		for _, rec := range you.works {
			if _, text := you.ask(http.MethodGet, "/fleet/handoffs/"+rec.ID, ""); !strings.Contains(text, you.secret) ||
				strings.Contains(text, `"interrupted"`) {
				t.Errorf("their own work is now %s", text)
			}
		}
	}
}
