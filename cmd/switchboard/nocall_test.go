package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestWorkWithoutACall: work that is given over HTTP is begun once, read while it runs, and heard in the next call.
func TestWorkWithoutACall(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 5 })
	r.up("bigpc")
	const work = `{"server":"bigpc","prompt":"run the tests"}`
	status, first := r.again("/fleet/handoffs", "k1", work)
	if status != http.StatusAccepted || first.ID == "" {
		t.Fatalf("%d %+v", status, first)
	}
	if status, again := r.again("/fleet/handoffs", "k1", work); status != http.StatusAccepted || again.ID != first.ID {
		t.Errorf("the same again: %d %+v", status, again)
	}
	if status, _ := r.again("/fleet/handoffs", "k1", `{"server":"laptop","prompt":"something else"}`); status != http.StatusConflict {
		t.Errorf("something else under the same key: %d", status)
	}
	if status, _ := r.again("/fleet/handoffs", "k2", `{"server":"nowhere","prompt":"x"}`); status != http.StatusNotFound {
		t.Errorf("a machine that there is not: %d", status)
	}
	if last := r.follow(t, first.ID); !strings.Contains(last, `"type":"ended"`) || !strings.Contains(last, `"outcome":"result"`) {
		t.Errorf("it ended with %s", last)
	}
	if status, _ := r.again("/fleet/handoffs/"+first.ID+"/steer", "k3", `{"prompt":"more"}`); status != http.StatusConflict {
		t.Errorf("more words for what has ended: %d", status)
	}
	until(t, "its end", func() bool { // what ends while a call begins is news there
		return strings.Contains(r.logs.String(), `"msg":"handoff ended","principal":"owner","handoff":"`+first.ID+`"`)
	})
	r.call().hear("While you were away")
	r.allHeard()
}

// follow reads what happens to work until there is no more, and returns the last of it.
func (r *running) follow(t *testing.T, id string) (last string) {
	t.Helper()
	_, body := r.ask(http.MethodGet, "/fleet/handoffs/"+id+"/events", "")
	kinds := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(line, "data: ")
		var e struct{ Type string }
		if ok && json.Unmarshal([]byte(data), &e) == nil {
			last, kinds[e.Type] = data, true
		}
	}
	for _, kind := range []string{"item_started", "delta", "item", "ended"} {
		if !kinds[kind] {
			t.Errorf("nothing of kind %s was told: %v", kind, kinds)
		}
	}
	return last
}
