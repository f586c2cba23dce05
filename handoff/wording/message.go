package wording

import (
	"encoding/json"
	"strings"

	"switchboard/handoff"
)

// quoteMark stands between a message's own words and what it quotes.
const quoteMark = " Quoted: "

// Message joins our own words with the words of an agent, which stand as one JSON string so that the
// voice model sees where data begins and ends.
func Message(lead, quote string) string {
	if quote == "" {
		return lead
	}
	return lead + quoteMark + handoff.Encode(quote)
}

// SplitMessage takes a [Message] apart. A text without a quote is all lead.
func SplitMessage(text string) (lead, quote string) {
	lead, rest, found := strings.Cut(text, quoteMark)
	if !found || json.Unmarshal([]byte(rest), &quote) != nil {
		return text, ""
	}
	return lead, quote
}
