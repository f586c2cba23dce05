package acp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers/transport"
)

// TestReal: two real agents, offline, with a simulated model. They ask before they run a command, though by default
// they do not, and their next process finds the conversation again. They need the npm packages
// @agentclientprotocol/claude-agent-acp and opencode-linux-x64, which make test installs.
func TestReal(t *testing.T) {
	t.Run("claude-agent-acp", func(t *testing.T) {
		home := t.TempDir()
		testReal(t, anthropic, func(url string) Config {
			return Config{Way: &transport.Child{Command: []string{installed(t, ".bin/claude-agent-acp")}, Env: []string{
				"HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(home, "claude"), "ANTHROPIC_BASE_URL=" + url,
				"ANTHROPIC_API_KEY=sk-fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			}}}
		})
	})
	t.Run("opencode", func(t *testing.T) {
		home := t.TempDir()
		testReal(t, openAI, func(url string) Config {
			program := installed(t, "opencode-linux-x64/bin/opencode")
			return Config{Mode: "build", Way: &transport.Child{Command: []string{program, "acp"}, Env: []string{
				"HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home,
				"OPENCODE_DISABLE_MODELS_FETCH=1", `OPENCODE_CONFIG_CONTENT={"model":"fake/m1","permission":{"bash":"ask","edit":"ask"},` +
					`"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url + `/v1","apiKey":"x"},` +
					`"models":{"m1":{"name":"m1"}}}}}`,
			}}}
		})
	})
}

// installed returns the path of a program of the npm packages.
func installed(t *testing.T, name string) string {
	path, err := filepath.Abs("../../.tools/node_modules/" + name)
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the agent is not installed: %v (make test installs it into .tools)", err)
	}
	return path
}

// testReal works with an agent whose model is at an address.
func testReal(t *testing.T, model http.HandlerFunc, configured func(url string) Config) {
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	cfg := configured(server.URL)
	cfg.Name = "mac"
	dial := Dialer(cfg)
	link := linkTo(t, dial)
	a, err := link.Conn.Create(t.Context(), dir)
	must(t, err)
	id, err := a.Agent.Start(t.Context(), handoff.Turn{ID: "run-1", Input: handoff.TextInput("please RUN it")})
	must(t, err)
	updates := follow(t, a, id, isQuestion)
	q, ok := updates[len(updates)-1].(handoff.Question)
	if !ok || q.Command != "touch made.txt" || q.Kind != handoff.QuestionCommand {
		t.Fatalf("no question: %q", told(updates))
	}
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err == nil {
		t.Error("it ran unasked")
	}
	must(t, a.Agent.(handoff.Controls).Decide(t.Context(), q.ID, handoff.DecisionAccept))
	if e := end(t, follow(t, a, id, nil)); e.Status != handoff.TurnCompleted || e.Text != "All is well." {
		t.Errorf("ended with %+v", e)
	}
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err != nil {
		t.Error(err)
	}
	must(t, link.Conn.Close())
	link = linkTo(t, dial)
	b := attach(t, link, a.Target.Thread)
	found, err := b.Agent.(handoff.Reconciler).Reconcile(t.Context(), "", "run-1")
	if err != nil || found != "run-1" || b.Newest != "run-1" {
		t.Errorf("found %q, %v; the newest is %q", found, err, b.Newest)
	}
	never, err := b.Agent.(handoff.Reconciler).Reconcile(t.Context(), "run-1", "run-2")
	if err != nil || never != "" {
		t.Errorf("a prompt that was never sent: %q, %v", never, err)
	}
	wantSaid(t, follow(t, b, start(t, b, "hello"), nil), "All is well.")
	list, err := link.Catalog.List(t.Context(), 9)
	if err != nil || len(list) != 1 || list[0].ID != a.Target.Thread || strings.Contains(list[0].Title, "<") {
		t.Errorf("listed %+v, %v", list, err)
	}
}

// askedToRun reads a request of a model: whether a command is to be run now.
func askedToRun(w http.ResponseWriter, r *http.Request, path, result string) (run, ok bool) {
	var req struct {
		Tools    []json.RawMessage
		Messages []json.RawMessage
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil || !strings.HasSuffix(r.URL.Path, path) || json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		http.NotFound(w, r)
		return false, false
	}
	said, err := json.Marshal(req.Messages)
	run = err == nil && len(req.Tools) > 0 && strings.Contains(string(said), "please RUN it") &&
		!strings.Contains(string(said), result)
	w.Header().Set("Content-Type", "text/event-stream")
	return run, true
}

// realCommand is what the models have run, as a string in JSON.
const realCommand = `"{\"command\":\"touch made.txt\",\"description\":\"Make it\"}"`

// anthropic is a model that has a command run once when the prompt asks for it, and else answers that all is well.
func anthropic(w http.ResponseWriter, r *http.Request) {
	run, ok := askedToRun(w, r, "/messages", "tool_use_id")
	if !ok {
		return
	}
	tell := func(kind, rest string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
	tell("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}`)
	stop := "end_turn"
	if run {
		stop = "tool_use"
		tell("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}`)
		tell("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":`+realCommand+`}`)
	} else {
		tell("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		tell("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"All is well."}`)
	}
	tell("content_block_stop", `,"index":0`)
	tell("message_delta", `,"delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":5}`)
	tell("message_stop", "")
}

// openAI is the same model on another API.
func openAI(w http.ResponseWriter, r *http.Request) {
	run, ok := askedToRun(w, r, "/chat/completions", "tool_call_id")
	if !ok {
		return
	}
	delta, stop := `{"role":"assistant","content":"All is well."}`, "stop"
	if run {
		delta = `{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"bash",` +
			`"arguments":` + realCommand + `}}]}`
		stop = "tool_calls"
	}
	for _, choice := range []string{`"delta":` + delta + `,"finish_reason":null`, `"delta":{},"finish_reason":"` + stop + `"`} {
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{"index":0,%s}],`+
			`"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`+"\n\n", choice)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
