package mask

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// transcriber turns the caller's speech into words where the client did not ask for it: the router needs
// what the caller said.
const transcriber = `{"model":"gpt-4o-mini-transcribe"}`

// maxUpdates and maxUpdateBytes bound a client's session updates that the model has not confirmed. What is beyond
// them is refused: the client is told so.
const (
	maxUpdates     = 64
	maxUpdateBytes = 16 << 20
)

const (
	pathTools         = "session.tools"
	pathInstructions  = "session.instructions"
	pathTranscription = "session.audio.input.transcription"
)

// A session is one session in two views: as the client set it, and as the model has it with our tools,
// instructions and transcription.
type session struct {
	tools    []handoff.Tool // Set once: ours
	guide    string         // Set once: our instructions, which stand where the client has none; "" for none
	now      view
	updates  []update // on the wire, oldest first
	original view     // as the model made it; raw fields only
	created  bool
	foreign  bool // a transcription session: none of our business
	deaf     bool // the model refused our transcription
}

// A view is what differs between the two views.
type view struct {
	tools         string   // the client's, a raw array; "" for none given
	ours          []string // names of our tools that stand beside them, as the model has them
	forced        bool     // the client forces a tool choice: ours are left out
	instructions  string   // raw; only in the original
	instructed    bool     // the client gave instructions
	instructing   bool     // ours stand in their place
	transcription string   // raw, as the client sees it; "" for absent
	transcribed   bool     // the client asked for transcription
	transcribing  bool     // ours stands in its place
}

// An update is a session.update on the wire.
type update struct {
	id     string // its event id
	ours   bool
	before view
	after  view
	size   int    // in bytes, of a client's
	plain  []byte // a client's, without the transcription that we added to it
}

// begin learns the model's session and returns our own updates: tools with instructions, and
// transcription by itself, so that a model without it still takes the tools.
func (s *session) begin(event []byte, ids *events.Names) [][]byte {
	r := gjson.GetBytes(event, "session")
	again := s.created
	s.created = true
	if s.foreign = s.foreign || r.Get("type").String() == "transcription"; s.foreign || again {
		return nil
	}
	s.original = view{tools: r.Get("tools").Raw, instructions: r.Get("instructions").Raw, transcription: r.Get("audio.input.transcription").Raw}
	if s.now.tools == "" && r.Get("tools").IsArray() {
		s.now.tools = r.Get("tools").Raw
	}
	if s.now.transcription == "" {
		s.now.transcription = s.original.transcription
		s.now.transcribed = r.Get("audio.input.transcription").IsObject()
	}
	var out [][]byte
	before := s.now
	s.now.ours = s.allowed(s.now.tools, s.now.forced)
	fields := events.Object{"type": "realtime", "tools": json.RawMessage(s.join(s.now.tools, s.now.ours))}
	if !s.now.instructed && s.guide != "" {
		s.now.instructing = true
		fields["instructions"] = s.instructions(s.now.ours)
	}
	out = append(out, s.own(ids, before, fields))
	if !s.now.transcribed {
		before = s.now
		s.now.transcribing = true
		out = append(out, s.own(ids, before, events.Object{"type": "realtime",
			"audio": events.Object{"input": events.Object{"transcription": json.RawMessage(transcriber)}}}))
	}
	return out
}

// full tells that too much waits for the model's confirmation. One update always may.
func (s *session) full(size int) bool {
	n := 0
	for _, u := range s.updates {
		if u.size > 0 {
			n, size = n+1, size+u.size
		}
	}
	return n >= maxUpdates || n > 0 && size > maxUpdateBytes
}

func (s *session) own(ids *events.Names, before view, fields events.Object) []byte {
	id := ids.Next()
	s.updates = append(s.updates, update{id: id, ours: true, before: before, after: s.now})
	return events.Encode(events.Object{"type": events.TypeSessionUpdate, "event_id": id, "session": fields})
}

// change patches the client's session.update and follows it. id is its event id.
func (s *session) change(event []byte, id string) []byte {
	r := gjson.GetBytes(event, "session")
	if !r.IsObject() || s.foreign || r.Get("type").String() == "transcription" {
		s.foreign = s.foreign || r.Get("type").String() == "transcription"
		s.updates = append(s.updates, update{id: id, before: s.now, after: s.now, size: len(event)})
		return event
	}
	before := s.now
	event = s.changeTools(event, r)
	if r.Get("instructions").Exists() {
		s.now.instructed, s.now.instructing = true, false
	}
	plain := event
	event = s.changeTranscription(event, r)
	if len(plain) == len(event) {
		plain = nil
	}
	s.updates = append(s.updates, update{id: id, before: before, after: s.now, size: len(event), plain: plain})
	return event
}

// changeTools appends ours to the client's tools, or sends the client's again where ours come or go
// because of its tool choice.
func (s *session) changeTools(event []byte, r gjson.Result) []byte {
	tools := r.Get("tools")
	if tools.Exists() && !tools.IsArray() && tools.Type != gjson.Null {
		return event // the model says what is wrong with it
	}
	if tools.Exists() {
		s.now.tools = ""
		if tools.IsArray() {
			s.now.tools = tools.Raw
		}
	}
	if choice := r.Get("tool_choice"); choice.Exists() {
		s.now.forced = forces(choice)
	}
	ours := s.allowed(s.now.tools, s.now.forced)
	if tools.Exists() || (s.created && !slices.Equal(ours, s.now.ours)) {
		event = events.Set(event, pathTools, s.join(s.now.tools, ours))
		if now := s.instructions(ours); s.created && s.now.instructing && !r.Get("instructions").Exists() && now != s.instructions(s.now.ours) {
			event = events.Set(event, pathInstructions, events.Quote(now))
		}
		s.now.ours = ours
	}
	return event
}

// changeTranscription keeps ours on while the client has none. It is repeated with every change of audio,
// because some servers replace nested objects as a whole.
func (s *session) changeTranscription(event []byte, r gjson.Result) []byte {
	audio, own := r.Get("audio"), r.Get("audio.input.transcription")
	if own.Exists() {
		s.now.transcription, s.now.transcribed = own.Raw, own.IsObject()
	}
	input := r.Get("audio.input")
	switch {
	case s.now.transcribed:
		s.now.transcribing = false
	case s.deaf || !audio.IsObject() || (input.Exists() && !input.IsObject()):
	default:
		event = events.Set(event, pathTranscription, transcriber)
		s.now.transcribing = true
	}
	return event
}

// standing names our tools that the model may call now: those before the oldest unacknowledged update
// and those after the newest, but for what is the client's until that update counts.
func (s *session) standing() []string {
	if len(s.updates) == 0 {
		return s.now.ours
	}
	before := s.updates[0].before
	theirs := names(before.tools)
	return append(slices.Clone(before.ours), slices.DeleteFunc(slices.Clone(s.now.ours), func(name string) bool { return theirs[name] })...)
}

// show returns a session event as the client may see it, or nil for the echo of our own update.
func (s *session) show(event []byte) []byte {
	as := s.now
	if len(s.updates) > 0 {
		u := s.updates[0]
		s.updates = s.updates[1:]
		if u.ours {
			return nil
		}
		as = u.after
	}
	if tools := gjson.GetBytes(event, pathTools); tools.IsArray() {
		if kept, dropped := without(tools, as.ours); dropped {
			if kept == "[]" && s.original.tools == "" && as.tools == "" {
				event = events.Remove(event, pathTools)
			} else {
				event = events.Set(event, pathTools, kept)
			}
		}
	}
	if as.instructing {
		event = restore(event, pathInstructions, s.original.instructions)
	}
	if as.transcribing {
		event = restore(event, pathTranscription, as.transcription)
	}
	return event
}

// restore puts back what the model had before us.
func restore(event []byte, path, raw string) []byte {
	if raw == "" {
		return events.Remove(event, path)
	}
	return events.Set(event, path, raw)
}

// reject undoes an update that the model refused and returns it; nil when it is none. again is what to
// send in its place: the client's own words, when it may have been our transcription that was refused.
func (s *session) reject(id string) (refused *update, again []byte) {
	i := slices.IndexFunc(s.updates, func(u update) bool { return u.id == id })
	if i < 0 || id == "" {
		return nil, nil
	}
	u := s.updates[i]
	newest := i == len(s.updates)-1
	s.updates = slices.Delete(s.updates, i, i+1)
	switch {
	case u.ours && u.after.transcribing && !u.before.transcribing:
		s.deaf, s.now.transcribing = true, false
	case s.deaf && u.plain != nil:
		u.after.transcribing = false
		s.updates = append(s.updates, update{id: id, before: u.before, after: u.after, size: u.size})
		return &u, u.plain
	case newest:
		s.now = u.before
	}
	return &u, nil
}
