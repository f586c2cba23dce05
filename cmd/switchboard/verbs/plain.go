package verbs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"switchboard/handoff"
)

// steers reports whether a letter would steer a terminal, or turn the order of those around it.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// escaped makes JSON fit for a terminal: it means the same, and steers nothing. JSON itself only asks this of what
// stands before the space.
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) { // a byte that is no UTF-8 becomes U+FFFD
		if r >= ' ' && steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// Plain makes text of others fit for a terminal: what would steer the terminal, or turn the order of letters, is
// shown as �.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case steers(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// cell makes text fit for a column.
func cell(text string, runes int) string {
	return handoff.ClipRunes(strings.Join(strings.Fields(Plain(text)), " "), runes)
}

// indented puts each line of a text behind a margin.
func indented(text, margin string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(Plain(text), "\n"), "\n", "\n"+margin)
}
