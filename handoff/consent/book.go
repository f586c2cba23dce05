package consent

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A phraseKind says what a phrase does in a reply.
type phraseKind int

const (
	kindYes      phraseKind = iota // orders or permits
	kindWeak                       // says yes, perhaps absently: "yeah"
	kindOrder                      // orders the act of the question by name: "install it"
	kindEnd                        // says yes, as the last words of a reply: "darfst du"
	kindFill                       // says nothing: "please", "then"
	kindHum                        // hesitates: "um"; not at the end
	kindLead                       // may stand before the yes, and is none: "well", "right"
	kindTail                       // may follow a yes: its object, thanks
	kindLink                       // may follow a yes, but not at the end: "on"; or stand before what is named: "the"
	kindPost                       // may follow what is named: the particles of Japanese
	kindNod                        // contains a word that denies, and goes with a yes: "no problem"
	kindShrug                      // likewise, but weakens it: "why not"
	kindNeed                       // likewise, and goes only with an order that names the act: "no need to ask"
	kindDo                         // an order to do it; a yes with its object: "run"
	kindAct                        // the same, of the act of the question: "install"
	kindCan                        // says that it can; a yes must stand beside it
	kindTopic                      // the machine or the act by name, which may also come first: "bigpc, yes"
	kindSo                         // draws a conclusion: "so"
	kindMay                        // after the machine's name it is a yes: "may"
	kindIn                         // before the machine or a place: "on"
	kindPlace                      // means the machine: "that computer"
	kindAll                        // right after an order of the act: "all of them"
	kindFollow                     // begins what is to be told afterwards: "and tell me"
	kindThing                      // a thing of the question by its name; only beside an order of the act
	kindTotal                      // all, alone: after an order of the act it is its object, after a bare yes too much
	kindNot                        // parts of a reassurance: what denies,
	kindMust                       // what needs,
	kindNeedless                   // both,
	kindTrouble                    // a trouble that there is not,
	kindAsk                        // one that nobody needs to take; alone it is a need, after a yes a nod,
	kindGlue                       // and little words between them
	kindGo                         // orders or permits to go ahead: "go ahead"
	kindWhy                        // asks why it should not; a yes must stand beside it
	kindCount                      // the number of the question, as words for all of it: "both"
	kindNone
)

// A phrase is a few tokens that stand together.
type phrase struct {
	tokens []string
	joined string // written together
	kind   phraseKind
	stem   bool // a word may go on after it
	last   bool // it counts only where the sentence does not go on with the act
}

// A phrasebook finds phrases by their first token. Set once.
type phrasebook map[string][]phrase

func (b phrasebook) add(p phrase, kind phraseKind) {
	p.kind = kind
	key := p.tokens[0]
	if p.stem {
		key = string(appendStemKey(nil, key))
	}
	b[key] = append(b[key], p)
}

// appendStemKey appends the key of the stems that a word can begin with.
func appendStemKey(to []byte, word string) []byte {
	n := 0
	for range minStem {
		_, size := utf8.DecodeRuneInString(word[n:])
		n += size
	}
	return append(append(to, word[:n]...), '*')
}

// Bounds of a stem, in letters.
const (
	minStem   = 2
	maxEnding = 9
)

// at calls take for every phrase that the tokens begin with, however its letters are spaced.
func (b phrasebook) at(tokens []string, take func(length int, kind phraseKind)) {
	var key [64]byte // a key made here is looked up without being kept
	for _, p := range b[tokens[0]] {
		if n := spans(tokens, p.joined); n > 0 {
			take(n, p.kind)
		}
	}
	if len(tokens) > 1 {
		for _, p := range b[string(append(append(key[:0], tokens[0]...), tokens[1]...))] {
			if n := spans(tokens, p.joined); n > 0 {
				take(n, p.kind)
			}
		}
	}
	for _, p := range b[string(appendStemKey(key[:0], tokens[0]))] {
		if rest, ok := strings.CutPrefix(tokens[0], p.joined); ok && !isPast(rest) && utf8.RuneCountInString(rest) <= maxEnding {
			take(1, p.kind)
		}
	}
}

// any tells whether tokens begin with such a phrase.
func (b phrasebook) any(tokens []string, is func(length int, kind phraseKind) bool) bool {
	found := false
	b.at(tokens, func(length int, kind phraseKind) { found = found || is(length, kind) })
	return found
}

// has tells whether tokens begin with a phrase of one of some kinds, or with any for none.
func (b phrasebook) has(tokens []string, kinds ...phraseKind) bool {
	return b.any(tokens, func(_ int, kind phraseKind) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) })
}

// longest is the length of the longest phrase with which tokens begin, or 0.
func (b phrasebook) longest(tokens []string) int {
	longest := 0
	b.at(tokens, func(length int, _ phraseKind) { longest = max(longest, length) })
	return longest
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

// phraseList cuts a list at its commas, writes out its choices and folds each phrase as replies are folded.
func phraseList(list string) []phrase {
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entries = append(entries, spelledOut(entry)...)
	}
	var out []phrase
	for _, entry := range entries {
		entry = strings.TrimSpace(entry)
		if tokens := hear(entry).tokens; len(tokens) > 0 {
			stem := strings.HasSuffix(entry, "*") && len(tokens) == 1
			out = append(out, phrase{tokens: tokens, joined: strings.Join(tokens, ""), stem: stem, last: strings.HasSuffix(entry, "$")})
		}
	}
	return out
}

// spelledOut are the phrases that a text with choices stands for: "(it|they) may" is two.
func spelledOut(text string) []string {
	before, rest, ok := strings.Cut(text, "(")
	choices, after, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return []string{text}
	}
	var out []string
	ends := spelledOut(after)
	for choice := range strings.SplitSeq(choices, "|") {
		for _, end := range ends {
			out = append(out, before+choice+end)
		}
	}
	return out
}

// isPast tells whether a stem goes on as a word that reports what was done, as English ("pushed") and Polish
// ("wypchnąłem") write it.
func isPast(ending string) bool {
	return ending == "ed" || strings.HasSuffix(ending, "lem") || strings.HasSuffix(ending, "lam")
}
