package simulator

import (
	"cmp"
	"fmt"
	"regexp"
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

// How the router's messages name a question's label, its machine if that is not the first word, and paused work.
var (
	reLabel      = regexp.MustCompile(`answer_agent, question (q\d+)`)
	rePlace      = regexp.MustCompile(`(?:done|made) on (\S+?)(?:,| and |\. )`)
	rePaused     = regexp.MustCompile(`To begin it: begin "([^"\s]+)"\. It was: (.+)`)
	rePausedOn   = regexp.MustCompile(`(?:waited|asked for) on (\S+) (?:is paused|was not begun)`)
	rePausedLine = regexp.MustCompile(`^(\S+), not begun: `)
)

// sayPaused asks about paused work.
const sayPaused = "Say go on, or drop it."

// readQuestion reads a system message that announces a question of an agent.
func readQuestion(text string) (question, bool) {
	lead, quote := wording.SplitMessage(text)
	m := reLabel.FindStringSubmatch(lead)
	if m == nil {
		return question{}, false
	}
	q := question{label: m[1], words: strings.Contains(lead, "give their words")}
	q.server, _, _ = strings.Cut(lead, " ")
	if at := rePlace.FindStringSubmatch(lead); at != nil {
		q.server = at[1]
	}
	ask := cmp.Or(wording.AskedHow(text), "Yes or no?")
	switch {
	case q.words: // the quote is the question
		ask = ""
	case strings.Contains(lead, " answer on the page"):
		ask = strings.TrimSpace(strings.TrimPrefix(firstSentences(lead, 2), firstSentences(lead, 1)))
	case quote == "":
		ask = fmt.Sprintf("Shall I make a copy on %s, to go on there, yes or no?", q.server)
	}
	q.spoken = strings.Join(strings.Fields(firstSentences(lead, 1)+" "+spokenQuote(quote)+" "+ask), " ")
	return q, true
}

// readPaused returns the paused work that a system message describes.
func readPaused(message string) []paused {
	lead, quote := wording.SplitMessage(message)
	var found []paused
	for line := range strings.SplitSeq(quote, "\n") {
		m := rePaused.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		p := paused{id: m[1], prompt: m[2]}
		if on := rePausedLine.FindStringSubmatch(line); on != nil {
			p.server = on[1]
		} else if on := rePausedOn.FindStringSubmatch(lead); on != nil {
			p.server = on[1]
		}
		found = append(found, p)
	}
	return found
}

// note remembers the question or the paused work in a system message, and forgets the questions of work that has ended.
func (b *brain) note(message string) {
	if q, ok := readQuestion(message); ok {
		b.close(q.label)
		b.questions = append(b.questions, q)
		b.questions = b.questions[max(0, len(b.questions)-maxOpen):]
		return
	}
	for _, p := range readPaused(message) {
		b.pause(p)
	}
	b.questions = slices.DeleteFunc(b.questions, func(q question) bool {
		return strings.HasPrefix(message, q.server+" is done") || strings.HasPrefix(message, "The work on "+q.server+" ") ||
			strings.HasPrefix(message, "Nobody answered the question of "+q.server+",")
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
func (b *brain) asksInstead(h Heard, o Output) bool {
	if !readable(o.Text) || gjson.Get(o.Text, "status").String() != "started" {
		return false
	}
	asked := slices.Clone(b.questions)
	for _, m := range h.Messages {
		if q, ok := readQuestion(m); ok {
			asked = append(asked, q)
		}
	}
	server := gjson.Get(o.Text, "server").String()
	return slices.ContainsFunc(asked, func(q question) bool { return q.server == server })
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
