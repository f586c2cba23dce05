// Package wire has the items of the Responses API as the agent and its simulator read and write them.
//
// It must not know either of them, nor requests or streams.
package wire

import (
	"encoding/json"
	"strings"

	"switchboard/handoff"
)

// Types of items.
const (
	Message      = "message"
	Reasoning    = "reasoning"
	Call         = "function_call"
	Output       = "function_call_output"
	CustomCall   = "custom_tool_call"
	CustomOutput = "custom_tool_call_output"
	Reference    = "item_reference"
)

// An Item has the fields of an item that we need.
type Item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"` // of a custom tool
	Encrypted string          `json:"encrypted_content"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Output    json.RawMessage `json:"output"`
}

// Read parses an item. An invalid item has no type.
func Read(item json.RawMessage) Item {
	var it Item
	if handoff.TooDeep(item) || json.Unmarshal(item, &it) != nil {
		return Item{}
	}
	if it.Type == "" && it.Role != "" {
		it.Type = Message
	}
	return it
}

// IsCall reports whether an item is a call, which needs an output.
func (it Item) IsCall() bool {
	return (it.Type == Call || it.Type == CustomCall) && it.CallID != ""
}

// IsOutput reports whether an item is the output of a call.
func (it Item) IsOutput() bool { return it.Type == Output || it.Type == CustomOutput }

// Paragraph separates the parts of reasoning.
const Paragraph = "\n\n"

// Text returns the text of a message or output, or the summary of reasoning. The parts of an assistant message are
// joined without a separator, as in output_text of the SDKs.
func (it Item) Text() string {
	raw, separator := it.Content, "\n"
	switch {
	case it.Type == Reasoning:
		if separator = Paragraph; len(it.Summary) > 2 {
			raw = it.Summary
		}
	case it.IsOutput():
		raw = it.Output
	case it.Role == "assistant":
		separator = ""
	}
	var words string
	if json.Unmarshal(raw, &words) == nil {
		return words
	}
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	_ = json.Unmarshal(raw, &parts) // anything else has no text
	var all []string
	for _, p := range parts {
		if p.Text+p.Refusal != "" {
			all = append(all, p.Text+p.Refusal)
		}
	}
	return strings.Join(all, separator)
}

// Encode encodes a value of ours, which cannot fail. The keys of a map are sorted, so the same item always has the
// same bytes.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return data
}
