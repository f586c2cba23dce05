package handoff

import (
	"bytes"
	"encoding/json"
)

// MaxDepth is how deep JSON from outside may nest. Parsers recurse; what is deeper is refused before any of
// them sees it.
const MaxDepth = 128

// TooDeep reports whether JSON nests deeper than [MaxDepth]. It does not recurse, reads each byte once, and
// needs no valid JSON: brackets inside of strings do not count, and a string that does not end hides what
// follows, as it does from a parser.
func TooDeep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0) // what closes nothing must not hide what opens
		case '"':
			i = stringEnd(data, i+1)
		}
	}
	return false
}

// stringEnd returns where the string that begins at i ends, or the length of data. Most strings are long and
// plain: sound in base64.
func stringEnd(data []byte, i int) int {
	for i < len(data) {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data)
		}
		for quote += i; i <= quote; {
			escape := bytes.IndexByte(data[i:quote], '\\')
			if escape < 0 {
				return quote
			}
			i += escape + 2 // what stands behind the backslash ends nothing
		}
	}
	return len(data)
}

// Encode gives a tool's output as JSON text. A value of ours always marshals.
func Encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return `{"status":"failed","code":"internal"}`
	}
	return string(b)
}
