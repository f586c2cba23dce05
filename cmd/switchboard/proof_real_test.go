package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// codexScript is a shell script that runs the real codex with a model.
func codexScript(t testing.TB, m *jobModel) string {
	t.Helper()
	home := codexHome(t, &fakeProvider{Server: m.Server}, "", "")
	return fmt.Sprintf("export CODEX_HOME=%s\nexec %s \"$@\"\n", home, codexProgram(t))
}

// claudeScript runs the real claude-agent-acp.
func claudeScript(t testing.TB, home string, m *jobModel) string {
	t.Helper()
	return fmt.Sprintf(`export CLAUDE_CONFIG_DIR=%s/claude ANTHROPIC_BASE_URL=%s
export ANTHROPIC_API_KEY=sk-fake CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
exec %s "$@"
`, home, m.URL, npmFile(t, ".bin/claude-agent-acp"))
}

// A jobModel is the model behind real agents, on the two APIs that they use. "job N takes M" works M milliseconds and
// ends with "job N is done", as the simulated agents do.
type jobModel struct {
	*httptest.Server

	asked atomic.Int64

	mu    sync.Mutex
	begun map[string]int // Guarded by mu: how often a turn was begun with each prompt
}

func newJobModel(t testing.TB) *jobModel {
	m := &jobModel{begun: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

// count adds the turns that were begun, by prompt.
func (m *jobModel) count(into map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for prompt, n := range m.begun {
		into[prompt] += n
	}
}

// newestJob is a prompt that nothing of the model follows yet; nil: there is none, as in what is asked beside the work,
// which has no tools.
func newestJob(body []byte) (job []string) {
	type item struct {
		Role    string
		Content json.RawMessage
	}
	var req struct {
		Input, Messages []item
		Tools           []json.RawMessage
	}
	if json.Unmarshal(body, &req) != nil || len(req.Tools) == 0 {
		return nil
	}
	for _, it := range append(req.Input, req.Messages...) {
		switch found := jobPrompt.FindStringSubmatch(string(it.Content)); {
		case it.Role == "user" && found != nil:
			job = found
		case it.Role != "user" && it.Role != "system" && it.Role != "developer":
			job = nil
		}
	}
	return job
}

var jobPrompt = regexp.MustCompile(`job (\d+) takes (\d+)`)

func (m *jobModel) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	text := "All is well."
	if job := newestJob(body); job != nil {
		m.mu.Lock()
		m.begun[job[0]]++
		m.mu.Unlock()
		takes, _ := strconv.Atoi(job[2]) // digits
		select {
		case <-time.After(time.Duration(takes) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		text = "job " + job[1] + " is done.\n\nAll went well."
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		s := &providerStream{w: w, r: r, n: int(m.asked.Add(1))}
		s.event("response.created", map[string]any{"response": map[string]any{"id": s.id(), "status": "in_progress"}})
		s.say(text, 0)
		s.completed()
	case strings.HasSuffix(r.URL.Path, "/messages"):
		sayAnthropic(w, text)
	default:
		http.NotFound(w, r)
	}
}

// sayAnthropic answers on the API that claude uses.
func sayAnthropic(w http.ResponseWriter, text string) {
	tell := func(kind string, rest string, of ...any) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fmt.Sprintf(rest, of...))
	}
	tell("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}`)
	tell("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	tell("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":%q}`, text)
	tell("content_block_stop", `,"index":0`)
	tell("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}`)
	tell("message_stop", "")
}
