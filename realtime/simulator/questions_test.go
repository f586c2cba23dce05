package simulator

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// Questions as the router announces them, and how they are asked.
var (
	asksPush = asks(handoff.RecordQuestion{Kind: handoff.QuestionCommand, Server: "bigpc", Label: "q1",
		Command: "/bin/bash -lc 'git push origin main'"})
	asksWords = asks(handoff.RecordQuestion{Kind: handoff.QuestionInput, Words: true, Server: "laptop", Label: "q2",
		Text: "Which version are the notes for? (2.4, 2.5)"})
	asksCopy = asks(handoff.RecordQuestion{Kind: handoff.QuestionCopy, Server: "laptop", Label: "q3",
		Title: "Auth refactor", Reason: "It is open in another program on that machine."})
	asksTap = asks(handoff.RecordQuestion{Kind: handoff.QuestionCommand, Server: "bigpc", Label: "q4",
		Command: "sudo reboot", Tap: "it is too risky to be allowed by voice"})
	asksThere = asks(handoff.RecordQuestion{Kind: handoff.QuestionOther, Server: "bigpc", Label: "q5"})
)

func asks(q handoff.RecordQuestion) string { return wording.English.QuestionMessage(q).Encode() }

func TestBrainAsksWhatAgentsAsk(t *testing.T) {
	for message, want := range map[string]string{
		asksPush:  "q1 bigpc: bigpc asks for permission to run a command. git push origin main. Yes or no?",
		asksWords: "q2 laptop: laptop has a question. Which version are the notes for? (2.4, 2.5).",
		asksCopy: "q3 laptop: The session Auth refactor is open in another program on laptop. Shall a copy of it be made on " +
			"laptop, to go on there, yes or no?",
		asksTap: "q4 bigpc: bigpc asks for permission to run a command. sudo reboot. Please answer on the page: it is too " +
			"risky to be allowed by voice.",
		asksThere: " bigpc: bigpc waits for an answer. That can only be answered on the machine bigpc itself, neither by " +
			"voice nor on the page.",
	} {
		a, _ := wording.ReadAnswer(message)
		q, _ := readQuestion(a)
		if got := q.label + " " + q.server + ": " + spokenMessage(message); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Once a question is open nothing says that its machine is at work: it waits for the caller.
func TestBrainSaysNoWorkingOnItBesideAQuestion(t *testing.T) {
	started := Output{Tool: tools.Codex, Text: `{"status":"started","server":"bigpc","say":"Working on it."}`}
	b := newBrain(new(atomic.Bool))
	for _, c := range []struct {
		heard Heard
		want  string
	}{
		{Heard{Outputs: []Output{started}}, "say Working on it."},
		{Heard{Outputs: []Output{started}, Messages: []string{asksPush}}, "say " + spokenMessage(asksPush)},
		{Heard{Outputs: []Output{started}}, ""},
	} {
		c.heard.Nth = 2
		if got := show(b.reply(c.heard)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// replies are sentences after questions, and what the brain does.
var replies = []struct {
	asked []string
	said  string
	want  string
}{
	{[]string{asksPush}, "yes", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "Allow it.", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "okay, go ahead", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "no", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "Don’t!", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "okay, wait, don't", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "yes... no, don't push it", `answer_agent{"question":"q1","decision":"decline"}`},
	// neither a yes nor a no
	{[]string{asksPush}, "okay, wait", "say " + sayQuiet},
	{[]string{asksPush}, "hm", "say " + sayUnknown + fmt.Sprintf(sayAnswer, "bigpc")},
	{[]string{asksPush}, "run the tests on laptop", `codex{"server":"laptop","prompt":"Run the tests"}`},
	// words
	{[]string{asksWords}, "2.5", `answer_agent{"question":"q2","text":"2.5"}`},
	{[]string{asksWords}, "no", `answer_agent{"question":"q2","text":"no"}`},
	{[]string{asksWords}, "which versions are there?", "say " + sayUnknown + fmt.Sprintf(sayAnswer, "laptop")},
	{[]string{asksWords}, "Run the tests on bigpc", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	// more than one
	{[]string{asksPush, asksWords}, "yes", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush, asksWords}, "2.5", `answer_agent{"question":"q2","text":"2.5"}`},
	{[]string{asksPush, asksCopy}, "yes", `answer_agent{"question":"q3","decision":"accept"}`},
	{[]string{asksPush, asksCopy}, "yes, on bigpc", `answer_agent{"question":"q1","decision":"accept"}`},
	// no longer
	{[]string{asksPush, ends("bigpc", handoff.OutcomeResult)}, "yes", "say " + sayNobody},
	{[]string{asksPush, ends("bigpc", handoff.OutcomeInterrupted)}, "no", "say " + sayNobody},
	{[]string{asksPush, wording.English.GaveUpMessage(handoff.RecordQuestion{Server: "bigpc"}).Encode()}, "yes",
		"say " + sayNobody},
	{[]string{asksPush, ends("laptop", handoff.OutcomeResult)}, "yes", `answer_agent{"question":"q1","decision":"accept"}`},
}

// ends is the message that work has ended.
func ends(server string, how handoff.Outcome) string {
	return wording.English.OutcomeMessage(handoff.Record{Server: server, Title: "Auth", Outcome: how}).Encode()
}

func TestBrainPassesAnswersOn(t *testing.T) {
	for _, c := range replies {
		b := newBrain(new(atomic.Bool))
		b.reply(Heard{Nth: 2, Messages: c.asked, Tools: allTools()})
		if got := show(b.reply(Heard{Nth: 3, Texts: []string{c.said}, Tools: allTools()})); got != c.want {
			t.Errorf("%q after %d questions:\n got %s\nwant %s", c.said, len(c.asked), got, c.want)
		}
	}
	b := newBrain(new(atomic.Bool))
	got := show(b.reply(Heard{Nth: 2, Texts: []string{"yes"}, Messages: []string{asksPush}, Tools: allTools()}))
	if want := "say " + sayNobody + " " + spokenMessage(asksPush); got != want {
		t.Errorf("in the same breath: got %s, want %s", got, want)
	}
	if got := show(b.reply(Heard{Nth: 3, Texts: []string{"yes"}})); got != "say "+sayApproval {
		t.Errorf("without the tool: %s", got)
	}
	for i := range maxOpen + 5 {
		b.note(strings.ReplaceAll(asksPush, "q1", fmt.Sprint("q", i)))
	}
	if len(b.questions) != maxOpen || b.questions[0].label != "q5" {
		t.Errorf("%d open, the oldest %s", len(b.questions), b.questions[0].label)
	}
}

func TestBrainTalksOfQuestions(t *testing.T) {
	for name, lines := range map[string][]string{
		"nothing was decided: it asks again": {
			"!" + asksPush, ">say " + spokenMessage(asksPush),
			"yes", `>answer_agent{"question":"q1","decision":"accept"}`,
			`={"status":"undecided","server":"bigpc","code":"no_consent","say":"I need a clear yes or no."}`,
			">say I need a clear yes or no. " + spokenMessage(asksPush),
			"yes", `>answer_agent{"question":"q1","decision":"accept"}`,
			`={"status":"done","server":"bigpc","say":"Okay, bigpc goes ahead."}`, ">say Okay, bigpc goes ahead.",
			"yes", ">say " + sayNobody,
		},
		"it was answered elsewhere": {
			"!" + asksWords, ">say " + spokenMessage(asksWords),
			"2.5", `>answer_agent{"question":"q2","text":"2.5"}`,
			`={"status":"failed","code":"not_pending","say":"That question is no longer open."}`,
			">say That question is no longer open.",
			"2.5", ">say " + sayUnknown + sayOthers,
		},
	} {
		t.Run(name, func(t *testing.T) { talk(t, lines) })
	}
}

// TestAnotherSessionKnowsTheQuestions: what a replay of another session left open can be answered, what it closed
// cannot, and an answer that its end cut goes on.
func TestAnotherSessionKnowsTheQuestions(t *testing.T) {
	b := newBrain(new(atomic.Bool))
	past := news{Messages: []string{asksPush, asksCopy}, Outputs: []Output{{Tool: tools.AnswerAgent,
		Arguments: `{"question":"q3","decision":"accept"}`, Text: `{"status":"done","server":"laptop"}`}}}
	if got := show(b.reply(Heard{Nth: 1, Texts: []string{"yes"}, Tools: allTools(), past: past})); got !=
		`answer_agent{"question":"q1","decision":"accept"}` {
		t.Error(got)
	}
	done := wording.Answer{Say: "bigpc is done. All tests pass."}.Encode()
	cut := cut{said: "bigpc is", answered: news{Messages: []string{done}}}
	h := Heard{Nth: 2, Messages: []string{"Go on where you were cut. Say nothing else."}, cut: cut}
	if got := show(b.reply(h)); got != "say done. All tests pass." {
		t.Error(got)
	}
}

// pausedRecord is work that was not begun, as the router tells of it.
func pausedRecord(id, server, words string) handoff.Record {
	fault := handoff.Fault(handoff.CodePaused, server, "")
	return handoff.Record{ID: id, Server: server, Prompt: words, Outcome: handoff.OutcomeCancelled, Paused: true,
		Fault: fault, Spoken: fault.Spoken()}
}

// What was paused is begun or dropped by the name that the router told for it, when the caller says so and not before.
func TestBrainBeginsAndDropsPausedWork(t *testing.T) {
	var (
		onBigpc  = "!" + wording.English.OutcomeMessage(pausedRecord("h-2", "bigpc", "then push")).Encode()
		onLaptop = "!" + wording.English.OutcomeMessage(pausedRecord("h-3", "laptop", "write the notes")).Encode()
		away     = "!" + wording.English.FinalsMessage([]handoff.Record{
			{Server: "laptop", Outcome: handoff.OutcomeResult, Spoken: "The notes are written."},
			pausedRecord("h-4", "bigpc", "run the benchmarks"),
		}, wording.WhenAway).Encode()
	)
	const (
		asks    = ">say What waited on bigpc is paused, because the work before it was stopped. It was: then push. " + sayPaused
		another = ">say What waited on laptop is paused, because the work before it was stopped. It was: write the notes. " +
			sayPaused
		begins = `>codex{"server":"bigpc","prompt":"then push","begin":"h-2"}`
		drops  = `>stop_work{"drop":"h-2"}`
	)
	for name, lines := range map[string][]string{
		"begun":     {onBigpc, asks, "Go on.", begins, "go on", ">say " + sayNotPaused},
		"dropped":   {onBigpc, asks, "drop it", drops},
		"another":   {onBigpc, asks, onLaptop, another, "go on on bigpc", begins, "drop it", `>stop_work{"drop":"h-3"}`},
		"elsewhere": {onBigpc, asks, "go on on laptop", ">say " + sayNotPaused},
		"while away": {away,
			">say While you were away, one thing finished, one was not begun. bigpc, not begun: run the benchmarks; laptop, " +
				"done: The notes are written. " + sayPaused, "go on", `>codex{"server":"bigpc","prompt":"run the benchmarks","begin":"h-4"}`},
		"told by the state": {"status", ">status{}",
			`={"paused":[{"server":"bigpc","begin":"h-2","said":"then push"}],"say":"x"}`, ">say x", "drop it", drops},
	} {
		t.Run(name, func(t *testing.T) { talk(t, lines) })
	}
}
