package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

var rewrite = flag.Bool("update", false, "write the golden record anew")

// A recording has the messages between a client and a real agent. The wire plays the agent's side of one prompt (or of
// one load): the messages after one of the client come when we have sent one of the same kind.
type recording struct {
	t       *testing.T
	steps   []step
	session string
	load    bool // it is of a load, and has no prompt

	mu      sync.Mutex
	ids     map[string]json.RawMessage // Guarded by mu: ours, by those recorded
	seen    []string                   // Guarded by mu: answers to requests of the agent
	answers map[string]int             // Guarded by mu: how many, by the id of the request
	at      int                        // Guarded by mu: the next step
	lines   chan []byte
	ended   chan struct{}
	once    sync.Once
}

type step struct {
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
	m   jsonrpc.Message
}

func (s *step) ours() bool { return s.Dir == "->" }

// record reads a recording from its first prompt or load on.
func record(t *testing.T, name string) *recording {
	text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	must(t, err)
	r := &recording{t: t, ids: map[string]json.RawMessage{}, answers: map[string]int{}, lines: make(chan []byte, 1024),
		ended: make(chan struct{})}
	for line := range bytes.Lines(text) {
		var s step
		if json.Unmarshal(line, &s) != nil || json.Unmarshal(s.Msg, &s.m) != nil {
			t.Fatalf("%s: %s", name, line)
		}
		if len(r.steps) == 0 && (!s.ours() || s.m.Method != doPrompt && s.m.Method != doLoad) {
			continue
		}
		if r.session == "" {
			var p sessionParams
			if json.Unmarshal(s.m.Params, &p) == nil {
				r.session = p.Session
			}
			r.load = s.m.Method == doLoad
		}
		r.steps = append(r.steps, s)
	}
	return r
}

func (*recording) Check(servers.Report, servers.Files)                       {}
func (*recording) Describe(s *servers.Spec)                                  { s.EndsWithUs = true }
func (r *recording) Open(context.Context, servers.End) (servers.Wire, error) { return r, nil }

func (r *recording) Read() ([]byte, error) {
	select {
	case line := <-r.lines:
		return line, nil
	default:
	}
	select {
	case line := <-r.lines:
		return line, nil
	case <-r.ended:
		return nil, io.EOF
	}
}

func (r *recording) Close() error {
	r.once.Do(func() { close(r.ended) })
	return nil
}

// Write takes a message of ours. It answers initialize and session/new itself; the other answers are recorded.
func (r *recording) Write(frame []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m jsonrpc.Message
	if err := json.Unmarshal(frame, &m); err != nil {
		return err
	}
	switch m.Method {
	case doInitialize:
		r.say(m.ID, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true}},`+
			`"_meta":{"steering":{"supported":true}}}`)
		return nil
	case doNew:
		r.say(m.ID, fmt.Sprintf(`{"sessionId":%q}`, r.session))
		return nil
	case "":
		if r.answers[string(m.ID)]++; r.answers[string(m.ID)] > 1 {
			r.t.Errorf("request %s was answered again: %s", m.ID, m.Result)
		}
		if !strings.Contains(string(m.Result), `"cancelled"`) { // that may come after the end
			r.seen = append(r.seen, string(m.Result))
		}
	}
	for i := r.at; i < len(r.steps); i++ { // what we do not do (a second prompt) is left out
		if s := r.steps[i]; s.ours() && s.m.Method == m.Method {
			r.ids[string(s.m.ID)] = m.ID
			r.at = i + 1
			r.play()
			return nil
		}
	}
	return nil
}

// play sends the agent's messages up to the next one of the client.
func (r *recording) play() {
	for ; r.at < len(r.steps) && !r.steps[r.at].ours(); r.at++ {
		s := r.steps[r.at]
		if s.m.Method != "" {
			r.lines <- s.Msg
			continue
		}
		var whole map[string]json.RawMessage
		if json.Unmarshal(s.Msg, &whole) != nil || r.ids[string(s.m.ID)] == nil {
			continue
		}
		whole["id"] = r.ids[string(s.m.ID)]
		line, _ := json.Marshal(whole) // it was read from JSON
		r.lines <- line
	}
}

func (r *recording) say(id json.RawMessage, result string) {
	r.lines <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// told returns a turn as text, without its deltas, and without the closing of questions, which has no fixed place.
func told(updates []handoff.Update) []string {
	var all []string
	for _, u := range updates {
		switch u := u.(type) {
		case handoff.ItemDone:
			line := fmt.Sprintf("%s %q", u.Item.Kind, u.Item.Text)
			if u.Item.Output != "" {
				line += fmt.Sprintf(" printed %q", u.Item.Output)
			}
			if u.Item.Exit != nil {
				line += fmt.Sprint(" exit ", *u.Item.Exit)
			}
			if u.Item.Failed {
				line += " failed"
			}
			all = append(all, line)
		case handoff.ItemDropped:
			all = append(all, "dropped")
		case handoff.Question:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %q", u.Kind, u.Text, u.Command, u.Decisions)))
		case handoff.Usage:
			all = append(all, fmt.Sprintf("used %d %d", u.Input, u.Output))
		case handoff.TurnEnded:
			all = append(all, strings.TrimSpace(fmt.Sprintf("end %s %q %s %s",
				[]string{"completed", "failed", "interrupted"}[u.Status], u.Text, u.Code, handoff.ClipRunes(u.Detail, 40))))
		}
	}
	return all
}

// recordedAnswers are the client's answers to a question, by the end of a recording's name. Set once.
var recordedAnswers = map[string]func(context.Context, *agent, handoff.Question) error{
	"allow":             deciding(handoff.DecisionAccept),
	"reject":            deciding(handoff.DecisionDecline),
	"cancel-permission": func(ctx context.Context, a *agent, q handoff.Question) error { return a.Interrupt(ctx, q.Turn) },
	"question": func(ctx context.Context, a *agent, q handoff.Question) error {
		answers, err := q.Read(handoff.Reply{Words: "tabs"})
		if err == nil {
			err = a.Reply(ctx, q.ID, answers)
		}
		return err
	},
	"background":  deciding(handoff.DecisionAccept),
	"cancel-tool": deciding(handoff.DecisionAccept),
}

func deciding(d handoff.Decision) func(context.Context, *agent, handoff.Question) error {
	return func(ctx context.Context, a *agent, q handoff.Question) error { return a.Decide(ctx, q.ID, d) }
}

// TestRecorded: the messages of real agents are reported correctly.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		r := record(t, name)
		got = append(got, "-- "+name+" --")
		link := linkTo(t, Dialer(Config{Name: "mac", Way: r, Approval: "never", Cwd: "/", Rest: 1}))
		if r.load {
			a := attach(t, link, r.session)
			lines, _ := a.Agent.(*agent).session.history.lines(20)
			for _, line := range lines {
				got = append(got, fmt.Sprintf("%s %q", line.Role, line.Text))
			}
			continue
		}
		a, err := link.Conn.Create(t.Context(), "")
		must(t, err)
		id, err := a.Agent.Start(t.Context(), handoff.Turn{ID: "t", Input: handoff.TextInput("recorded")})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all []handoff.Update
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for u, err := range a.Agent.Follow(ctx, id) {
			if err != nil {
				t.Errorf("%s: %v after %q", name, err, told(all))
				break
			}
			all = append(all, u)
			r.act(a, u, name)
		}
		cancel()
		got = append(got, told(all)...)
		r.mu.Lock()
		for _, answer := range r.seen {
			got = append(got, "answered "+answer)
		}
		r.mu.Unlock()
	}
	golden, err := os.ReadFile("testdata/told.txt")
	text := strings.Join(got, "\n") + "\n"
	if *rewrite {
		err, golden = os.WriteFile("testdata/told.txt", []byte(text), 0o600), []byte(text)
	}
	must(t, err)
	if diff := cmp.Diff(string(golden), text); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// act does what the recorded client did.
func (r *recording) act(a handoff.Attached, u handoff.Update, name string) {
	who := a.Agent.(*agent)
	ctx := r.t.Context()
	switch u := u.(type) {
	case handoff.Question:
		for kind, do := range recordedAnswers {
			if strings.HasSuffix(name, "-"+kind) {
				must(r.t, do(ctx, who, u))
			}
		}
	case handoff.QuestionClosed:
		switch {
		case strings.HasSuffix(name, "-background"):
			must(r.t, who.Steer(ctx, "t", handoff.TextInput("more")))
		case strings.HasSuffix(name, "-cancel-tool"):
			must(r.t, who.Interrupt(ctx, "t"))
		}
	case handoff.Delta:
		if strings.HasSuffix(name, "-steer") && strings.HasPrefix(u.Text, "word0 ") && r.steers() {
			must(r.t, who.Steer(ctx, "t", handoff.TextInput("more")))
		}
	}
}

// steers reports true once.
func (r *recording) steers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, done := r.ids["steered"]
	r.ids["steered"] = nil
	return !done
}
