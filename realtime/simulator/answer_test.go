package simulator

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// Questions as the router announces them.
var (
	asksPush = wording.Message("bigpc asks for permission to run a command. Tell the caller now what exactly would be "+
		"done on bigpc and ask: yes or no? Then give their answer with answer_agent, question q1; never decide yourself.",
		"/bin/bash -lc 'git push origin main'")
	asksWords = wording.Message("laptop has a question. Ask the caller, then give their words with answer_agent, "+
		"question q2.", "Which version are the notes for? (2.4, 2.5)")
	asksCopy = "The session Auth refactor is open in another program on laptop. Nothing was run. Tell the caller so " +
		"and ask now: shall a copy of it be made on laptop, to go on there, yes or no? Then give their answer with " +
		"answer_agent, question q3; never decide yourself."
	asksTap = wording.Message("bigpc asks for permission to run a command. Please answer on the page: it is too "+
		"risky to be allowed by voice. It is shown there, and a yes counts only there. Tell the caller so now, and what "+
		"would be done on bigpc. If they say no, give that with answer_agent, question q4.", "sudo reboot")
)

// Once a question is open nothing says that its machine is at work: it waits for the caller.
func TestBrainSaysNoWorkingOnItBesideAQuestion(t *testing.T) {
	started := func(server string) Output {
		return Output{Tool: tools.Codex, Text: fmt.Sprintf(`{"status":"started","server":%q,"say":"Working on it on %s."}`,
			server, server)}
	}
	const asks = "bigpc asks for permission to run a command. git push origin main. Yes or no?"
	b := newBrain(new(atomic.Bool))
	for _, c := range []struct {
		heard Heard
		want  string
	}{
		{Heard{Outputs: []Output{started("bigpc")}}, "say Working on it on bigpc."},
		{Heard{Outputs: []Output{started("bigpc"), started("laptop")}, Messages: []string{asksPush}},
			"say Working on it on laptop. " + asks},
		{Heard{Outputs: []Output{started("bigpc")}}, ""},
		{Heard{Outputs: []Output{started("laptop")}}, "say Working on it on laptop."},
		{Heard{Outputs: []Output{{Tool: tools.Codex,
			Text: `{"status":"failed","server":"bigpc","say":"bigpc is not answering."}`}}}, "say bigpc is not answering."},
	} {
		c.heard.Nth, c.heard.Tools = 2, allTools()
		if got := show(b.reply(c.heard)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestSeveralOutcomesAreAllSaid: an announcement of several outcomes leaves none out, however long the first is; nor
// does the summary of what ended while the caller was away.
func TestSeveralOutcomesAreAllSaid(t *testing.T) {
	const notes = "The notes are written. They name three changes. All are small."
	several := []handoff.Record{
		{Server: "laptop", Outcome: handoff.OutcomeResult, Text: notes, Spoken: notes},
		{Server: "attic", Outcome: handoff.OutcomeFailed, Fault: handoff.Fault(handoff.CodeUnreachable, "attic", ""),
			Spoken: "attic is not answering."},
	}
	for _, text := range []string{wording.English.FinalsMessage(several), wording.English.AwaySummary(several, time.Time{})} {
		if got := spokenMessage(text); !strings.Contains(got, "notes are written") ||
			!strings.Contains(got, "attic is not answering") {
			t.Errorf("said of\n%s:\n%s", text, got)
		}
	}
}

// TestSaysNoMoreThanAnAnswer: an answer with nothing to say is not read out instead.
func TestSaysNoMoreThanAnAnswer(t *testing.T) {
	for output, want := range map[string]string{
		wording.HushAnswer().Encode():                                    "",
		`{"status":"unknown","say":"","note":"What was begun goes on."}`: "",
		`{"status":"started"}`:                                           "The tool has answered.",
	} {
		if got := spokenOutput(Output{Text: output}); got != want {
			t.Errorf("%s: it says %q", output, got)
		}
	}
}

// TestSaysTheWords: a message that gives its words is said with those alone.
func TestSaysTheWords(t *testing.T) {
	const lead = "The money is used up. Tell the caller so."
	for message, want := range map[string]string{
		lead + ` Say it like this: "Das Geld ist aufgebraucht."`: "Das Geld ist aufgebraucht.",
		lead + ` Say it like this: as you like.`:                 "The money is used up.",
	} {
		if got := spokenMessage(message); got != want {
			t.Errorf("%s: it says %q", message, got)
		}
	}
}

func TestBrainAsksWhatAgentsAsk(t *testing.T) {
	for message, want := range map[string]string{
		asksPush:  "bigpc asks for permission to run a command. git push origin main. Yes or no?",
		asksWords: "laptop has a question. Which version are the notes for? (2.4, 2.5).",
		asksCopy: "The session Auth refactor is open in another program on laptop. Shall I make a copy on laptop, to go " +
			"on there, yes or no?",
		asksTap: "bigpc asks for permission to run a command. sudo reboot. Please answer on the page: it is too risky " +
			"to be allowed by voice.",
		"bigpc waits for an answer. That can only be answered on the machine bigpc itself, neither by voice nor on the " +
			"page. Tell the caller so now.": "bigpc waits for an answer. That can only be answered on the machine bigpc " +
			"itself, neither by voice nor on the page.",
	} {
		if got := spokenMessage(message); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if strings.Contains(message, "machine bigpc itself") {
			continue
		}
		if q, ok := readQuestion(message); !ok || q.server != map[string]string{"q1": "bigpc", "q2": "laptop", "q3": "laptop",
			"q4": "bigpc"}[q.label] {
			t.Errorf("%q: %+v", message, q)
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
	{[]string{asksPush}, "yes, push it", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "Okay, go ahead on bigpc", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "bigpc, yes", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "okay", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush}, "no", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "Don’t!", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "okay, wait, don't", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "yes... no, don't push it", `answer_agent{"question":"q1","decision":"decline"}`},
	{[]string{asksPush}, "no, and stop the work", `answer_agent{"question":"q1","decision":"stop"}`},
	// neither a yes nor a no
	{[]string{asksPush}, "okay, wait", "say " + sayQuiet},
	{[]string{asksPush}, "hold on a second", "say " + sayUnknown + " " + fmt.Sprintf(sayAnswer, "bigpc")},
	{[]string{asksPush}, "stop", "say " + sayQuiet},
	{[]string{asksPush}, "thanks", "say " + sayQuiet},
	{[]string{asksPush}, "Okay, now run the tests.", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	{[]string{asksPush}, "stop the work", "stop_work{}"},
	{[]string{asksPush}, "what is waiting?", "status{}"},
	{[]string{asksPush}, "do it on laptop", `codex{"server":"laptop","prompt":"Do it"}`},
	// words
	{[]string{asksWords}, "2.5", `answer_agent{"question":"q2","text":"2.5"}`},
	{[]string{asksWords}, "It's version 2.5, please.", `answer_agent{"question":"q2","text":"It's version 2.5, please."}`},
	{[]string{asksWords}, "no", `answer_agent{"question":"q2","text":"no"}`},
	{[]string{asksWords}, "laptop: 2.5", `answer_agent{"question":"q2","text":"2.5"}`},
	// bigpc was used last
	{[]string{asksWords}, "use the newer one", `codex{"server":"bigpc","prompt":"Use the newer one"}`},
	{[]string{asksWords}, "which versions are there?", "say " + sayUnknown + " " + fmt.Sprintf(sayAnswer, "laptop")},
	{[]string{asksWords}, "hold on", "say " + sayQuiet},
	{[]string{asksWords}, "Run the tests on bigpc", `codex{"server":"bigpc","prompt":"Run the tests"}`},
	// more than one
	{[]string{asksPush, asksWords}, "yes", `answer_agent{"question":"q1","decision":"accept"}`},
	{[]string{asksPush, asksWords}, "2.5", `answer_agent{"question":"q2","text":"2.5"}`},
	{[]string{asksPush, asksCopy}, "yes", `answer_agent{"question":"q3","decision":"accept"}`},
	{[]string{asksPush, asksCopy}, "yes, on bigpc", `answer_agent{"question":"q1","decision":"accept"}`},
	// no longer
	{[]string{asksPush, "bigpc is done in the session Auth. Tell the caller now."}, "yes", "say " + sayNobody},
	{[]string{asksPush, "The work on bigpc in the session Auth was stopped. Tell the caller once."}, "don't", "say " +
		sayNobody},
	{[]string{asksPush, "Nobody answered the question of bigpc, so it was declined. Tell the caller once."}, "yes",
		"say " + sayNobody},
	{[]string{asksPush, "laptop is done. Tell the caller now."}, "yes",
		`answer_agent{"question":"q1","decision":"accept"}`},
}

func TestBrainPassesAnswersOn(t *testing.T) {
	for _, c := range replies {
		b := newBrain(new(atomic.Bool))
		b.machines, b.lastMachine = fleetKnown(), "bigpc"
		b.reply(Heard{Nth: 2, Messages: c.asked, Tools: allTools()})
		if got := show(b.reply(Heard{Nth: 3, Texts: []string{c.said}, Tools: allTools()})); got != c.want {
			t.Errorf("%q after %d questions:\n got %s\nwant %s", c.said, len(c.asked), got, c.want)
		}
	}
	b := newBrain(new(atomic.Bool))
	b.reply(Heard{Nth: 2, Messages: []string{asksPush}})
	if got := show(b.reply(Heard{Nth: 3, Texts: []string{"yes"}})); got != "say "+sayApproval {
		t.Errorf("without the tool: %s", got)
	}
}

// What is said in the same breath in which a question comes was not said to it.
func TestBrainAnswersOnlyWhatWasAsked(t *testing.T) {
	b := newBrain(new(atomic.Bool))
	got := show(b.reply(Heard{Nth: 2, Texts: []string{"yes"}, Messages: []string{asksPush}, Tools: allTools()}))
	if want := "say " + sayNobody + " " + spokenMessage(asksPush); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBrainTalksOfQuestions(t *testing.T) {
	for name, lines := range map[string][]string{
		"nothing was decided: it asks again": {
			"!" + asksPush, ">say " + spokenMessage(asksPush),
			"yes", `>answer_agent{"question":"q1","decision":"accept"}`,
			`={"status":"undecided","server":"bigpc","code":"no_consent","say":"I need a clear yes or no: the answer was not ` +
				`plain."}`,
			">say I need a clear yes or no: the answer was not plain. " + spokenMessage(asksPush),
			"yes", `>answer_agent{"question":"q1","decision":"accept"}`,
			`={"status":"done","server":"bigpc","say":"Okay, bigpc goes ahead."}`, ">say Okay, bigpc goes ahead.",
			"yes", ">say " + sayNobody,
		},
		"it was answered elsewhere": {
			"!" + asksWords, ">say " + spokenMessage(asksWords),
			"2.5", `>answer_agent{"question":"q2","text":"2.5"}`,
			`={"status":"failed","code":"not_pending","say":"That question is no longer open."}`,
			">say That question is no longer open.",
			"2.5", ">say " + sayUnknown,
		},
		"they asked for time": {
			"!" + asksPush, ">say " + spokenMessage(asksPush),
			"okay", `>answer_agent{"question":"q1","decision":"accept"}`,
			`={"status":"open","server":"bigpc","say":"It waits."}`, ">say It waits.",
			"no", `>answer_agent{"question":"q1","decision":"decline"}`,
		},
		"what was queued is the last work": {
			"then run the tests on laptop", `>queue_next{"server":"laptop","prompt":"Run the tests"}`,
			`={"status":"queued","server":"laptop","say":"It comes after the work that is running on laptop."}`,
			">say It comes after the work that is running on laptop.",
			"fix it", `>codex{"server":"laptop","prompt":"Fix it"}`,
		},
		"a session for what is queued": {
			"after that, continue the auth session and fix it", `>list_sessions{"query":"auth"} then work fix it`,
			"=" + oneAuth, `>queue_next{"server":"bigpc","thread_id":"t1","prompt":"Fix it"}`,
		},
	} {
		t.Run(name, func(t *testing.T) { talk(t, lines) })
	}
}

// FuzzReplies says anything after questions. A yes is passed on only when the sentence begins as one and
// nothing in it denies; a question is answered by its own label, with a decision or words, never both.
func FuzzReplies(f *testing.F) {
	for _, c := range replies {
		f.Add(c.said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		b := newBrain(new(atomic.Bool))
		b.machines, b.lastMachine = fleetKnown(), "bigpc"
		b.reply(Heard{Nth: 2, Messages: []string{asksPush, asksWords}, Tools: allTools()})
		got := show(b.reply(Heard{Nth: 3, Texts: []string{said}, Tools: allTools()}))
		if !strings.Contains(got, `answer_agent{"question":"q1","decision":"accept"}`) {
			return
		}
		words := spokenWords(said)
		has := func(list string) bool {
			return slices.ContainsFunc(strings.Fields(list), func(w string) bool { return slices.Contains(words, w) })
		}
		if !has("yes yeah yep yup sure allow approve accept affirmative granted go do absolutely definitely ok okay "+
			"alright all fine") ||
			has("no nope nah not don't dont never decline deny reject refuse negative wait hold later moment minute second") {
			t.Errorf("%q became %s", said, got)
		}
	})
}

func TestBrainForgetsOldQuestions(t *testing.T) {
	b := newBrain(new(atomic.Bool))
	for i := range maxOpen + 5 {
		b.noteMessage(fmt.Sprintf("bigpc asks for more permissions. Tell the caller now what exactly would be done on "+
			"bigpc and ask: yes or no? Then give their answer with answer_agent, question q%d; never decide yourself.", i))
	}
	if len(b.questions) != maxOpen || b.questions[0].label != "q5" {
		t.Errorf("%d open, the oldest %s", len(b.questions), b.questions[0].label)
	}
}
