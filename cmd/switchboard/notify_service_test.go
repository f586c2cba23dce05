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

	"github.com/google/go-cmp/cmp"

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

// TestNotify: what is heard in a call is told nowhere else; what nobody heard is told once, and once more
// in the next call, whatever becomes of that call.
func TestNotify(t *testing.T) {
	t.Parallel()
	r, f, hook := notified(t, func(*plan) {})
	p := r.call()
	p.say(work("bigpc", "job 1 takes 0"))
	p.hear("job 1 is done")
	until(t, "job 1 to be heard to the end", func() bool { return r.newest().State == handoff.StatusDelivered })

	p.say(work("bigpc", "job 2 takes 3000"))
	until(t, "job 2 to run", func() bool {
		n := r.newest()
		return n.Prompt == "job 2 takes 3000" && n.State == handoff.StatusStarted
	})
	p.hangUp()
	until(t, "the notice of job 2", func() bool { return len(hook.notices()) == 1 })
	p = r.call()
	p.hear("While you were away, one thing finished")
	until(t, "job 2 to be heard to the end", func() bool { return r.newest().State == handoff.StatusDelivered })

	p.say(work("bigpc", "job 3 asks"))
	q := r.question()
	p.hangUp()
	until(t, "the notice of the question", func() bool { return len(hook.notices()) == 2 })
	r.decide(q, "decline")
	until(t, "the notice of job 3", func() bool { return len(hook.notices()) == 3 })
	r.call().hangUp() // before it can have told anything, or not
	r.stop()

	want := []string{
		"outcome bigpc: job 2 is done. All went well.",
		"question bigpc: bigpc asks for permission to run a command. It waits for you on the page.",
		"outcome bigpc: job 3 is left alone.",
	}
	if diff := cmp.Diff(want, hook.notices()); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	for _, hidden := range []string{"t0pic", "t0ken"} {
		if strings.Contains(r.logs.String(), hidden) {
			t.Errorf("%s is in the log", hidden)
		}
	}
	f.check(t)
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
