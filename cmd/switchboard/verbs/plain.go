package verbs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"switchboard/handoff"
)

// steers reports whether a character controls a terminal, or changes the order in which others are shown.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// escaped makes JSON safe for a terminal, without changing its meaning. JSON itself requires escapes only for the
// control characters below the space.
func escaped(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) { // an invalid byte becomes U+FFFD
		if r >= ' ' && steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// Plain makes foreign text safe for a terminal: characters that would control the terminal, or change the order of
// others, become �.
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

// Widths of columns, in runes.
const (
	titleWidth = 40
	placeWidth = 50
	idWidth    = 13 // of the beginning of an id; in the ids of Codex, that is the time
)

// table begins a table whose columns are as wide as their text.
func table(out io.Writer, heads ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(heads, "\t")) // Flush reports a failed write
	return w
}

// cell makes text fit into a column: one line of at most so many runes.
func cell(text string, runes int) string {
	return handoff.ClipRunes(strings.Join(strings.Fields(Plain(text)), " "), runes)
}

// indented puts a margin before each line of a text.
func indented(text, margin string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(Plain(text), "\n"), "\n", "\n"+margin)
}
