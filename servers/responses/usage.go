package responses

import (
	"encoding/json"

	"switchboard/handoff"
)

// A usage is how many tokens were used.
type usage struct {
	handoff.Usage
	Raw []json.RawMessage // as the server sent them, one for each response
}

// usageOf reads the usage of a response in either form: input and output, or prompt and completion. A field that is
// absent, negative or no number counts as 0.
func usageOf(raw json.RawMessage) usage {
	if len(raw) == 0 || string(raw) == "null" || handoff.TooDeep(raw) {
		return usage{}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return usage{}
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
	details := func(names ...string) map[string]json.RawMessage {
		for _, name := range names {
			var inner map[string]json.RawMessage
			if json.Unmarshal(fields[name], &inner) == nil && inner != nil {
				return inner
			}
		}
		return nil
	}
	u := handoff.Usage{
		Input:     count(fields, "input_tokens", "prompt_tokens"),
		Cached:    count(details("input_tokens_details", "prompt_tokens_details"), "cached_tokens"),
		Output:    count(fields, "output_tokens", "completion_tokens"),
		Reasoning: count(details("output_tokens_details", "completion_tokens_details"), "reasoning_tokens"),
	}
	u.Cached, u.Reasoning = min(u.Cached, u.Input), min(u.Reasoning, u.Output)
	return usage{Usage: u, Raw: []json.RawMessage{raw}}
}

// plus adds the usage of another response.
func (u usage) plus(more usage) usage {
	u.Input += more.Input
	u.Cached += more.Cached
	u.Output += more.Output
	u.Reasoning += more.Reasoning
	u.Raw = append(u.Raw[:len(u.Raw):len(u.Raw)], more.Raw...)
	return u
}

// MarshalJSON writes both forms, and the raw ones of the server.
func (u usage) MarshalJSON() ([]byte, error) {
	in, out := object{"cached_tokens": u.Cached}, object{"reasoning_tokens": u.Reasoning}
	return json.Marshal(object{
		"input_tokens": u.Input, "prompt_tokens": u.Input, "input_tokens_details": in, "prompt_tokens_details": in,
		"output_tokens": u.Output, "completion_tokens": u.Output, "output_tokens_details": out,
		"completion_tokens_details": out,
		"total_tokens":              u.Input + u.Output, "raw": u.Raw,
	})
}
