package simulator

import (
	"slices"
	"time"
	"unicode/utf8"
)

// A response runs its steps, each at its time, and ends after the last. Owned by its session.
type response struct {
	id        string
	outOfBand bool
	asText    bool   // its output is text, not sound
	format    format // of its sound
	voice     any
	speed     float64
	maxTokens any
	metadata  map[string]string
	began     time.Time

	steps       []step
	output      []*item // in the order of output_index; the last may be in progress
	open        *item   // the item in progress; or nil
	status      string
	details     fields // status_details
	inputTokens int    // tokens of input
}

// A step is an action at a time since the beginning of the response.
type step struct {
	at time.Duration
	do func(*session, *response)
}

func (s *session) newResponse(req request) (*response, *fault) {
	view := s.settings.view
	r := &response{
		id: s.ids.next("resp"), outOfBand: req.Conversation == "none", status: "in_progress", began: s.now,
		asText: view.Modalities[0] == "text", format: view.Audio.Output.Format, voice: view.Audio.Output.Voice,
		speed: view.Audio.Output.Speed * s.hurry, metadata: req.Metadata,
		maxTokens: s.settings.object["max_output_tokens"],
	}
	if req.Modalities != nil {
		r.asText = req.Modalities[0] == "text"
	}
	if req.MaxTokens != nil {
		r.maxTokens = req.MaxTokens
	}
	if v := req.Audio.Output.Voice; v != nil {
		r.voice = v
	}
	if v := req.Audio.Output.Format; v != nil {
		full, f := fullFormat(v, "response.audio.output.format")
		if f != nil {
			return nil, f
		}
		r.format = full
	}
	for _, it := range s.items.items {
		r.inputTokens += tokens(it.text()) + tokens(it.arguments) + tokens(it.output)
	}
	return r, nil
}

// due returns when the next step is to be run.
func (r *response) due() time.Time {
	if len(r.steps) == 0 {
		return r.began
	}
	return r.began.Add(r.steps[0].at)
}

// playDue runs one step that is due, and reports whether there was one.
func (s *session) playDue() bool {
	for _, r := range s.running {
		if r.due().After(s.now) {
			continue
		}
		if len(r.steps) == 0 {
			s.finish(r, "completed", nil)
			return true
		}
		next := r.steps[0]
		r.steps = r.steps[1:]
		next.do(s, r)
		return true
	}
	if s.answerDue && s.active() == nil {
		s.answerDue = false
		return s.respond(request{}) == nil
	}
	return false
}

// finish ends a response. An item in progress is closed as incomplete, with its done events.
func (s *session) finish(r *response, status string, why fields) {
	if r.open != nil {
		s.closeItem(r, "incomplete")
	}
	r.status, r.details, r.steps = status, why, nil
	s.running = slices.DeleteFunc(s.running, func(other *response) bool { return other == r })
	s.emit("rate_limits.updated", fields{"rate_limits": []fields{
		{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 0.06},
		{"name": "tokens", "limit": 200000, "remaining": 199000, "reset_seconds": 0.3},
	}})
	s.emit("response.done", fields{"response": r.wire(s)})
}

// wire returns the response as clients see it.
func (r *response) wire(s *session) fields {
	modality := "audio"
	if r.asText {
		modality = "text"
	}
	output := []fields{}
	for _, it := range r.output {
		output = append(output, it.wire())
	}
	f := fields{
		"object": "realtime.response", "id": r.id, "status": r.status, "status_details": nil, "output": output,
		"conversation_id": s.conv, "output_modalities": []string{modality}, "max_output_tokens": r.maxTokens,
		"audio": fields{"output": fields{"format": r.format, "voice": r.voice}}, "usage": nil, "metadata": nil,
	}
	if r.outOfBand {
		f["conversation_id"] = nil
	}
	if r.details != nil {
		f["status_details"] = r.details
	}
	if r.metadata != nil {
		f["metadata"] = r.metadata
	}
	if r.status != "in_progress" {
		f["usage"] = r.usage()
	}
	return f
}

func (r *response) usage() fields {
	text, audio := 0, 0
	for _, it := range r.output {
		text += tokens(it.text()) + tokens(it.arguments)
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
	it.status, it.taken = "in_progress", true
	if it.id == "" {
		it.id = s.ids.next("item")
	}
	r.output, r.open = append(r.output, it), it
	s.emit("response.output_item.added",
		fields{"response_id": r.id, "output_index": len(r.output) - 1, "item": it.wire()})
	if !r.outOfBand {
		previous := s.items.last()
		s.items.insert(len(s.items.items), it)
		s.emit("conversation.item.added", fields{"previous_item_id": previous, "item": it.wire()})
	}
	if it.kind == "message" {
		s.emit("response.content_part.added", r.at(fields{"part": partWire(it.parts[0], "")}))
	}
}

// partWire returns a content part as response.content_part events have it.
func partWire(p part, words string) fields {
	if p.Type == "output_audio" {
		return fields{"type": "audio", "transcript": words}
	}
	return fields{"type": "text", "text": words}
}

// at adds where in the response something belongs.
func (r *response) at(f fields) fields {
	f["response_id"], f["item_id"], f["output_index"] = r.id, r.open.id, len(r.output)-1
	if r.open.kind == "message" {
		f["content_index"] = 0
	} else {
		f["call_id"] = r.open.callID
	}
	return f
}

// closeItem sends the done events of the item in progress.
func (s *session) closeItem(r *response, status string) {
	it := r.open
	it.status = status
	if it.kind == "function_call" {
		s.emit("response.function_call_arguments.done", r.at(fields{"name": it.name, "arguments": it.arguments}))
	} else {
		p := it.parts[0]
		words := p.Text + p.Transcript
		if p.Type == "output_audio" {
			s.emit("response.output_audio.done", r.at(fields{}))
			s.emit("response.output_audio_transcript.done", r.at(fields{"transcript": words}))
		} else {
			s.emit("response.output_text.done", r.at(fields{"text": words}))
		}
		s.emit("response.content_part.done", r.at(fields{"part": partWire(p, words)}))
	}
	s.itemDone(r)
	r.open = nil
}

func (s *session) itemDone(r *response) {
	s.emit("response.output_item.done", fields{"response_id": r.id, "output_index": len(r.output) - 1,
		"item": r.open.wire()})
	if !r.outOfBand {
		previous := any(nil)
		if i, _ := s.items.find(r.open.id); i > 0 {
			previous = s.items.before(i)
		}
		s.emit("conversation.item.done", fields{"previous_item_id": previous, "item": r.open.wire()})
	}
}
