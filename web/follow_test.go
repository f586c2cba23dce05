package web

import (
	"net/http"
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestFollowWork: the events of a piece of work come line by line, each with an id to reconnect with, and the stream
// ends with the outcome.
func TestFollowWork(t *testing.T) {
	w := newWorld()
	w.records = []handoff.Record{{ID: "h1", Server: "bigpc"}}
	w.happened = []handoff.EventKind{
		handoff.EventPlaced{}, handoff.EventDoing{ID: "i1", Item: handoff.ItemCommand, Text: "go test"},
		handoff.EventDelta{ItemID: "i1", Kind: handoff.DeltaOutput, Text: "ok"}, handoff.EventItem{
			Item: handoff.Item{ID: "i1", Kind: handoff.ItemCommand, Exit: new(1)},
		},
		handoff.EventUsage{Usage: handoff.Usage{Input: 7, Output: 3}}, handoff.EventAsked{
			Question: handoff.OpenQuestion{Shown: handoff.RecordQuestion{ID: "q"}},
		},
		handoff.EventAnswered{Question: "q"}, handoff.EventSteered{Into: "h2"}, handoff.EventEnded{},
	}
	_, base := serve(t, w, nil)
	heard := func(id string) int { return codeFor(t, "POST", base+"/fleet/handoffs/"+id+"/heard", "") }
	if code := heard("h1"); code != http.StatusBadRequest {
		t.Errorf("heard before its end: %d", code)
	}
	url := base + "/fleet/handoffs/h1/events"
	a := followPath(t, url, "")
	var last string
	for i, want := range []string{
		`{"type":"placed","record":{"id":"h1"`, `{"type":"item_started","item":{"id":"i1","kind":"command","text":"go test","state":"running"}}`,
		`{"type":"delta","item_id":"i1","delta":"ok","at":0}`, `"exit":1,"state":"failed"}}`,
		`{"type":"usage","usage":{"input":7,"cached":0,"output":3,"reasoning":0}}`, `{"type":"question","record":`,
		`"closed":"q"`, `"into":"h2"`, `{"type":"ended","record":`,
	} {
		if last = a.want("", want).id; i == 1 {
			b := followPath(t, url, last)
			b.want("", `"type":"delta"`)
			b.end()
		}
	}
	if e, more := a.next(); more {
		t.Errorf("after the end comes %+v", e)
	}
	w.mu.Lock()
	w.records[0].Outcome = handoff.OutcomeResult
	w.mu.Unlock()
	if code := statusOf(t, url, last); code != http.StatusNoContent {
		t.Errorf("asked again after the end: %d", code)
	}
	if code := heard("h1"); code != http.StatusNoContent || !slices.Contains(w.log(), "heard owner h1") {
		t.Errorf("told to its end: %d, %q", code, w.log())
	}
	if code := heard("h9"); code != http.StatusNotFound {
		t.Errorf("heard of nothing: %d", code)
	}
	followPath(t, url, "AAAAAAAA-3").want("", `"type":"placed"`) // of another process
	if code := statusOf(t, base+"/fleet/handoffs/h9/events", ""); code != http.StatusNotFound {
		t.Errorf("work that is not there: %d", code)
	}
}

// TestFollowedWorkIsBounded: streams of single pieces of work count to the caller's bound of streams, and end with the
// server.
func TestFollowedWorkIsBounded(t *testing.T) {
	w := newWorld()
	w.records, w.happened = []handoff.Record{{ID: "h1", Server: "bigpc"}}, []handoff.EventKind{handoff.EventPlaced{}}
	s, base := serve(t, w, nil)
	var all []*stream
	for range maxStreams {
		a := followPath(t, base+"/fleet/handoffs/h1/events", "")
		a.want("", "placed")
		all = append(all, a)
	}
	if code := statusOf(t, base+"/fleet/handoffs/h1/events", ""); code != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d", code)
	}
	s.Close()
	for _, a := range all {
		if e, more := a.next(); more {
			t.Errorf("after the server closed: %+v", e)
		}
	}
}

// TestFollowEndedWork: the stream of ended work has a snapshot with its items.
func TestFollowEndedWork(t *testing.T) {
	w := newWorld()
	w.records = []handoff.Record{{ID: "h1", Server: "bigpc", Outcome: handoff.OutcomeResult}}
	w.happened = []handoff.EventKind{
		handoff.EventSnapshot{Items: []handoff.RecordItem{{ID: "i1"}}, Usage: handoff.Usage{Input: 1}}, handoff.EventEnded{},
	}
	_, base := serve(t, w, nil)
	a := followPath(t, base+"/fleet/handoffs/h1/events", "")
	a.want("", `"items":[{"id":"i1","kind":"","text":"","state":""}],"usage":{"input":1,`)
	a.want("", `"type":"ended"`)
}

// statusOf asks for a stream and leaves it.
func statusOf(t *testing.T, url, last string) int {
	t.Helper()
	return codeFor(t, "GET", url, last)
}

func codeFor(t *testing.T, method, url, last string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+ownerKey)
	r.Header.Set("Last-Event-ID", last)
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	_ = res.Body.Close()
	return res.StatusCode
}
