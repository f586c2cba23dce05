package simulator

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxOutOfBand bounds the out-of-band responses that run at a time.
const maxOutOfBand = 8

// A request is what a response.create asks for; for absent fields the session's hold.
type request struct {
	Conversation string            `json:"conversation"`
	Input        []json.RawMessage `json:"input"`
	Instructions *string           `json:"instructions"`
	Tools        *[]tool           `json:"tools"`
	ToolChoice   any               `json:"tool_choice"`
	Modalities   []string          `json:"output_modalities"`
	Metadata     map[string]string `json:"metadata"`
	MaxTokens    any               `json:"max_output_tokens"`
	Audio        struct {
		Output struct {
			Format any `json:"format"`
			Voice  any `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
}

func (s *session) createResponse(frame []byte) *fault {
	in, f := decode[struct {
		Response map[string]json.RawMessage `json:"response"`
	}](frame, "")
	if f != nil {
		return f
	}
	known := []string{"conversation", "input", "instructions", "tools", "tool_choice", "output_modalities", "audio",
		"metadata", "max_output_tokens", "reasoning", "parallel_tool_calls", "prompt"}
	for _, name := range slices.Sorted(maps.Keys(in.Response)) {
		if !slices.Contains(known, name) {
			return unknown("response." + name)
		}
	}
	asked, f := decode[struct {
		Response request `json:"response"`
	}](frame, "")
	if f == nil {
		f = asked.Response.check()
	}
	if f != nil {
		return f
	}
	return s.respond(asked.Response)
}

// check checks what does not depend on the conversation.
func (r request) check() *fault {
	switch {
	case r.Conversation != "" && r.Conversation != "auto" && r.Conversation != "none":
		return invalid("response.conversation", r.Conversation, "auto", "none")
	case len(r.Metadata) > 16:
		return refusal("object_above_max_properties", "response.metadata",
			"Invalid 'response.metadata': at most 16 properties.")
	}
	for name, value := range r.Metadata {
		if len(name) > 64 || len(value) > 512 {
			return refusal("string_above_max_length", "response.metadata",
				"Invalid 'response.metadata.%.20s': names have at most 64 characters and values 512.", name)
		}
	}
	if r.Modalities != nil {
		if f := checkModalities(r.Modalities, "response"); f != nil {
			return f
		}
	}
	if r.Tools != nil {
		return checkTools(*r.Tools, "response")
	}
	return nil
}

// active returns the running response of the conversation, or nil.
func (s *session) active() *response {
	for _, r := range s.running {
		if !r.outOfBand {
			return r
		}
	}
	return nil
}

// respond starts a response: it gathers the new items, asks the mind, and plays its moves.
func (s *session) respond(req request) *fault {
	outOfBand := req.Conversation == "none"
	if r := s.active(); r != nil && !outOfBand {
		return busy(r.id)
	}
	if outOfBand && len(s.running) > maxOutOfBand {
		return refusal("rate_limit_exceeded", "", "At most %d responses run beside the conversation.", maxOutOfBand)
	}
	fresh, f := s.context(req)
	if f != nil {
		return f
	}
	r, f := s.newResponse(req)
	if f != nil {
		return f
	}
	h := s.items.hear(fresh)
	h.Nth, h.OutOfBand, h.Instructions = s.answered+1, outOfBand, s.settings.view.Instructions
	if req.Instructions != nil {
		h.Instructions = *req.Instructions
	}
	h.Tools, h.Choice = s.callable(req)
	if req.Input == nil && !outOfBand {
		h.past, h.cut = s.items.past()
	}
	moves := s.mind.reply(h)
	for _, it := range fresh {
		it.taken = true
	}
	if !outOfBand {
		s.answered++
	}
	s.running = append(s.running, r)
	s.emit("response.created", fields{"response": r.wire(s)})
	r.steps = plan(r, moves, s.manner)
	return nil
}

// context returns the items that a response has to answer: those of its own input, or the new ones of the conversation.
// An out-of-band response without input gets none: it must not take new items from the conversation.
func (s *session) context(req request) ([]*item, *fault) {
	if req.Input == nil {
		if req.Conversation == "none" {
			return nil, nil
		}
		return s.items.fresh(), nil
	}
	var items []*item
	for _, raw := range req.Input {
		ref, f := decode[struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}](raw, "response.input")
		if f != nil {
			return nil, f
		}
		if ref.Type == "item_reference" {
			_, it := s.items.find(ref.ID)
			if it == nil {
				return nil, refusal("invalid_value", "response.input", "Item with id '%.40s' does not exist.", ref.ID)
			}
			copied := *it
			items = append(items, &copied)
			continue
		}
		it, f := newItem(raw)
		if f != nil {
			return nil, f
		}
		items = append(items, it)
	}
	return items, nil
}

func (s *session) callable(req request) ([]string, string) {
	tools, choice := s.settings.view.Tools, s.settings.view.ToolChoice
	if req.Tools != nil {
		tools = *req.Tools
	}
	if req.ToolChoice != nil {
		choice = req.ToolChoice
	}
	return callable(tools, choice)
}

func busy(id string) *fault {
	return &fault{
		code: "conversation_already_has_active_response",
		message: "Conversation already has an active response in progress: " + id +
			". Wait until the response is finished before creating a new one.",
	}
}

func (s *session) cancelResponse(frame []byte) *fault {
	in, f := decode[struct {
		ResponseID string `json:"response_id"`
	}](frame, "")
	if f != nil {
		return f
	}
	r := s.active()
	if in.ResponseID != "" {
		r = nil
		for _, other := range s.running {
			if other.id == in.ResponseID {
				r = other
			}
		}
	}
	if r == nil {
		return refusal("response_cancel_not_active", "", "Cancellation failed: no active response found")
	}
	s.finish(r, "cancelled", fields{"type": "cancelled", "reason": "client_cancelled"})
	return nil
}
