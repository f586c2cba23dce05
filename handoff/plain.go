package handoff

import (
	"strings"
	"unicode/utf8"
)

// maxSequence bounds a control sequence, in bytes. What only looks like the beginning of a longer one loses its first
// two bytes, and the rest of it is text.
const maxSequence = 2 << 10

// Plain returns what a terminal would show of a text, without its colours: control sequences are left out, as are
// control characters but the end of a line and the tab. What a lone carriage return or a backspace lets the rest of a
// line overwrite is gone, as on a terminal.
func Plain(text string) string {
	if strings.IndexFunc(text, controls) < 0 {
		return text
	}
	text = strings.ToValidUTF8(text, "\ufffd") // else what is left out could join two bytes to another control character
	out := make([]byte, 0, len(text))
	line := 0 // where the present line begins in out
	for i := 0; i < len(text); {
		n, whole := sequence(text[i:])
		switch {
		case n > 0 && !whole: // the end of the text came before that of the sequence
			i = len(text)
		case n > 0:
			i += n
		case text[i] == '\r':
			if i++; i < len(text) && text[i] != '\n' && text[i] != '\r' {
				out = out[:line]
			}
		case text[i] == '\b':
			if i++; len(out) > line {
				_, last := utf8.DecodeLastRune(out)
				out = out[:len(out)-last]
			}
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			if !controls(r) || r == '\n' || r == '\t' {
				out = append(out, text[i:i+size]...)
			}
			if i += size; r == '\n' {
				line = len(out)
			}
		}
	}
	return string(out)
}

// Plainer is [Plain] for a text that comes in pieces. What was given out is not taken back: a lone carriage return
// begins a line. The zero value is ready.
type Plainer struct {
	held string // the beginning of a sequence, at most [maxSequence] bytes
}

// Next returns what is to be shown of the next piece. The beginning of a sequence waits for the rest of it.
func (p *Plainer) Next(piece string) string {
	text := p.held + piece
	p.held = ""
	for at := max(0, len(text)-maxSequence); at < len(text); at++ {
		if text[at] != '\x1b' && text[at] != '\r' && text[at] != '\xc2' {
			continue
		}
		if n, whole := sequence(text[at:]); n > 0 && !whole || at == len(text)-1 {
			text, p.held = text[:at], text[at:]
			break
		}
	}
	return Plain(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
}

// controls reports whether a terminal would not show the rune itself.
func controls(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }

// sequence returns the length of the control sequence that text begins with, and whether it is whole; 0: it begins
// with none.
func sequence(text string) (n int, whole bool) {
	var kind byte
	switch {
	case strings.HasPrefix(text, "\u009b"): // the control characters of 8 bits are two bytes of UTF-8
		kind, n = '[', 2
	case strings.HasPrefix(text, "\u009d"):
		kind, n = ']', 2
	case text[0] != '\x1b':
		return 0, false
	case len(text) == 1:
		return 1, false
	default:
		kind, n = text[1], 2
	}
	bound := min(len(text), maxSequence)
	switch {
	case kind == '[': // parameters, then one final byte
		for ; n < bound && text[n] >= ' ' && text[n] < '@'; n++ {
		}
		if n < bound && text[n] >= '@' && text[n] <= '~' {
			return n + 1, true
		}
		return n, n < len(text)
	case strings.IndexByte("]PX^_", kind) >= 0: // a string up to its terminator, which stands in the same line
		for i := n; i < bound && text[i] != '\n'; i++ {
			switch rest := text[i:]; {
			case text[i] == '\a':
				return i + 1, true
			case strings.HasPrefix(rest, "\x1b\\"), strings.HasPrefix(rest, "\u009c"):
				return i + 2, true
			case i+1 == len(text):
				return len(text), false
			}
		}
		return n, n < len(text)
	case kind >= ' ' && kind < '0' && n < len(text) && text[n] >= utf8.RuneSelf, kind >= utf8.RuneSelf:
		return 1, true // it is none; what follows is text
	case kind >= ' ' && kind < '0': // one more byte, as where character sets are chosen
		return min(n+1, len(text)), n < len(text)
	}
	return n, true
}
