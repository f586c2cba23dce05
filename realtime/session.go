package realtime

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/mask"
)

const (
	// openingLimit bounds how long a client waits for the session that it asked for before its call began, from the
	// beginning of the model's: the leg's formats go first. Then it is shown the session as it is.
	openingLimit = 6 * time.Second
	// answerLimit bounds how long the model may take to answer a session update, from the newest answer: some give
	// none, or one for several. Clients wait 5 s at most (agents-realtime).
	answerLimit = 3 * time.Second
	// maxFaultSaid bounds the model's words in an error of ours, in bytes.
	maxFaultSaid = 500
)

// session is how the client's session begins, how its updates are answered, and how it goes on when the client vanishes
// and comes back (rejoin.go).
type session struct {
	*core
	legs    *legs
	saying  *saying
	hearing *hearing
	mask    *mask.Mask

	opening []byte               // Set once, before begin: a session.update that the client begins with unsaid; or nil
	begins  func(*handoff.Error) // takes, once, that the client's session has begun, or was refused; or nil
	waited  bool                 // from now on the client has its time to set its session up
	listens bool                 // the log says that the caller's speech is transcribed for us
}

// opens sends the model the session.update that the client began with.
func (s *session) opens(event []byte) {
	s.hearing.settings.change(gjson.GetBytes(event, "session"))
	s.legs.toModel(s.mask.Opening(event))
	s.awaitAnswer()
	s.saying.tell(s.hearing.settings.listening())
}

// show gives the client what it sees of an event of the model.
func (s *session) show(event []byte) {
	kind := events.PeekType(event)
	if kind == events.TypeSessionCreated || kind == events.TypeSessionUpdated {
		s.legs.shown = gjson.GetBytes(event, "session").Raw
	}
	if s.legs.toClient(event); kind == events.TypeSessionCreated {
		s.begun(nil)
	}
}

// begun tells whoever waits that the client's session has begun, or that it was refused.
func (s *session) begun(fault *handoff.Error) {
	if s.begins != nil {
		s.begins(fault)
		s.begins = nil
	}
}

// denied notes why the model begins no session, which some servers say on the socket. Nobody is shown its words, which
// may repeat a part of the key.
func (s *session) denied(fault gjson.Result) {
	s.swallow("the voice model refuses a session", fault)
	said := handoff.Clip(fault.Get("code").String(), maxModelSaid)
	why := handoff.Fault(handoff.CodeVoiceGone, s.legs.model.host, "it said "+strconv.Quote(said))
	switch said {
	case "invalid_api_key", "invalid_authentication":
		why.Code = handoff.CodeVoiceKey
	case "model_not_found":
		why.Code, why.Param, why.Subject = handoff.CodeVoiceModel, "model", "of that name at "+s.legs.model.host
	case "insufficient_quota", "rate_limit_exceeded":
		why.Code = handoff.CodeVoiceLimit
	}
	s.legs.model.denied = why
}

// learn reads how the session hears and speaks, as the model tells it.
func (s *session) learn(event []byte) {
	h, session := s.hearing, gjson.GetBytes(event, "session")
	h.settings.learn(session)
	if h.inForce.learn(session); s.mask.Confirmed() { // also what the model does not repeat
		h.inForce = h.settings
	}
	s.saying.tell(h.settings.listening())
}

// updated acts on a session.updated of the model. shown: the client saw it.
func (s *session) updated(event []byte, shown bool) {
	if on := s.mask.Transcribing(); on && !s.listens { // somebody pays for it
		s.listens = true
		s.log().Info("the caller's speech is transcribed for the router, beside what the client asked for",
			zap.String("model", mask.TranscriptionModel))
	}
	s.learn(event)
	s.ready()
	if shown && s.legs.reachable() && s.mask.Configured() {
		s.saying.tell(floor.Configured{})
	}
}

// refused handles the refusal of a session update and returns what the client sees of it.
func (s *session) refused(r mask.Refusal, fault gjson.Result) []byte {
	s.awaitAnswer()
	for _, own := range r.Again {
		s.legs.toModel(own)
	}
	switch {
	case r.Heir && len(r.Again) == 0:
		s.end(s.legs.modelGone("another session refused to be like the one before"))
	case r.Tools:
		s.log().Warn("the voice model refused Switchboard's tools: nothing can be handed over in this call")
	case r.Words:
		s.log().Warn("the voice model does not transcribe the caller: permissions cannot be given by voice in this call")
	}
	if r.Shown == nil {
		s.swallow("session update refused by the voice model", fault)
		return nil
	}
	s.hearing.settings = s.hearing.inForce
	s.saying.tell(s.hearing.settings.listening())
	switch {
	case r.Leg:
		s.legs.toLeg(r.Shown)
		return nil
	case r.Opening && s.begins != nil: // who still waits for an answer to its offer is told there, and there is no call
		why := handoff.Malformed(fault.Get("param").String(), handoff.Clip(fault.Get("message").String(), maxFaultSaid))
		if why.Param == "" {
			why.Param = "session"
		}
		s.begun(why)
		s.end(why)
		return nil
	case r.Opening:
		s.release()
	}
	return r.Shown
}

// release lets the client begin with its session as it is.
func (s *session) release() {
	if created := s.mask.Release(); created != nil {
		s.show(created)
		s.ready()
	}
}

// awaitAnswer lets the alarm ring if the session updates on the wire are not answered in time.
func (s *session) awaitAnswer() {
	if s.alarms[alarmAnswer].at = (time.Time{}); !s.mask.Confirmed() && s.mask.Begun() {
		s.alarms[alarmAnswer].at = time.Now().Add(answerLimit)
	}
}

// unanswered answers the client's session updates itself, as the model does not: with the session as it was known, and
// what the client asked for in it.
func (s *session) unanswered() {
	asked := s.mask.Overdue()
	s.counts.made += len(asked)
	for _, session := range asked {
		if session == "" || !gjson.Parse(s.legs.shown).IsObject() {
			continue
		}
		s.show(events.Encode(events.Object{"type": events.TypeSessionUpdated, "event_id": s.ids.Next(),
			"session": json.RawMessage(overlay([]byte(s.legs.shown), []byte(session)))}))
	}
	s.release()
	if len(asked) > 0 && s.legs.reachable() {
		s.saying.tell(floor.Configured{})
	}
}

// ready lets the client set its session up from now on, once it can be reached and knows its session.
func (s *session) ready() {
	if !s.waited && s.mask.Open() && s.legs.reachable() {
		s.waited = true
		s.saying.tell(floor.Opened{})
	}
}
