package consent

import (
	"slices"
	"strings"
	"unicode/utf8"
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
	Text     string   // how we asked, to know its echo
	Said     string   // the words with which the voice really asked; "" when they are not known
}

// Bounds of a reply that can be a yes. Longer ones say more than yes.
const (
	maxReplyRunes  = 240
	maxReplyTokens = 28 // words; a character of Chinese, Japanese or Korean counts a third
	maxHeadBytes   = 4 * maxReplyRunes
)

// Read tells whether a reply allows exactly the one thing that was asked. It fails closed: a word that
// denies wins wherever it stands; a word that holds off, asks, quotes or sets a condition, and every word
// that is not known to be harmless, makes a reply unclear. A yes begins as a yes, after fillers at most,
// and nothing in it is left over. A word that denies in one language and not in another is read in the
// language of the reply; where that is not certain, the reply is unclear.
func Read(reply string, asked Question) Reply {
	said, ask := hear(head(reply)).unfused(), askedWords(asked)
	got := said.read(reply, ask)
	if got != Yes && got != Echo && (got != No && said.isTold(reply, ask) || said.endsInAfterthought(reply, ask)) {
		return Yes
	}
	return got
}

// read is Read without the stories.
func (h heard) read(reply string, ask asking) Reply {
	if h.isEchoOf(ask) || h.isBareCommand(ask) || h.isCitation(ask) {
		return Echo
	}
	deny, hold := h.find(signalDeny, ask), h.find(signalHold, ask)
	switch {
	case deny == present && h.nearEchoOf(ask):
		return Echo
	case (deny != absent || hold == present) && h.correctsItself(ask):
		return Yes
	case deny == present && (h.asksItself() || h.turnsToYes(ask) || h.deniesInStory(ask)):
		return Unclear
	case deny == present:
		return No
	case hold == present:
		return Later
	case h.isNoise():
		return Nothing
	case deny == absent && hold == absent && h.repeatsYes() && !h.odd && !h.asksBack() && !h.cutOff:
		return Yes
	case deny == contested, hold == contested, h.find(signalUnsure, ask) != absent, h.find(signalAsk, ask) != absent,
		h.odd, h.asksBack(), h.isInverted(ask), h.cutOff, utf8.RuneCountInString(reply) > maxReplyRunes, h.weight() > maxReplyTokens:
		return Unclear
	}
	verdict := h.verdictOf(ask)
	switch {
	case verdict >= verdictYes && (h.isLimited(ask) || h.isPart(ask) || h.waives() || ask.namesOtherCommand(h.tokens)):
		return Unclear
	case verdict >= verdictYes && (h.recalls(ask) || h.isBareLet() || h.asksPlainly(ask)):
		return Unclear
	case verdict == verdictFirm, verdict == verdictYes && h.find(signalGrumble, ask) == absent:
		return Yes
	case verdict == verdictOpen:
		return Nothing
	}
	return Unclear
}

// isTold tells whether a reply in which nothing denies is a yes with a story.
func (h heard) isTold(reply string, ask asking) bool {
	return !h.odd && !h.cutOff && !h.asksBack() && !h.nearEchoOf(ask) && utf8.RuneCountInString(reply) <= maxReplyRunes && h.weight() <= maxReplyTokens &&
		!h.isInverted(ask) && h.tells(ask) && !h.isNoise() && !h.isLimited(ask) && !h.isPart(ask) && !h.waives() && !h.asksPlainly(ask) && !h.isUndecided() && !ask.namesOtherCommand(h.tokens)
}

// Names tells whether a reply names the machine or the act of the question, so that it can be told apart
// from other open questions.
func (q Question) Names(reply string) bool {
	return askedWords(q).named(hear(head(reply)).fluent().tokens)
}

// Quotes tells whether words are what was said: each of them was, in this order, and no word that denies
// was left out.
func Quotes(words string, said ...string) bool {
	var all heard
	for _, text := range said {
		all.append(hear(text))
	}
	given, none := hear(words), asking{}
	if len(given.tokens) == 0 || (all.find(signalDeny, none) == absent) != (given.find(signalDeny, none) == absent) {
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
	if len(text) <= maxHeadBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxHeadBytes], "")
}
