package simulator

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// show writes moves as a test wants to read them.
func show(moves []Move) string {
	var parts []string
	for _, m := range moves {
		switch m := m.(type) {
		case Say:
			parts = append(parts, "say "+m.Text)
		case Call:
			parts = append(parts, m.Tool+m.Arguments)
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

// sentencesKnown are sentences after bigpc was used last.
var sentencesKnown = []struct{ said, want string }{
	{"Which machines do I have?", `list_servers{}`},
	{"What was I working on?", `list_sessions{}`},
	{"What was I working on on laptop?", `list_sessions{"server":"laptop"}`},
	{"What’s running?", "status{}"},
	{"what is waiting?", "status{}"},
	{"Stop the work", "stop_work{}"},
	{"Stop it!", "stop_work{}"},
	{"stop the work on bigpc", `stop_work{"server":"bigpc"}`},
	{"Continue the auth session on bigpc and run the tests", `list_sessions{"server":"bigpc","query":"auth"}`},
	{"on bigpc, continue the auth session and run the tests.", `list_sessions{"server":"bigpc","query":"auth"}`},
	{"continue my auth refactor session", `list_sessions{"query":"auth refactor"}`},
	{"Continue this on laptop", `codex{"server":"laptop","from_server":"bigpc","prompt":"Continue this here."}`},
	{"continue this on laptop and run the tests", `codex{"server":"laptop","from_server":"bigpc","prompt":"Run the tests"}`},
	{"continue this on bigpc", `codex{"server":"bigpc","prompt":"Continue this here."}`},
	{"On laptop, write the release notes", `codex{"server":"laptop","prompt":"Write the release notes"}`},
	{"on Laptop how many tests are there", `codex{"server":"Laptop","prompt":"How many tests are there"}`},
	{"Ask attic to check the backups", `codex{"server":"attic","prompt":"Check the backups"}`},
	{"Push it from bigpc", `codex{"server":"bigpc","prompt":"Push it"}`},
	{"run the tests on the laptop", `codex{"server":"laptop","prompt":"Run the tests"}`},
	{"run the tests on bigpc/api", `codex{"server":"bigpc/api","prompt":"Run the tests"}`},
	{"Fix it", `codex{"server":"bigpc","prompt":"Fix it"}`},
	{"run the benchmarks on laptop again", `codex{"server":"bigpc","prompt":"Run the benchmarks on laptop again"}`},
	{"remove the log lines from main.go", `codex{"server":"bigpc","prompt":"Remove the log lines from main.go"}`},
	{"After that, tell me what changed on laptop", `queue_next{"server":"laptop","prompt":"Tell me what changed"}`},
	{"and then on laptop, run the tests", `queue_next{"server":"laptop","prompt":"Run the tests"}`},
	{"then fix it", `queue_next{"server":"bigpc","prompt":"Fix it"}`},
	{`set_updates {"level":"quiet"}`, `set_updates{"level":"quiet"}`},
	{"status", "status{}"},
	{"status of the build", "say " + sayUnknown + sayOthers},
	{"hello", "say " + saySimulated},
	{"What can you do?", "say " + sayAbility},
	{"stop", "say " + sayQuiet},
	{"Thank you!", "say " + sayQuiet},
	{"yes, push it", "say " + sayNobody},
	{"don't", "say " + sayNobody},
	{"go on", "say " + sayNotPaused},
	{"What is the capital of France?", "say " + sayUnknown + sayOthers},
	{"   ", "say " + sayUnknown + sayOthers},
}

func TestBrainUnderstandsSentences(t *testing.T) {
	for _, c := range sentencesKnown {
		b := newBrain(new(atomic.Bool))
		b.machine = "bigpc"
		if got := show(b.reply(Heard{Nth: 2, Texts: []string{c.said}, Tools: allTools()})); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.said, got, c.want)
		}
	}
	for said, want := range map[string]string{"Fix it": sayOnWhich, "continue this on laptop": sayNothingYet} {
		if got := show(newBrain(new(atomic.Bool)).reply(Heard{Nth: 1, Texts: []string{said}, Tools: allTools()})); got != "say "+want {
			t.Errorf("%q before any work: %s", said, got)
		}
	}
}

// TestChipsAreUnderstood: each sentence that the page offers calls a tool.
func TestChipsAreUnderstood(t *testing.T) {
	b := newBrain(new(atomic.Bool))
	for _, chip := range Chips() {
		moves := b.reply(Heard{Nth: 2, Texts: []string{chip.Text}, Tools: allTools()})
		if b.machine = "bigpc"; len(moves) != 1 || strings.HasPrefix(show(moves), "say ") {
			t.Errorf("%q: %s", chip.Text, show(moves))
		}
	}
}

func TestBrainSaysThatAToolIsMissing(t *testing.T) {
	for said, tool := range map[string]string{
		"Which machines do I have?":                            tools.ListServers,
		"Continue the auth session on bigpc and run the tests": tools.Codex,
		"then run the tests on bigpc":                          tools.QueueNext,
		"stop the work":                                        tools.StopWork,
	} {
		got := show(newBrain(new(atomic.Bool)).reply(Heard{Nth: 1, Texts: []string{said}, Tools: []string{"get_weather"}}))
		if want := "say " + fmt.Sprintf(sayNoTool, tool); got != want {
			t.Errorf("%q: got %s, want %s", said, got, want)
		}
	}
}

// Outputs of tools.
const (
	twoAuth = `={"items":[{"id":"t1","title":"Auth refactor","server":"bigpc"},{"id":"t2","title":"Auth ` +
		`docs","server":"laptop"}],"say":"There are two."}`
	unreachable = `={"status":"failed","server":"attic","code":"unreachable","say":"attic is not answering."}`
)

// talks are conversations with a brain: a line that begins with ">" is what it does, one with "=" the output of its
// last call, one with "!" a system message, anything else a sentence of the caller.
var talks = map[string][]string{
	"the session that is meant": {
		"Continue the auth session on bigpc and run the tests", `>list_sessions{"server":"bigpc","query":"auth"}`,
		`={"items":[{"id":"t1","title":"Auth refactor","server":"bigpc"}],"say":"x"}`,
		`>codex{"server":"bigpc","thread_id":"t1","prompt":"Run the tests"}`,
		`={"status":"done","server":"bigpc","say":"One test fails."}`, ">say One test fails.",
		"Fix it", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"several": {
		"Continue the auth session and fix it", `>list_sessions{"query":"auth"}`,
		twoAuth, ">say There are two." + sayWhich,
		"Continue the auth docs session", `>list_sessions{"query":"auth docs"}`,
		twoAuth, `>codex{"server":"laptop","thread_id":"t2","prompt":"Go on where you left off."}`,
	},
	"none": {
		"Continue the billing session", `>list_sessions{"query":"billing"}`, `={"items":[],"say":"There is none."}`,
		">say There is none." + sayWhich,
	},
	"the list fails": {
		"Continue the auth session on attic", `>list_sessions{"server":"attic","query":"auth"}`, unreachable,
		">say attic is not answering.",
	},
	"work does not follow to where nobody is": {
		"run the tests on bigpc", `>codex{"server":"bigpc","prompt":"Run the tests"}`,
		`={"status":"started","server":"bigpc","say":"Working."}`, ">say Working.",
		"Ask attic to check the backups", `>codex{"server":"attic","prompt":"Check the backups"}`,
		unreachable, ">say attic is not answering.",
		"fix it", `>codex{"server":"bigpc","prompt":"Fix it"}`,
	},
	"what was queued is the last work": {
		"then run the tests on laptop", `>queue_next{"server":"laptop","prompt":"Run the tests"}`,
		`={"status":"queued","server":"laptop","say":"It comes after that."}`, ">say It comes after that.",
		"fix it", `>codex{"server":"laptop","prompt":"Fix it"}`,
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
			h.Outputs = []Output{{Tool: last.Tool, Arguments: last.Arguments, Text: line[1:], then: last.then}}
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
			}
		}
	}
}

func TestBrainSpeaksNews(t *testing.T) {
	message := wording.Answer{Status: "done", Server: "bigpc", Say: "bigpc is done. All tests pass. I changed one line.",
		Note: "Tell the caller now, once.", Result: "All tests pass. I changed one line. There is more."}.Encode()
	spoken := func(l wording.Language) (message, say string) {
		a := l.OutcomeMessage(handoff.Record{Server: "bigpc", Title: "Auth", Outcome: handoff.OutcomeResult, Text: "全部通过。"})
		return a.Encode(), "say " + a.Say
	}
	japanese, inJapanese := spoken("ja")
	for _, c := range []struct {
		name string
		h    Heard
		want string
	}{
		{"first response, nothing said", Heard{Nth: 1}, "say " + sayGreeting},
		{"later, nothing new", Heard{Nth: 2}, ""},
		{"out of band, nothing new", Heard{Nth: 1, OutOfBand: true}, ""},
		{"a result", Heard{Nth: 1, Messages: []string{message}},
			"say bigpc is done. All tests pass. I changed one line."},
		{"a result in another language, and no instruction", Heard{Nth: 2, Messages: []string{japanese}}, inJapanese},
		{"a command", Heard{Nth: 2, Messages: []string{wording.Answer{Server: "bigpc", Question: "q1",
			Say: "bigpc asks for permission to run a command.", Ask: "Please answer on the page.", Note: "It is shown there.",
			Asked: "/bin/bash -lc 'git push origin main'"}.Encode()}},
			"say bigpc asks for permission to run a command. git push origin main. Please answer on the page."},
		{"a silent note", Heard{Nth: 2, Messages: []string{wording.RemarkNote(handoff.Record{Server: "bigpc"}, "Reading.").Encode()}},
			""},
		{"a silent text", Heard{Nth: 2, Messages: []string{"The connection was lost. Say nothing of it."}}, ""},
		{"away", Heard{Nth: 1, Messages: []string{"While the caller was away, one thing finished. Say this as one " +
			"sentence."}}, "say While you were away, one thing finished."},
		{"two answers", Heard{Nth: 2, Outputs: []Output{{Text: `{"say":"One."}`}, {Text: `{"say":"Two."}`}}},
			"say One. Two."},
		{"nothing to say", Heard{Nth: 2, Outputs: []Output{{Text: wording.HushAnswer().Encode()}}}, ""},
		{"another tool's answer", Heard{Nth: 2, Outputs: []Output{{Text: `{"status":"started"}`}}},
			"say The tool has answered."},
		{"an answer that is no JSON", Heard{Nth: 2, Outputs: []Output{{Text: "It is sunny. And warm. And dry."}}},
			"say It is sunny. And warm."},
		{"an empty answer", Heard{Nth: 2, Outputs: []Output{{Text: ""}}}, ""},
		{"a sound", Heard{Nth: 2, Sound: true}, "say " + sayNoWords},
		{"news and a wish", Heard{Nth: 2, Texts: []string{"push it on bigpc"}, Messages: []string{message}},
			`codex{"server":"bigpc","prompt":"Push it"} | say bigpc is done. All tests pass. I changed one line.`},
		{"words that are given", Heard{Nth: 2, Messages: []string{`{"say":"Das Geld ist aufgebraucht.","note":"The money is used up."}`}},
			"say Das Geld ist aufgebraucht."},
	} {
		c.h.Tools = allTools()
		if got := show(newBrain(new(atomic.Bool)).reply(c.h)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestGreetsOnce: only the first caller is told that the voice is simulated, and once that it understands no sound.
func TestGreetsOnce(t *testing.T) {
	m := New(Config{})
	said := []string{show(m.decider()(Heard{Nth: 1}))}
	reply := m.decider()
	for _, h := range []Heard{{Nth: 1}, {Sound: true}, {Sound: true}} {
		said = append(said, show(reply(h)))
	}
	if want := []string{"say " + sayGreeting, "say " + sayHello, "say " + sayNoWords, "say " + sayNoWords2}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}
