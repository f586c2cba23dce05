package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/transport"
)

// A notice is what comes over the wire.
type notice struct {
	Kind   handoff.NoticeKind
	Text   string
	Server string
}

// A hookEnd is a service that takes notices.
type hookEnd struct {
	URL string // Set once

	mu  sync.Mutex
	got []notice // Guarded by mu
}

func newHookEnd(t *testing.T) *hookEnd {
	t.Helper()
	h := &hookEnd{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var n notice
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer t0ken" {
			t.Errorf("%s with %q: %s, %v", r.Method, r.Header.Get("Authorization"), body, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, n)
	}))
	t.Cleanup(server.Close)
	h.URL = server.URL + "/t0pic"
	return h
}

// notices are what came so far, in short.
func (h *hookEnd) notices() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []string{}
	for _, n := range h.got {
		list = append(list, fmt.Sprintf("%s %s: %s", n.Kind, n.Server, n.Text))
	}
	return list
}

// notified runs a service with simulated machines that work on jobs, and with a webhook.
func notified(t *testing.T, change func(*plan)) (*running, *farm, *hookEnd) {
	t.Helper()
	f, hook := newFarm(t), newHookEnd(t)
	r := start(t, func(p *plan) {
		p.Model = modelSettings{URL: f.voice.URL, Name: "scripted"}
		for name, at := range f.at {
			p.Servers = append(p.Servers, servers.Spec{Name: name, Kind: "codex", Own: codexAt(at)})
		}
		p.Notify = notifySettings{Webhook: newSecret(hook.URL), Token: func() (string, error) { return "t0ken", nil }}
		change(p)
	})
	r.up("bigpc")
	return r, f, hook
}

// newest returns the work that was given last.
func (r *running) newest() handoff.Record {
	works := r.handoffs()
	if len(works) == 0 {
		return handoff.Record{}
	}
	return works[len(works)-1]
}

// TestSpeechIsSet: the settings say how much is told until the caller does, when work that shows no sign is mentioned,
// when a question is asked again and given up, and for how long a machine that is gone is looked for.
func TestSpeechIsSet(t *testing.T) {
	t.Parallel()
	var way *cutter
	r, f, _ := notified(t, func(p *plan) {
		p.Speech.Updates = string(handoff.LevelChatty)
		p.Approvals = approvalSettings{span(200 * time.Millisecond), span(8 * time.Second)}
		p.Work.Silence, p.Work.Patience = span(300*time.Millisecond), span(time.Second)
		i := slices.IndexFunc(p.Servers, func(s servers.Spec) bool { return s.Name == "bigpc" })
		way = newCutter(t, "bigpc", strings.TrimPrefix(p.Servers[i].Own.(*codex.Config).Way.(*transport.WebSocket).URL, "ws://"))
		p.Servers[i].Own = codexAt(way.at)
	})
	p := r.call()
	p.say(work("bigpc", "job 1 takes 6000"))
	p.hear("Nothing was heard from bigpc for a while")
	p.hear("I look at number 1")
	p.hear("job 1 is done")
	p.say(work("laptop", "job 3 asks"))
	p.hear("Still waiting")
	p.hear("job 3 is left alone")
	p.say(work("bigpc", "job 2 hangs"))
	until(t, "the work to run", func() bool { n := r.newest(); return n.Prompt == "job 2 hangs" && n.State == handoff.StatusStarted })
	way.proxy.Stop()
	until(t, "the work to be given up", func() bool { return r.newest().Outcome == handoff.OutcomeUnknown })
	p.hear("lost the connection to bigpc")
	r.stop()
	f.check(t)
}
