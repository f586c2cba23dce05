package main

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/servers/responses/simulator"
)

// TestAgentOfOurOwn: work that is given to an agent that Switchboard runs itself has its result, and its session goes
// on in the next life of the service.
func TestAgentOfOurOwn(t *testing.T) {
	t.Parallel()
	model := simulator.New("upstream", 0, func(req simulator.Request) simulator.Reply { // it reads one file and says what is in it
		if _, answered := req.LastSaid(); answered {
			output := handoff.Encode(req.History[len(req.History)-1])
			return simulator.Reply{Items: []simulator.Item{simulator.Say(fmt.Sprint("It says plants: ", strings.Contains(output, "water the plants")))}}
		}
		call := simulator.Call(fmt.Sprint("call_", req.N), "read_file", map[string]any{"path": "todo.txt", "offset": nil, "limit": nil})
		return simulator.Reply{Items: []simulator.Item{call}}
	})
	api := httptest.NewServer(model)
	t.Cleanup(api.Close)
	t.Cleanup(model.Release)
	work := t.TempDir()
	write(t, filepath.Join(work, "todo.txt"), "water the plants\n")
	state := t.TempDir()
	life := func(t *testing.T, session string) string {
		r := start(t, func(p *plan) {
			p.StateDir = state
			p.Servers = []servers.Spec{{
				Name: "helper", Kind: responses.Name, Dir: work,
				Own: &responses.Settings{URL: api.URL + "/v1", Model: "m", Workspace: work, Continuation: responses.ResponseIDs,
					Key: func() (string, error) { return "k3y", nil }},
			}}
		})
		r.up("helper")
		rec := r.outcome(r.hand(fmt.Sprintf(`{"server":"helper","prompt":"what is to do?","thread_id":%q}`, session)))
		if rec.Outcome != handoff.OutcomeResult || rec.Text != "It says plants: true" {
			t.Errorf("%+v", rec)
		}
		return rec.ThreadID
	}
	var session string
	t.Run("one life", func(t *testing.T) { session = life(t, "new") })
	t.Run("the next", func(t *testing.T) {
		if again := life(t, session); again != session {
			t.Errorf("went on in %s, not %s", again, session)
		}
	})
	for n, req := range model.Requests() {
		if req.Key != "Bearer k3y" || (req.Previous == "") != (n == 0) {
			t.Errorf("request %d has the key %q and goes on after %q", n, req.Key, req.Previous)
		}
	}
	if n, wrong := len(model.Requests()), model.Wrong(); n != 4 || len(wrong) > 0 {
		t.Errorf("%d requests; a real one refuses %q", n, wrong)
	}
}
