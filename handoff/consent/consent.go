package consent

import (
	"slices"
	"strings"
)

// A Reply is what the words of a caller say about the one thing that was asked.
type Reply int

// What a reply can say.
const (
	Unclear Reply = iota // neither: ask again
	Yes                  // it allows exactly what was asked
	No                   // it denies
	Later                // they asked for time: the question stays open
	Nothing              // fillers and thanks: as if nothing had been said
	Echo                 // our own question, heard back
	replyCount
)

var replyNames = [replyCount]string{"unclear", "yes", "no", "later", "nothing", "echo"}

// String returns the reply as tests and logs name it.
func (r Reply) String() string { return replyNames[r] }

// A Question is what was asked aloud. A reply may repeat its act and its machine; one that names another
// machine or act is not about this question.
type Question struct {
	Acts     []string // words for what would be done, "npm install"; at most 16 count
	Machines []string // the machine's name, its aliases and spoken forms, the project; at most 16 count
	Text     string   // how we asked, to know its echo; better without words that read as a yes
}

// Bounds of a reply that can be a yes. Longer ones say more than yes.
const (
	maxReplyBytes  = 240
	maxReplyTokens = 14 // words; a character of Chinese, Japanese or Korean counts a third
)

// Read tells whether a reply allows exactly the one thing that was asked. It fails closed: a word that
// denies wins wherever it stands; a word that holds off, asks, quotes or sets a condition, and every word
// that is not known to be harmless, makes a reply unclear. A yes begins as a yes, after fillers at most,
// and nothing in it is left over.
func Read(reply string, asked Question) Reply {
	said := hear(head(reply))
	switch {
	case isEcho(said.tokens, hear(asked.Text).tokens):
		return Echo
	case said.has(denyWords):
		return No
	case said.has(holdWords):
		return Later
	case said.odd, said.asks, said.cutOff, len(reply) > maxReplyBytes, said.weight() > maxReplyTokens:
		return Unclear
	}
	switch moods := moodsOf(fluent(said.tokens), askedWords(asked)); {
	case moods[moodYes]:
		return Yes
	case moods[moodOpen]:
		return Nothing
	}
	return Unclear
}

// Names tells whether a reply names the machine or the act of the question, so that it can be told apart
// from other open questions.
func (q Question) Names(reply string) bool {
	return askedWords(q).named(fluent(hear(head(reply)).tokens))
}

// Quotes tells whether words are what was said: each of them was, in this order, and no word that denies
// was left out.
func Quotes(words string, said ...string) bool {
	var all heard
	for _, text := range said {
		h := hear(text)
		all.tokens, all.apart = append(all.tokens, h.tokens...), append(all.apart, h.apart...)
	}
	given := hear(words)
	if len(given.tokens) == 0 || all.has(denyWords) != given.has(denyWords) {
		return false
	}
	rest := all.tokens
	for _, t := range given.tokens {
		i := slices.IndexFunc(rest, func(h string) bool { return h == t || soundsLike(h, t) })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// head is as much of a text as is looked at: enough to find what denies in more than a yes may hold.
func head(text string) string {
	if len(text) <= 4*maxReplyBytes {
		return text
	}
	return strings.ToValidUTF8(text[:4*maxReplyBytes], "")
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
	for i := range languages {
		for m, ok := range covered(tokens, languages[i].book, ask) {
			out[m] = out[m] || ok
		}
	}
	return out
}

// covered walks all ways to cut the tokens into phrases.
func covered(tokens []string, tongue phrasebook, ask asking) [moodCount]bool {
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
		english.book.at(tokens[at:], step)
		english.book.at(spelled[at:], func(length int, kind phraseKind) {
			if slices.Equal(spelled[at:at+length], tokens[at:at+length]) {
				return
			}
			if kind == kindYes { // a word that only sounds like a yes may stand beside one
				kind = kindFill
			}
			step(length, kind)
		})
		tongue.at(tokens[at:], step)
		ask.at(tokens[at:], step)
	}
	return reached[len(tokens)]
}
