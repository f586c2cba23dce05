package consent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// heard is a text in the form in which it is compared: folded words, and one token for each character of a script
// without spaces.
type heard struct {
	tokens []string
	joined string // the tokens without spaces, for names, in which recognisers put spaces as they like
	at     []int  // where each token begins in joined, and the length of joined
	spaced string // the tokens with spaces between words
	starts []int  // where each token begins in spaced
	asks   bool   // it has a question mark
	odd    bool   // it has what plain speech does not have: a quote, a bracket, a colon, no end
	open   bool   // it breaks off
}

// Marks between words. Any other is odd.
const (
	plainMarks    = "_.,!;~¡-‐‑–—…。、!・،؛।"
	questionMarks = "?？؟⁇‽¿՞"
	openEnds      = "-–—…,、，،"
)

// hear folds case, width, accents and variants of letters, and splits a text into tokens.
func hear(text string) heard {
	var h heard
	var word []rune
	end := func() {
		if len(word) > 0 {
			h.tokens = append(h.tokens, undrawn(word))
			word = word[:0]
		}
	}
	if h.odd = len(text) > maxHeard; h.odd { // what is not read may take back what is
		text = strings.ToValidUTF8(text[:maxHeard], "")
	}
	runes := []rune(strings.ToLower(text))
	for i, r := range runes {
		r = foldWidth(r)
		switch {
		case unicode.Is(unicode.Cf, r): // invisible: "n<U+200B>o" is a no, and nothing with it is a yes
			h.odd = true
		case isAccent(r):
		case isDense(r):
			end()
			if r >= 'ァ' && r <= 'ヶ' { // Katakana is written as Hiragana
				r += 'ぁ' - 'ァ'
			}
			h.tokens = append(h.tokens, string(r))
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
			if folded, ok := folds[r]; ok {
				word = append(word, folded...)
			} else {
				word = append(word, r)
			}
		case isApostrophe(r) && len(word) > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i+1]):
		default:
			end()
			h.asks = h.asks || strings.ContainsRune(questionMarks, r)
			h.odd = h.odd || !unicode.IsSpace(r) && !isApostrophe(r) && !strings.ContainsRune(plainMarks+questionMarks, r)
		}
	}
	end()
	text = strings.TrimSpace(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	h.open = strings.HasSuffix(text, "..") || text != "" && strings.ContainsRune(openEnds, last)
	return h.join()
}

// join sets the fields that depend on the tokens.
func (h heard) join() heard {
	var spaced strings.Builder
	h.joined, h.at, h.starts = strings.Join(h.tokens, ""), []int{0}, nil
	for i, t := range h.tokens {
		h.at = append(h.at, h.at[i]+len(t))
		if i > 0 && !isDenseWord(t) && !isDenseWord(h.tokens[i-1]) {
			spaced.WriteByte(' ')
		}
		h.starts = append(h.starts, spaced.Len())
		spaced.WriteString(t)
	}
	h.spaced = spaced.String()
	return h
}

func isDenseWord(token string) bool {
	r, _ := utf8.DecodeRuneInString(token)
	return isDense(r)
}

// span returns the tokens from one index to before another, in the form of phrases.
func (h heard) span(from, to int) string {
	return h.spaced[h.starts[from] : h.starts[to-1]+len(h.tokens[to-1])]
}

// spells returns the number of tokens, from an index on, that spell joined words, however they are spaced; 0: none do.
func (h heard) spells(from int, joined string) int {
	end, ok := slices.BinarySearch(h.at, h.at[from]+len(joined))
	if joined == "" || !ok || h.joined[h.at[from]:h.at[end]] != joined {
		return 0
	}
	return end - from
}

// has reports whether the text has joined words.
func (h heard) has(joined string) bool {
	return slices.ContainsFunc(h.indexes(), func(at int) bool { return h.spells(at, joined) > 0 })
}

// without returns the text without some words.
func (h heard) without(words []string) heard {
	h.tokens = slices.DeleteFunc(slices.Clone(h.tokens), func(t string) bool { return slices.Contains(words, t) })
	return h.join()
}

// indexes returns the indexes of the tokens.
func (h heard) indexes() []int {
	out := make([]int, len(h.tokens))
	for i := range out {
		out[i] = i
	}
	return out
}

// words returns the length of a text in words; a character of a script without spaces counts a third.
func (h heard) words() int {
	dense := 0
	for _, t := range h.tokens {
		if isDenseWord(t) {
			dense++
		}
	}
	return len(h.tokens) - dense + (dense+2)/3
}

// undrawn shortens drawn out letters: "nooo" is "no".
func undrawn(word []rune) string {
	out := make([]rune, 0, len(word))
	for i := 0; i < len(word); {
		run := 1
		for i+run < len(word) && word[i+run] == word[i] {
			run++
		}
		keep := run
		if run > 2 && !unicode.IsDigit(word[i]) {
			keep = 1
		}
		out = append(out, word[i:i+keep]...)
		i += run
	}
	return string(out)
}

// isDense reports whether a script is written without spaces, or with spaces that are often left out.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー'
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'’ʼ‘`´", r) }

// isAccent reports whether a mark is dropped as an accent: those of Latin and Cyrillic letters, the Arabic vowel signs
// and the Devanagari nukta. The vowel signs of Devanagari count as letters.
func isAccent(r rune) bool {
	return r >= 0x300 && r <= 0x331 || r >= 0x64b && r <= 0x652 || r == 0x670 || r == 0x640 || r == 0x93c
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

// folds maps letters with accents, and variants of letters, to plain ones. In each row, the first letter is the plain
// one. Set once.
var folds = foldTable("aàáâãäåāăą", "cçćĉċč", "dďđð", "eèéêëēĕėęě", "gĝğġģ", "hĥħ", "iîïĩīĭįı", "jĵ", "kķ",
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
