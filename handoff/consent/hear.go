package consent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// heard is a reply in the form in which it is compared: folded words, and one token for each
// character of a script that is written without spaces.
type heard struct {
	tokens []string
	apart  []bool // a mark or a space stands before the token
	marked []bool // a mark stands before the token
	told   []bool // a story may hold the token; see toldIn
	doubts []bool // no unknown word may stand beside the token; see doubtful

	questions  []int // where question marks stand: after so many tokens
	endsAsking bool  // one stands at the end
	odd        bool  // a mark that plain speech has not: quotes, brackets, a colon
	cutOff     bool  // it ends in the middle
	bracketed  bool  // all of it stands in brackets or between notes: no speech
}

// hear folds case, width, accents and the usual variants of letters, drops what is invisible, and
// cuts a text into tokens.
func hear(text string) heard {
	var h heard
	var word []rune
	apart, marked, stressed, yes := true, false, false, false
	add := func(token string) {
		h.add(token, apart, marked || yes && token != "que") // "sí que corra"
		apart, marked, yes = false, false, false
	}
	end := func() {
		if len(word) > 0 {
			add(string(word))
			yes = stressed && string(word) == "si" // a yes that ends here; without its accent it may be an "if"
			word, stressed = word[:0], false
		}
	}
	runes := []rune(strings.ToLower(text))
	for i, r := range runes {
		r = foldWidth(r)
		switch {
		case unicode.Is(unicode.Cf, r), isAccent(r):
		case r == '%':
			end()
			add("percent")
			apart = true
		case isDense(r):
			end()
			add(string(foldDense(r)))
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
			word, stressed = append(word, foldLetter(r)...), r == 'í' || r == 'ì'
		case isApostrophe(r) && i+1 < len(runes) && unicode.IsLetter(runes[i+1]) && (len(word) > 0 || isClitic(runes[i+1:])):
		default:
			end()
			apart, marked = true, marked || !unicode.IsSpace(r) && !unicode.Is(unicode.Hyphen, r) && r != '-'
			h.mark(r)
		}
	}
	end()
	text = strings.TrimSpace(text)
	h.cutOff, h.endsAsking, h.bracketed = endsOpen(text), strings.TrimRight(text, questionMarks) != text, inBrackets(text)
	return h
}

// add appends a token. A letter drawn out ("nooo") counts once.
func (h *heard) add(word string, apart, marked bool) {
	runes := []rune(word)
	short := runes[:0]
	for i := 0; i < len(runes); {
		run := 1
		for i+run < len(runes) && runes[i+run] == runes[i] {
			run++
		}
		keep := run
		if run > 2 && !unicode.IsDigit(runes[i]) {
			keep = 1
		}
		short = append(short, runes[i:i+keep]...)
		i += run
	}
	h.tokens, h.apart, h.marked = append(h.tokens, string(short)), append(h.apart, apart), append(h.marked, marked)
}

// harmlessMarks stand between words and say nothing.
const harmlessMarks = "_.,!;~¡-‐‑–—…。、!・،؛।"

const questionMarks = "?？؟⁇‽¿՞"

// mark notes what a mark between words tells.
func (h *heard) mark(r rune) {
	switch {
	case strings.ContainsRune(questionMarks, r):
		h.questions = append(h.questions, len(h.tokens))
	case unicode.IsSpace(r), strings.ContainsRune(harmlessMarks, r):
	default:
		h.odd = true
	}
}

// weight is the length of a reply in words.
func (h heard) weight() int {
	dense := 0
	for _, t := range h.tokens {
		if r, _ := utf8.DecodeRuneInString(t); isDense(r) {
			dense++
		}
	}
	return len(h.tokens) - dense + dense/3
}

// append adds the words that were said next.
func (h *heard) append(next heard) {
	h.tokens, h.apart, h.marked = append(h.tokens, next.tokens...), append(h.apart, next.apart...), append(h.marked, next.marked...)
}

// from is what was said from a token on.
func (h heard) from(at int) heard {
	var questions []int
	for _, q := range h.questions {
		questions = append(questions, max(0, q-at))
	}
	h.tokens, h.apart, h.marked, h.questions = h.tokens[at:], h.apart[at:], h.marked[at:], questions
	return h
}

// endsOpen tells whether a text breaks off.
func endsOpen(text string) bool {
	return slices.ContainsFunc([]string{"..", "…", "-", "–", "—", ",", "、", "，", "،"}, func(end string) bool { return strings.HasSuffix(text, end) })
}

// isDense tells whether a script is written without spaces, or with spaces that are often left out.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}

// isIdeographic tells whether a word is of a script that is written without spaces: one in it ends a clause.
func isIdeographic(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return isDense(r) && !unicode.Is(unicode.Hangul, r)
}

// inBrackets tells whether a whole text is what a recogniser describes, not what it heard: "[music]".
func inBrackets(text string) bool {
	rest := strings.TrimLeft(text, "[(*♪♫（【")
	return rest != text && strings.TrimRight(rest, "])*♪♫）】") != rest
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'’ʼ‘`´", r) }

// isClitic tells whether a text begins with a word that is written with an apostrophe before it: "'em".
func isClitic(text []rune) bool {
	end := 0
	for end < len(text) && unicode.IsLetter(text[end]) {
		end++
	}
	return clitics[string(text[:end])] && (end == len(text) || !isApostrophe(text[end]))
}

// clitics are such words. Set once.
var clitics = setOf("em cause course kay til t n k s ne nen m")

// isAccent tells whether a mark only accents: those of Latin and Cyrillic letters, the Arabic vowel signs
// and the Devanagari nukta. Vowel signs of Devanagari are letters to us and stay.
func isAccent(r rune) bool {
	return r >= 0x300 && r <= 0x36f || r >= 0x64b && r <= 0x652 || r == 0x670 || r == 0x640 || r == 0x93c
}

// foldWidth turns full-width forms into ordinary ones.
func foldWidth(r rune) rune {
	switch {
	case r >= 0xff01 && r <= 0xff5e:
		return unicode.ToLower(r - 0xfee0)
	case r == 0x3000:
		return ' '
	}
	return r
}

// foldDense writes Katakana as Hiragana.
func foldDense(r rune) rune {
	if r >= 'ァ' && r <= 'ヶ' {
		return r - 'ァ' + 'ぁ'
	}
	return r
}

// folds are letters with an accent or a variant, each after what it is compared as.
var folds = foldTable("aàáâãäåāăą", "cçćĉċč", "dďđð", "eèéêëēĕėęě", "gĝğġģ", "hĥħ", "iìíîïĩīĭįı", "jĵ", "kķ",
	"lĺļľŀł", "nñńņň", "oòóôõöøōŏő", "rŕŗř", "sśŝşšș", "tţťŧț", "uùúûüũūŭůűų", "wŵ", "yýÿŷ", "zźżž",
	"и\u0439\u045d", "е\u0451\u0450", "اأإآٱ", "يىی", "هة", "كک", "ं\u0901",
	"क\u0958", "ख\u0959", "ग\u095a", "ज\u095b", "ड\u095c", "ढ\u095d", "फ\u095e", "य\u095f")

func foldTable(rows ...string) map[rune][]rune {
	table := map[rune][]rune{'ß': []rune("ss"), 'æ': []rune("ae"), 'œ': []rune("oe"), 'ﬁ': []rune("fi")}
	for _, row := range rows {
		runes := []rune(row)
		for _, r := range runes[1:] {
			table[r] = runes[:1]
		}
	}
	return table
}

func foldLetter(r rune) []rune {
	if to, ok := folds[r]; ok {
		return to
	}
	return []rune{r}
}
