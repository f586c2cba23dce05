package simulator

import (
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
	ask := "Yes or no?"
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
	if name, rest, ok := strings.Cut(text, ","); ok && named != "" && len(spokenWords(name)) == 1 &&
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

// wordsFor returns what of a sentence answers a question in words, or "": it is something else.
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

// noQuestion is said to a yes or a no that nobody asked for.
func noQuestion(h Heard) string {
	if slices.Contains(h.Tools, tools.AnswerAgent) {
		return sayNobody
	}
	return sayApproval
}

// Words of a reply. What it really means is for the router: these only tell a reply from other sentences.
var (
	pairs = map[string]string{
		"do not": "dont", "go ahead": "goahead", "do it": "doit", "do that": "doit", "hold on": "hold", "hang on": "hold",
		"all right": "alright",
		"stop work": "stopwork", "stop working": "stopwork", "stop everything": "stopwork", "cancel work": "stopwork",
	}
	yesWords = strings.Fields("yes yeah yep yup sure allow approve accept affirmative granted goahead doit absolutely " +
		"definitely")
	noWords   = strings.Fields("no nope nah not dont never decline deny reject refuse negative")
	waitWords = strings.Fields("wait hold later moment minute second")
	okWords   = strings.Fields("ok okay alright fine")
	idleWords = strings.Fields("ok okay alright fine um uh hm hmm well so please oh hey and then now thanks thank you " +
		"great good right wait hold a moment")
)

// decisionIn reads a sentence that is nothing but a yes or a no, or begins as one: accept, decline, stop
// (no, and stop the work), or "" for every other sentence. A word that denies wins; who asks for time has
// said neither.
func decisionIn(text string) handoff.Decision {
	words := spokenWords(text)
	said := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	first := slices.IndexFunc(words, func(w string) bool { return !slices.Contains(idleWords, w) })
	begins := first < 0 && said(okWords) || first >= 0 &&
		(slices.Contains(yesWords, words[first]) || slices.Contains(noWords, words[first]))
	switch {
	case !begins:
		return ""
	case said(noWords) && slices.Contains(words, "stopwork"):
		return handoff.DecisionStop
	case said(noWords):
		return handoff.DecisionDecline
	case said(waitWords):
		return ""
	}
	return handoff.DecisionAccept
}

// spokenWords are the words of a short sentence in lower case, pairs that belong together as one, without
// "the". A long one has none: nobody says yes so.
func spokenWords(text string) []string {
	if len(text) > 400 {
		return nil
	}
	text = strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(text), "’", "'"), "don't", "dont")
	var words []string
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("'-_.", r)
	}) {
		w = strings.Trim(w, "'-_.")
		if w == "" || w == "the" {
			continue
		}
		if n := len(words); n > 0 && pairs[words[n-1]+" "+w] != "" {
			words[n-1] = pairs[words[n-1]+" "+w]
			continue
		}
		words = append(words, w)
	}
	return words
}
