package simulator

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// A question is a question of an agent to the caller, as a system message announced it.
type question struct {
	label  string // "q1"
	server string
	words  bool   // the answer is words; else a yes or a no
	spoken string // how the caller is asked
}

// paused is work that waits for the caller to begin or drop it.
type paused struct{ id, prompt, server string }

// maxOpen bounds the questions, and the paused work, that the brain remembers; the oldest is forgotten first.
const maxOpen = 32

// sayPaused asks about paused work.
const sayPaused = "Say go on, or drop it."

// readQuestion reads a message that announces a question of an agent.
func readQuestion(a wording.Answer) (question, bool) {
	q := question{label: a.Question, server: a.Server, words: strings.Contains(a.Note, "give their words")}
	q.spoken = strings.Join(strings.Fields(a.Say+" "+spokenQuote(a.Asked)+" "+a.Ask), " ")
	return q, q.label != ""
}

// note remembers the question or the paused work in a system message, and forgets the questions of work that has ended.
func (b *brain) note(message string) {
	a, _ := wording.ReadAnswer(message)
	if q, ok := readQuestion(a); ok {
		b.close(q.label)
		b.questions = append(b.questions, q)
		b.questions = b.questions[max(0, len(b.questions)-maxOpen):]
		return
	}
	for _, p := range a.Paused {
		b.pause(paused{p.Begin, p.Said, p.Server})
	}
	b.questions = slices.DeleteFunc(b.questions, func(q question) bool {
		return a.Status != "" && a.Server == q.server
	})
}

// close forgets a question.
func (b *brain) close(label string) {
	b.questions = slices.DeleteFunc(b.questions, func(q question) bool { return q.label == label })
}

func (b *brain) pause(p paused) {
	b.paused = append(slices.DeleteFunc(b.paused, func(old paused) bool { return old.id == p.id }), p)
	b.paused = b.paused[max(0, len(b.paused)-maxOpen):]
}

// pausedWork begins or drops the newest paused work, or that of a machine.
func (b *brain) pausedWork(h Heard, server string, drop bool) []Move {
	for i, p := range slices.Backward(b.paused) {
		if server != "" && server != p.server {
			continue
		}
		b.paused = slices.Delete(b.paused, i, i+1)
		if drop {
			return call(h, tools.StopWork, tools.StopArguments{Drop: p.id}, nil)
		}
		return call(h, tools.Codex, tools.CodexArguments{Server: p.server, Prompt: p.prompt, Begin: p.id}, nil)
	}
	return says(sayNotPaused)
}

// asksInstead reports whether an output only says that work has begun on a machine whose agent already asks the caller
// something: the question is said instead.
func (b *brain) asksInstead(o Output) bool {
	if !readable(o.Text) || gjson.Get(o.Text, "status").String() != "started" {
		return false
	}
	server := gjson.Get(o.Text, "server").String()
	return slices.ContainsFunc(b.questions, func(q question) bool { return q.server == server })
}

// questionFor returns the newest question that a sentence may answer: one of the machine that the sentence names, if it
// names one that asks. Words answer only if the sentence is not a known one, and a yes or a no answers a question that
// wants that first.
func (b *brain) questionFor(text string, known bool) (found question, ok bool) {
	decided := decisionIn(text) != ""
	words := spokenWords(text)
	names := func(q question) bool { return slices.Contains(words, strings.ToLower(q.server)) }
	named := slices.ContainsFunc(b.questions, names)
	for _, q := range b.questions {
		fits := decided || q.words && !known && !strings.HasSuffix(text, "?")
		if fits && (!named || names(q)) && !(decided && q.words && ok && !found.words) {
			found, ok = q, true
		}
	}
	return found, ok
}

// answer passes on what the caller said to a question. The router decides what it means.
func (b *brain) answer(h Heard, q question, text string) []Move {
	if !slices.Contains(h.Tools, tools.AnswerAgent) {
		return says(sayApproval)
	}
	args := tools.AnswerArguments{Question: q.label, Decision: decisionIn(text)}
	if q.words {
		args.Decision, args.Text = "", text
	}
	return call(h, tools.AnswerAgent, args, func(_ Heard, o Output) []Move {
		said := spokenOutput(o)
		if gjson.Get(o.Text, "status").String() == "undecided" {
			said += " " + q.spoken
		}
		return says(said)
	})
}

// Words by which a reply to a question is recognised.
var (
	yesWords  = strings.Fields("yes yeah yep sure allow approve accept")
	okayWords = strings.Fields("ok okay go ahead") // a yes if nothing else is said
	noWords   = strings.Fields("no nope don't dont not never decline deny reject refuse")
	waitWords = strings.Fields("wait hold later moment minute second")
)

// decisionIn returns the decision in a sentence that begins with a yes or a no; "" for every other sentence. A word
// that denies wins, and a caller who asks for time has said neither.
func decisionIn(text string) handoff.Decision {
	words := spokenWords(text)
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	begins := func(list []string) bool { return len(words) > 0 && slices.Contains(list, words[0]) }
	switch {
	case !begins(yesWords) && !begins(okayWords) && !begins(noWords):
		return ""
	case has(noWords):
		return handoff.DecisionDecline
	case has(waitWords):
		return ""
	case begins(okayWords) && slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains(okayWords, w) && !slices.Contains(yesWords, w)
	}):
		return ""
	}
	return handoff.DecisionAccept
}

// spokenWords returns the words of a sentence in lower case. Names keep the punctuation inside them.
func spokenWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("'-_.", r)
	})
	for i, w := range words {
		words[i] = strings.Trim(w, "'-_.")
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
