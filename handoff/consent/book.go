package consent

import "strings"

// A phraseKind says what a phrase does in a reply.
type phraseKind int

const (
	kindYes   phraseKind = iota // says yes
	kindEnd                     // says yes, as the last words of a reply: "darfst du"
	kindFill                    // says nothing: "please", "then"
	kindHum                     // hesitates: "um"; not at the end
	kindLead                    // may stand before the yes, and is none: "well", "right"
	kindTail                    // may follow a yes: its object, thanks
	kindLink                    // may follow a yes, but not at the end: "on", "the"
	kindNod                     // contains a word that denies, and goes with a yes: "no problem"
	kindShrug                   // likewise, but weakens it: "why not"
	kindDo                      // an order to do it; a yes with its object: "run"
	kindTopic                   // the machine or the act by name, which may also come first: "bigpc, yes"
	kindCount
	kindMay   // after the machine's name it is a yes: "may"
	kindIn    // before the machine or a place: "on"
	kindPlace // means the machine: "that computer"
	kindNone
)

// A phrase is a few tokens that stand together.
type phrase struct {
	tokens []string
	joined string // written together
	kind   phraseKind
}

// A phrasebook finds phrases by their first token. Set once.
type phrasebook map[string][]phrase

func (b phrasebook) add(tokens []string, kind phraseKind) {
	b[tokens[0]] = append(b[tokens[0]], phrase{tokens, strings.Join(tokens, ""), kind})
}

// at calls take for every phrase that the tokens begin with, however its letters are spaced.
func (b phrasebook) at(tokens []string, take func(length int, kind phraseKind)) {
	keys := []string{tokens[0]}
	if len(tokens) > 1 {
		keys = append(keys, tokens[0]+tokens[1])
	}
	for _, key := range keys {
		for _, p := range b[key] {
			if n := spans(tokens, p.joined); n > 0 {
				take(n, p.kind)
			}
		}
	}
}

// spans is how many tokens spell a phrase, however its letters are spaced ("in stall", "go a head"), or 0.
func spans(tokens []string, joined string) int {
	for n, t := range tokens {
		rest, ok := strings.CutPrefix(joined, t)
		if !ok {
			return 0
		}
		if joined = rest; joined == "" {
			return n + 1
		}
	}
	return 0
}

// phraseList cuts a list at its commas and folds each phrase as replies are folded.
func phraseList(list string) [][]string {
	var out [][]string
	for entry := range strings.SplitSeq(list, ",") {
		if tokens := hear(entry).tokens; len(tokens) > 0 {
			out = append(out, tokens)
		}
	}
	return out
}
