package handoff

import (
	"slices"
	"strings"
)

// Consent is what a reply says about the one thing that was asked.
type Consent int

// What a reply can say. Everything that is not plainly a yes or a no is unclear.
const (
	ConsentUnclear Consent = iota
	ConsentYes
	ConsentNo
)

var consentNames = [...]string{"unclear", "yes", "no"}

// String returns the consent as tests and logs name it.
func (c Consent) String() string { return consentNames[c] }

// A ConsentQuestion is what was asked aloud. A reply may repeat its act and its machine; one that names
// another machine or act is not about this question.
type ConsentQuestion struct {
	Acts     []string // words for what would be done, "npm install"; [AskedAbout] takes them from a question
	Machines []string // the machine's name, its aliases and spoken forms, the project
	Text     string   // our own words, to know their echo; better without words that read as a yes
}

// Bounds of a reply that can be a yes. Longer ones say more than yes.
const (
	maxReplyBytes  = 240
	maxReplyTokens = 14 // words; a character of Chinese, Japanese or Korean counts a third
)

// ReadConsent tells whether a reply allows exactly the one thing that was asked. It fails closed: a word
// that denies wins wherever it stands; a word that holds off, asks, quotes or sets a condition, and every
// word that is not known to be harmless, makes a reply unclear. A yes begins as a yes, after fillers at
// most, and nothing in it is left over.
func ReadConsent(reply string, asked ConsentQuestion) Consent {
	return readReply(reply, asked).consent
}

// reading is what a reply says, in detail.
type reading struct {
	consent Consent
	held    bool // they asked for time: the question stays open
	echo    bool // it repeats our own question
	idle    bool // it is all fillers and thanks: it says nothing about anything
}

func readReply(reply string, asked ConsentQuestion) reading {
	said := hearWords(clip(reply, 4*maxReplyBytes))
	out := reading{held: said.has(holdWords)}
	switch {
	case isEcho(said.tokens, hearWords(asked.Text).tokens):
		out.echo = true
	case said.has(denyWords):
		out.consent = ConsentNo
	case out.held, said.odd, said.asks, said.cutOff, len(reply) > maxReplyBytes, said.weight() > maxReplyTokens:
	default:
		moods := moodsOf(fluent(said.tokens), askedWords(asked))
		if moods[moodYes] {
			out.consent = ConsentYes
		}
		out.idle = moods[moodOpen]
	}
	return out
}

// NamedIn tells whether a reply names the machine or the act of the question, so that it can be told
// apart from other open questions.
func (q ConsentQuestion) NamedIn(reply string) bool {
	return askedWords(q).named(fluent(hearWords(clip(reply, 4*maxReplyBytes)).tokens))
}

// echoTokens is how many words of ours in a row are an echo. Two can be the caller's own: "go ahead".
const echoTokens = 3

// isEcho tells whether a whole reply is a piece of what we said ourselves.
func isEcho(reply, ours []string) bool {
	if len(reply) < echoTokens {
		return false
	}
	for i := range len(ours) - len(reply) + 1 {
		if strings.Join(ours[i:i+len(reply)], " ") == strings.Join(reply, " ") {
			return true
		}
	}
	return strings.Contains(strings.Join(ours, ""), strings.Join(reply, "")) // written with other spaces
}

// A mood is how far a reply has come in being a yes.
type mood int

const (
	moodOpen      mood = iota // nothing but fillers so far
	moodYes                   // a yes; the reply may end here
	moodWeak                  // after the yes came a word that weakens it ("yeah, right"): a yes must follow
	moodHesitates             // after the yes came an "um" or a "the": something must follow
	moodCount
	moodNone mood = -1
)

// moodAfter is the mood after a phrase of a kind, or moodNone where that phrase must not stand.
var moodAfter = [kindCount][moodCount]mood{
	kindYes:   {moodYes, moodYes, moodYes, moodYes},
	kindFill:  {moodOpen, moodYes, moodWeak, moodYes},
	kindHum:   {moodOpen, moodHesitates, moodWeak, moodHesitates},
	kindLead:  {moodOpen, moodWeak, moodWeak, moodWeak},
	kindTail:  {moodNone, moodYes, moodWeak, moodYes},
	kindLink:  {moodNone, moodHesitates, moodWeak, moodHesitates},
	kindTopic: {moodOpen, moodYes, moodWeak, moodYes},
}

// moodsOf tells in which moods a reply can end, when it is made of harmless phrases of one language,
// English and the question alone.
func moodsOf(tokens []string, ask asking) [moodCount]bool {
	var out [moodCount]bool
	if len(tokens) == 0 {
		return out
	}
	for i := range tongues {
		for m, ok := range covered(tokens, &tongues[i], ask) {
			out[m] = out[m] || ok
		}
	}
	return out
}

// covered walks all ways to cut the tokens into phrases.
func covered(tokens []string, tongue *phrasebook, ask asking) [moodCount]bool {
	spelled := respelled(tokens)
	reached := make([][moodCount]bool, len(tokens)+1)
	reached[0][moodOpen] = true
	for at := range tokens {
		step := func(length int, kind phraseKind) {
			for m := range moodCount {
				if to := moodAfter[kind][m]; reached[at][m] && to != moodNone {
					reached[at+length][to] = true
				}
			}
		}
		english.at(tokens[at:], step)
		english.at(spelled[at:], func(length int, kind phraseKind) {
			if slices.Equal(spelled[at:at+length], tokens[at:at+length]) {
				return
			}
			if kind == kindYes { // a word that only sounds like a yes may stand beside one
				kind = kindFill
			}
			step(length, kind)
		})
		if tongue != &english {
			tongue.at(tokens[at:], step)
		}
		ask.at(tokens[at:], step)
	}
	return reached[len(tokens)]
}
