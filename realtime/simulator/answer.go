package simulator

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// maxOpen bounds the questions, and the paused work, that the brain remembers; the oldest is forgotten first.
const maxOpen = 32

// How the router's messages name a question's label, and the machine if it is not the first word.
var (
	reLabel = regexp.MustCompile(`answer_agent, question (q\d+)`)
	rePlace = regexp.MustCompile(`(?:done|made) on (\S+?)(?:,| and |\. )`)
)

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
		ask = strings.TrimSpace(strings.TrimPrefix(sentences(lead, 2), sentences(lead, 1)))
	case quote == "":
		ask = fmt.Sprintf("Shall I make a copy on %s, to go on there, yes or no?", q.server)
	}
	q.spoken = strings.Join(strings.Fields(sentences(lead, 1)+" "+spokenQuote(quote)+" "+ask), " ")
	return q, true
}

// noteMessage remembers the question or the paused work in a system message, and forgets the questions of work that has
// ended.
func (b *brain) noteMessage(message string) {
	if q, ok := readQuestion(message); ok {
		b.forgetQuestions(func(old question) bool { return old.label == q.label })
		b.questions = append(b.questions, q)
		if len(b.questions) > maxOpen {
			b.questions = b.questions[1:]
		}
		return
	}
	b.notePaused(readPaused(message))
	b.forgetQuestions(func(q question) bool {
		return strings.HasPrefix(message, q.server+" is done") || strings.HasPrefix(message, "The work on "+q.server+" ") ||
			strings.HasPrefix(message, "Nobody answered the question of "+q.server+",")
	})
}

// overtaken reports whether an output says that work has started on a machine whose agent already asks the caller
// something.
func (b *brain) overtaken(h Heard, o Output) bool {
	out := gjson.Parse(o.Text)
	if !readable(o.Text) || out.Get("status").String() != "started" {
		return false
	}
	asked := slices.Clone(b.questions)
	for _, m := range h.Messages {
		if q, ok := readQuestion(m); ok {
			asked = append(asked, q)
		}
	}
	return slices.ContainsFunc(asked, func(q question) bool { return q.server == out.Get("server").String() })
}

func (b *brain) forgetQuestions(gone func(question) bool) {
	b.questions = slices.DeleteFunc(b.questions, gone)
}

// answerAgent handles a sentence as the caller's answer to an agent's question; false: it is none. It passes on what
// they said; the router decides.
func (b *brain) answerAgent(h Heard, text string, in intent) ([]Move, bool) {
	named, said := b.machineNamed(text), text
	if name, rest, ok := strings.Cut(text, ","); ok && named != "" && !strings.Contains(name, " ") &&
		b.machineNamed(name) == named {
		said = rest // "bigpc, yes"
	}
	decision := decisionIn(said)
	for _, q := range slices.Backward(b.questions) {
		args := tools.AnswerArguments{Question: q.label, Decision: decision}
		if q.words {
			args.Decision, args.Text = "", b.wordsFor(q, text, in)
		}
		if args.Decision == "" && args.Text == "" || named != "" && named != q.server {
			continue
		}
		if q.words && decision != "" && slices.ContainsFunc(b.questions,
			func(q question) bool { return !q.words && (named == "" || named == q.server) }) {
			continue // a plain yes or no is for the question that wants one
		}
		if !slices.Contains(h.Tools, tools.AnswerAgent) {
			return says(sayApproval), true
		}
		return call(h, tools.AnswerAgent, args, &pendingIntent{intent: intent{wish: wishAnswer}, question: q}), true
	}
	return nil, false
}

// wordsFor returns the part of a sentence that answers a question in words, or "".
func (b *brain) wordsFor(q question, text string, in intent) string {
	said := strings.TrimSpace(text)
	switch {
	case in.wish == wishQuiet && decisionIn(text) != "",
		in.wish == wishUnknown && !strings.HasSuffix(said, "?"),
		in.wish == wishWork && in.server == "" && !in.next && b.lastMachine == q.server:
		return said
	case in.wish == wishWork && in.server == q.server && !in.next && !startsWithVerb().MatchString(in.work):
		return in.work
	}
	return ""
}

// machineNamed returns the machine that a sentence names, or "".
func (b *brain) machineNamed(text string) string {
	words := spokenWords(text)
	for _, q := range b.questions {
		if slices.Contains(words, strings.ToLower(q.server)) {
			return q.server
		}
	}
	for alias, name := range b.machines {
		if slices.Contains(words, alias) {
			return name
		}
	}
	return ""
}

// answerGiven says what became of an answer, and asks again if it decided nothing.
func (b *brain) answerGiven(q question, o Output) []Move {
	out := gjson.Parse(o.Text)
	said := spokenOutput(o)
	switch {
	case out.Get("status").String() == "undecided":
		said += " " + q.spoken
	case out.Get("status").String() == "done", out.Get("code").String() == string(handoff.CodeNotPending):
		b.forgetQuestions(func(old question) bool { return old.label == q.label })
	}
	return says(said)
}

// Words by which a reply to a question is recognised. The router decides what it means.
const (
	idleWords = `(?:ok|okay|alright|all right|fine|um|uh|hmm?|well|so|please|oh|hey|and|then|now|thanks|thank you|the|` +
		`great|good|right|wait|hold on|hang on|hold|a|moment)`
	yesWords = `(?:yes|yeah|yep|yup|sure|allow|approve|accept|affirmative|granted|go ahead|do (?:it|that)|absolutely|` +
		`definitely)`
	noWords = `(?:no|nope|nah|not|don't|dont|do not|never|decline|deny|reject|refuse|negative)`
)

var (
	reReply = sync.OnceValue(func() *regexp.Regexp { // begins with a yes or a no, or is only an "okay"
		return regexp.MustCompile(`^ (?:` + idleWords + ` )*(?:(?:` + yesWords + `|` + noWords + `) |` +
			`(?:ok|okay|alright|all right|fine) (?:` + idleWords + ` )*$)`)
	})
	reNo       = regexp.MustCompile(` ` + noWords + ` `)
	reWait     = regexp.MustCompile(` (?:wait|hold|hang on|later|moment|minute|second) `)
	reStopWork = regexp.MustCompile(` (?:stop (?:the )?work(?:ing)?|stop everything|cancel (?:the )?work) `)
)

// decisionIn returns the decision in a sentence that is, or begins with, a yes or a no: accept, decline, stop (no, and
// stop the work); "" for every other sentence. A word that denies wins. A caller who asks for time has said neither,
// and a long sentence is no reply.
func decisionIn(text string) handoff.Decision {
	said := " " + strings.Join(spokenWords(text), " ") + " "
	switch no := reNo.MatchString(said); {
	case len(text) > 400 || !reReply().MatchString(said):
		return ""
	case no && reStopWork.MatchString(said):
		return handoff.DecisionStop
	case no:
		return handoff.DecisionDecline
	case reWait.MatchString(said):
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
