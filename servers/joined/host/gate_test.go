package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// aSpan is one of W3C trace context.
const aSpan = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// opens lets a gate see that a session was opened.
func (g *gate) opens(t *testing.T, thread, cwd, sandbox string) {
	t.Helper()
	if _, err := g.fromService([]byte(`{"id":7,"method":"thread/resume","params":{"threadId":"x"}}`)); err != nil {
		t.Fatal(err)
	}
	g.fromAgent(fmt.Appendf(nil, `{"id":7,"result":{"thread":{"id":%q},"cwd":%q,"sandbox":{"type":%q}}}`, thread, cwd, sandbox))
}

// TestGateKnowsTheClient: all methods that the service calls pass. Without this test, a missing one would fail only on
// machines that joined.
func TestGateKnowsTheClient(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../codex/client.go")
	must(t, err)
	calls := regexp.MustCompile(`"((?:thread|turn|account)/[A-Za-z/]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(calls) < 10 {
		t.Fatalf("the client calls %q", calls)
	}
	for _, call := range calls {
		if _, passes := methods[call[1]]; !passes {
			t.Errorf("%s does not pass", call[1])
		}
	}
}

// TestGate: only methods that give, follow and stop work pass, within the policy. TestGatePassesWhatItJudged has the
// form in which they pass.
func TestGate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	inside, outside := filepath.Join(root, "src", "api"), filepath.Join(root, "secret")
	must(t, os.MkdirAll(inside, 0o700))
	must(t, os.MkdirAll(outside, 0o700))
	must(t, os.Symlink(outside, filepath.Join(root, "src", "way-out")))
	must(t, os.Symlink(inside, filepath.Join(root, "into"))) // the system finds src behind it, who leaves both out root
	p := Policy{Dirs: []string{filepath.Join(root, "src")}, Ceiling: "workspace-write"}
	for _, row := range []struct {
		name, message string
		want          error
	}{
		{"hello", `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"switchboard"},"capabilities":{}}}`, nil},
		{"a list", `{"id":1,"method":"thread/list","params":{"limit":100,"sortKey":"recency_at"}}`, nil},
		{"a request of a trace", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"` + aSpan + `"}}`, nil},
		{"more than a trace", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"` + aSpan + `","cwd":"/"}}`, errMethod},
		{"a trace that is none", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"x"}}`, errMethod},
		{"a file", `{"id":1,"method":"fs/readFile","params":{"path":"/etc/passwd"}}`, errMethod},
		{"settings", `{"id":1,"method":"config/value/write","params":{}}`, errMethod},
		{"a method in capitals", `{"id":1,"method":"Thread/List","params":{}}`, errMethod},
		{"no JSON", `{`, errMethod},
		{"a parameter more", `{"id":1,"method":"thread/start","params":{"config":{"sandbox_mode":"danger-full-access"}}}`, errMethod},
		{"an unknown sandbox", `{"id":1,"method":"thread/start","params":{"sandbox":"none"}}`, errLooser},
		{"a sandbox", `{"id":1,"method":"thread/start","params":{"sandbox":"workspace-write"}}`, nil},
		{"a directory", `{"id":1,"method":"thread/start","params":{"cwd":"` + inside + `"}}`, nil},
		{"another directory", `{"id":1,"method":"thread/start","params":{"cwd":"` + outside + `"}}`, errElsewhere},
		{"a way out", `{"id":1,"method":"thread/start","params":{"cwd":"` + root + `/src/way-out"}}`, errElsewhere},
		{"dots", `{"id":1,"method":"thread/start","params":{"cwd":"` + root + `/src/../secret"}}`, errElsewhere},
		{"dots after a link", `{"id":1,"method":"thread/start","params":{"cwd":"` + root + `/into/.."}}`, errElsewhere},
		{"a relative directory", `{"id":1,"method":"thread/start","params":{"cwd":"src"}}`, errElsewhere},
		{"no session", `{"id":1,"method":"turn/start","params":{"threadId":"nobody","input":[]}}`, errUnknown},
		{"a session", `{"id":1,"method":"turn/start","params":{"threadId":"good","input":[{"type":"text","text":"x"}]}}`, nil},
		{"a session that is looser", `{"id":1,"method":"turn/start","params":{"threadId":"loose","input":[]}}`, errLooser},
		{"a session of an unknown sandbox", `{"id":1,"method":"turn/start","params":{"threadId":"odd","input":[]}}`, errLooser},
		{"a session elsewhere", `{"id":1,"method":"turn/start","params":{"threadId":"away","input":[]}}`, errElsewhere},
		{"words into one", `{"id":1,"method":"turn/steer","params":{"threadId":"loose","input":[]}}`, errLooser},
		{"a stop", `{"id":1,"method":"turn/interrupt","params":{"threadId":"loose","turnId":"1"}}`, nil},
		{"a looser turn", `{"id":1,"method":"turn/start","params":{"threadId":"good","input":[],"sandboxPolicy":{"type":"dangerFullAccess"}}}`, errMethod},
		{"a name", `{"id":1,"method":"thread/name/set","params":{"threadId":"good","name":"auth"}}`, nil},
		{"a name of a session elsewhere", `{"id":1,"method":"thread/name/set","params":{"threadId":"away","name":"auth"}}`, errElsewhere},
		{"a yes for good", `{"id":1,"result":{"decision":"acceptForSession"}}`, errNoAnswers},
		{"an answer", `{"id":1,"result":{"answers":{"a":{"answers":["yes"]}}}}`, errNoAnswers},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(p)
			g.opens(t, "good", inside, "workspaceWrite")
			g.opens(t, "loose", inside, "dangerFullAccess")
			g.opens(t, "odd", inside, "externalSandbox")
			g.opens(t, "away", outside, "readOnly")
			_, err := g.fromService([]byte(row.message))
			if !errors.Is(err, row.want) || err != nil && row.want == nil {
				t.Errorf("%v, want %v", err, row.want)
			}
		})
	}
	open := newGate(Policy{Answers: true})
	open.opens(t, "any", outside, "dangerFullAccess")
	open.fromAgent([]byte(`{"id":1,"method":"` + askCommand + `","params":{}}`))
	for _, message := range []string{
		`{"id":1,"method":"turn/start","params":{"threadId":"any","input":[]}}`, `{"id":1,"result":{"decision":"accept"}}`,
	} {
		if _, err := open.fromService([]byte(message)); err != nil {
			t.Errorf("without bounds: %s: %v", message, err)
		}
	}
}

// TestGateBetween: an app-server behind a gate gets only messages that may pass, the service gets errors for the
// others, and long messages pass.
func TestGateBetween(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	far, near := net.Pipe()
	go serveOne(far, func(agent *websocket.Conn) {
		defer close(seen)
		for {
			_, data, err := agent.ReadMessage()
			if err != nil {
				return
			}
			seen <- string(data)
			long := fmt.Sprintf(`{"id":2,"result":{"text":%q}}`, strings.Repeat("x", 1<<20))
			if agent.WriteMessage(websocket.TextMessage, []byte(long)) != nil {
				return
			}
		}
	})
	conn := gated(near, newGate(Policy{}))
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return conn, nil }}
	service, _, err := dialer.DialContext(t.Context(), "ws://localhost/", nil)
	must(t, err)
	say := func(message string) { must(t, service.WriteMessage(websocket.TextMessage, []byte(message))) }
	say(`{"id":1,"method":"command/exec","params":{}}`)
	var refused struct {
		ID    int
		Error struct{ Message string }
	}
	_, data, err := service.ReadMessage()
	must(t, err)
	if err := json.Unmarshal(data, &refused); err != nil || refused.ID != 1 || refused.Error.Message != errMethod.Error() {
		t.Errorf("told %s, %v", data, err)
	}
	say(`{"id":2,"method":"thread/list","params":{}}`)
	if _, data, err = service.ReadMessage(); err != nil || len(data) < 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if first := <-seen; !strings.Contains(first, "thread/list") {
		t.Errorf("the app-server saw %s", first)
	}
	say(`{"id":9,"result":{"decision":"accept"}}`)
	if second := <-seen; !strings.Contains(second, `"decline"`) {
		t.Errorf("the app-server saw %s", second)
	}
	must(t, service.Close())
	for range seen { // until its end
	}
}
