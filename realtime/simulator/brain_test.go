package simulator

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// fleetKnown is what list_servers taught.
func fleetKnown() map[string]string {
	return map[string]string{"bigpc": "bigpc", "big pc": "bigpc", "the desktop": "bigpc", "laptop": "laptop",
		"attic": "attic", "mini.local": "mini.local"}
}

// show writes moves as a test wants to read them.
func show(moves []Move) string {
	var parts []string
	for _, m := range moves {
		switch m := m.(type) {
		case Say:
			parts = append(parts, "say "+m.Text)
		case Call:
			s := m.Tool + m.Arguments
			if m.pending != nil && m.pending.wish != wishAnswer {
				s += fmt.Sprintf(" then %s", map[wish]string{wishRead: "read", wishOpen: "open", wishOpened: "told",
					wishContinue: "work " + m.pending.work}[m.pending.wish])
			}
			parts = append(parts, s)
		default:
			parts = append(parts, fmt.Sprintf("%#v", m))
		}
	}
	return strings.Join(parts, " | ")
}

func allTools() []string {
	return []string{tools.Codex, tools.ListServers, tools.ListSessions, tools.ReadSession,
		tools.RunOnServer, tools.QueueNext, tools.StopWork, tools.Status, tools.AnswerAgent, tools.SetUpdates}
}

const (
	anyMachines = `list_servers{}`
	anySessions = `list_sessions{}`
)

// sentencesKnown are sentences after the machines are known and bigpc was used last.
var sentencesKnown = []struct{ said, want string }{
	// machines and sessions
	{"Which machines do I have?", anyMachines},
	{"List my servers.", anyMachines},
	{"Can you show me the machines, please?", anyMachines},
	{"What was I working on?", anySessions},
	{"show me my sessions", anySessions},
	{"What was I working on on laptop?", `list_sessions{"server":"laptop"}`},
	{"On laptop, what was I working on?", `list_sessions{"server":"laptop"}`},
	{"find the sessions about auth", `list_sessions{"query":"auth"}`},
	// continue
	{"Continue the auth session on bigpc and run the tests",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"continue the auth session on bigpc, and run the tests.",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"please resume my auth refactor session and then fix the failing test",
		`list_sessions{"query":"auth refactor"} then work fix the failing test`},
	{"Go back to the release notes session on laptop: add a section about auth",
		`list_sessions{"server":"laptop","query":"release notes"} then work add a section about auth`},
	{"In the auth session on bigpc, run the tests",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"On bigpc continue the auth session and run the tests",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"continue the last session on laptop and push it", `list_sessions{"server":"laptop"} then work push it`},
	{"Continue the session about unicorns", `list_sessions{"query":"unicorns"} then work `},
	{"continue the session about unicorns on laptop and run the tests",
		`list_sessions{"server":"laptop","query":"unicorns"} then work run the tests`},
	{"In the session about release notes, add a line", `list_sessions{"query":"release notes"} then work add a line`},
	{"run the tests in the auth session", `list_sessions{"query":"auth"} then work run the tests`},
	{"run the tests in my auth session on bigpc",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"on bigpc, run the tests in the auth session",
		`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	{"fix it in the session about checkout", `list_sessions{"query":"checkout"} then work fix it`},
	{"then run the tests in the auth session", `list_sessions{"query":"auth"} then work run the tests`},
	{"fix the session handling in main.go", `codex{"server":"bigpc","prompt":"Fix the session handling in main.go"}`},
	// open: read and go on there, without work
	{"Open the checkout session", `list_sessions{"query":"checkout"} then open`},
	{"switch to the auth refactor session on bigpc, please",
		`list_sessions{"server":"bigpc","query":"auth refactor"} then open`},
	{"Open the checkout session and run the tests", `list_sessions{"query":"checkout"} then work run the tests`},
	// read
	{"Read the session about auth on bigpc", `list_sessions{"server":"bigpc","query":"auth"} then read`},
	{"what happened in the auth session?", `list_sessions{"query":"auth"} then read`},
	// new
	{"Start a new session on laptop and write a changelog",
		`codex{"server":"laptop","thread_id":"new","prompt":"Write a changelog"}`},
	{"In a new session on laptop, draft a blog post",
		`codex{"server":"laptop","thread_id":"new","prompt":"Draft a blog post"}`},
	{"open a new session and check the logs", `codex{"server":"bigpc","thread_id":"new","prompt":"Check the logs"}`},
	{"run the tests in a new session on laptop",
		`codex{"server":"laptop","thread_id":"new","prompt":"Run the tests"}`},
	// what goes on elsewhere
	{"Continue this on laptop", `codex{"server":"laptop","from_server":"bigpc","prompt":"Continue this here."}`},
	{"continue it on laptop and run the tests", `codex{"server":"laptop","from_server":"bigpc","prompt":"Run the tests"}`},
	{"continue this on the big pc", `codex{"server":"bigpc","prompt":"Continue this here."}`},
	// work with a machine
	{"On laptop, write the release notes", `codex{"server":"laptop","prompt":"Write the release notes"}`},
	{"on laptop write the release notes", `codex{"server":"laptop","prompt":"Write the release notes"}`},
	{"Ask attic to check the backups", `codex{"server":"attic","prompt":"Check the backups"}`},
	{"Ask bigpc whether the build is green", `codex{"server":"bigpc","prompt":"whether the build is green"}`},
	{"laptop, run the linter", `codex{"server":"laptop","prompt":"Run the linter"}`},
	{"Run the benchmarks on bigpc", `codex{"server":"bigpc","prompt":"Run the benchmarks"}`},
	{"Push it from bigpc", `codex{"server":"bigpc","prompt":"Push it"}`},
	{"Can you run the tests on the big pc please?", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	{"run the tests on the desktop", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	{"run the tests on mini.local", `codex{"server":"mini.local","prompt":"Run the tests"}`},
	{"ask bigpc/api to bump the version", `codex{"server":"bigpc/api","prompt":"Bump the version"}`},
	{"On Bigpc, how many tests are there", `codex{"server":"bigpc","prompt":"how many tests are there"}`},
	{"run the tests on nosuch", `codex{"server":"nosuch","prompt":"Run the tests"}`},
	// work without a machine: where it was last
	{"Fix it", `codex{"server":"bigpc","prompt":"Fix it"}`},
	{"fix it, please", `codex{"server":"bigpc","prompt":"Fix it"}`},
	{"Okay, now run the tests.", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	{"No wait, run the tests.", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	{"run the tests on main", `codex{"server":"bigpc","prompt":"Run the tests on main"}`},
	{"remove the log lines from main.go", `codex{"server":"bigpc","prompt":"Remove the log lines from main.go"}`},
	// nothing to do
	{"hi there", "say " + saySimulated},
	{"What can you do?", "say " + sayAbility},
	{"What is this?", "say " + sayAbility},
	{"Who are you?", "say " + sayAbility},
	{"How does this work?", "say " + sayAbility},
	{"What is the capital of France?", "say " + sayUnknown},
	{"I had a nice day", "say " + sayUnknown},
	{"say that again", "say " + saySaidNothing},
	{"can you hear me?", "say " + sayNoWords2},
	{"stop", "say " + sayQuiet},
	{"hold on", "say " + sayQuiet},
	{"okay, wait", "say " + sayQuiet},
	{"Thank you!", "say " + sayQuiet},
	{"thank you, that's all", "say " + sayQuiet},
	{"yes, allow it", "say " + sayNobody},
	{"don't", "say " + sayNobody},
	{"yes, push it", "say " + sayNobody},
	{"   ", "say " + sayUnknown},
	// side questions
	{"Quick question for laptop: which branch is it on?",
		`run_on_server{"server":"laptop","prompt":"which branch is it on"}`},
	{"Quick question: which branch is it on?", `run_on_server{"server":"bigpc","prompt":"which branch is it on"}`},
	// what runs
	{"What is running?", "status{}"},
	{"How far are they?", "status{}"},
	{"status", "status{}"},
	{"okay, what is waiting for me?", "status{}"},
	{"what did I miss?", "status{}"},
	// stop
	{"stop the work", "stop_work{}"},
	{"Stop it now.", "say " + sayUnknown},
	{"Stop it!", "stop_work{}"},
	{"Stop the work on bigpc", `stop_work{"server":"bigpc"}`},
	{"please stop the benchmarks on the big pc", `stop_work{"server":"bigpc"}`},
	{"no wait, stop the work on bigpc", `stop_work{"server":"bigpc"}`},
	{"stop everything", `stop_work{"server":"all"}`},
	{"stop laptop", `stop_work{"server":"laptop"}`},
	{"stop laughing", "say " + sayUnknown},
	{"tell bigpc to stop", `stop_work{"server":"bigpc"}`},
	{"On bigpc, stop the tests", `stop_work{"server":"bigpc"}`},
	{"tell bigpc to stop using tabs", `codex{"server":"bigpc","prompt":"stop using tabs"}`},
	// behind what runs
	{"then run the benchmarks", `queue_next{"server":"bigpc","prompt":"Run the benchmarks"}`},
	{"And then run the tests on laptop.", `queue_next{"server":"laptop","prompt":"Run the tests"}`},
	{"After that, on laptop, write the release notes", `queue_next{"server":"laptop","prompt":"Write the release notes"}`},
	{"On laptop, after that run the tests", `queue_next{"server":"laptop","prompt":"Run the tests"}`},
	{"After that, tell me what changed on bigpc", `queue_next{"server":"bigpc","prompt":"Tell me what changed"}`},
	{"after that, start a new session on laptop and draft a post",
		`queue_next{"server":"laptop","thread_id":"new","prompt":"Draft a post"}`},
	{"then, which machines do I have?", anyMachines},
	// how much is told
	{"tell me less", `set_updates{"level":"quiet"}`},
	{"just the results", `set_updates{"level":"quiet"}`},
	{"Tell me more", `set_updates{"level":"chatty"}`},
	{"keep me posted", `set_updates{"level":"chatty"}`},
	{"the usual updates", `set_updates{"level":"milestones"}`},
}

func TestBrainUnderstandsSentences(t *testing.T) {
	for _, c := range sentencesKnown {
		b := newBrain(new(atomic.Bool))
		b.machines, b.lastMachine = fleetKnown(), "bigpc"
		if got := show(b.reply(Heard{Nth: 2, Texts: []string{c.said}, Tools: allTools()})); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.said, got, c.want)
		}
	}
}

// A newcomer's first sentences: no machine is known yet.
func TestBrainWithoutKnowledge(t *testing.T) {
	for _, c := range []struct{ said, want string }{
		{"Fix it", "say On which machine?"},
		{"continue this on laptop", "say " + sayNothingYet},
		{"run the tests in the auth session", `list_sessions{"query":"auth"} then work run the tests`},
		{"Run the benchmarks on bigpc", `codex{"server":"bigpc","prompt":"Run the benchmarks"}`},
		{"Push it from bigpc", `codex{"server":"bigpc","prompt":"Push it"}`},
		{"Ask attic to check the backups", `codex{"server":"attic","prompt":"Check the backups"}`},
		{"On laptop, write the release notes", `codex{"server":"laptop","prompt":"Write the release notes"}`},
		{"remove the log lines from main.go", "say On which machine?"},
		{"Continue the auth session on bigpc and run the tests",
			`list_sessions{"server":"bigpc","query":"auth"} then work run the tests`},
	} {
		if got := show(newBrain(new(atomic.Bool)).reply(Heard{Nth: 1, Texts: []string{c.said}, Tools: allTools()})); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.said, got, c.want)
		}
	}
}

func TestBrainSaysThatAToolIsMissing(t *testing.T) {
	for said, tool := range map[string]string{
		"Which machines do I have?":                            tools.ListServers,
		"What was I working on?":                               tools.ListSessions,
		"Fix it on bigpc":                                      tools.Codex,
		"Continue the auth session on bigpc and run the tests": tools.Codex,
		"then run the tests on bigpc":                          tools.QueueNext,
		"Quick question for bigpc: which branch is it on?":     tools.RunOnServer,
		"stop the work":                                        tools.StopWork,
		"what is running?":                                     tools.Status,
		"tell me less":                                         tools.SetUpdates,
	} {
		got := show(newBrain(new(atomic.Bool)).reply(Heard{Nth: 1, Texts: []string{said}, Tools: []string{"get_weather"}}))
		if want := "say " + fmt.Sprintf(sayNoTool, tool); got != want {
			t.Errorf("%q: got %s, want %s", said, got, want)
		}
	}
}

// Outputs of tools.
const (
	twoAuth = `{"items":[{"id":"t1","title":"Auth refactor","server":"bigpc"},{"id":"t2","title":"Auth ` +
		`docs","server":"laptop"}],"say":"x"}`
	oneAuth    = `{"items":[{"id":"t1","title":"Auth refactor","server":"bigpc"}],"say":"x"}`
	twoServers = `{"items":[{"name":"bigpc","aliases":["big ` +
		`pc"],"health":"up"},{"name":"laptop","health":"up"}],"say":"bigpc and laptop are ready."}`
)

// talks are conversations with a brain: a line that begins with ">" is what it does, one with "=" the
// output of its last call, one with "!" a system message, anything else a sentence of the caller.
var talks = map[string][]string{
	"the sessions of an intent": {
		"Continue the auth session on bigpc and run the tests",
		`>list_sessions{"server":"bigpc","query":"auth"} then work run the tests`,
		"=" + oneAuth, `>codex{"server":"bigpc","thread_id":"t1","prompt":"Run the tests"}`,
		`={"status":"done","server":"bigpc","say":"One test fails."}`, ">say One test fails.",
		"Fix it", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"only those on the machine": {
		"Read the auth session on laptop", `>list_sessions{"server":"laptop","query":"auth"} then read`,
		"=" + twoAuth, `>read_session{"server":"laptop","thread_id":"t2"}`,
		`={"lines":[],"say":"Nothing yet."}`, ">say Nothing yet.",
	},
	"several: asks which": {
		"Continue the auth session and fix it", `>list_sessions{"query":"auth"} then work fix it`,
		"=" + twoAuth, ">say There are 2: Auth refactor on bigpc and Auth docs on laptop. Which one do you mean?",
		"the one on laptop", `>codex{"server":"laptop","thread_id":"t2","prompt":"Fix it"}`,
	},
	"several: the second": {
		"Read the auth session", `>list_sessions{"query":"auth"} then read`,
		"=" + twoAuth, ">say There are 2: Auth refactor on bigpc and Auth docs on laptop. Which one do you mean?",
		"The second one.", `>read_session{"server":"laptop","thread_id":"t2"}`,
	},
	"several of one title: what tells them apart": {
		"Read the nightly session", `>list_sessions{"query":"nightly"} then read`,
		`={"items":[{"id":"t1","label":"nightly run, the newer one","title":"Nightly run","server":"bigpc"},{"id":"t2",` +
			`"label":"nightly run, the older one","title":"Nightly run","server":"bigpc"}],"say":"x"}`,
		">say There are 2: nightly run, the newer one on bigpc and nightly run, the older one on bigpc. " +
			"Which one do you mean?",
		"the older one", `>read_session{"server":"bigpc","thread_id":"t2"}`,
	},
	"several: the caller moves on": {
		"Read the auth session", `>list_sessions{"query":"auth"} then read`,
		"=" + twoAuth, ">say There are 2: Auth refactor on bigpc and Auth docs on laptop. Which one do you mean?",
		"Which machines do I have?", ">" + anyMachines,
	},
	"several: one has exactly these words": {
		"Read the auth refactor session", `>list_sessions{"query":"auth refactor"} then read`,
		"=" + twoAuth, `>read_session{"server":"bigpc","thread_id":"t1"}`,
	},
	"opened: what comes next goes there": {
		"Open the auth session on bigpc", `>list_sessions{"server":"bigpc","query":"auth"} then open`,
		"=" + oneAuth, `>read_session{"server":"bigpc","thread_id":"t1"} then told`,
		`={"title":"Auth refactor","server":"bigpc","lines":[],"say":"The session Auth refactor on bigpc."}`,
		">say The session Auth refactor on bigpc. " + sayOpened,
		"Fix it", `>codex{"server":"bigpc","thread_id":"t1","prompt":"Fix it"}`,
		`={"status":"done","server":"bigpc","say":"Fixed."}`, ">say Fixed.",
		"Run the tests", `>codex{"server":"bigpc","prompt":"Run the tests"}`,
	},
	"opened: a new session or another machine is that": {
		"Open the auth session on bigpc", `>list_sessions{"server":"bigpc","query":"auth"} then open`,
		"=" + oneAuth, `>read_session{"server":"bigpc","thread_id":"t1"} then told`,
		`={"lines":[],"say":"Nothing yet."}`, ">say Nothing yet. " + sayOpened,
		"Run the tests on laptop", `>codex{"server":"laptop","prompt":"Run the tests"}`,
		"In a new session on bigpc, draft a post", `>codex{"server":"bigpc","thread_id":"new","prompt":"Draft a post"}`,
		"fix it on bigpc", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"opened: what cannot be read is not": {
		"Open the auth session", `>list_sessions{"query":"auth"} then open`,
		"=" + oneAuth, `>read_session{"server":"bigpc","thread_id":"t1"} then told`,
		`={"status":"failed","code":"unreachable","say":"bigpc is not answering."}`, ">say bigpc is not answering.",
		"Fix it", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"about what there is not": {
		"Continue the session about unicorns", `>list_sessions{"query":"unicorns"} then work `,
		`={"items":[],"say":"x"}`, ">say I found no session about unicorns.",
		"Fix it", ">say On which machine?",
	},
	"none": {
		"Read the billing session on bigpc", `>list_sessions{"server":"bigpc","query":"billing"} then read`,
		`={"items":[],"say":"x"}`, ">say I found no session about billing on bigpc.",
	},
	"the list fails": {
		"Read the auth session on attic", `>list_sessions{"server":"attic","query":"auth"} then read`,
		`={"status":"failed","code":"unreachable","say":"attic is not answering."}`, ">say attic is not answering.",
	},
	"asks for the machine": {
		"run the tests", ">say On which machine?",
		"laptop", `>codex{"server":"laptop","prompt":"Run the tests"}`,
	},
	"no is no machine and no work": {
		"run the tests", ">say On which machine?",
		"no", ">say " + sayNobody,
		"start a new session on laptop", ">say " + sayWhatToDo,
		"no, nothing", ">say " + sayNobody,
		"Read the auth session", `>list_sessions{"query":"auth"} then read`,
		"=" + twoAuth, ">say There are 2: Auth refactor on bigpc and Auth docs on laptop. Which one do you mean?",
		"no, not the one on laptop", ">say " + sayQuiet,
	},
	"knows the machines from their list": {
		"Which machines do I have?", ">" + anyMachines,
		"=" + twoServers, ">say bigpc and laptop are ready.",
		"fix it", ">say On which machine? I know bigpc and laptop.",
		"on the big pc", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"the answer is another wish": {
		"run the tests", ">say On which machine?",
		"What was I working on?", ">" + anySessions,
	},
	"asks for the work": {
		"start a new session on laptop", ">say " + sayWhatToDo,
		"Write a changelog", `>codex{"server":"laptop","thread_id":"new","prompt":"Write a changelog"}`,
	},
	"a machine is known once work went there": {
		"run the tests on laptop", `>codex{"server":"laptop","prompt":"Run the tests"}`,
		`={"status":"started","server":"laptop","say":"Working on it."}`, ">say Working on it.",
		"stop laptop", `>stop_work{"server":"laptop"}`,
	},
	"work does not follow to where nobody is": {
		"run the tests on bigpc", `>codex{"server":"bigpc","prompt":"Run the tests"}`,
		`={"status":"started","server":"bigpc","say":"Working."}`, ">say Working.",
		"Ask attic to check the backups", `>codex{"server":"attic","prompt":"Check the backups"}`,
		`={"status":"failed","code":"unreachable","say":"attic is not answering."}`, ">say attic is not answering.",
		"fix it", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"says once what it is": {
		"hello", ">say " + saySimulated, "hello", ">say " + sayHello,
	},
}

func TestBrainTalks(t *testing.T) {
	for name, lines := range talks {
		t.Run(name, func(t *testing.T) { talk(t, lines) })
	}
}

func talk(t *testing.T, lines []string) {
	t.Helper()
	b := newBrain(new(atomic.Bool))
	var last Call
	var did string
	for i, line := range lines {
		h := Heard{Nth: i + 1, Tools: allTools()}
		switch {
		case strings.HasPrefix(line, ">"):
			if did != line[1:] {
				t.Fatalf("line %d:\n got %s\nwant %s", i, did, line[1:])
			}
			continue
		case strings.HasPrefix(line, "="):
			b.learn(&item{kind: "function_call_output", callID: "c", output: line[1:]})
			h.Outputs = []Output{{Tool: last.Tool, Text: line[1:], pending: last.pending}}
		case strings.HasPrefix(line, "!"):
			h.Messages = []string{line[1:]}
		default:
			h.Texts = []string{line}
		}
		moves := b.reply(h)
		did = show(moves)
		for _, m := range moves {
			if c, ok := m.(Call); ok {
				last = c
				b.learn(&item{kind: "function_call", status: "completed", callID: "c", name: c.Tool, arguments: c.Arguments})
			}
		}
	}
}

func TestBrainSpeaksNews(t *testing.T) {
	message := wording.Message("bigpc is done in the session Auth refactor. Tell the caller now, once.",
		"All tests pass. I changed one line. There is more.")
	for _, c := range []struct {
		name string
		h    Heard
		want string
	}{
		{"first response, nothing said", Heard{Nth: 1}, "say " + sayGreeting},
		{"later, nothing new", Heard{Nth: 2}, ""},
		{"out of band, nothing new", Heard{Nth: 1, OutOfBand: true}, ""},
		{"a result", Heard{Nth: 2, Messages: []string{message}},
			"say bigpc is done in the session Auth refactor. All tests pass. I changed one line."},
		{"a result first of all", Heard{Nth: 1, Messages: []string{message}},
			"say bigpc is done in the session Auth refactor. All tests pass. I changed one line."},
		{"a command", Heard{Nth: 2,
			Messages: []string{wording.Message("bigpc asks for permission to run a command; please answer on the page. It is "+
				"shown there.", "/bin/bash -lc 'git push origin main'")}},
			"say bigpc asks for permission to run a command; please answer on the page. git push origin main."},
		{"a silent note", Heard{Nth: 2,
			Messages: []string{wording.Message("bigpc, still working, reports. Say nothing of it unless asked.", "Reading.")}},
			""},
		{"away", Heard{Nth: 1, Messages: []string{"While the caller was away, one thing finished. Say this as one " +
			"sentence."}}, "say While you were away, one thing finished."},
		{"two answers", Heard{Nth: 2, Outputs: []Output{{Text: `{"say":"One."}`}, {Text: `{"say":"Two."}`}}},
			"say One. Two."},
		{"another tool's answer", Heard{Nth: 2, Outputs: []Output{{Text: `{"status":"started"}`}}},
			"say The tool has answered."},
		{"an answer that is no JSON", Heard{Nth: 2, Outputs: []Output{{Text: "It is sunny. And warm. And dry."}}},
			"say It is sunny. And warm."},
		{"an empty answer", Heard{Nth: 2, Outputs: []Output{{Text: ""}}}, ""},
		{"a sound", Heard{Nth: 2, Sound: true}, "say " + sayNoWords},
		{"news and a wish", Heard{Nth: 2, Texts: []string{"push it on bigpc"}, Messages: []string{message}},
			`codex{"server":"bigpc","prompt":"Push it"} | say bigpc is done in the session Auth refactor. All tests pass. I ` +
				`changed one line.`},
		{"two wishes", Heard{Nth: 2, Texts: []string{"push it on bigpc", "push it on laptop"}},
			`codex{"server":"bigpc","prompt":"Push it"} | codex{"server":"laptop","prompt":"Push it"}`},
		{"a forced function", Heard{Nth: 2, Texts: []string{"hm"}, Choice: tools.ListServers}, "say " + sayUnknown +
			" | list_servers{}"},
		{"a required call that it makes anyway", Heard{Nth: 2, Texts: []string{"push it on bigpc"}, Choice: "required"},
			`codex{"server":"bigpc","prompt":"Push it"}`},
	} {
		c.h.Tools = allTools()
		if got := show(newBrain(new(atomic.Bool)).reply(c.h)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestBrainNoticesSoundOnce(t *testing.T) {
	b := newBrain(new(atomic.Bool))
	first, second := show(b.reply(Heard{Nth: 1, Sound: true})), show(b.reply(Heard{Nth: 2, Sound: true}))
	if first != "say "+sayNoWords || second != "say "+sayNoWords2 {
		t.Errorf("got %s, then %s", first, second)
	}
}

// TestGreetsOnce: only the first caller is told that the voice is simulated.
func TestGreetsOnce(t *testing.T) {
	m := New(Config{})
	var said []string
	for range 2 {
		said = append(said, show(m.mind().reply(Heard{Nth: 1})))
	}
	said = append(said, show(m.mind().reply(Heard{Nth: 2, Texts: []string{"hello"}})))
	if want := []string{"say " + sayGreeting, "say " + sayHello, "say " + sayHello}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

func TestChipsAreUnderstood(t *testing.T) {
	b, chips := newBrain(new(atomic.Bool)), Chips()
	want := []wish{wishMachines, wishSessions, wishContinue, wishWork, wishWork, wishWork, wishWork, wishWork}
	if len(chips) != len(want) {
		t.Fatalf("%d chips", len(chips))
	}
	for i, chip := range chips {
		if in := understand(chip.Text, b.machines); in.wish != want[i] {
			t.Errorf("%q is %d, want %d", chip.Text, in.wish, want[i])
		}
	}
}
