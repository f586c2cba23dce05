package consent

import "slices"

// Bounds of a backchannel and of a hush, in words as [Read] counts them.
const (
	maxBackchannel = 4
	maxHush        = 6
)

// Backchannel reports whether the words of a caller, said while somebody else spoke, only show that they listen:
// "mm-hmm", "okay", "I see", or no word at all, as with a cough. It is no evidence of a yes: replies to questions are
// for [Read].
func Backchannel(text string) bool {
	h := hear(text)
	if len(h.tokens) == 0 {
		return true
	}
	if h.words() > maxBackchannel || h.asks || h.odd {
		return false
	}
	if slices.ContainsFunc(languages(), func(l *language) bool { return l.back[h.spaced] }) {
		return true
	}
	vetoed := func(r reading) bool {
		veto, _, _ := r.scan()
		return veto != 0
	}
	return !slices.ContainsFunc(readings(h, topic{}), vetoed) &&
		slices.ContainsFunc(languages(), func(l *language) bool { return l.cuts(h) == onlyMurmurs })
}

// Hush reports whether the words of a caller ask for quiet and for nothing else: "stop", "okay, hold on". They end
// speech, and no work.
func Hush(text string) bool {
	h := hear(text)
	return len(h.tokens) > 0 && h.words() <= maxHush && !h.asks &&
		slices.ContainsFunc(languages(), func(l *language) bool { return l.cuts(h)&withHush != 0 })
}

// Bits of the ways in which a text can be cut into phrases.
const (
	onlyMurmurs = 1 << iota // all phrases say nothing
	withHush                // one phrase or more asks for quiet, and the others say nothing
)

// cuts returns the ways in which a text can be cut into phrases of a language; 0: none.
func (l *language) cuts(h heard) int {
	reached := make([]int, len(h.tokens)+1)
	reached[0] = onlyMurmurs
	for at := range h.tokens {
		for end := at + 1; end <= len(h.tokens) && reached[at] != 0; end++ {
			switch words := h.span(at, end); {
			case l.hush[words]:
				reached[end] |= withHush
			case l.murmur(words):
				reached[end] |= reached[at]
			}
		}
	}
	return reached[len(h.tokens)]
}

// murmur reports whether a listed phrase says nothing to somebody who speaks. A phrase of one word that says yes
// counts.
func (l *language) murmur(words string) bool {
	if l.back[words] {
		return true
	}
	does, _ := l.phrases.find(words)
	return does&(kindHum|kindFill|kindThanks) != 0 || does&kindYes != 0 && hear(words).words() == 1
}
