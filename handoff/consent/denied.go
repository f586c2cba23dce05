package consent

import "slices"

// minStory is how many words a story has at least in which a word that denies may deny something else.
const minStory = 4

// deniesInStory tells whether a reply begins as a yes, ends as an order, and denies only in what it tells between them:
// "oh yes, it needs those anyway, otherwise nothing builds, so go ahead". What it tells does not begin with the denial
// and has no order: one of those may be what it denies.
func (h heard) deniesInStory(ask asking) bool {
	if len(h.tokens) < minStory+2 || h.odd || h.asksBack() || !h.beginsAsYes() {
		return false
	}
	return slices.ContainsFunc(h.likely(nil, ask), func(l *language) bool {
		from := h.yesEnd(l)
		for to := len(h.tokens) - 1; to >= from+minStory; to-- {
			if h.beginsOrder(to, l, ask) {
				return h.tellsOnly(from, to, l, ask)
			}
		}
		return false
	})
}

// yesEnd is where the yes ends with which a reply begins.
func (h heard) yesEnd(l *language) int {
	end := 0
	for at := range min(3, len(h.tokens)) {
		l.book.at(h.tokens[at:], func(n int, kind phraseKind) {
			if kind == kindYes || kind == kindWeak || kind == kindSide {
				end = max(end, at+n)
			}
		})
	}
	return end
}

// beginsOrder tells whether a mark or a word that draws a conclusion stands before the last order of a reply, which
// begins at a position and is understood to its end.
func (h heard) beginsOrder(at int, l *language, ask asking) bool {
	so := h.marked[at]
	for _, book := range []phrasebook{l.book, english.book} {
		book.at(h.tokens[at:], func(_ int, kind phraseKind) { so = so || kind == kindSo })
	}
	rest := h.from(at)
	return so && rest.find(signalDeny, ask) == absent && rest.plainVerdict(ask) == verdictFirm
}

// tellsOnly tells whether what stands between two positions holds no order, and begins with none of its denials.
func (h heard) tellsOnly(from, to int, l *language, ask asking) bool {
	begun := from
	for at := from; at < to; at++ {
		if at == from || h.marked[at] {
			begun = at
		}
		if h.denies(at) && (at == begun || (at+1 == to || h.marked[at+1]) && at-begun < minStory) {
			return false
		}
		orders := false
		take := func(_ int, kind phraseKind) {
			orders = orders || kind == kindGo || kind == kindOrder || kind == kindAct || kind == kindDo
		}
		l.book.at(h.tokens[at:], take)
		english.book.at(h.tokens[at:], take)
		ask.actAt(h.tokens[at:], l, take)
		if orders || h.corrects(at) {
			return false
		}
	}
	return true
}

// allowVain is a reply whose story may say what goes wrong without the act: "otherwise nothing works" denies nothing.
func (h heard) allowVain() heard {
	h.told = make([]bool, len(h.tokens))
	for at := range h.tokens {
		for _, l := range languages {
			l.vain.at(h.tokens[at:], func(n int, _ phraseKind) {
				for i := at; h.unbroken(at, n) && i < at+n; i++ {
					h.told[i] = true
				}
			})
		}
	}
	return h
}
