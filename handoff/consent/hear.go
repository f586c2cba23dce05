package consent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// heard is a reply in the form in which it is compared: folded words, and one token for each
// character of a script that is written without spaces.
type heard struct {
	tokens []string
	apart  []bool // a mark or a space stands before the token
	asks   bool   // a question mark
	odd    bool   // a mark that plain speech has not: quotes, brackets, a colon
	cutOff bool   // it ends in the middle
}

// hear folds case, width, accents and the usual variants of letters, drops what is invisible, and
// cuts a text into tokens.
func hear(text string) heard {
	var h heard
	var word []rune
	apart := true
	end := func() {
		if len(word) > 0 {
			h.add(string(word), apart)
			word, apart = word[:0], false
		}
	}
	runes := []rune(strings.ToLower(text))
	for i, r := range runes {
		r = foldWidth(r)
		switch {
		case unicode.Is(unicode.Cf, r), isAccent(r):
		case r == '%':
			end()
			h.add("percent", apart)
			apart = true
		case isDense(r):
			end()
			h.add(string(foldDense(r)), apart)
			apart = false
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
			word = append(word, foldLetter(r)...)
		case isApostrophe(r) && len(word) > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i+1]):
		default:
			end()
			apart = true
			h.mark(r)
		}
	}
	end()
	h.cutOff = endsOpen(text)
	return h
}

// add appends a token. A letter drawn out ("nooo") counts once.
func (h *heard) add(word string, apart bool) {
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
	h.tokens, h.apart = append(h.tokens, string(short)), append(h.apart, apart)
}

// harmlessMarks stand between words and say nothing.
const harmlessMarks = ".,!;~¡-‐‑–—…。、!・،؛।"

// mark notes what a mark between words tells.
func (h *heard) mark(r rune) {
	switch {
	case strings.ContainsRune("?؟⁇‽¿՞", r):
		h.asks = true
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

// has tells whether one of the phrases stands in a reply: words anywhere, characters of a dense script
// only without a mark between them.
func (h heard) has(phrases map[string][][]string) bool {
	for at, first := range h.tokens {
		if h.polite(at) {
			continue
		}
		for _, p := range phrases[first] {
			if h.hasAt(at, p) {
				return true
			}
		}
	}
	return false
}

func (h heard) hasAt(at int, phrase []string) bool {
	if !startsWith(h.tokens[at:], phrase) {
		return false
	}
	for i := 1; i < len(phrase); i++ {
		if r, _ := utf8.DecodeRuneInString(phrase[i]); isDense(r) && h.apart[at+i] && !unicode.Is(unicode.Hangul, r) {
			return false
		}
	}
	return true
}

// polite tells whether a token ends the "hai" that begins a Japanese reply: with the word after it that
// can look like a denial ("hai, yatte").
func (h heard) polite(at int) bool {
	return at > 0 && h.tokens[at] == "い" && h.tokens[at-1] == "は" && h.apart[at-1]
}

func startsWith(tokens, phrase []string) bool {
	if len(tokens) < len(phrase) {
		return false
	}
	for i, p := range phrase {
		if tokens[i] != p {
			return false
		}
	}
	return true
}

// endsOpen tells whether a text breaks off.
func endsOpen(text string) bool {
	text = strings.TrimSpace(text)
	for _, end := range []string{"..", "…", "-", "–", "—", ",", "、", "，", "،"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// isDense tells whether a script is written without spaces, or with spaces that are often left out.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'’ʼ‘`´", r) }

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
