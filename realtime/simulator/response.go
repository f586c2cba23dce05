package simulator

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
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
	Reasoning    any               `json:"reasoning"`
	Parallel     any               `json:"parallel_tool_calls"`
	Prompt       any               `json:"prompt"`
	Audio        struct {
		Output struct {
			Format *format `json:"format"`
			Voice  any     `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
}

// A response is played as planned, and ends after the last of that. Its fields are those that clients see. Owned by
// its session.
type response struct {
	Object       string   `json:"object"`
	ID           string   `json:"id"`
	Status       string   `json:"status"`
	Details      fields   `json:"status_details"`
	Output       []*item  `json:"output"`          // the last may be in progress
	Conversation *string  `json:"conversation_id"` // nil: out of band
	Modalities   []string `json:"output_modalities"`
	MaxTokens    any      `json:"max_output_tokens"`
	Audio        struct {
		Output struct {
			Format format `json:"format"`
			Voice  any    `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
	Usage    fields            `json:"usage"` // nil before the end
	Metadata map[string]string `json:"metadata"`

	speed       float64
	began       time.Time
	open        *item // the item in progress; or nil
	inputTokens int
}

func (s *session) createResponse(frame []byte) *fault {
	in, f := decode[struct {
		Response json.RawMessage `json:"response"`
	}](frame, "")
	var req request
	if f == nil && in.Response != nil {
		f = decodeStrictly(in.Response, &req, "response")
	}
	if f == nil {
		f = req.check()
	}
	if f != nil {
		return f
	}
	return s.respond(req)
}

// check checks what does not depend on the conversation.
func (r request) check() *fault {
	if c := r.Conversation; c != "" && c != "auto" && c != "none" {
		return invalid("response.conversation", c, "auto", "none")
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

// respond starts a response: it gathers the new items, decides, and plays the moves.
func (s *session) respond(req request) *fault {
	outOfBand := req.Conversation == "none"
	if r := s.active(); r != nil && !outOfBand {
		return refusal("conversation_already_has_active_response", "", "Conversation already has an active response "+
			"in progress: %s. Wait until the response is finished before creating a new one.", r.ID)
	}
	if outOfBand && len(s.running) > maxOutOfBand {
		return refusal("rate_limit_exceeded", "", "At most %d responses run beside the conversation.", maxOutOfBand)
	}
	fresh, f := s.context(req)
	if f != nil {
		return f
	}
	r := s.newResponse(req)
	h := s.items.hear(fresh)
	h.Nth, h.OutOfBand, h.Instructions = s.answered+1, outOfBand, s.settings.Instructions
	if req.Instructions != nil {
		h.Instructions = *req.Instructions
	}
	tools, choice := s.settings.Tools, s.settings.ToolChoice
	if req.Tools != nil {
		tools = *req.Tools
	}
	if req.ToolChoice != nil {
		choice = req.ToolChoice
	}
	h.Tools = callable(tools, choice)
	if req.Input == nil && !outOfBand {
		h.past, h.cut = s.items.past()
	}
	moves := s.decide(h)
	for _, it := range fresh {
		it.taken = true
	}
	if !outOfBand {
		s.answered++
	}
	s.running = append(s.running, r)
	s.emit("response.created", fields{"response": r})
	s.play(r, moves)
	return nil
}

// context returns the items that a response has to answer: those of its own input, or the new ones of the conversation.
// An out-of-band response without input gets none: it must not take new items from the conversation.
func (s *session) context(req request) ([]*item, *fault) {
	if req.Input == nil && req.Conversation != "none" {
		return s.items.fresh(), nil
	}
	var items []*item
	for _, raw := range req.Input {
		ref, f := decode[item](raw, "response.input")
		if f == nil && ref.Type == "item_reference" {
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

func (s *session) newResponse(req request) *response {
	set := s.settings
	r := &response{
		Object: "realtime.response", ID: s.ids.next("resp"), Status: "in_progress", Output: []*item{},
		Modalities: set.Modalities, MaxTokens: set.MaxTokens, Metadata: req.Metadata,
		speed: set.Audio.Output.Speed * s.hurry, began: s.now,
	}
	r.Audio.Output.Format, r.Audio.Output.Voice = set.Audio.Output.Format, set.Audio.Output.Voice
	if req.Conversation != "none" {
		r.Conversation = &s.conv
	}
	if req.Modalities != nil {
		r.Modalities = req.Modalities
	}
	if req.MaxTokens != nil {
		r.MaxTokens = req.MaxTokens
	}
	if v := req.Audio.Output.Voice; v != nil {
		r.Audio.Output.Voice = v
	}
	if f := req.Audio.Output.Format; f != nil {
		r.Audio.Output.Format = *f
	}
	for _, it := range s.items.items {
		r.inputTokens += tokens(it.text()) + tokens(deref(it.Arguments)) + tokens(deref(it.Output))
	}
	return r
}

// active returns the running response of the conversation, or nil.
func (s *session) active() *response {
	for _, r := range s.running {
		if r.Conversation != nil {
			return r
		}
	}
	return nil
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
		if i := slices.IndexFunc(s.running, func(r *response) bool { return r.ID == in.ResponseID }); i >= 0 {
			r = s.running[i]
		}
	}
	if r == nil {
		return refusal("response_cancel_not_active", "", "Cancellation failed: no active response found")
	}
	s.cancel(r, "client_cancelled")
	return nil
}

func (s *session) cancel(r *response, why string) {
	s.finish(r, "cancelled", fields{"type": "cancelled", "reason": why})
}

// finish ends a response. An item in progress is closed as incomplete, with its done events.
func (s *session) finish(r *response, status string, why fields) {
	if r.open != nil {
		s.closeItem(r, "incomplete")
	}
	r.Status, r.Details, r.Usage = status, why, r.usage()
	s.running = slices.DeleteFunc(s.running, func(other *response) bool { return other == r })
	s.later = slices.DeleteFunc(slices.Clone(s.later), func(p pending) bool { return p.of == r })
	s.emit("rate_limits.updated", fields{"rate_limits": []fields{
		{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 0.06},
		{"name": "tokens", "limit": 200000, "remaining": 199000, "reset_seconds": 0.3},
	}})
	s.emit("response.done", fields{"response": r})
	if s.answerDue && s.active() == nil {
		s.answerDue = false
		s.schedule(nil, s.now, func() { _ = s.respond(request{}) }) // refused if the client's own request came first
	}
}

func (r *response) usage() fields {
	text, audio := 0, 0
	for _, it := range r.Output {
		text += tokens(it.text()) + tokens(deref(it.Arguments))
		audio += int(it.sent / (50 * time.Millisecond))
	}
	return fields{
		"total_tokens": r.inputTokens + text + audio, "input_tokens": r.inputTokens, "output_tokens": text + audio,
		"input_token_details": fields{
			"text_tokens": r.inputTokens, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0,
			"cached_tokens_details": fields{"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0},
		},
		"output_token_details": fields{"text_tokens": text, "audio_tokens": audio},
	}
}

// tokens returns an estimate of the tokens of a text.
func tokens(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }

// openItem begins an item of the response.
func (s *session) openItem(r *response, it *item) {
	it.ID, it.Object, it.Status, it.taken = s.ids.next("item"), "realtime.item", "in_progress", true
	r.Output, r.open = append(r.Output, it), it
	s.emit("response.output_item.added", fields{"response_id": r.ID, "output_index": len(r.Output) - 1, "item": it})
	if r.Conversation != nil {
		at := len(s.items.items)
		previous := s.items.before(at)
		s.items.insert(at, it)
		s.emit("conversation.item.added", fields{"previous_item_id": previous, "item": it})
	}
	if it.Type == message {
		s.emit("response.content_part.added", r.at(fields{"part": it.Content[0].event()}))
	}
}

// event returns a content part of the assistant as response.content_part events have it.
func (p part) event() fields {
	if p.Transcript != nil {
		return fields{"type": "audio", "transcript": *p.Transcript}
	}
	return fields{"type": "text", "text": *p.Text}
}

// at adds where in the response something belongs.
func (r *response) at(f fields) fields {
	f["response_id"], f["item_id"], f["output_index"] = r.ID, r.open.ID, len(r.Output)-1
	if r.open.Type == message {
		f["content_index"] = 0
	} else {
		f["call_id"] = r.open.CallID
	}
	return f
}

// closeItem sends the done events of the item in progress.
func (s *session) closeItem(r *response, status string) {
	it := r.open
	it.Status = status
	switch {
	case it.Type == callKind:
		s.emit("response.function_call_arguments.done", r.at(fields{"name": it.Name, "arguments": it.Arguments}))
	case it.Content[0].Transcript != nil:
		s.emit("response.output_audio.done", r.at(fields{}))
		s.emit("response.output_audio_transcript.done", r.at(fields{"transcript": it.Content[0].Transcript}))
	default:
		s.emit("response.output_text.done", r.at(fields{"text": it.Content[0].Text}))
	}
	if it.Type == message {
		s.emit("response.content_part.done", r.at(fields{"part": it.Content[0].event()}))
	}
	s.itemDone(r)
	r.open = nil
}

func (s *session) itemDone(r *response) {
	s.emit("response.output_item.done", fields{"response_id": r.ID, "output_index": len(r.Output) - 1, "item": r.open})
	if r.Conversation != nil {
		i, _ := s.items.find(r.open.ID)
		s.emit("conversation.item.done", fields{"previous_item_id": s.items.before(i), "item": r.open})
	}
}
