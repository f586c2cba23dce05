package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/responses"
)

// A littleModel is a Responses API that reads one file and then says what is in it.
type littleModel struct {
	mu       sync.Mutex
	requests []string // Guarded by mu
}

func (m *littleModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Previous string `json:"previous_response_id"`
		Input    []struct {
			Type   string `json:"type"`
			Output string `json:"output"`
		} `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Input) == 0 {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, fmt.Sprintf("%s after %q", r.Header.Get("Authorization"), req.Previous))
	n := len(m.requests)
	m.mu.Unlock()
	item := map[string]any{"type": "function_call", "id": "f", "call_id": "c", "name": "read_file", "arguments": `{"path":"todo.txt","offset":null,"limit":null}`}
	if last := req.Input[len(req.Input)-1]; last.Type == "function_call_output" {
		item = map[string]any{"type": "message", "id": "m", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "It says: " + strings.TrimSpace(last.Output)}}}
	}
	body, err := json.Marshal(map[string]any{"type": "response.completed", "response": map[string]any{"id": fmt.Sprint("resp_", n), "status": "completed", "output": []any{item}}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "event: response.completed\ndata: %s\n\n", body)
}

// TestAgentOfOurOwn: work that is given to an agent that Switchboard runs itself has its result, and its session goes
// on in the next life of the service.
func TestAgentOfOurOwn(t *testing.T) {
	t.Parallel()
	model := &littleModel{}
	api := httptest.NewServer(model)
	t.Cleanup(api.Close)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "todo.txt"), []byte("water the plants\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		until(t, "the agent", func() bool { return strings.Contains(r.logs.String(), `"server":"helper","health":"up"`) })
		status, body := r.ask(http.MethodPost, "/fleet/handoffs", fmt.Sprintf(`{"server":"helper","prompt":"what is to do?","thread_id":%q}`, session))
		var rec handoff.Record
		if err := json.Unmarshal(body, &rec); err != nil || status != http.StatusAccepted {
			t.Fatalf("%d %s", status, body)
		}
		until(t, "the outcome", func() bool { rec = r.whole(rec.ID); return rec.Outcome != "" })
		if rec.Outcome != handoff.OutcomeResult || rec.Text != "It says: water the plants" {
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
	model.mu.Lock()
	defer model.mu.Unlock()
	if got := strings.Join(model.requests, "; "); got != `Bearer k3y after ""; Bearer k3y after "resp_1"; Bearer k3y after "resp_2"; Bearer k3y after "resp_3"` {
		t.Error(got)
	}
}
