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
