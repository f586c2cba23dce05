package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// clientFeatures are the columns of the table, in the order in which drive.cjs goes through them.
var clientFeatures = []string{"connect", "configure", "typed turn", "spoken turn", "its own tool", "the fleet", "barge-in", "a late result", "no errors", "hang up"}

// clientsPage is what people read about it.
const clientsPage = "../../web/help/clients.md"

// clientsHead stands before the table.
const clientsHead = `# Clients

What others wrote, and what of a call works with it. This table is made by the tests: each client was put through a
whole call at a simulated voice, and every word in it is what came of that.

- **connect**, **configure**: its instructions and its tools are in force before the first word.
- **typed turn**, **spoken turn**: what is typed, and what is said, is answered by voice.
- **its own tool**, **the fleet**: it runs its own tool; Switchboard's tools work, and it is not shown them.
- **barge-in**: who speaks into an answer ends it.
- **a late result**: work that takes longer is told when it ends, without being asked for.
- **no errors**, **hang up**: it was told of no error, and leaves no call behind.

`

// A stockClient is a client that others wrote, in the table.
type stockClient struct {
	name   string   // as people know it, with %s for the version of a package
	module string   // of npm, whose version it is; "": the name has it
	heard  []string // what is said to it by voice; nil: spokenInTurn
	run    func(r *clientRun) findings
	about  string // what else is to be known of it
}

// noConfiguration is why a client of the beta protocol cannot set its session up.
const noConfiguration = "its session is the beta's"

func stockClients() []stockClient {
	node := func(name string, settings map[string]any) func(*clientRun) findings {
		return func(r *clientRun) findings { return r.inNode(name, settings) }
	}
	chromium := func(name string, settings map[string]any) func(*clientRun) findings {
		return func(r *clientRun) findings { return r.inChromium(name, settings) }
	}
	codex := func(settings map[string]any) func(*clientRun) findings {
		return func(r *clientRun) findings { return r.codexSpeaks(settings) }
	}
	return []stockClient{
		{name: "@openai/agents-realtime %s, WebSocket", module: "@openai/agents-realtime", run: node("agents", map[string]any{"transport": "websocket"})},
		{name: "@openai/agents-realtime %s, WebRTC in Chromium", module: "@openai/agents-realtime", run: chromium("agents", map[string]any{"transport": "webrtc"})},
		{name: "openai %s for node, WebSocket", module: "openai", run: node("openai", map[string]any{})},
		{name: "openai %s, WebSocket in Chromium", module: "openai", run: chromium("openai_websocket", map[string]any{"transport": "websocket"})},
		{name: "openai %s, WebRTC in Chromium", module: "openai", run: chromium("openai_webrtc", map[string]any{})},
		{name: "openai-go 3.95, WebSocket", run: func(r *clientRun) findings { return r.inGo() }},
		{name: "LiveKit agents %s for node, WebSocket", module: "@livekit/agents-plugin-openai", run: node("livekit", map[string]any{})},
		{name: "codex %s, its voice over WebSocket", module: "@openai/codex", heard: spokenToCodex, run: codex(map[string]any{
			"transport": map[string]string{"type": "websocket"}, "skip": map[string]string{"typed turn": "what is typed is not answered by voice"},
		})},
		{name: "codex %s, its voice over WebRTC", module: "@openai/codex", run: codex(map[string]any{
			"transport": map[string]string{"type": "webrtc", "sdp": "v=0\r\n"},
			"lacks":     map[string]string{"connect": "codex refuses it"}, "skip": allBut("connect", "–"),
		}), about: "it makes WebRTC calls in two other protocols of OpenAI's alone, and refuses to in this one before it asks anybody"},
		{name: "a raw socket in node (ws %s)", module: "ws", run: node("ws", map[string]any{})},
		{name: "Pipecat's JavaScript transport for OpenAI %s, WebRTC in Chromium", module: "@pipecat-ai/openai-realtime-webrtc-transport", run: chromium("pipecat", map[string]any{"lacks": map[string]string{
			"configure": noConfiguration, "its own tool": noConfiguration, "no errors": noConfiguration,
		}}), about: "its makers have given it up, and it speaks the beta of the protocol, which OpenAI has ended. It knows OpenAI's address alone, which the page of the test replaces, as it does the microphone, for which it loads a program of Daily's. Then one can talk with it, and it shows no text of the voice"},
	}
}

// allBut says the same of every feature but one.
func allBut(feature, why string) map[string]string {
	all := map[string]string{}
	for _, other := range clientFeatures {
		if other != feature {
			all[other] = why
		}
	}
	return all
}

// called is the name with the version that is installed.
func (c stockClient) called(t *testing.T) string {
	t.Helper()
	if c.module == "" {
		return c.name
	}
	data, err := os.ReadFile("../../.ci/package.json")
	must(t, err)
	var wanted struct{ DevDependencies map[string]string }
	must(t, json.Unmarshal(data, &wanted))
	version := wanted.DevDependencies[c.module]
	if version == "" {
		t.Fatalf(".ci/package.json has no %s", c.module)
	}
	return fmt.Sprintf(c.name, version)
}

// row is a client's line of the table. What failed is not in it: it fails the test.
func (c stockClient) row(t *testing.T, told findings) string {
	t.Helper()
	cells := []string{c.called(t)}
	for _, feature := range clientFeatures {
		switch how := told[feature]; {
		case how == "yes":
			cells = append(cells, "yes")
		case how == "" || strings.HasPrefix(how, "no: "):
			t.Errorf("%s: %s", feature, how)
			cells = append(cells, "no")
		default:
			cells = append(cells, how)
		}
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// TestClients puts clients that others wrote through everything that a call has, and holds the page that tells of it
// to what came of it. With -update it writes the page.
func TestClients(t *testing.T) {
	t.Parallel()
	clients := stockClients()
	rows := make([]string, len(clients))
	t.Run("each", func(t *testing.T) {
		for i, c := range clients {
			t.Run(strings.Fields(c.name)[0]+fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				heard := c.heard
				if heard == nil {
					heard = spokenInTurn
				}
				r := startForClient(t, heard...)
				told := c.run(r)
				r.noCallIsLeft()
				rows[i] = c.row(t, told)
			})
		}
	})
	if t.Failed() || slices.Contains(rows, "") { // some were left out by -run
		return
	}
	var page strings.Builder
	page.WriteString(clientsHead + "| client | " + strings.Join(clientFeatures, " | ") + " |\n|" + strings.Repeat("---|", len(clientFeatures)+1) + "\n" + strings.Join(rows, "\n") + "\n")
	for _, c := range clients {
		if c.about != "" {
			page.WriteString("\n" + c.called(t) + ": " + c.about + ".\n")
		}
	}
	if *update {
		must(t, os.WriteFile(clientsPage, []byte(page.String()), 0o644))
	}
	if kept, err := os.ReadFile(clientsPage); err != nil || string(kept) != page.String() {
		t.Errorf("%s is not what came of the clients (%v): go test ./cmd/switchboard -run TestClients -update writes\n%s", clientsPage, err, page.String())
	}
}
