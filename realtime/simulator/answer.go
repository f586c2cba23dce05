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

// A question is one of an agent to the caller, as the brain was told of it.
type question struct {
	label  string // "q1"
	server string
	words  bool   // it wants words; else a yes or a no
	spoken string // how it is put to the caller
}

// maxOpen bounds the questions that the brain remembers; the oldest is forgotten first. Agents ask one at
// a time.
const maxOpen = 32

// How the router announces a question: its label, and the machine when it does not come first.
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
	case q.words: // it is a question as it stands
		ask = ""
	case strings.Contains(lead, " answer on the page"):
		ask = strings.TrimSpace(strings.TrimPrefix(sentences(lead, 2), sentences(lead, 1)))
	case quote == "":
		ask = fmt.Sprintf("Shall I make a copy on %s, to go on there, yes or no?", q.server)
	}
	q.spoken = strings.Join(strings.Fields(sentences(lead, 1)+" "+spokenQuote(quote)+" "+ask), " ")
	return q, true
}

// told remembers the question that a system message asks, and forgets those of work that has ended.
func (b *brain) told(message string) {
	if q, ok := readQuestion(message); ok {
		b.forget(func(old question) bool { return old.label == q.label })
		b.open = append(b.open, q)
		if len(b.open) > maxOpen {
			b.open = b.open[1:]
		}
		return
	}
	b.notePaused(readPaused(message))
	b.forget(func(q question) bool {
		return strings.HasPrefix(message, q.server+" is done") || strings.HasPrefix(message, "The work on "+q.server+" ") ||
			strings.HasPrefix(message, "Nobody answered the question of "+q.server+",")
	})
}

// overtaken reports whether an answer says that a machine is at work which waits for the caller by now.
func (b *brain) overtaken(h Heard, o Output) bool {
	out := gjson.Parse(o.Text)
	if !readable(o.Text) || out.Get("status").String() != "started" {
		return false
	}
	asked := slices.Clone(b.open)
	for _, m := range h.Messages {
		if q, ok := readQuestion(m); ok {
			asked = append(asked, q)
		}
	}
	return slices.ContainsFunc(asked, func(q question) bool { return q.server == out.Get("server").String() })
}

func (b *brain) forget(gone func(question) bool) { b.open = slices.DeleteFunc(b.open, gone) }

// replied takes a sentence as the caller's answer to an agent that asks, if it is one. It passes on what
// they said and decides nothing.
func (b *brain) replied(h Heard, text string, in intent) ([]Move, bool) {
	named, said := b.named(text), text
	if name, rest, ok := strings.Cut(text, ","); ok && named != "" && !strings.Contains(name, " ") &&
		b.named(name) == named {
		said = rest // "bigpc, yes"
	}
	decision := decisionIn(said)
	for _, q := range slices.Backward(b.open) {
		args := tools.AnswerArguments{Question: q.label, Decision: decision}
		if q.words {
			args.Decision, args.Text = "", b.wordsFor(q, text, in)
		}
		if args.Decision == "" && args.Text == "" || named != "" && named != q.server {
			continue
		}
		if q.words && decision != "" && slices.ContainsFunc(b.open,
			func(q question) bool { return !q.words && (named == "" || named == q.server) }) {
			continue // a plain yes or no is for the one that wants it
		}
		if !slices.Contains(h.Tools, tools.AnswerAgent) {
			return says(sayApproval), true
		}
		return call(h, tools.AnswerAgent, args, &pendingIntent{intent: intent{wish: wishAnswer}, question: q}), true
	}
	return nil, false
}

// wordsFor returns the part of a sentence that answers a question in words, or "" when it does not answer it.
func (b *brain) wordsFor(q question, text string, in intent) string {
	said := strings.TrimSpace(text)
	switch {
	case in.wish == wishQuiet && decisionIn(text) != "",
		in.wish == wishUnknown && !strings.HasSuffix(said, "?"),
		in.wish == wishWork && in.server == "" && !in.next && b.last == q.server:
		return said
	case in.wish == wishWork && in.server == q.server && !in.next && !startsWithVerb().MatchString(in.work):
		return in.work
	}
	return ""
}

// named returns the machine that a sentence names, or "".
func (b *brain) named(text string) string {
	words := spokenWords(text)
	for _, q := range b.open {
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

// answerGiven says what became of an answer, and asks again where nothing was decided.
func (b *brain) answerGiven(q question, o Output) []Move {
	out := gjson.Parse(o.Text)
	said := spokenOutput(o)
	switch {
	case out.Get("status").String() == "undecided":
		said += " " + q.spoken
	case out.Get("status").String() == "done", out.Get("code").String() == string(handoff.CodeNotPending):
		b.forget(func(old question) bool { return old.label == q.label })
	}
	return says(said)
}

// What tells a reply from other sentences. What it really means is for the router.
const (
	idleWords = `(?:ok|okay|alright|all right|fine|um|uh|hmm?|well|so|please|oh|hey|and|then|now|thanks|thank you|the|` +
		`great|good|right|wait|hold on|hang on|hold|a|moment)`
	yesWords = `(?:yes|yeah|yep|yup|sure|allow|approve|accept|affirmative|granted|go ahead|do (?:it|that)|absolutely|` +
		`definitely)`
	noWords = `(?:no|nope|nah|not|don't|dont|do not|never|decline|deny|reject|refuse|negative)`
)

var (
	reReply = sync.OnceValue(func() *regexp.Regexp { // it begins with a yes or a no, or is an "okay" and no more
		return regexp.MustCompile(`^ (?:` + idleWords + ` )*(?:(?:` + yesWords + `|` + noWords + `) |` +
			`(?:ok|okay|alright|all right|fine) (?:` + idleWords + ` )*$)`)
	})
	reNo       = regexp.MustCompile(` ` + noWords + ` `)
	reWait     = regexp.MustCompile(` (?:wait|hold|hang on|later|moment|minute|second) `)
	reStopWork = regexp.MustCompile(` (?:stop (?:the )?work(?:ing)?|stop everything|cancel (?:the )?work) `)
)

// decisionIn reads a sentence that is nothing but a yes or a no, or begins as one: accept, decline, stop
// (no, and stop the work), or "" for every other sentence. A word that denies wins; a caller who asks for time has
// said neither. A long sentence is none: nobody says yes so.
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

// spokenWords returns the words of a sentence in lower case, names with their marks.
func spokenWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("'-_.", r)
	})
	for i, w := range words {
		words[i] = strings.Trim(w, "'-_.")
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
