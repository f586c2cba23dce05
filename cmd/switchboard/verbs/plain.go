package verbs

import (
	"strings"
	"unicode"

	"switchboard/handoff"
)

// plain makes text of others fit for a terminal: what would steer the terminal, or turn the order of letters, is
// shown as �.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// cell makes text fit for a column.
func cell(text string, runes int) string {
	return handoff.ClipRunes(strings.Join(strings.Fields(plain(text)), " "), runes)
}

// indented puts each line of a text behind a margin.
func indented(text, margin string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(plain(text), "\n"), "\n", "\n"+margin)
}
