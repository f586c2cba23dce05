package filter

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// transcriber is the transcription that we turn on if the client did not: the router needs to know what the caller
// said.
const transcriber = `{"model":"` + TranscriptionModel + `"}`

// TranscriptionModel is the model of our transcription. It is billed in addition to the voice.
const TranscriptionModel = "gpt-4o-mini-transcribe"

// maxUpdates and maxUpdateBytes bound the client's session updates that the model has not confirmed. Further ones are
// refused with an error.
const (
	maxUpdates     = 64
	maxUpdateBytes = 16 << 20
)

const (
	pathTools         = "session.tools"
	pathInstructions  = "session.instructions"
	pathTranscription = "session.audio.input.transcription"
)

// A session tracks a session in two views: as the client set it, and as the model has it, with our tools, instructions
// and transcription.
type session struct {
	additions

	effort               string                               // Set once: reasoning effort, if the client sets none
	base                 view                                 // as the model has confirmed
	updates              []update                             // not answered yet, oldest first
	now                  view                                 // as it will be once the model has confirmed all updates
	original             struct{ tools, instructions string } // the model's own, raw JSON
	created              bool
	transcriptionOnly    bool // a session without a voice: nothing is filtered
	transcriptionRefused bool // the model refused our transcription
	additionRefused      bool // the model refused our instructions after the client's
	clientSetEffort      bool // the client sets the reasoning itself

	merged         unique.Handle[string]                  // all confirmed updates as one, raw; equal ones share memory
	shownIDs       struct{ session, conversation string } // the ids that the client knows; "": none yet
	reported       string                                 // the session as the model reported it last, raw JSON
	answersUpdates bool                                   // the model answers updates; unanswered ones are not in force
	forLeg         bool                                   // the newest answer is for the client's leg

	awaiting    bool   // the opening update is expected, or not confirmed yet
	heldCreated []byte // session.created, which waits for the opening update

	configured bool // an update of the client was confirmed

	joined   bool // the session is another program's: see [Filter.Join]
	reclaims int  // how often our tools were put back
}

// An update is a session.update that was sent to the model.
type update struct {
	id        string // its event id
	by        author
	change    change
	after     view   // the session once this update and those before it are confirmed
	size      int    // of a client's update, in bytes
	requested string // what the client asked for, a raw session; "": not the client's
	sent      string // what was sent to the model, a raw session
	original  []byte // the client's event, if something was added to it
	resent    bool   // it was refused, and sent again with fewer additions
	overdue   bool   // its answer is not waited for any more
}

// An author is who made an update. The client only sees the effect of its own.
type author int

const (
	byClient author = iota
	byUs
	byLeg     // the client's leg: its audio formats
	byOffer   // the session that the client began with
	byRenewal // the first update of a new session of the model
)

// begin reads the model's new session and returns our updates: tools with instructions, and transcription by itself, so
// that a model without transcription still takes the tools.
func (s *session) begin(event []byte, ids *events.Names) [][]byte {
	r := gjson.GetBytes(event, "session")
	again := s.created
	s.created = true
	s.transcriptionOnly = s.transcriptionOnly || r.Get("type").String() == "transcription"
	if s.transcriptionOnly || again {
		return nil
	}
	s.remember(r)
	s.shownIDs.session = r.Get("id").String()
	s.original.tools, s.original.instructions = r.Get("tools").Raw, r.Get("instructions").Raw
	if tools := r.Get("tools"); tools.IsArray() {
		theirs, _ := s.clientTools(tools)
		s.base.tools, s.base.sentTools = theirs, theirs
	}
	s.base.forced = s.joined && forces(r.Get("tool_choice"))
	transcription := r.Get("audio.input.transcription")
	s.base.transcription, s.base.transcriptionOn = transcription.Raw, transcription.IsObject()
	s.base.hasInstructions = r.Get("prompt").IsObject()
	s.rebase()
	out := [][]byte{s.setTools(ids, !s.now.hasInstructions && s.guide != "")}
	if s.needsTranscription(s.now) && !s.joined {
		out = append(out, s.own(ids, change{ourTranscription: new(true)}, events.Object{"type": "realtime",
			"audio": events.Object{"input": events.Object{"transcription": json.RawMessage(transcriber)}}}))
	}
	if s.effort != "" && !s.clientSetEffort { // by itself, for the same reason
		out = append(out, s.own(ids, change{reasoning: true}, events.Object{"type": "realtime",
			"reasoning": events.Object{"effort": s.effort}}))
	}
	return out
}

// setTools returns an update with the client's tools and ours, and with our instructions (instructing).
func (s *session) setTools(ids *events.Names, instructing bool) []byte {
	c := change{sentTools: new(s.now.tools), ours: s.allowed(s.now.tools, s.now.forced), ourInstructions: instructing}
	fields := events.Object{"type": "realtime", "tools": json.RawMessage(s.join(s.now.tools, c.ours))}
	if instructing {
		fields["instructions"] = s.instructions(c.ours)
	} else if s.now.hasAddition && s.addition(c.ours) != s.addition(s.now.ours) { // a tool has another name
		fields["instructions"] = s.now.clientInstructions + s.addition(c.ours)
	}
	return s.own(ids, c, fields)
}

// full reports whether too many updates, or bytes with one of this size, wait for the model's answer. One update may
// always wait.
func (s *session) full(size int) bool {
	n := 0
	for _, u := range s.updates {
		if u.size > 0 && !u.overdue {
			n, size = n+1, size+u.size
		}
	}
	return n >= maxUpdates || n > 0 && size > maxUpdateBytes
}

func (s *session) own(ids *events.Names, c change, fields events.Object) []byte {
	id := ids.Next()
	event := events.Encode(events.Object{"type": events.TypeSessionUpdate, "event_id": id, "session": fields})
	s.push(update{id: id, by: byUs, change: c, sent: gjson.GetBytes(event, "session").Raw})
	return event
}

// push notes an update that is sent to the model now.
func (s *session) push(u update) {
	s.now = u.change.apply(s.now)
	u.after = s.now
	s.updates = append(s.updates, u)
}

// rebase computes the views of the unanswered updates anew, from the confirmed one.
func (s *session) rebase() {
	s.now = s.base
	for i := range s.updates {
		s.now = s.updates[i].change.apply(s.now)
		s.updates[i].after = s.now
	}
}

// mayShowOurInstructions reports whether our instructions are in force, before or after any update that is not
// answered.
func (s *session) mayShowOurInstructions() bool {
	coming := func(u update) bool { return u.after.ourInstructions }
	return s.guide != "" && (s.now.ourInstructions || s.base.ourInstructions || slices.ContainsFunc(s.updates, coming))
}

// change patches the client's session.update and notes it. id is its event id.
func (s *session) change(event []byte, id string) []byte {
	r := gjson.GetBytes(event, "session")
	if !r.IsObject() || s.transcriptionOnly || r.Get("type").String() == "transcription" {
		s.transcriptionOnly = s.transcriptionOnly || r.Get("type").String() == "transcription"
		s.push(update{id: id, size: len(event)})
		return event
	}
	u := update{id: id, requested: r.Raw}
	given := event
	event = s.changeTools(&u.change, event, r)
	event = s.changeInstructions(&u.change, event, r)
	s.clientSetEffort = s.clientSetEffort || r.Get("reasoning").Exists()
	event = events.Remove(event, "session.model") // a running session has one, and refuses all for another
	event = s.changeTranscription(&u.change, event, r)
	if u.change.adds() {
		u.original = given
	}
	u.size, u.sent = len(event), gjson.GetBytes(event, "session").Raw
	s.push(u)
	return event
}

// changeInstructions adds ours after the client's instructions. A stored prompt is instructions to which nothing can be
// added; with it, and with blank instructions, ours are removed.
func (s *session) changeInstructions(c *change, event []byte, r gjson.Result) []byte {
	theirs := r.Get("instructions")
	c.hasInstructions = theirs.Exists() || r.Get("prompt").IsObject()
	switch {
	case theirs.Type == gjson.String && strings.TrimSpace(theirs.Str) != "" && s.added != "" && !s.additionRefused:
		c.clientInstructions, c.hasAddition = theirs.Str, true
		event = events.Set(event, pathInstructions, events.Quote(theirs.Str+s.addition(c.apply(s.now).ours)))
	case !theirs.Exists() && c.hasInstructions && s.now.ourInstructions:
		event = events.Set(event, pathInstructions, cmp.Or(s.original.instructions, `""`))
	}
	return event
}

// changeTools appends ours to the client's tools. An update without tools gets the client's known ones if ours come or
// go because of its tool choice.
func (s *session) changeTools(c *change, event []byte, r gjson.Result) []byte {
	tools := r.Get("tools")
	if tools.Exists() && !tools.IsArray() && tools.Type != gjson.Null {
		return event // the model refuses it
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
	c.sentTools, c.ours = new(then.tools), ours
	event = events.Set(event, pathTools, s.join(then.tools, ours))
	keeps := !r.Get("instructions").Exists() && !r.Get("prompt").IsObject()
	if now := s.instructions(ours); s.created && s.now.ourInstructions && keeps && now != s.instructions(s.now.ours) {
		event = events.Set(event, pathInstructions, events.Quote(now))
	}
	if now := s.addition(ours); s.now.hasAddition && keeps && now != s.addition(s.now.ours) {
		event = events.Set(event, pathInstructions, events.Quote(s.now.clientInstructions+now))
	}
	return event
}

// changeTranscription keeps our transcription on while the client has none. It is repeated with every change of audio,
// because some servers replace nested objects as a whole.
func (s *session) changeTranscription(c *change, event []byte, r gjson.Result) []byte {
	audio, own := r.Get("audio"), r.Get("audio.input.transcription")
	if own.Exists() {
		c.transcription, c.transcriptionOn, c.transcriptionOff = new(own.Raw), own.IsObject(), own.Type == gjson.Null
	}
	input := r.Get("audio.input")
	switch {
	case c.apply(s.now).transcriptionOn:
		c.ourTranscription = new(false)
	case own.Type == gjson.Null && own.Exists() && !s.needsTranscription(c.apply(s.now)):
		c.ourTranscription = new(false)
	case s.transcriptionRefused || !s.needsTranscription(c.apply(s.now)):
	case !audio.IsObject() || (input.Exists() && !input.IsObject()):
	default:
		event = events.Set(event, pathTranscription, transcriber)
		c.ourTranscription = new(true)
	}
	return event
}

// inForce returns the session that the model has, as far as is known. A model that answers no updates is taken to have
// applied each once it is overdue.
func (s *session) inForce() view {
	v := s.base
	for _, u := range s.updates {
		if u.overdue && !s.answersUpdates {
			v = u.after
		}
	}
	return v
}

// standing returns the names of our tools that the model may call now: those in force, and those before and after any
// update that is not answered. Of the latter, names that are the client's until then are left out.
func (s *session) standing() []string {
	if len(s.updates) == 0 {
		return s.now.ours
	}
	force := s.inForce()
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

// show returns what the client sees of a session.updated: nothing, if it only answers updates of others.
func (s *session) show(event []byte) (shown [][]byte) {
	now := gjson.GetBytes(event, "session")
	answered := s.updates[:s.answered(now)]
	s.updates = append([]update(nil), s.updates[len(answered):]...) // copied, to free the answered ones
	s.forLeg = false
	s.remember(now)
	if len(answered) == 0 { // no update caused it
		return [][]byte{s.unfilter(event, s.now)}
	}
	for _, u := range answered {
		s.confirm(u)
	}
	s.answersUpdates = true
	event = s.unfilter(event, s.base)
	asked := false
	for _, u := range answered {
		s.forLeg = s.forLeg || u.by == byLeg || u.by == byOffer || u.overdue // the leg must know the formats
		asked = asked || u.by == byClient && !u.overdue
		if u.by != byOffer {
			continue
		}
		if created := s.releaseWith(event); created != nil {
			shown = append(shown, created)
		}
	}
	if s.configured = s.configured || asked; asked {
		shown = append(shown, event)
	}
	return shown
}

// releaseWith returns the session.created that waited for the opening update, with the session of the event that
// confirms it; nil: it does not wait any more.
func (s *session) releaseWith(event []byte) []byte {
	created := s.release()
	if session := gjson.GetBytes(event, "session"); created != nil && session.IsObject() {
		created = events.Set(created, "session", session.Raw)
	}
	return created
}

// release ends the wait for the opening update, and returns the session.created that waited; or nil.
func (s *session) release() []byte {
	held := s.heldCreated
	s.awaiting, s.heldCreated = false, nil
	return held
}

// unfilter returns a session event without our additions in a view.
func (s *session) unfilter(event []byte, as view) []byte {
	if id := gjson.GetBytes(event, "session.id"); s.shownIDs.session != "" && id.Type == gjson.String {
		event = events.Set(event, "session.id", events.Quote(s.shownIDs.session))
	}
	if tools := gjson.GetBytes(event, pathTools); tools.IsArray() {
		if kept, dropped := withoutTools(tools, as.ours); dropped {
			if kept == "[]" && s.original.tools == "" && as.tools == "" {
				event = events.Remove(event, pathTools)
			} else {
				event = events.Set(event, pathTools, kept)
			}
		}
	}
	text := gjson.GetBytes(event, pathInstructions).String()
	if as.ourInstructions || s.guide != "" && strings.HasPrefix(text, s.guide) {
		event = restore(event, pathInstructions, s.original.instructions)
	} else {
		event = s.removeAddition(event, pathInstructions)
	}
	if as.ourTranscription {
		event = restore(event, pathTranscription, as.transcription)
	}
	return event
}

// restore puts the raw value back that a field had before ours; "" removes the field.
func restore(event []byte, path, raw string) []byte {
	if raw == "" {
		return events.Remove(event, path)
	}
	return events.Set(event, path, raw)
}

// reject removes an update that the model refused, and returns it; nil: the error is not about one. The views of later
// updates are computed anew. again are updates to send now: the client's, if the model may have refused only our
// additions to it, and the tools, if those in force are not the ones that should be.
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
	if u.by == byRenewal {
		return &u, s.withoutVoice(u, ids)
	}
	s.transcriptionRefused = s.transcriptionRefused || u.by == byUs && u.change.ourTranscription != nil
	s.withoutOurs = s.withoutOurs || u.by == byUs && u.change.ourTranscription == nil && !u.change.reasoning
	s.additionRefused = s.additionRefused ||
		u.change.hasAddition && strings.Contains(fault.Get("param").String(), "instructions")
	s.rebase()
	if u.by == byUs {
		return &u, nil
	}
	fewer := s.transcriptionRefused && u.change.transcribes() || s.withoutOurs && len(u.change.ours) > 0 ||
		s.additionRefused && u.change.hasAddition
	if u.original != nil && fewer {
		u.resent, again = true, append(again, s.change(u.original, u.id))
		s.updates[len(s.updates)-1].by = u.by
	}
	mends := s.now.sentTools != s.now.tools || !slices.Equal(s.now.ours, s.allowed(s.now.tools, s.now.forced))
	if s.created && !s.transcriptionOnly && mends {
		again = append(again, s.setTools(ids, s.now.ourInstructions))
	}
	return &u, again
}

// oldest returns the index of the update that an error without an event id is about: the oldest, as models answer in
// order, but not an overdue one of a model that answers none.
func (s *session) oldest() int {
	if s.answersUpdates {
		return 0
	}
	return max(slices.IndexFunc(s.updates, func(u update) bool { return !u.overdue }), 0)
}

// concerns reports whether an error without an event id is about a session update, which then is this one.
func (u update) concerns(fault gjson.Result) bool {
	field, _, _ := strings.Cut(fault.Get("param").String(), ".")
	message := fault.Get("message").String()
	return slices.Contains(sessionFields, field) || strings.Contains(message, events.TypeSessionUpdate) ||
		u.by == byLeg && strings.Contains(message, "format")
}

// sessionFields are the first parts of the param of an error about a session update; the last five are of older
// servers.
var sessionFields = []string{
	"session", "audio", "tools", "tool_choice", "instructions", "output_modalities", "voice", "turn_detection",
	"input_audio_transcription", "input_audio_format", "output_audio_format",
}
