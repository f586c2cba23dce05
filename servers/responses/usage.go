package responses

import (
	"encoding/json"

	"switchboard/handoff"
	"switchboard/servers/responses/wire"
)

// usageOf reads the tokens of a response in either form: input and output, or prompt and completion. A field that is
// absent, negative or no number counts as 0.
func usageOf(raw json.RawMessage) handoff.Usage {
	var fields map[string]json.RawMessage
	if handoff.TooDeep(raw) || json.Unmarshal(raw, &fields) != nil {
		return handoff.Usage{}
	}
	count := func(fields map[string]json.RawMessage, names ...string) int64 {
		for _, name := range names {
			var n int64
			if v, ok := fields[name]; ok && json.Unmarshal(v, &n) == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	detail := func(name string, of ...string) int64 {
		for _, details := range of {
			var inner map[string]json.RawMessage
			if json.Unmarshal(fields[details], &inner) == nil && inner != nil {
				return count(inner, name)
			}
		}
		return 0
	}
	u := handoff.Usage{
		Input: count(fields, "input_tokens", "prompt_tokens"), Output: count(fields, "output_tokens", "completion_tokens"),
		Cached:    detail("cached_tokens", "input_tokens_details", "prompt_tokens_details"),
		Reasoning: detail("reasoning_tokens", "output_tokens_details", "completion_tokens_details"),
	}
	u.Cached, u.Reasoning = min(u.Cached, u.Input), min(u.Reasoning, u.Output)
	return u
}

// usageJSON returns what [usageOf] reads.
func usageJSON(u handoff.Usage) json.RawMessage {
	return wire.Encode(object{
		"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": u.Reasoning},
	})
}
