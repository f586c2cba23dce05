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

// Fit drops whole entries from the end until the encoding of what build makes of the rest is below
// limit, and returns that. build gets how many entries are kept of n and how many were dropped.
func Fit(n, limit int, build func(keep, dropped int) any) string {
	low, high := 0, n // the largest keep that fits lies in [low, high]
	if s := Encode(build(n, 0)); len(s) <= limit {
		return s
	}
	for low < high {
		mid := (low + high + 1) / 2
		if len(Encode(build(mid, n-mid))) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return Encode(build(low, n-low))
}
