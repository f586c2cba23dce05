package codex

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A line is one frame of a recorded transcript. Transcripts were recorded from codex 0.169.0 and have only
// the frames that a client with our notification opt-outs sees.
type line struct {
	T    float64         `json:"t"` // ms
	Conn string          `json:"conn"`
	Dir  string          `json:"dir"` // ">" from the client, "<" from the server
	Msg  json.RawMessage `json:"msg"`
}

func readTranscript(t testing.TB, name string) []line {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	must(t, err)
	defer file.Close()
	var lines []line
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		must(t, json.Unmarshal(scanner.Bytes(), &l))
		if l.Dir == ">" || l.Dir == "<" {
			lines = append(lines, l)
		}
	}
	if err := scanner.Err(); err != nil || len(lines) == 0 {
		t.Fatalf("%s: %d lines, %v", name, len(lines), err)
	}
	return lines
}

// TestReplay plays recorded servers against the client: the client sends the recorded client's requests, and gets the
// recorded server's messages, at their times. The golden files have the results.
func TestReplay(t *testing.T) {
	for name, conns := range map[string]string{
		"a-basic-ws":              "A",
		"c-resume-subscribe":      "A B",
		"d-steer-interrupt":       "A",
		"d2-steer-midstream":      "A",
		"f-approvals":             "A C D",
		"g-fork-queue":            "A",
		"k-drop-midturn":          "A B C E F",
		"k2-resume-race":          "B0 B1 B7 B9",
		"r-userinput-perms-mcp":   "A",
		"s-subagents":             "A",
		"y-interrupted-ambiguity": "A",
	} {
		for conn := range strings.FieldsSeq(conns) {
			t.Run(name+"/"+conn, func(t *testing.T) {
				lines := slices.DeleteFunc(readTranscript(t, name), func(l line) bool { return l.Conn != conn })
				var got string
				synctest.Test(t, func(t *testing.T) { got = replay(t, lines) })
				golden := filepath.Join("testdata", name+"-"+conn+".golden")
				if *update {
					must(t, os.WriteFile(golden, []byte(got), 0o666))
				}
				want, err := os.ReadFile(golden)
				must(t, err)
				if diff := gocmp.Diff(string(want), got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
	}
}

// A player plays one connection of a transcript.
type player struct {
	t        *testing.T
	fake     *fake
	link     *servers.Link
	asked    []*asked                   // recorded requests, in order
	answers  map[string]json.RawMessage // recorded responses, by recorded id
	lastPage json.RawMessage            // the newest list of turns that was recorded

	mu     sync.Mutex
	rests  int                      // Guarded by mu: how often all goroutines were blocked before a line was logged
	log    []logged                 // Guarded by mu
	agents map[string]handoff.Agent // Guarded by mu: by thread
	turns  []*followed              // Guarded by mu
}

// A logged line is the result of a call. Calls that return at the same instant log their lines in any order: these are
// sorted in the order of the calls.
type logged struct {
	at          time.Time
	rest, asked int
	text        string
}

func (l logged) compare(o logged) int {
	return cmp.Or(l.at.Compare(o.at), cmp.Compare(l.rest, o.rest), cmp.Compare(l.asked, o.asked))
}

// asked is a recorded request and the frame of ours that stands for it.
type asked struct {
	id, method string
	frame      *sent         // ours, once it came
	done       chan struct{} // closed when the client's call returned
}

type followed struct {
	turn  handoff.TurnID
	agent handoff.Agent
	*recorder
}

func replay(t *testing.T, lines []line) string {
	f, link := startFake(t, Config{})
	p := &player{
		t: t, fake: f, link: link,
		answers: map[string]json.RawMessage{}, agents: map[string]handoff.Agent{},
	}
	last := lines[0].T
	for _, l := range lines {
		time.Sleep(time.Duration((l.T - last) * float64(time.Millisecond)))
		last = l.T
		p.serve()
		var m jsonrpc.Message
		if err := json.Unmarshal(l.Msg, &m); err != nil {
			continue // recorded on purpose: not a message
		}
		if l.Dir == ">" {
			p.ask(m, l.Msg)
		} else {
			p.say(m, l.Msg)
		}
		p.serve()
	}
	sleep(5 * time.Second)
	p.serve()
	f.close()
	for _, a := range p.asked {
		<-a.done
	}
	synctest.Wait()
	return p.told()
}

// told returns all results, with short names for the ids.
func (p *player) told() string {
	names := &namer{known: map[string]string{}}
	slices.SortStableFunc(p.log, logged.compare)
	slices.SortFunc(p.turns, func(a, b *followed) int { return cmp.Compare(a.turn, b.turn) }) // as they were made
	var out strings.Builder
	for _, l := range p.log {
		fmt.Fprintln(&out, names.replace(l.text))
	}
	for _, turn := range p.turns {
		<-turn.done
		fmt.Fprintf(&out, "\n%s\n", names.name(string(turn.turn)))
		for _, l := range turn.lines() {
			fmt.Fprintln(&out, "  "+names.replace(l))
		}
	}
	return out.String()
}

// ask does through the client what the recorded client did.
func (p *player) ask(m jsonrpc.Message, raw json.RawMessage) {
	op := p.operation(m, raw)
	if op == nil {
		return
	}
	a := &asked{id: string(m.ID), method: m.Method, done: make(chan struct{})}
	p.asked = append(p.asked, a)
	nth := len(p.asked)
	go func() {
		defer close(a.done)
		p.logAs(nth, op())
	}()
	synctest.Wait()
}

// logAs logs the result of the nth request.
func (p *player) logAs(nth int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, logged{time.Now(), p.rests, nth, text})
}

// logRest logs what the player itself does, while all goroutines are blocked.
func (p *player) logRest(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rests++
	p.log = append(p.log, logged{time.Now(), p.rests, 0, text})
}

func outcome(what string, err error) string {
	if err != nil {
		e := handoff.AsError(err)
		return fmt.Sprintf("%s: %s (%s)", what, e.Code, handoff.ClipRunes(e.Detail, 70))
	}
	return what
}

// operation returns the call that stands for a recorded request, or nil when the client has none.
func (p *player) operation(m jsonrpc.Message, raw json.RawMessage) func() string {
	ctx := p.t.Context()
	var params struct {
		ThreadID            string
		TurnID              string
		ExpectedTurnID      string
		LastTurnID          string
		Cwd                 string
		ClientUserMessageID string
		Input               []userInput
	}
	_ = json.Unmarshal(m.Params, &params)
	p.mu.Lock()
	agent := p.agents[params.ThreadID]
	p.mu.Unlock()
	var text string
	if len(params.Input) > 0 {
		text = params.Input[0].Text
	}
	switch {
	case m.Method == "thread/start":
		return func() string {
			at, err := p.link.Conn.Create(ctx, params.Cwd)
			return p.attached("create", at, err)
		}
	case m.Method == "thread/resume":
		return func() string {
			at, err := p.link.Conn.Attach(ctx, params.ThreadID)
			return p.attached("attach", at, err)
		}
	case m.Method == "thread/fork":
		return func() string {
			at, err := p.link.Conn.(servers.Forker).Fork(ctx, params.ThreadID, handoff.TurnID(params.LastTurnID))
			return p.attached("fork", at, err)
		}
	case m.Method == "" && m.Result != nil:
		return func() string { return p.decide(m) }
	case agent == nil:
		return nil
	case m.Method == "turn/start":
		return func() string {
			id, err := agent.Start(ctx, handoff.Turn{ID: params.ClientUserMessageID, Input: handoff.TextInput(text)})
			if err != nil {
				return outcome("start", err)
			}
			p.follow(agent, id)
			return "start " + string(id)
		}
	case m.Method == "turn/steer":
		return func() string {
			return outcome("steer",
				agent.(handoff.Controls).Steer(ctx, handoff.TurnID(params.ExpectedTurnID), handoff.TextInput(text)))
		}
	case m.Method == "turn/interrupt":
		return func() string {
			return outcome("interrupt", agent.(handoff.Controls).Interrupt(ctx, handoff.TurnID(params.TurnID)))
		}
	case m.Method == "thread/unsubscribe":
		p.mu.Lock()
		delete(p.agents, params.ThreadID)
		p.mu.Unlock()
		return func() string { return outcome("close", agent.Close()) }
	}
	return nil
}

func (p *player) attached(what string, at handoff.Attached, err error) string {
	if err != nil {
		return outcome(what, err)
	}
	p.mu.Lock()
	p.agents[at.Target.Thread] = at.Agent
	p.mu.Unlock()
	if at.Running != "" {
		p.follow(at.Agent, at.Running)
	}
	return fmt.Sprintf("%s %s running %q newest %q", what, at.Target.Thread, at.Running, at.Newest)
}

func (p *player) follow(agent handoff.Agent, turn handoff.TurnID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.turns, func(f *followed) bool { return f.turn == turn }) {
		return
	}
	p.turns = append(p.turns, &followed{turn, agent, record(p.t.Context(), agent, turn)})
}

// decide answers the open question that the recorded client answered, with the same decision if it is offered, or else
// with a no.
func (p *player) decide(m jsonrpc.Message) string {
	var recorded struct{ Decision, Action, Scope string }
	_ = json.Unmarshal(m.Result, &recorded)
	decision := map[string]handoff.Decision{
		"accept": handoff.DecisionAccept, "acceptForSession": handoff.DecisionAcceptForSession,
		"decline": handoff.DecisionDecline, "cancel": handoff.DecisionStop, "turn": handoff.DecisionAccept,
	}[recorded.Decision+recorded.Action+recorded.Scope]
	p.mu.Lock()
	turns := slices.Clone(p.turns)
	p.mu.Unlock()
	for _, turn := range turns {
		turn.mu.Lock()
		got := slices.Clone(turn.got)
		turn.mu.Unlock()
		for _, u := range got {
			q, ok := u.(handoff.Question)
			if !ok || lastPart(q.ID) != string(m.ID) {
				continue
			}
			if !slices.Contains(q.Decisions, decision) {
				decision = handoff.DecisionDecline
			}
			controls := turn.agent.(handoff.Controls)
			return outcome(fmt.Sprintf("decide %s %s", m.ID, decision), controls.Decide(p.t.Context(), q.ID, decision))
		}
	}
	return fmt.Sprintf("decide %s: not asked", m.ID)
}

// say sends a message of the recorded server.
func (p *player) say(m jsonrpc.Message, raw json.RawMessage) {
	if m.Method != "" {
		p.fake.say("%s", raw)
		return
	}
	var result struct {
		Data             json.RawMessage
		InitialTurnsPage json.RawMessage
	}
	if json.Unmarshal(m.Result, &result) == nil && string(result.Data) != "" {
		p.lastPage = m.Result
	} else if page := result.InitialTurnsPage; len(page) > 0 && string(page) != "null" {
		p.lastPage = page
	}
	p.answers[string(m.ID)] = raw
	for _, a := range p.asked {
		if a.id == string(m.ID) && a.frame != nil {
			p.answer(a, raw)
		}
	}
}

// answer sends a recorded response with the id of our request.
func (p *player) answer(a *asked, raw json.RawMessage) {
	var m map[string]json.RawMessage
	must(p.t, json.Unmarshal(raw, &m))
	m["id"] = a.frame.ID
	b, err := json.Marshal(m)
	must(p.t, err)
	p.fake.say("%s", b)
}

// serve answers frames of the client: those that stand for a recorded request get its response, if that has come;
// others are answered from the newest list of turns.
func (p *player) serve() {
	for _, frame := range p.fake.take() {
		if a := p.expected(frame.Method); a != nil {
			a.frame = &frame
			if raw, said := p.answers[a.id]; said {
				p.answer(a, raw)
			}
			continue
		}
		switch {
		case frame.Method == "": // an answer to a question
		case frame.Method == "thread/turns/list" && p.lastPage != nil:
			p.logRest("(" + frame.Method + ")")
			p.fake.reply(frame, string(p.lastPage))
		case frame.Method == "thread/unsubscribe":
			p.fake.reply(frame, `{"status":"unsubscribed"}`)
		default:
			p.logRest("(" + frame.Method + " refused)")
			p.fake.refuse(frame, -32600, "not in the transcript")
		}
		synctest.Wait()
	}
	synctest.Wait()
}

// expected returns the recorded request that a frame stands for: the first of its method that is not done and has no
// frame.
func (p *player) expected(method string) *asked {
	for _, a := range p.asked {
		select {
		case <-a.done:
			continue
		default:
		}
		if a.method == method && a.frame == nil {
			return a
		}
	}
	return nil
}

// A namer gives ids short names in the order they appear.
type namer struct{ known map[string]string }

func (n *namer) name(id string) string {
	if n.known[id] == "" {
		n.known[id] = fmt.Sprintf("id%d", len(n.known)+1)
	}
	return n.known[id]
}

// replace names all ids in a text.
func (n *namer) replace(text string) string {
	const sample = "01a1fad6-4251-7f03-9342-b774b1666951"
	for i := 0; i+len(sample) <= len(text); i++ {
		id := text[i : i+len(sample)]
		if strings.HasPrefix(id, "01a1f") && id[8] == '-' && id[13] == '-' {
			text = text[:i] + n.name(id) + text[i+len(sample):]
		}
	}
	return text
}
