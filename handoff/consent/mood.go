package consent

import "slices"

// A mood is how far a reply has come in being a yes.
type mood int

const (
	moodOpen      mood = iota // nothing but fillers so far
	moodYes                   // a yes; the reply may end here
	moodWeak                  // after the yes came a word that weakens it ("yeah, right"): a yes must follow
	moodHesitates             // after the yes came an "um" or a "the": something must follow
	moodNod                   // "no problem": a yes must follow
	moodDo                    // "run": what to run must follow
	moodCount
	moodNone mood = -1
)

// moodAfter is the mood after a phrase of a kind, or moodNone where that phrase must not stand.
var moodAfter = [kindCount][moodCount]mood{
	kindYes:   {moodYes, moodYes, moodYes, moodYes, moodYes, moodYes},
	kindEnd:   {moodYes, moodYes, moodYes, moodYes, moodYes, moodNone},
	kindFill:  {moodOpen, moodYes, moodWeak, moodYes, moodNod, moodYes},
	kindHum:   {moodOpen, moodHesitates, moodWeak, moodHesitates, moodNod, moodDo},
	kindLead:  {moodOpen, moodWeak, moodWeak, moodWeak, moodNod, moodNone},
	kindTail:  {moodNone, moodYes, moodWeak, moodYes, moodNod, moodYes},
	kindLink:  {moodNone, moodHesitates, moodWeak, moodHesitates, moodNod, moodDo},
	kindNod:   {moodNod, moodYes, moodWeak, moodYes, moodNod, moodNone},
	kindShrug: {moodNod, moodWeak, moodWeak, moodWeak, moodNod, moodNone},
	kindDo:    {moodDo, moodYes, moodWeak, moodYes, moodDo, moodDo},
	kindTopic: {moodOpen, moodYes, moodWeak, moodYes, moodNod, moodYes},
}

// moodsOf tells in which moods a reply can end, when it is made of harmless phrases of one language,
// English and the question alone.
func moodsOf(tokens []string, ask asking) [moodCount]bool {
	var out [moodCount]bool
	if len(tokens) == 0 {
		return out
	}
	for _, l := range languages {
		for m, ok := range covered(tokens, l, ask) {
			out[m] = out[m] || ok
		}
	}
	return out
}

// covered walks all ways to cut the tokens into phrases.
func covered(tokens []string, l *language, ask asking) [moodCount]bool {
	spelled := respelled(tokens)
	reached := make([][moodCount]bool, len(tokens)+1)
	reached[0][moodOpen] = true
	for at := range tokens {
		step := func(length int, kind phraseKind) {
			if kind >= kindCount || kind == kindEnd && at+length < len(tokens) {
				return
			}
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
			if kind == kindYes || kind == kindDo { // a word that only sounds like a yes may stand beside one
				kind = kindFill
			}
			step(length, kind)
		})
		if l != english {
			l.book.at(tokens[at:], step)
		}
		ask.at(tokens[at:], l, step)
	}
	return reached[len(tokens)]
}
