package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/handoff/risk"
	"switchboard/servers"
)

func (f *fake) ask(id int, method, turn, more string) {
	f.say(`{"id":%d,"method":%q,"params":{"threadId":%q,"turnId":%q%s}}`, id, method, thread1, turn, more)
}

const commandMore = `,"itemId":"c","command":"/bin/bash -lc 'rm x'","cwd":"/src","reason":"it is old","availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{}},"cancel"]`

// questionsOf returns the questions that a recorder saw.
func questionsOf(r *recorder) []handoff.Question {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var qs []handoff.Question
	for _, u := range r.got {
		if q, ok := u.(handoff.Question); ok {
			qs = append(qs, q)
		}
	}
	return qs
}

func TestQuestion(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.ask(0, askCommand, turn1, commandMore)
		qs := questionsOf(r)
		if len(qs) != 1 {
			t.Fatalf("questions %+v", qs)
		}
		q := qs[0]
		if q.Turn != turn1 || q.Kind != handoff.QuestionCommand || q.Command != "/bin/bash -lc 'rm x'" || q.Cwd != "/src" ||
			q.Reason != "it is old" || len(q.Decisions) != 4 || q.Asked.IsZero() {
			t.Errorf("question %+v", q)
		}
		f.ask(0, askCommand, turn1, commandMore) // a replay
		if n := len(questionsOf(r)); n != 1 {
			t.Errorf("asked %d times", n)
		}
		decide(t, at, q.ID, "maybe").wantCode(t, handoff.CodeMalformed)
		f.quiet()

		decide(t, at, q.ID, handoff.DecisionAccept).get(t)
		answer := f.expect("")
		if string(answer.ID) != "0" || string(answer.Result) != `{"decision":"accept"}` || answer.Error != nil {
			t.Errorf("answered %s %s", answer.ID, answer.Result)
		}
		decide(t, at, q.ID, handoff.DecisionDecline).wantCode(t, handoff.CodeNotPending)
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":0}`, thread1))
		decide(t, at, q.ID, handoff.DecisionAccept).wantCode(t, handoff.CodeNotPending)
		f.quiet()
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started",
			`question 0 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			"closed 0", `ended completed "" ""`)
	})
}

// TestForeignQuestions: a question of a turn that is not followed here is for the person at the desk. It is neither
// reported nor answered, not even with an error.
func TestForeignQuestions(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, active, turnJSON(turn2, "inProgress", false)))
		at := a.get(t)
		f.ask(7, askCommand, turn2, commandMore)
		f.ask(8, "item/tool/call", turn2, `,"callId":"x","tool":"y","arguments":{}`)
		f.ask(9, "something/new", turn2, "")
		f.ask(13, "item/browser/requestApproval", turn2, "")
		f.say(`{"id":10,"method":"currentTime/read","params":{}}`)
		f.say(`{"id":11,"method":"attestation/generate"}`)
		f.say(`{"id":12,"method":%q,"params":{"threadId":"another","turnId":"t"}}`, askCommand)
		f.quiet()
		id := handoff.QuestionID("bigpc:" + thread1 + ":" + turn2 + ":7")
		decide(t, at, id, handoff.DecisionAccept).wantCode(t, handoff.CodeNotPending)
		asked := func() (texts []string) {
			<-link.Changed
			for _, q := range link.Catalog.(servers.Overhearer).ForeignQuestions() {
				texts = append(texts, q.Thread+" "+q.Text)
			}
			return texts
		}
		if got := asked(); len(got) != 2 || got[0] != thread1+" rm x" || !strings.Contains(got[1], "only its own program") {
			t.Errorf("to be shown: %q", got)
		}
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":13}`, thread1))
		if got := asked(); len(got) != 1 {
			t.Errorf("after an answer: %q", got)
		}
		f.turnCompleted(turn2, "completed")
		if got := asked(); len(got) != 0 {
			t.Errorf("after its end: %q", got)
		}
		f.quiet()
	})
}

// TestQuestionBeforeTheResponse: the question comes before we know that the turn is ours.
func TestQuestionBeforeTheResponse(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		s := tryStart(t, at)
		frame := f.expect("turn/start")
		f.ask(3, askFileChange, turn1, `,"itemId":"e"`)
		f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		r := record(t.Context(), at.Agent, s.get(t))
		want(t, r.lines(), "started",
			`question 3 file_change "May these files be changed?" [accept accept_for_session decline stop]`)
		<-link.Changed
		if asked := link.Catalog.(servers.Overhearer).ForeignQuestions(); len(asked) != 0 {
			t.Errorf("asked of others: %+v", asked)
		}
	})
}

// TestMergedStartIsNotOurs: our input was put into somebody else's turn, whose questions are not ours.
func TestMergedStartIsNotOurs(t *testing.T) {
	withThread(t, turnJSON(turn1, "completed", true), func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		s := tryStart(t, at)
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		s.wantCode(t, handoff.CodeJoined)
		f.turnStarted(turn1)
		f.ask(3, askCommand, turn1, commandMore)
		r := record(t.Context(), at.Agent, turn1)
		want(t, r.lines(), "started")
	})
}

// TestQuestionsOfAnotherConnection: the same request on another connection is the same question, and a decision on the
// earlier connection does not count for it. Request numbers begin again after a restart of the server, but not in the
// same turn.
func TestQuestionsOfAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f1, _, r1 := running(t)
		f1.ask(0, askCommand, turn1, commandMore)
		f2, at2, r2 := running(t)
		f2.ask(0, askCommand, turn1, commandMore)
		old, current := questionsOf(r1)[0], questionsOf(r2)[0]
		if old.ID != current.ID || old.Connection == current.Connection || current.Connection == "" {
			t.Fatalf("%s over %q, then %s over %q", old.ID, old.Connection, current.ID, current.Connection)
		}
		if handoff.CommandHash(old, "bigpc") == handoff.CommandHash(current, "bigpc") {
			t.Error("what was heard over one connection would count for the other")
		}
		other := handoff.QuestionID(strings.Replace(string(current.ID), turn1, turn2, 1))
		if other == current.ID {
			t.Fatalf("both turns ask %s", other)
		}
		decide(t, at2, other, handoff.DecisionAccept).wantCode(t, handoff.CodeNotPending)
		f2.quiet()
	})
}

func TestQuestionOfAnEndedTurn(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.ask(0, askCommand, turn1, commandMore)
		id := questionsOf(r)[0].ID
		f.turnCompleted(turn1, "interrupted")
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":0}`, thread1))
		lines := r.lines()
		want(t, lines[2:], "closed 0", `ended interrupted "" ""`)
		decide(t, at, id, handoff.DecisionAccept).wantCode(t, handoff.CodeNotPending)
		f.quiet()
	})
}

func TestDecideLost(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.ask(0, askCommand, turn1, commandMore)
		id := questionsOf(r)[0].ID
		f.close()
		synctest.Wait()
		decide(t, at, id, handoff.DecisionAccept).wantCode(t, handoff.CodeAgentGone)
	})
}

// TestChangesOfAQuestion: the paths of a file question are in the item, not in the request.
func TestChangesOfAQuestion(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.item("item/started", turn1, `{"type":"fileChange","id":"e","changes":[{"path":"/a.go"}],"status":"inProgress"}`)
		f.ask(0, askFileChange, turn1, `,"itemId":"e","grantRoot":"/src"`)
		q := questionsOf(r)[0]
		if len(q.Changes) != 1 || q.Changes[0] != "/a.go" || q.Text != "May files below /src be changed?" {
			t.Errorf("question %+v", q)
		}
	})
}

// TestDecisionsOnTheWire checks the answer on the wire for every kind of question and every decision.
func TestDecisionsOnTheWire(t *testing.T) {
	const (
		permissions = `,"cwd":"/src","reason":"need net","permissions":{"network":{"enabled":true},"fileSystem":null}`
		input       = `,"questions":[{"id":"q1","question":"Which env?","options":[{"label":"staging"},{"label":"prod"}]},{"id":"q2","question":"Why?","options":null}]`
		yesNo       = `,"serverName":"lab","mode":"form","message":"Allow it?","requestedSchema":{"type":"object","properties":{}}`
		form        = `,"serverName":"lab","mode":"form","message":"Which branch?","requestedSchema":{"properties":{"branch":{"type":"string"}}}`
		url         = `,"serverName":"lab","mode":"url","message":"Log in","url":"https://x"`
	)
	for _, c := range []struct {
		method, more string
		text         string
		offered      string
		decision     handoff.Decision
		result       string
		interrupts   bool
	}{
		{askCommand, commandMore, "May this command run?", "[accept accept_for_session decline stop]", "decline",
			`{"decision":"decline"}`, false},
		{askCommand, commandMore, "May this command run?", "[accept accept_for_session decline stop]", "accept_for_session",
			`{"decision":"acceptForSession"}`, false},
		{askCommand, commandMore, "May this command run?", "[accept accept_for_session decline stop]", "stop",
			`{"decision":"cancel"}`, false},
		{askCommand, `,"command":"x","availableDecisions":["cancel"]`, "May this command run?", "[decline stop]", "decline",
			`{"decision":"decline"}`, false},
		{askFileChange, "", "May these files be changed?", "[accept accept_for_session decline stop]", "accept",
			`{"decision":"accept"}`, false},
		{askPermissions, permissions, "May the work use the network?", "[accept accept_for_session decline stop]", "accept",
			`{"permissions":{"network":{"enabled":true},"fileSystem":null},"scope":"turn"}`, false},
		{askPermissions, permissions, "May the work use the network?", "[accept accept_for_session decline stop]",
			"accept_for_session", `{"permissions":{"network":{"enabled":true},"fileSystem":null},"scope":"session"}`, false},
		{askPermissions, permissions, "May the work use the network?", "[accept accept_for_session decline stop]", "decline",
			`{"permissions":{},"scope":"turn"}`, false},
		{askPermissions, permissions, "May the work use the network?", "[accept accept_for_session decline stop]", "stop",
			`{"permissions":{},"scope":"turn"}`, true},
		{askPermissions, `,"permissions":{"fileSystem":{"write":["/etc"]}}`,
			`May the work reach these files: {"write":["/etc"]}?`, "[accept accept_for_session decline stop]", "decline",
			`{"permissions":{},"scope":"turn"}`, false},
		{askPermissions, `,"permissions":{}`, "May the work have more rights?", "[accept accept_for_session decline stop]",
			"decline", `{"permissions":{},"scope":"turn"}`, false},
		{askInput, input, "Which env? (staging, prod)\nWhy?", "[decline stop]", "decline", `{"answers":{}}`, false},
		{askInput, input, "Which env? (staging, prod)\nWhy?", "[decline stop]", "stop", `{"answers":{}}`, true},
		{askElicitation, yesNo, "Allow it?", "[accept decline stop]", "accept", `{"action":"accept","content":{}}`, false},
		{askElicitation, yesNo, "Allow it?", "[accept decline stop]", "stop", `{"action":"cancel","content":null}`, true},
		{askElicitation, form, "Which branch?", "[decline stop]", "decline", `{"action":"decline","content":null}`, false},
		{askElicitation, url, "Log in", "[accept decline stop]", "decline", `{"action":"decline","content":null}`, false},
		{askElicitation, url, "Log in", "[accept decline stop]", "accept", `{"action":"accept","content":{}}`, false},
		{askElicitation, strings.Replace(url, "https", "javascript", 1), "Log in It asks to open a page that cannot be shown here.",
			"[decline stop]", "decline", `{"action":"decline","content":null}`, false},
	} {
		t.Run(c.method+" "+string(c.decision), bubble(func(t *testing.T) {
			f, at, r := running(t)
			f.ask(5, c.method, turn1, c.more)
			q := questionsOf(r)[0]
			if q.Text != c.text || fmt.Sprint(q.Decisions) != c.offered {
				t.Errorf("question %+v", q)
			}
			decided := decide(t, at, q.ID, c.decision)
			if answer := f.expect(""); string(answer.Result) != c.result || string(answer.ID) != "5" {
				t.Errorf("answered %s", answer.Result)
			}
			if c.interrupts {
				frame := f.expect("turn/interrupt")
				var p turnInterruptParams
				if err := json.Unmarshal(frame.Params, &p); err != nil || p.TurnID != turn1 {
					t.Errorf("turn/interrupt %s", frame.Params)
				}
				f.refuse(frame, -32600, "no active turn to interrupt") // the turn has ended by itself
			}
			decided.get(t)
			f.quiet()
		}))
	}
}

// TestAnswersThatCount: of a machine that joined, only those answers are offered that its owner lets through. For the
// others the question says why.
func TestAnswersThatCount(t *testing.T) {
	const plain, choice = `,"questions":[{"id":"q","question":"Which?","isOther":true}]`,
		`,"questions":[{"id":"q","question":"Allow the tool?","options":[{"label":"Allow for this session"}]}]`
	once, no := servers.Owner{Ceiling: "workspace-write"}, servers.Owner{NoAnswers: true}
	for name, c := range map[string]struct {
		owner        servers.Owner
		method, more string
		offered      string
		words        bool
	}{
		"a command":             {once, askCommand, commandMore, "[accept decline stop]", false},
		"files":                 {once, askFileChange, "", "[accept decline stop]", false},
		"files below a root":    {once, askFileChange, `,"grantRoot":"/"`, "[decline stop]", false},
		"rights":                {once, askPermissions, `,"permissions":{"network":{"enabled":true}}`, "[decline stop]", false},
		"words":                 {once, askInput, plain, "[decline stop]", true},
		"words that may allow":  {once, askInput, choice, "[decline stop]", false},
		"reading only":          {servers.Owner{Ceiling: "read-only"}, askCommand, commandMore, "[decline stop]", false},
		"no answers":            {no, askCommand, commandMore, "[decline stop]", false},
		"no words":              {no, askInput, plain, "[decline stop]", false},
		"no answers and a form": {no, askElicitation, `,"mode":"form","requestedSchema":{"properties":{}}`, "[decline stop]", false},
		"any":                   {servers.Owner{}, askFileChange, `,"grantRoot":"/"`, "[accept accept_for_session decline stop]", false},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, link := startFake(t, Config{})
			at := attach(t, f, link, turnJSON(turn2, "completed", true))
			r := record(t.Context(), at.Agent, start(t, f, at))
			f.ask(5, c.method, turn1, c.more+`,"_switchboard":`+handoff.Encode(c.owner))
			q := questionsOf(r)[0]
			if fmt.Sprint(q.Decisions) != c.offered || q.Words != c.words {
				t.Errorf("offered %v, words %t", q.Decisions, q.Words)
			}
			if yes := q.Words || slices.Contains(q.Decisions, handoff.DecisionAccept); yes != (q.There == "") {
				t.Errorf("it says %q", q.There)
			}
		}))
	}
}

// TestWhatAQuestionSays checks the questions for requests that allow more than they show, that take words, or that are
// unknown.
func TestWhatAQuestionSays(t *testing.T) {
	const one = `{"id":"q1","question":"Password?","isSecret":%t,"options":null}`
	for name, c := range map[string]struct {
		method, more string
		kind         handoff.QuestionKind
		words        bool
		beyond       string
		command      string
	}{
		"a plain command": {askCommand, commandMore, handoff.QuestionCommand, false, "", "/bin/bash -lc 'rm x'"},
		"an old server's": {askCommand,
			`,"command":"x","kind":"command","networkApprovalContext":null,"additionalPermissions":null`,
			handoff.QuestionCommand, false, "", "x"},
		"input to a terminal": {askCommand, `,"command":"y","kind":"writeStdin"`, handoff.QuestionCommand, false,
			"an act of the kind writeStdin", "y"},
		"what a person is to decide": {askCommand, `,"command":"rm x","kind":"humanCommand"`, handoff.QuestionCommand, false,
			"", "rm x"},
		"a host": {askCommand,
			`,"command":null,"networkApprovalContext":{"host":"example.com","protocol":"https"}`, handoff.QuestionCommand, false,
			`the network: {"host":"example.com","protocol":"https"}`, ""},
		"more rights": {askCommand, `,"command":"ls","additionalPermissions":{"fileSystem":{"write":["/"]}}`,
			handoff.QuestionCommand, false, `more rights: {"fileSystem":{"write":["/"]}}`, "ls"},
		"a root for the session": {askFileChange, `,"grantRoot":"/src"`, handoff.QuestionFileChange, false,
			"changes below /src until the session ends", ""},
		"words":       {askInput, `,"questions":[` + fmt.Sprintf(one, false) + `]`, handoff.QuestionInput, true, "", ""},
		"a secret":    {askInput, `,"questions":[` + fmt.Sprintf(one, true) + `]`, handoff.QuestionInput, true, "", ""},
		"no question": {askInput, `,"questions":[]`, handoff.QuestionInput, false, "", ""},
		"a tool": {askElicitation,
			`,"serverName":"lab","mode":"form","message":"Allow it?","requestedSchema":{"properties":{}},"_meta":{"tool_name":"danger","tool_params":{"path":"/"}}`,
			handoff.QuestionElicitation, false, "", `lab danger {"path":"/"}`},
		"a new kind of approval": {"item/browser/requestApproval", `,"url":"https://x"`, handoff.QuestionOther, false, "",
			""},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, at, r := running(t)
			f.turnStarted(turn1)
			f.ask(5, c.method, turn1, c.more)
			q := questionsOf(r)[0]
			if q.Kind != c.kind || q.Words != c.words || q.Beyond != c.beyond || q.Command != c.command {
				t.Errorf("question %+v", q)
			}
			if high := c.beyond != "" || c.kind != handoff.QuestionCommand && c.kind != handoff.QuestionFileChange; high &&
				risk.Of(q, "/src") != risk.High {
				t.Error("it may be allowed by voice")
			}
			if once := !slices.Contains(q.Decisions, handoff.DecisionAcceptForSession); c.method == askCommand &&
				once != strings.Contains(c.more, kindHuman) {
				t.Errorf("decisions %v", q.Decisions)
			}
			if c.kind == handoff.QuestionOther { // it is shown, but not declined: any answer would count as one
				for _, d := range []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop} {
					decide(t, at, q.ID, d).wantCode(t, handoff.CodeMalformed)
				}
			}
			f.quiet()
		}))
	}
}
