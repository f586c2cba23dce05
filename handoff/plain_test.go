package handoff

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// plainRows are texts of commands, and what a terminal shows of them.
var plainRows = []struct{ name, text, want string }{
	{"no sequence", "ok\n\tdone – 3 ms\n", "ok\n\tdone – 3 ms\n"},
	{"colours", "\x1b[1;31mFAIL\x1b[0m auth \x1b[38;2;10;20;30mx\x1b[m", "FAIL auth x"},
	{"a line that is cleared", "10 %\r\x1b[K100 %\r\n", "100 %\n"},
	{"a bar of progress", "a\n1/3\r2/3\r3/3\ndone", "a\n3/3\ndone"},
	{"ends of lines of Windows", "a\r\nb\r\r\n", "a\nb\n"},
	{"struck over, as manuals are", "N\bNA\bAM\bME", "NAME"},
	{"nothing before it to strike over", "\b\bx\n\by", "x\ny"},
	{"a title", "\x1b]0;my title\x07text", "text"},
	{"a link", "\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x1b\\.", "here."},
	{"eight bits", "\u009b31mred\u009b0m \u009d0;t\u009c.", "red ."},
	{"a title without an end takes no text along", "\x1b]0;lost\nAll 48 tests pass.", "0;lost\nAll 48 tests pass."},
	{"a device string", "\x1bP1$r0m\x1b\\x", "x"},
	{"character sets, keypads, a reset", "\x1b(Bx\x1b=y\x1bcz", "xyz"},
	{"a sequence that is broken off", "x\x1b[31", "x"},
	{"an escape at the end", "x\x1b", "x"},
	{"other characters", "a\x00\x07\x7fb\u0085c", "abc"},
	{"a sequence with a letter of another kind in it", "\x1b[3é", "é"},
	{"bytes that are no text", "a\xffb\x1b[0m", "a\ufffdb"},
	{"halves of a control character", "\xc2\x00\x9d0", "\ufffd\ufffd0"},
	{"an escape before a letter of two bytes", "\x1bé\x1b(é", "é(é"},
}

func TestPlain(t *testing.T) {
	for _, row := range plainRows {
		if got := Plain(row.text); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
	long := "\x1b]0;" + strings.Repeat("x", maxSequence) + "\x07kept"
	if got := Plain(long); !strings.HasSuffix(got, "kept") || strings.Contains(got, "\x1b") {
		t.Errorf("a title that is too long: %.40q", got)
	}
}

// TestPlainer: wherever a text is cut into two, no part of a sequence is shown.
func TestPlainer(t *testing.T) {
	const text = "\x1b[1;31mFAIL\x1b[0m auth\r\n\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x07 \u009b0m\x1b(Bdone\x1b[m"
	for at := range len(text) {
		var p Plainer
		if got := p.Next(text[:at]) + p.Next(text[at:]); got != "FAIL auth\nhere done" {
			t.Errorf("cut at %d: %q", at, got)
		}
	}
	var p Plainer
	if got := p.Next("1 %\r") + p.Next("2 %\r") + p.Next("done"); got != "1 %\n2 %\ndone" {
		t.Errorf("a bar of progress: %q", got)
	}
	for range 4 {
		p.Next("\x1b]0;" + strings.Repeat("x", maxSequence))
		if len(p.held) > maxSequence {
			t.Fatalf("%d bytes are held", len(p.held))
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, row := range plainRows {
		f.Add(row.text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		once := Plain(text)
		if i := strings.IndexFunc(once, controls); i >= 0 {
			t.Fatalf("%q is in %q", once[i], once)
		}
		if utf8.ValidString(text) && (len(once) > len(text) || !utf8.ValidString(once)) {
			t.Fatalf("%q became %q", text, once)
		}
		var p Plainer
		at = max(0, min(at, len(text)))
		if got := p.Next(text[:at]) + p.Next(text[at:]); strings.IndexFunc(got, controls) >= 0 {
			t.Fatalf("in pieces: %q", got)
		}
	})
}
