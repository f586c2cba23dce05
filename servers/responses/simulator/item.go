package simulator

import (
	"encoding/json"
	"maps"
	"time"

	"switchboard/servers/responses/wire"
)

// object is a JSON object.
type object = map[string]any

// An Item is one item of a reply. It gets an id unless it has one.
type Item struct {
	JSON  map[string]any
	Every time.Duration // pause between its words
	For   time.Duration // pause before it is done
}

// Say returns a message.
func Say(words string) Item {
	return Item{JSON: object{"type": "message", "role": "assistant",
		"content": []object{{"type": "output_text", "text": words, "annotations": []object{}}}}}
}

// Think returns reasoning that has only a summary.
func Think(summary string) Item {
	return Item{JSON: object{"type": wire.Reasoning, "summary": []object{{"type": "summary_text", "text": summary}}}}
}

// Call returns a tool call.
func Call(id, name string, args map[string]any) Item {
	return Item{JSON: object{"type": wire.Call, "call_id": id, "name": name, "arguments": string(wire.Encode(args))}}
}

// withID returns the item with its own id, or else the given one.
func (it Item) withID(id string) object {
	said := maps.Clone(it.JSON)
	if said["id"] == nil {
		said["id"] = id
	}
	return said
}

// A Request is a request for a response.
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

	N       int               `json:"-"` // number of the request, from 1
	History []json.RawMessage `json:"-"` // all items that the model would see
}
