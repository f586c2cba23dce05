package consent

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// noDoubles look like a yes written twice, and are another word. Set once.
var noDoubles = setOf("tata haha")

// pleases are the last words of "please" in each language. Set once.
var pleases = setOf("please bitte plait favor favore alsjeblieft alstublieft prosze poprosze пожалуиста ласка tack lutfen कृपया فضلك 请")

// maxDouble is how often a yes may be written in one word.
const maxDouble = 4

// unfused is a reply in which a yes that is written several times in one word stands as several: "jaja", "ouioui".
func (h heard) unfused() heard {
	if !slices.ContainsFunc(h.tokens, func(t string) bool { return doubleOf(t) != "" }) {
		return h
	}
	out := h
	out.tokens, out.apart, out.marked, out.questions = nil, nil, nil, nil
	at := make([]int, len(h.tokens)+1) // where each token begins now
	for i, t := range h.tokens {
		times := 1
		if yes := doubleOf(t); yes != "" {
			t, times = yes, len(t)/len(yes)
		}
		for n := range times {
			out.tokens, out.apart, out.marked = append(out.tokens, t), append(out.apart, n > 0 || h.apart[i]), append(out.marked, n == 0 && h.marked[i])
		}
		at[i+1] = len(out.tokens)
	}
	for _, q := range h.questions {
		out.questions = append(out.questions, at[q])
	}
	return out
}

// doubleOf is the yes that a word consists of, several times, or "".
func doubleOf(word string) string {
	if noDoubles[word] {
		return ""
	}
	for times := 2; times <= maxDouble; times++ {
		part := word[:len(word)/times]
		if len(word)%times == 0 && utf8.RuneCountInString(part) >= 2 && strings.Repeat(part, times) == word && slices.ContainsFunc(languages(), func(l *language) bool { return l.agrees(part) }) {
			return part
		}
	}
	return ""
}

// agrees tells whether a word alone is a yes that orders nothing.
func (l *language) agrees(word string) bool {
	return slices.ContainsFunc(l.book[word], func(p phrase) bool { return p.kind == kindWeak && len(p.tokens) == 1 })
}

// strengthens tells whether what grumbles at a position is only a yes said more than once, beside which stands another
// one: "yeah yeah sure". Then it grumbles no more.
func (h heard) strengthens(at, length int, l *language) bool {
	period := 1
	for period <= length/2 && !h.repeats(at, length, period) {
		period++
	}
	if period > length/2 {
		return false
	}
	end := at + length
	for end+period <= len(h.tokens) && slices.Equal(h.tokens[at:at+period], h.tokens[end:end+period]) {
		end += period
	}
	for i := range h.tokens {
		other := pleases[h.tokens[i]]
		for _, book := range []phrasebook{l.book, english().book} {
			other = other || book.any(h.tokens[i:], func(n int, kind phraseKind) bool {
				return (kind == kindYes || kind == kindWeak) && (i+n <= at || i >= end)
			})
		}
		if other && !startsWith(h.tokens[i:], h.tokens[at:at+period]) {
			return true
		}
	}
	return false
}

// repeats tells whether tokens are the same few over and over.
func (h heard) repeats(at, length, period int) bool {
	for i := at + period; i < at+length; i++ {
		if h.tokens[i] != h.tokens[i-period] {
			return false
		}
	}
	return length%period == 0
}
