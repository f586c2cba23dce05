package handoff

import "strings"

// A phraseKind says what a phrase does in a reply.
type phraseKind int

const (
	kindYes    phraseKind = iota // says yes
	kindFill                     // says nothing: "please", "then"
	kindHum                      // hesitates: "um"; not at the end
	kindLead                     // may stand before the yes, and is none: "well", "right"
	kindTail                     // may follow a yes: its object, thanks
	kindLink                     // may follow a yes, but not at the end: "on", "the"
	kindCalled                   // the machine by its name, which may also be called: "bigpc, yes"
	kindCount
)

// A phrase is a few tokens that stand together.
type phrase struct {
	tokens []string
	kind   phraseKind
}

// A phrasebook finds phrases by their first token. Set once.
type phrasebook map[string][]phrase

// at calls take for every phrase that the tokens begin with.
func (b phrasebook) at(tokens []string, take func(length int, kind phraseKind)) {
	for _, p := range b[tokens[0]] {
		if startsWith(tokens, p.tokens) {
			take(len(p.tokens), p.kind)
		}
	}
}

// words lists a language's harmless phrases by what they do, separated by commas.
type words struct{ yes, fill, hum, lead, tail, link string }

func (w words) book() phrasebook {
	b := phrasebook{}
	for kind, list := range map[phraseKind]string{kindYes: w.yes, kindFill: w.fill, kindHum: w.hum, kindLead: w.lead, kindTail: w.tail, kindLink: w.link} {
		for _, tokens := range phraseList(list) {
			b[tokens[0]] = append(b[tokens[0]], phrase{tokens, kind})
		}
	}
	return b
}

// phraseList cuts a list at its commas and folds each phrase as replies are folded.
func phraseList(lists ...string) [][]string {
	var out [][]string
	for _, list := range lists {
		for entry := range strings.SplitSeq(list, ",") {
			if tokens := hearWords(entry).tokens; len(tokens) > 0 {
				out = append(out, tokens)
			}
		}
	}
	return out
}
