package simulator

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"switchboard/handoff"
)

// Types of items, as the wire has them.
const (
	typeReasoning    = "reasoning"
	typeCall         = "function_call"
	typeCustomCall   = "custom_tool_call"
	typeOutput       = "function_call_output"
	typeCustomOutput = "custom_tool_call_output"
)

// object is a JSON object.
type object = map[string]any

// An Item is one item of a reply. It gets an id unless it has one.
type Item struct {
	JSON  map[string]any
	Every time.Duration // between its words
	For   time.Duration // before it is done
}

// Say is a message.
func Say(words string) Item {
	return Item{JSON: object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": words, "annotations": []object{}}}}}
}

// Think is reasoning, of which nothing but its summary is told.
func Think(summary string) Item {
	return Item{JSON: object{"type": typeReasoning, "summary": []object{{"type": "summary_text", "text": summary}}}}
}

// Call is a call of a tool.
func Call(id, name string, args map[string]any) Item {
	return Item{JSON: object{"type": typeCall, "call_id": id, "name": name, "arguments": string(encode(args))}}
}

// withID returns the item under its own id or the given one.
func (it Item) withID(id string) object {
	said := maps.Clone(it.JSON)
	if said["id"] == nil {
		said["id"] = id
	}
	return said
}

// texts are the words of an item's content.
func texts(content any) []string {
	parts, _ := content.([]object)
	var all []string
	for _, p := range parts {
		text, _ := p["text"].(string)
		all = append(all, text)
	}
	return all
}

// A Request is what an agent asks.
type Request struct {
	Model        string            `json:"model"`
	Input        []json.RawMessage `json:"input"`
	Previous     string            `json:"previous_response_id"`
	Store        bool              `json:"store"`
	Include      []string          `json:"include"`
	Stream       bool              `json:"stream"`
	Instructions string            `json:"instructions"`
	Tools        json.RawMessage   `json:"tools"`
	Choice       json.RawMessage   `json:"tool_choice"`
	CacheKey     string            `json:"prompt_cache_key"`

	Key     string            `json:"-"` // the Authorization header
	N       int               `json:"-"` // of the request, from 1
	History []json.RawMessage `json:"-"` // all that the model would see
}

// LastSaid is the newest words of a person, and whether a tool's output came after them.
func (r Request) LastSaid() (words string, answered bool) {
	for _, raw := range r.History {
		switch s := look(raw); {
		case s.Role == "user":
			words, answered = s.text(), false
		case s.output():
			answered = true
		}
	}
	return words, answered
}

// LastOutput is what the newest call gave back.
func (r Request) LastOutput() string {
	text := ""
	for _, raw := range r.History {
		if s := look(raw); s.output() {
			text = s.text()
		}
	}
	return text
}

// A shape is what matters of an item.
type shape struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	ID      string          `json:"id"`
	CallID  string          `json:"call_id"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

func look(item json.RawMessage) shape {
	var s shape
	if handoff.TooDeep(item) || json.Unmarshal(item, &s) != nil {
		return shape{}
	}
	return s
}

func (s shape) output() bool { return s.Type == typeOutput || s.Type == typeCustomOutput }

// text returns the words of a message or of an output.
func (s shape) text() string {
	raw := s.Content
	if s.output() {
		raw = s.Output
	}
	var words string
	if json.Unmarshal(raw, &words) == nil {
		return words
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts) // anything else has no words
	var all []string
	for _, p := range parts {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("simulator: " + err.Error()) // only our own maps and strings are marshalled
	}
	return data
}
