package handoff

import "encoding/json"

// Encode gives a tool's output as JSON text. A value of ours always marshals.
func Encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return `{"status":"failed","code":"internal"}`
	}
	return string(b)
}
