package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/servers/acp"
	"switchboard/servers/codex"
)

const kindCodex, kindACP = codex.Name, acp.Name

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// aSpan is one of W3C trace context.
const aSpan = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// codexGate returns the gate of an app-server.
func codexGate(p Policy) *gate { return newGate(p, Setting{Kind: kindCodex}) }

// acpGate returns the gate of an agent of kind acp that has a session "s" in a directory, in a mode that asks.
func acpGate(p Policy, dir string) *gate {
	g := newGate(p, Setting{Kind: kindACP})
	g.sessions.all["s"] = place{cwd: dir, away: p.mayBeIn(dir), mode: "default"}
	return g
}

// opens lets a gate see that a session was opened.
func (g *gate) opens(t *testing.T, thread, cwd, sandbox string) {
	t.Helper()
	_, err := g.fromService([]byte(`{"id":7,"method":"thread/resume","params":{"threadId":"x"}}`))
	must(t, err)
	g.fromAgent(fmt.Appendf(nil, `{"id":7,"result":{"thread":{"id":%q},"cwd":%q,"sandbox":{"type":%q}}}`, thread, cwd, sandbox))
}

// hears returns what the service gets of a message of the agent.
func (g *gate) hears(message string) string {
	passes, _ := g.fromAgent([]byte(message))
	return string(passes)
}

// TestGateKnowsTheClient: all methods that the service calls pass. Without this test, a missing one would fail only on
// machines that joined.
func TestGateKnowsTheClient(t *testing.T) {
	t.Parallel()
	for kind, row := range map[string]struct{ file, method string }{
		kindCodex: {"../../codex/client.go", `"((?:thread|turn|account)/[A-Za-z/]+)"`},
		kindACP:   {"../../acp/protocol.go", `\sdo[A-Za-z]+ += "([a-z_/]+)"`},
	} {
		text, err := os.ReadFile(row.file)
		must(t, err)
		called := regexp.MustCompile(row.method).FindAllStringSubmatch(string(text), -1)
		if len(called) < 10 {
			t.Fatalf("the client calls %q", called)
		}
		for _, one := range called {
			if _, passes := calls[kind][one[1]]; !passes {
				t.Errorf("%s does not pass", one[1])
			}
		}
	}
}

// as stands for a message that passes as it was sent.
const as = "as it was sent"

// A judged is a message of the service, and what a gate makes of it.
type judged struct {
	name, sent string
	passes     string // what reaches the agent; "": nothing does
	why        error  // nil with "": any
}

// TestGateOfCodex: only methods that give, follow and stop work reach an app-server, with the listed parameters, within
// the policy. The app-server gets exactly what was judged: Go's decoder ignores the case of field names and takes the
// last of several fields; an app-server may take another one.
func TestGateOfCodex(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	inside, outside := filepath.Join(root, "src", "api"), filepath.Join(root, "secret")
	must(t, os.MkdirAll(inside, 0o700))
	must(t, os.MkdirAll(outside, 0o700))
	must(t, os.Symlink(outside, filepath.Join(root, "src", "way-out")))
	must(t, os.Symlink(inside, filepath.Join(root, "into"))) // the system finds src behind it, who leaves both out root
	start := func(params string) string { return `{"id":1,"method":"thread/start","params":` + params + `}` }
	in := func(cwd string) string { return start(`{"cwd":"` + cwd + `","sandbox":"read-only"}`) }
	turn := func(params string) string { return `{"id":1,"method":"turn/start","params":{` + params + `}}` }
	goal := func(params string) string { return `{"id":1,"method":"thread/goal/set","params":{` + params + `}}` }
	for _, row := range []judged{
		{"hello", `{"id":1,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"switchboard"}}}`, as, nil},
		{"a list", `{"id":1,"method":"thread/list","params":{"limit":100,"sortKey":"recency_at"}}`, as, nil},
		{"a request of a trace", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"` + aSpan + `"}}`, as, nil},
		{"more than a trace", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"` + aSpan + `","cwd":"/"}}`, "", errMethod},
		{"a trace that is none", `{"id":1,"method":"thread/list","params":{},"trace":{"traceparent":"x"}}`, "", errMethod},
		{"a file", `{"id":1,"method":"fs/readFile","params":{"path":"/etc/passwd"}}`, "", errMethod},
		{"settings", `{"id":1,"method":"config/value/write","params":{}}`, "", errMethod},
		{"a method in capitals", `{"id":1,"method":"Thread/List","params":{}}`, "", errMethod},
		{"no JSON", `{`, "", errMethod},
		{"many messages in one", `[{"id":1,"method":"initialized"}]`, "", errMethod},
		{"a command", `{"id":1,"method":"command/exec","params":{"command":["id"]}}`, "", errMethod},
		{"a command under another method",
			`{"id":1,"method":"command/exec","params":{"command":["id"]},"METHOD":"initialized","PARAMS":{}}`, "", errMethod},
		{"two methods", `{"id":1,"method":"command/exec","method":"initialized"}`, `{"id":1,"method":"initialized"}`, nil},
		{"a method and an answer", `{"id":4,"method":"thread/list","result":{"decision":"accept"}}`, "", errMethod},
		{"a parameter more", start(`{"config":{"sandbox_mode":"danger-full-access"}}`), "", errMethod},
		{"a parameter in other letters", start(`{"sandbox":"danger-full-access","SANDBOX":"read-only"}`), "", errMethod},
		{"two sandboxes", start(`{"sandbox":"danger-full-access","sandbox":"read-only"}`), start(`{"sandbox":"read-only"}`), nil},
		{"a sandbox", start(`{"sandbox":"workspace-write"}`), as, nil},
		{"no sandbox", start(`{}`), start(`{"sandbox":"workspace-write"}`), nil},
		{"an unknown sandbox", start(`{"sandbox":"none"}`), "", errLooser},
		{"a looser sandbox", start(`{"sandbox":"danger-full-access"}`), "", errLooser},
		{"a sandbox that is no text", start(`{"sandbox":{"type":"x"}}`), "", errMethod},
		{"a directory", in(inside), as, nil},
		{"another directory", in(outside), "", errElsewhere},
		{"a way out", in(root + `/src/way-out`), "", errElsewhere},
		{"dots", in(root + `/src/../secret`), "", errElsewhere},
		{"dots after a link", in(root + `/into/..`), "", errElsewhere},
		{"a relative directory", in("src"), "", errElsewhere},
		{"a directory that is no text", start(`{"cwd":["/"]}`), "", errMethod},
		{"work", turn(`"input":[{"text":"a < b","type":"text"}],"threadId":"may"`),
			turn(`"input":[{"text":"a \u003c b","type":"text"}],"threadId":"may"`), nil},
		{"work in no session", turn(`"input":[]`), "", errUnknown},
		{"work with no parameters", `{"id":1,"method":"turn/start"}`, "", errUnknown},
		{"work with parameters that are nothing", `{"id":1,"method":"turn/start","params":null}`, "", errUnknown},
		{"work in a session that is not open", turn(`"threadId":"nobody","input":[]`), "", errUnknown},
		{"work in a session that is looser", turn(`"threadId":"loose","input":[]`), "", errLooser},
		{"work in a session of an unknown sandbox", turn(`"threadId":"odd","input":[]`), "", errLooser},
		{"work in a session elsewhere", turn(`"threadId":"away","input":[]`), "", errElsewhere},
		{"words into one", `{"id":1,"method":"turn/steer","params":{"threadId":"loose","input":[]}}`, "", errLooser},
		{"a looser turn", turn(`"threadId":"may","input":[],"sandboxPolicy":{"type":"dangerFullAccess"}`), "", errMethod},
		{"a file for input", turn(`"threadId":"may","input":[{"type":"localImage","path":"/k"}]`), "", errMethod},
		{"a file under another type", turn(`"threadId":"may","input":[{"type":"localImage","path":"/k","TYPE":"text"}]`), "", errMethod},
		{"two types", turn(`"threadId":"may","input":[{"type":"localImage","type":"text"}]`),
			turn(`"input":[{"type":"text"}],"threadId":"may"`), nil},
		{"a goal that is paused", `{"id":1,"method":"thread/goal/set","params":{"status":"paused","threadId":"loose"}}`, as, nil},
		{"a goal that is set", goal(`"objective":"o","origin":"user","status":"active","threadId":"may"`), as, nil},
		{"a goal in no words", goal(`"status":"active","threadId":"may"`), "", errMethod},
		{"a goal that is no text", goal(`"objective":{"a":1},"status":"active","threadId":"may"`), "", errMethod},
		{"a goal with a budget", goal(`"objective":"o","status":"active","threadId":"may","tokenBudget":1`), "", errMethod},
		{"a goal that is reached", goal(`"objective":"o","status":"complete","threadId":"may"`), "", errMethod},
		{"other words for a goal that is paused", goal(`"objective":"o","status":"paused","threadId":"may"`), "", errMethod},
		{"a goal of a session that is looser", goal(`"objective":"o","status":"active","threadId":"loose"`), "", errLooser},
		{"a goal of a session that is not open", goal(`"objective":"o","status":"active","threadId":"nobody"`), "", errUnknown},
		{"a goal elsewhere", goal(`"objective":"o","status":"active","threadId":"away"`), "", errElsewhere},
		{"which goal it is", `{"id":1,"method":"thread/goal/get","params":{"threadId":"loose"}}`, as, nil},
		{"which goal it is elsewhere", `{"id":1,"method":"thread/goal/get","params":{"threadId":"away"}}`, "", errElsewhere},
		{"a stop", `{"id":1,"method":"turn/interrupt","params":{"threadId":"loose","turnId":"1"}}`, as, nil},
		{"a name", `{"id":1,"method":"thread/name/set","params":{"name":"auth","threadId":"may"}}`, as, nil},
		{"a name of a session elsewhere", `{"id":1,"method":"thread/name/set","params":{"threadId":"away","name":"auth"}}`, "", errElsewhere},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := codexGate(Policy{Dirs: []string{filepath.Join(root, "src")}, Ceiling: "workspace-write"})
			g.opens(t, "may", inside, "workspaceWrite")
			g.opens(t, "loose", inside, "dangerFullAccess")
			g.opens(t, "odd", inside, "externalSandbox")
			g.opens(t, "away", outside, "readOnly")
			g.judges(t, row)
		})
	}
	open := codexGate(Policy{Answers: true})
	open.opens(t, "any", outside, "dangerFullAccess")
	open.judges(t, judged{"without bounds", turn(`"input":[],"threadId":"any"`), as, nil})
	open.judges(t, judged{"without bounds, in a session that is not open", turn(`"input":[],"threadId":"nobody"`), "", errUnknown})
}

func (g *gate) judges(t *testing.T, row judged) {
	t.Helper()
	m, err := g.fromService([]byte(row.sent))
	want := row.passes
	if want == as {
		want = row.sent
	}
	if err == nil && string(m.passes) != want || err != nil && (want != "" || row.why != nil && !errors.Is(err, row.why)) {
		t.Errorf("%s: passes %s, %v, want %s, %v", row.name, m.passes, err, want, row.why)
	}
}

// TestGateOfACP: of the service's messages to an agent of kind acp, too, only the listed methods pass, as they were
// judged.
func TestGateOfACP(t *testing.T) {
	t.Parallel()
	prompt := func(params string) string { return `{"id":1,"method":"session/prompt","params":{` + params + `}}` }
	steer := func(meta string) string {
		return `{"id":1,"method":"_session/steering","params":{"_meta":` + meta + `,"prompt":[],"sessionId":"s"}}`
	}
	for _, row := range []judged{
		{"a session", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, as, nil},
		{"a prompt without an id", `{"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`, "", errMethod},
		{"a session with a program", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"command":"id"}]}}`, "", errMethod},
		{"a session with a program in other letters",
			`{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"MCPSERVERS":[{"command":"id"}]}}`, "", errMethod},
		{"a session with programs that are not named", `{"id":1,"method":"session/new","params":{"cwd":"/"}}`, "", errMethod},
		{"a session with options", `{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"_meta":{}}}`, "", errMethod},
		{"a looser mode", `{"id":1,"method":"session/set_mode","params":{"sessionId":"s","modeId":"auto"}}`, "", errLooser},
		{"a mode that asks", `{"id":1,"method":"session/set_mode","params":{"modeId":"default","sessionId":"s"}}`, as, nil},
		{"a setting", `{"id":1,"method":"session/set_config_option","params":{"sessionId":"s","configId":"model","value":"m"}}`, "", errMethod},
		{"work", prompt(`"prompt":[{"text":"t","type":"text"}],"sessionId":"s"`), as, nil},
		{"work of a trace", prompt(`"_meta":{"traceparent":"` + aSpan + `"},"prompt":[],"sessionId":"s"`), as, nil},
		{"work with options", prompt(`"sessionId":"s","prompt":[],"_meta":{"claudeCode":{}}`), "", errMethod},
		{"a trace of a message", `{"id":1,"method":"session/list","params":{},"trace":{"traceparent":"` + aSpan + `"}}`, "", errMethod},
		{"work with a file", prompt(`"sessionId":"s","prompt":[{"type":"resource_link","uri":"file:///k"}]`), "", errMethod},
		{"work with a file beside text", prompt(`"sessionId":"s","prompt":[{"type":"text","text":"t","uri":"file:///k"}]`), "", errMethod},
		{"work where the mode is not known", prompt(`"sessionId":"x","prompt":[]`), "", errLooser},
		{"work in no session", prompt(`"prompt":[]`), "", errLooser},
		{"a long id of a session", `{"id":1,"method":"session/close","params":{"sessionId":"` + strings.Repeat("s", maxKept+1) + `"}}`, "", errMethod},
		{"words for a turn", steer(steersIdle), as, nil},
		{"words for a turn, or else for a new one", steer(`{"steering":{"idleBehavior":"prompt Required"}}`), "", errMethod},
		{"words for none", steer(`{"steering":{}}`), "", errMethod},
		{"a key", `{"id":1,"method":"authenticate","params":{"methodId":"gateway"}}`, "", errMethod},
		{"that it is deleted", `{"id":1,"method":"session/delete","params":{"sessionId":"s"}}`, "", errMethod},
		{"an answer that nobody asked for", `{"id":7,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, "", errQuestion},
		{"many messages in one", `[{"id":1,"method":"session/list"}]`, "", errMethod},
	} {
		acpGate(Policy{Ceiling: "workspace-write", Answers: true}, "/").judges(t, row)
	}
	reads := acpGate(Policy{}, "/")
	reads.apart = true
	reads.judges(t, judged{"work on a connection that only reads", prompt(`"prompt":[],"sessionId":"s"`), "", errMethod})
}

// TestGateOfModes: no work begins in a session that is being opened, since its mode is not known. Modes on a connection
// that only reads are not those of the working process.
func TestGateOfModes(t *testing.T) {
	t.Parallel()
	const (
		load   = `{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`
		inAuto = `{"id":1,"result":{"modes":{"currentModeId":"auto"}}}`
	)
	works := acpGate(Policy{Ceiling: "workspace-write"}, "/")
	reads := acpGate(works.policy, "/")
	reads.apart, reads.sessions = true, works.sessions
	for _, step := range []struct {
		name, sent string
		by         *gate
		answer     string
		want       error // of work then
	}{
		{"nothing", "", nil, "", nil},
		{"reading", load, reads, "", nil},
		{"that it is read in another mode", "", reads, inAuto, nil},
		{"that another process changes", "", reads,
			`{"method":"session/update","params":{"sessionId":"s","update":{"currentModeId":"auto"}}}`, nil},
		{"opening", load, works, "", errLooser},
		{"that it is open in another mode", "", works, inAuto, errLooser},
	} {
		if step.sent != "" {
			_, err := step.by.fromService([]byte(step.sent))
			must(t, err)
		}
		if step.answer != "" {
			step.by.hears(step.answer)
		}
		prompt := []byte(`{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
		if _, err := works.fromService(prompt); err != step.want {
			t.Errorf("after %s: %v, want %v", step.name, err, step.want)
		}
		works.hears(`{"id":2,"result":{}}`)
	}
}

// TestGateOfPlaces: sessions in directories that are not allowed are not listed, read, followed or stopped.
func TestGateOfPlaces(t *testing.T) {
	t.Parallel()
	inside, outside := t.TempDir(), t.TempDir()
	g, ids := codexGate(Policy{Dirs: []string{inside}, Answers: true}), 10
	asks := func(id int, method, params string) error {
		_, err := g.fromService(fmt.Appendf(nil, `{"id":%d,"method":%q,"params":%s}`, id, method, params))
		return err
	}
	must(t, asks(1, "thread/list", `{"limit":9}`))
	list := fmt.Sprintf(`{"id":1,"result":{"data":[{"id":"in","cwd":%q},{"id":"out","cwd":%q}],"nextCursor":"c"}}`, inside, outside)
	if got := g.hears(list); strings.Contains(got, `"out"`) || !strings.Contains(got, `"in"`) || !strings.Contains(got, `"nextCursor":"c"`) {
		t.Errorf("listed %s", got)
	}
	for thread, want := range map[string]error{"in": nil, "out": errElsewhere, "nobody": errUnknown} {
		for _, method := range []string{"thread/turns/list", "thread/items/list", "thread/archive", "turn/interrupt"} {
			ids++
			if err := asks(ids, method, fmt.Sprintf(`{"threadId":%q}`, thread)); err != want {
				t.Errorf("%s of %s: %v, want %v", method, thread, err, want)
			}
		}
		for _, said := range []string{`{"method":"item/completed"`, `{"id":5,"method":"` + askCommand + `"`} {
			if heard := g.hears(said+fmt.Sprintf(`,"params":{"threadId":%q}}`, thread)) != ""; heard != (want == nil) {
				t.Errorf("%s in %s is heard: %v", said, thread, heard)
			}
		}
	}
	for _, method := range []string{"thread/read", "thread/resume"} {
		must(t, asks(3, method, `{"threadId":"`+method+`"}`))
		answer := fmt.Sprintf(`{"id":3,"result":{"thread":{"id":%q,"cwd":%q,"turns":["secret"]},"cwd":%[2]q}}`, method, outside)
		if got := g.hears(answer); strings.Contains(got, "secret") || !strings.Contains(got, errElsewhere.Error()) {
			t.Errorf("%s was answered %s", method, got)
		}
	}
	if g.hears(`{"method":"account/updated","params":{}}`) == "" {
		t.Error("what is of no session is not heard")
	}
}

// TestGateOfNumbers: an answer is judged by its request. Requests have numbers of which no two are one to the agent.
func TestGateOfNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, row := range []struct {
		g            *gate
		method, list string
	}{
		{codexGate(Policy{Dirs: []string{dir}}), "thread/list", `{"id":%s,"result":{"data":[{"id":"x","cwd":"/","name":"secret"}]}}`},
		{acpGate(Policy{Dirs: []string{dir}}, dir), "session/list", `{"id":%s,"result":{"sessions":[{"sessionId":"x","cwd":"/","title":"secret"}]}}`},
	} {
		for _, id := range []string{`"a"`, `"\u0061"`, `""`, "null", "1.0", "1e0", "-1", "9007199254740993", "{}"} {
			row.g.judges(t, judged{"the id " + id, `{"id":` + id + `,"method":"` + row.method + `","params":{}}`, "", errNumber})
		}
		_, err := row.g.fromService([]byte(`{"id":1,"method":"` + row.method + `","params":{}}`))
		must(t, err)
		if _, err := row.g.fromService([]byte(`{"id":1,"method":"initialize","params":{}}`)); err != errTwice {
			t.Errorf("a number that is in use: %v", err)
		}
		heard := 0
		for _, id := range []string{"1.0", `"1"`, "1", "1"} {
			got := row.g.hears(fmt.Sprintf(row.list, id))
			if heard += min(len(got), 1); strings.Contains(got, "secret") {
				t.Errorf("heard as %s: %s", id, got)
			}
		}
		if heard != 1 {
			t.Errorf("%d answers to one request", heard)
		}
	}
}

// Questions of agents.
const (
	command     = `"` + askCommand + `","params":{"threadId":"t","command":"make"}`
	files       = `"` + askFiles + `","params":{"threadId":"t","grantRoot":null}`
	below       = `"` + askFiles + `","params":{"threadId":"t","grantRoot":"/"}`
	permissions = `"` + askPermissions + `","params":{"threadId":"t","permissions":{"network":{"enabled":true}}}`
	input       = `"` + askInput + `","params":{"threadId":"t","questions":[{"id":"q","isOther":true}]}`
	choice      = `"` + askInput + `","params":{"threadId":"t","questions":[{"id":"mcp_tool_call_approval_1","isOther":false}]}`
	form        = `"` + askForm + `","params":{"threadId":"t"}`
	unknown     = `"item/other/requestApproval","params":{"threadId":"t"}`
	choose      = `"` + askOption + `","params":{"sessionId":"s","options":[{"optionId":"bypassPermissions","kind":"allow_always"},` +
		`{"optionId":"default","kind":"allow_once"},{"optionId":"plan","kind":"reject_once"},{"optionId":"*","kind":"reject_always"}]}`
	elicit = `"` + askElicit + `","params":{"sessionId":"s"}`
	bare   = `"` + askElicit + `","params":{"sessionId":"s","_meta":null}`
	empty  = `"` + askOption + `","params":null`
)

func chosen(option string) string {
	return `{"outcome":{"optionId":"` + option + `","outcome":"selected"}}`
}

// TestGateOfAnswers: of the answers to an agent's questions, those pass that the machine's owner allows, whatever the
// service says. Others become a no to the question. Where a yes may hold only once, one for good becomes that.
func TestGateOfAnswers(t *testing.T) {
	t.Parallel()
	all := []Policy{
		{Answers: true}, {Answers: true, Ceiling: "danger-full-access"}, {Answers: true, Ceiling: "workspace-write"},
		{Answers: true, Ceiling: "read-only"}, {Ceiling: "workspace-write"}, {},
	}
	nos := map[string]string{
		command: `{"decision":"decline"}`, files: `{"decision":"decline"}`, below: `{"decision":"decline"}`,
		permissions: `{"permissions":{},"scope":"turn"}`, input: `{"answers":{}}`, choice: `{"answers":{}}`,
		form: `{"action":"decline","content":null}`, choose: `{"outcome":{"outcome":"cancelled"}}`, elicit: `{"action":"cancel"}`,
		bare: `{"action":"cancel"}`, empty: `{"outcome":{"outcome":"cancelled"}}`,
	}
	for _, row := range []struct {
		name, asked, answer string
		passes              int    // under that many of the policies, the first ones
		once                string // under the third policy: what the answer becomes; "": a no
	}{
		{"a yes to a command", command, `{"decision":"accept"}`, 3, ""},
		{"a yes for the session", command, `{"decision":"acceptForSession"}`, 2, `{"decision":"accept"}`},
		{"a lasting yes", command, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["rm"]}}}`, 0, ""},
		{"a lasting yes to the network", command, `{"decision":{"applyNetworkPolicyAmendment":{"action":"allow"}}}`, 0, ""},
		{"a yes with something else", command, `{"decision":"accept","permissions":{}}`, 0, ""},
		{"a yes under a no within", command, `{"decision":"accept","DECISION":"decline"}`, 0, ""},
		{"a yes to a form beside a no", command, `{"decision":"decline","action":"accept"}`, 0, ""},
		{"rights beside a no", command, `{"decision":"decline","permissions":{"network":{}},"scope":"session"}`, 0, ""},
		{"answers beside a no", command, `{"decision":"decline","answers":{"q":{"answers":["yes"]}}}`, 0, ""},
		{"a no to a command", command, `{"decision":"decline"}`, 6, ""},
		{"a no that ends the turn", command, `{"decision":"cancel"}`, 6, ""},
		{"a yes to files", files, `{"decision":"accept"}`, 3, ""},
		{"a yes to files for the session", files, `{"decision":"acceptForSession"}`, 2, `{"decision":"accept"}`},
		{"a yes to all below a root", below, `{"decision":"accept"}`, 2, ""},
		{"no rights", permissions, `{"permissions":{},"scope":"turn"}`, 6, ""},
		{"rights", permissions, `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, 2, ""},
		{"rights everywhere", permissions, `{"permissions":{"fileSystem":{"write":["/"]}},"scope":"session"}`, 2, ""},
		{"no words", input, `{"answers":{}}`, 6, ""},
		{"words", input, `{"answers":{"q":{"answers":["the second one"]}}}`, 3, ""},
		{"a choice that approves a tool", choice, `{"answers":{"q":{"answers":["Allow and don't ask me again"]}}}`, 2, ""},
		{"a yes to a form", form, `{"action":"accept","content":{}}`, 3, ""},
		{"a lasting yes to a form", form, `{"_meta":{"persist":"always"},"action":"accept","content":{}}`, 0, ""},
		{"a filled form", form, `{"action":"accept","content":{"x":12345678901234567890}}`, 2, ""},
		{"a no to a form", form, `{"action":"decline","content":null}`, 6, ""},
		{"a yes to what is not known", unknown, `{"decision":"accept"}`, 0, ""},
		{"a yes to another kind of question", input, `{"decision":"accept"}`, 0, ""},
		{"a yes that is no object", command, `["accept"]`, 0, ""},
		{"an option", choose, chosen("default"), 3, ""},
		{"an option for good, which may loosen the mode", choose, chosen("bypassPermissions"), 2, chosen("default")},
		{"an option that is a no", choose, chosen("plan"), 6, ""},
		{"an option that was not offered", choose, chosen("auto"), 0, ""},
		{"an option with something else", choose, `{"_meta":{},"outcome":{"optionId":"plan","outcome":"selected"}}`, 0, ""},
		{"no option", choose, `{"outcome":{"outcome":"cancelled"}}`, 6, ""},
		{"words for an agent of kind acp", elicit, `{"action":"accept","content":{"x":"y"}}`, 3, ""},
		{"no words for it", elicit, `{"action":"decline"}`, 6, ""},
		{"words where a field is null", bare, `{"action":"accept","content":{"x":"y"}}`, 3, ""},
		{"no option where all is null", empty, `{"outcome":{"outcome":"cancelled"}}`, 6, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for i, policy := range all {
				g := codexGate(policy)
				if slices.Contains([]string{choose, elicit, bare, empty}, row.asked) {
					g = acpGate(policy, "/")
				}
				g.sessions.all["t"] = place{}
				got := g.hears(`{"id":7,"method":` + row.asked + `}`)
				method, _, _ := strings.Cut(row.asked, ",")
				if told := strings.Contains(got, `switchboard"`); !strings.Contains(got, method) || told != (i > 1 && row.asked != unknown) {
					t.Fatalf("%+v: the service got %s", policy, got)
				}
				want := nos[row.asked]
				if i < row.passes {
					want = row.answer
				} else if i == 2 && row.once != "" {
					want = row.once
				}
				m, err := g.fromService([]byte(`{"id":7,"result":` + row.answer + `}`))
				must(t, err)
				var is struct{ Result, Error json.RawMessage }
				must(t, json.Unmarshal(m.passes, &is))
				if string(is.Result) != want || (want == "") != (is.Error != nil) || m.id != nil {
					t.Errorf("%+v: the agent got %s, want %s", policy, m.passes, want)
				}
				again := []byte(`{"id":7,"result":` + row.answer + `}`) // a question is answered once
				if m, err := g.fromService(again); err != errQuestion || m.passes != nil {
					t.Errorf("%+v: after the answer the agent got %s, %v", policy, m.passes, err)
				}
			}
		})
	}
	g := codexGate(Policy{})
	g.hears(`{"id":4,"method":` + command + `}`)
	g.judges(t, judged{"a yes under a no", `{"id":4,"result":{"decision":"accept"},"RESULT":{"decision":"decline"}}`, "", errMethod})
	g.judges(t, judged{"an error", `{"error":{"code":1,"message":"m"},"id":4}`, as, nil})
}

// TestGateForgets: a request that the agent has withdrawn is no longer open. Beyond a bound, and where the service may
// not see the session, an agent that has no other client gets a no at once.
func TestGateForgets(t *testing.T) {
	t.Parallel()
	for withdrawn, g := range map[string]*gate{
		`{"method":"$/cancel_request","params":{"requestId":5}}`:                      acpGate(Policy{Answers: true}, "/"),
		`{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":5}}`: codexGate(Policy{Answers: true}),
	} {
		question := map[string]string{kindACP: elicit, kindCodex: command}[g.setting.Kind]
		for range 2 * maxWatched {
			if g.hears(`{"id":5,"method":`+question+`}`) == "" || g.hears(withdrawn) == "" {
				t.Fatal("it is not asked")
			}
		}
		if len(g.asked) != 0 {
			t.Errorf("%d wait", len(g.asked))
		}
		for id := range maxWatched {
			g.hears(fmt.Sprintf(`{"id":%d,"method":%s}`, id, question))
		}
		passes, answer := g.fromAgent([]byte(`{"id":"more","method":` + question + `}`))
		if passes != nil || !strings.Contains(string(answer), `"result"`) {
			t.Errorf("one more passes as %s, answered %s", passes, answer)
		}
	}
	g := acpGate(Policy{Answers: true, Dirs: []string{t.TempDir()}}, "/")
	if passes, answer := g.fromAgent([]byte(`{"id":5,"method":` + choose + `}`)); passes != nil || !strings.Contains(string(answer), "cancelled") {
		t.Errorf("of a session elsewhere: %s, %s", passes, answer)
	}
	if passes, answer := g.fromAgent([]byte(`{"id":5,"method":"fs/read_text_file","params":{}}`)); passes != nil || !strings.Contains(string(answer), "not offered") {
		t.Errorf("a file: %s, %s", passes, answer)
	}
}
