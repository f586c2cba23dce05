package handoff

import (
	"strings"
	"testing"
)

func TestTooDeep(t *testing.T) {
	for text, want := range map[string]bool{
		``:  false,
		`[`: false,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth): false,
		strings.Repeat("[", MaxDepth+1):                               true,
		strings.Repeat(`{"a":`, MaxDepth+1):                           true,
		strings.Repeat("[]", 1000):                                    false,
		`{"a":"` + strings.Repeat("[", 1000) + `"}`:                   false,
		`{"a":"\"` + strings.Repeat("[", 1000) + `"}`:                 false,
		`{"a":"\\"` + strings.Repeat("[", 1000):                       true,
		strings.Repeat("]", 1000) + strings.Repeat("[", MaxDepth+1):   true,
	} {
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%.40q: too deep is %t", text, got)
		}
	}
}

// FuzzTooDeep holds it to a reading byte by byte.
func FuzzTooDeep(f *testing.F) {
	for _, seed := range []string{
		``, `"\`, `"\\"[`, `{"a":"\"[","b":[]}`, `"a\\\"b"[[`, `"abc`,
		strings.Repeat(`{"\\":[`, MaxDepth/2) + "[", strings.Repeat("[", MaxDepth) + `"]"[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Brackets come in heaps, so that a short text can nest deep.
		text = strings.ReplaceAll(text, "[", strings.Repeat("[", 40))
		depth, quoted, want := 0, false, false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '[' || c == '{':
				depth++
				want = want || depth > MaxDepth
			case c == ']' || c == '}':
				depth = max(depth-1, 0)
			}
		}
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%q: too deep is %t", text, got)
		}
	})
}
