package handoff

import (
	"bytes"
	"encoding/json"
)

// MaxDepth is how deep JSON from outside may nest. Parsers recurse, so deeper JSON is refused before it is parsed.
const MaxDepth = 128

// TooDeep reports whether JSON nests deeper than [MaxDepth]. It does not recurse, reads each byte once, and accepts
// invalid JSON: brackets in strings do not count, and a string that does not end hides the rest, as it does from a
// parser.
func TooDeep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0) // a surplus closing bracket must not offset a later opening one
		case '"':
			i = stringEnd(data, i+1)
		}
	}
	return false
}

// stringEnd returns the index of the quote that ends the string whose text begins at i, or the length of data. It is
// fast for long strings with few escapes, such as sound in base64.
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
			i += escape + 2 // skip the escaped byte, which may be a quote
		}
	}
	return len(data)
}

// Encode returns a value of ours as JSON text. If it cannot be encoded, which is a bug, the text is that of an internal
// failure.
func Encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return `{"status":"failed","code":"internal"}`
	}
	return string(b)
}
