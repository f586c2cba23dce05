package mask

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// transcriber turns the caller's speech into words where the client did not ask for it: the router needs
// what the caller said.
const transcriber = `{"model":"` + TranscriptionModel + `"}`

// TranscriptionModel is the model that does so. It is billed beside the voice.
const TranscriptionModel = "gpt-4o-mini-transcribe"

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
	additions // of ours

	effort   string                               // Set once: of reasoning, where the client does not say it; or ""
	base     view                                 // as the model has confirmed it
	updates  []update                             // not answered, oldest first
	now      view                                 // as it will be once the model has confirmed them
	original struct{ tools, instructions string } // raw, as the model made it
	created  bool
	foreign  bool // a transcription session: none of our business
	deaf     bool // the model refused our transcription
	wordless bool // the model refused our words after the client's
	reasoned bool // the client set the reasoning itself

	set     unique.Handle[string]                  // what is in force of all updates, raw; shared by like calls
	first   struct{ session, conversation string } // the ids that the client knows; "" for not yet
	known   string                                 // the session as the model told it last, raw
	answers bool                                   // the model has answered an update; others are not in force
	forLeg  bool                                   // the newest answer was the client's leg's, or nobody waits

	awaiting bool   // an update that the client's session begins with is to come, or not confirmed
	held     []byte // session.created, which waits for it

	configured bool // an update of the client was confirmed

	joined   bool // somebody else's, which we are in: see [Mask.Join]
	reclaims int  // times that our tools were put back
}

// An update is a session.update on the wire.
type update struct {
	id     string // its event id
	by     author
	change change
	after  view   // once it is confirmed, and those before it
	size   int    // in bytes, of a client's
	asked  string // what the client asked for, a raw session; "" for ours
	got    string // what the model got of it
	given  []byte // a client's as it came, where we added to it
	resent bool   // refused, and sent again with less of ours
	late   bool   // nobody waits for its answer any more
}

// An author is who made an update. What the client did not make it never sees.
type author int

const (
	byClient author = iota
	byUs
	byLeg   // of the client: the sound that it carries
	byOffer // the session that the client began with
	byHeir  // what a new session of the model begins with
)

// begin learns the model's session and returns our own updates: tools with instructions, and
// transcription by itself, so that a model without it still takes the tools.
func (s *session) begin(event []byte, ids *events.Names) [][]byte {
	r := gjson.GetBytes(event, "session")
	again := s.created
	s.created = true
	if s.foreign = s.foreign || r.Get("type").String() == "transcription"; s.foreign || again {
		return nil
	}
	s.remember(r)
	s.first.session = r.Get("id").String()
	s.original.tools, s.original.instructions = r.Get("tools").Raw, r.Get("instructions").Raw
	if tools := r.Get("tools"); tools.IsArray() {
		theirs, _ := s.theirs(tools)
		s.base.tools, s.base.sent = theirs, theirs
	}
	s.base.forced = s.joined && forces(r.Get("tool_choice"))
	transcription := r.Get("audio.input.transcription")
	s.base.transcription, s.base.transcribed = transcription.Raw, transcription.IsObject()
	s.base.instructed = r.Get("prompt").IsObject()
	s.rebase()
	out := [][]byte{s.setTools(ids, !s.now.instructed && s.guide != "")}
	if s.listens(s.now) && !s.joined {
		out = append(out, s.own(ids, change{transcribing: new(true)}, events.Object{"type": "realtime",
			"audio": events.Object{"input": events.Object{"transcription": json.RawMessage(transcriber)}}}))
	}
	if s.effort != "" && !s.reasoned { // by itself, for the same reason
		out = append(out, s.own(ids, change{reasoning: true}, events.Object{"type": "realtime",
			"reasoning": events.Object{"effort": s.effort}}))
	}
	return out
}

// setTools makes an update of ours: the client's tools and ours, and our instructions if they are to stand.
func (s *session) setTools(ids *events.Names, instructing bool) []byte {
	c := change{sent: new(s.now.tools), ours: s.allowed(s.now.tools, s.now.forced), instructing: instructing}
	fields := events.Object{"type": "realtime", "tools": json.RawMessage(s.join(s.now.tools, c.ours))}
	if instructing {
		fields["instructions"] = s.instructions(c.ours)
	} else if s.now.appended && s.addition(c.ours) != s.addition(s.now.ours) { // a tool has another name
		fields["instructions"] = s.now.theirs + s.addition(c.ours)
	}
	return s.own(ids, c, fields)
}

// full reports whether too much waits for the model's confirmation. One update always may.
func (s *session) full(size int) bool {
	n := 0
	for _, u := range s.updates {
		if u.size > 0 && !u.late {
			n, size = n+1, size+u.size
		}
	}
	return n >= maxUpdates || n > 0 && size > maxUpdateBytes
}

func (s *session) own(ids *events.Names, c change, fields events.Object) []byte {
	id := ids.Next()
	event := events.Encode(events.Object{"type": events.TypeSessionUpdate, "event_id": id, "session": fields})
	s.push(update{id: id, by: byUs, change: c, got: gjson.GetBytes(event, "session").Raw})
	return event
}

// push follows an update that goes to the model now.
func (s *session) push(u update) {
	s.now = u.change.apply(s.now)
	u.after = s.now
	s.updates = append(s.updates, u)
}

// rebase follows the updates on the wire anew, from what is in force.
func (s *session) rebase() {
	s.now = s.base
	for i := range s.updates {
		s.now = s.updates[i].change.apply(s.now)
		s.updates[i].after = s.now
	}
}

// instructing reports whether our instructions stand, or stood until an update that is on the wire.
func (s *session) instructing() bool {
	coming := func(u update) bool { return u.after.instructing }
	return s.guide != "" && (s.now.instructing || s.base.instructing || slices.ContainsFunc(s.updates, coming))
}

// change patches the client's session.update and follows it. id is its event id.
func (s *session) change(event []byte, id string) []byte {
	r := gjson.GetBytes(event, "session")
	if !r.IsObject() || s.foreign || r.Get("type").String() == "transcription" {
		s.foreign = s.foreign || r.Get("type").String() == "transcription"
		s.push(update{id: id, size: len(event)})
		return event
	}
	u := update{id: id, asked: r.Raw}
	given := event
	event = s.changeTools(&u.change, event, r)
	event = s.changeInstructions(&u.change, event, r)
	s.reasoned = s.reasoned || r.Get("reasoning").Exists()
	event = events.Remove(event, "session.model") // a running session has one, and refuses all for another
	event = s.changeTranscription(&u.change, event, r)
	if u.change.adds() {
		u.given = given
	}
	u.size, u.got = len(event), gjson.GetBytes(event, "session").Raw
	s.push(u)
	return event
}

// changeInstructions adds our words to the client's instructions. A stored prompt is some, to which nothing can be
// added: ours leave the model as it was. So do instructions without a word.
func (s *session) changeInstructions(c *change, event []byte, r gjson.Result) []byte {
	theirs := r.Get("instructions")
	c.instructed = theirs.Exists() || r.Get("prompt").IsObject()
	switch {
	case theirs.Type == gjson.String && strings.TrimSpace(theirs.Str) != "" && s.added != "" && !s.wordless:
		c.theirs, c.appended = theirs.Str, true
		event = events.Set(event, pathInstructions, events.Quote(theirs.Str+s.addition(c.apply(s.now).ours)))
	case !theirs.Exists() && c.instructed && s.now.instructing:
		event = events.Set(event, pathInstructions, cmp.Or(s.original.instructions, `""`))
	}
	return event
}

// changeTools appends ours to the client's tools, or sends the client's again where ours come or go
// because of its tool choice.
func (s *session) changeTools(c *change, event []byte, r gjson.Result) []byte {
	tools := r.Get("tools")
	if tools.Exists() && !tools.IsArray() && tools.Type != gjson.Null {
		return event // the model says what is wrong with it
	}
	if tools.Exists() {
		c.tools = new("")
		if tools.IsArray() {
			c.tools = new(tools.Raw)
		}
	}
	if choice := r.Get("tool_choice"); choice.Exists() {
		c.forced = new(forces(choice))
	}
	then := c.apply(s.now)
	ours := s.allowed(then.tools, then.forced)
	if !tools.Exists() && (!s.created || slices.Equal(ours, s.now.ours)) {
		return event
	}
	c.sent, c.ours = new(then.tools), ours
	event = events.Set(event, pathTools, s.join(then.tools, ours))
	keeps := !r.Get("instructions").Exists() && !r.Get("prompt").IsObject()
	if now := s.instructions(ours); s.created && s.now.instructing && keeps && now != s.instructions(s.now.ours) {
		event = events.Set(event, pathInstructions, events.Quote(now))
	}
	if now := s.addition(ours); s.now.appended && keeps && now != s.addition(s.now.ours) {
		event = events.Set(event, pathInstructions, events.Quote(s.now.theirs+now))
	}
	return event
}

// changeTranscription keeps ours on while the client has none. It is repeated with every change of audio,
// because some servers replace nested objects as a whole.
func (s *session) changeTranscription(c *change, event []byte, r gjson.Result) []byte {
	audio, own := r.Get("audio"), r.Get("audio.input.transcription")
	if own.Exists() {
		c.transcription, c.transcribed, c.silenced = new(own.Raw), own.IsObject(), own.Type == gjson.Null
	}
	input := r.Get("audio.input")
	switch {
	case c.apply(s.now).transcribed:
		c.transcribing = new(false)
	case own.Type == gjson.Null && own.Exists() && !s.listens(c.apply(s.now)):
		c.transcribing = new(false)
	case s.deaf || !s.listens(c.apply(s.now)) || !audio.IsObject() || (input.Exists() && !input.IsObject()):
	default:
		event = events.Set(event, pathTranscription, transcriber)
		c.transcribing = new(true)
	}
	return event
}

// force is the session that the model has, as far as is known. One that answers no updates has what it was sent once
// nobody waits any more.
func (s *session) force() view {
	v := s.base
	for _, u := range s.updates {
		if u.late && !s.answers {
			v = u.after
		}
	}
	return v
}

// standing names our tools that the model may call now: those in force, and those before and after any update that is
// not answered, but for what is the client's until then.
func (s *session) standing() []string {
	if len(s.updates) == 0 {
		return s.now.ours
	}
	force := s.force()
	theirs := names(force.tools)
	all := slices.Clone(force.ours)
	add := func(ours []string) {
		for _, name := range ours {
			if !theirs[name] && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	add(s.base.ours)
	for _, u := range s.updates {
		add(u.after.ours)
	}
	return all
}

// show returns what the client may see of a session event: nothing of the echo of what it did not ask for.
func (s *session) show(event []byte) (shown [][]byte) {
	now := gjson.GetBytes(event, "session")
	answered := s.updates[:s.answered(now)]
	s.updates = append([]update(nil), s.updates[len(answered):]...) // a list of its own: what was answered is not kept
	s.forLeg = false
	s.remember(now)
	if len(answered) == 0 { // no update caused it
		return [][]byte{s.unmask(event, s.now)}
	}
	for _, u := range answered {
		s.settle(u)
	}
	s.answers = true
	event = s.unmask(event, s.base)
	asked := false
	for _, u := range answered {
		s.forLeg = s.forLeg || u.by == byLeg || u.by == byOffer || u.late // the leg has to know how things are
		asked = asked || u.by == byClient && !u.late
		if u.by != byOffer {
			continue
		}
		if created := s.opened(event); created != nil {
			shown = append(shown, created)
		}
	}
	if s.configured = s.configured || asked; asked {
		shown = append(shown, event)
	}
	return shown
}

// opened returns the session.created that waited for the update which this event confirms; nil: it does not wait
// any more.
func (s *session) opened(event []byte) []byte {
	created := s.release()
	if session := gjson.GetBytes(event, "session"); created != nil && session.IsObject() {
		created = events.Set(created, "session", session.Raw)
	}
	return created
}

// release gives up waiting, and returns what waited.
func (s *session) release() []byte {
	held := s.held
	s.awaiting, s.held = false, nil
	return held
}

// unmask returns a session event without what is ours in a view.
func (s *session) unmask(event []byte, as view) []byte {
	if id := gjson.GetBytes(event, "session.id"); s.first.session != "" && id.Type == gjson.String {
		event = events.Set(event, "session.id", events.Quote(s.first.session))
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
	if as.instructing || s.guide != "" && strings.HasPrefix(gjson.GetBytes(event, pathInstructions).String(), s.guide) {
		event = restore(event, pathInstructions, s.original.instructions)
	} else {
		event = s.unadded(event, pathInstructions)
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

// reject takes an update back that the model refused, and returns it; nil when it is none. What came after it is
// followed anew, from what was in force. again is what the model is sent for that: the client's own words, when it
// may have been our transcription that was refused, and the tools, when those on the wire went with the refused ones.
func (s *session) reject(id string, fault gjson.Result, ids *events.Names) (refused *update, again [][]byte) {
	i := slices.IndexFunc(s.updates, func(u update) bool { return u.id == id })
	if id == "" && len(s.updates) > 0 {
		if i = s.oldest(); !s.updates[i].concerns(fault) {
			i = -1
		}
	}
	if i < 0 {
		return nil, nil
	}
	u := s.updates[i]
	s.updates = slices.Delete(s.updates, i, i+1)
	if u.by == byHeir {
		return &u, s.withoutVoice(u, ids)
	}
	s.deaf = s.deaf || u.by == byUs && u.change.transcribing != nil
	s.toolless = s.toolless || u.by == byUs && u.change.transcribing == nil && !u.change.reasoning
	s.wordless = s.wordless || u.change.appended && strings.Contains(fault.Get("param").String(), "instructions")
	s.rebase()
	if u.by == byUs {
		return &u, nil
	}
	if u.given != nil && (s.deaf && u.change.transcribes() || s.toolless && len(u.change.ours) > 0 ||
		s.wordless && u.change.appended) {
		u.resent, again = true, append(again, s.change(u.given, u.id))
		s.updates[len(s.updates)-1].by = u.by
	}
	mends := s.now.sent != s.now.tools || !slices.Equal(s.now.ours, s.allowed(s.now.tools, s.now.forced))
	if s.created && !s.foreign && mends {
		again = append(again, s.setTools(ids, s.now.instructing))
	}
	return &u, again
}

// oldest returns the update that an error means which names no event, as models answer in order. One that answers no
// updates has what it was sent long ago.
func (s *session) oldest() int {
	if s.answers {
		return 0
	}
	return max(slices.IndexFunc(s.updates, func(u update) bool { return !u.late }), 0)
}

// concerns reports whether an error that names no event is about a session update: then about this one.
func (u update) concerns(fault gjson.Result) bool {
	field, _, _ := strings.Cut(fault.Get("param").String(), ".")
	message := fault.Get("message").String()
	return slices.Contains(sessionFields, field) || strings.Contains(message, events.TypeSessionUpdate) ||
		u.by == byLeg && strings.Contains(message, "format")
}

// sessionFields are what the param of an error about a session update begins with; the last are of older servers.
var sessionFields = []string{
	"session", "audio", "tools", "tool_choice", "instructions", "output_modalities", "voice", "turn_detection",
	"input_audio_transcription", "input_audio_format", "output_audio_format",
}
