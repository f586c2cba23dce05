package realtime

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/filter"
	"switchboard/realtime/floor"
)

const (
	// openingLimit bounds how long a client waits for the session that it asked for before its call began, from the
	// beginning of the model's session. Then it is shown the session as it is. The leg's formats are set first, which
	// takes a part of the time.
	openingLimit = 6 * time.Second
	// answerLimit bounds how long the model may take to answer a session update, from its newest answer: some models
	// answer none, or several at once. Clients wait 5 s at most (agents-realtime).
	answerLimit = 3 * time.Second
	// maxFaultSaid bounds the model's own message within an error of ours, in bytes.
	maxFaultSaid = 500
)

// session is how the client's session begins, how its updates are answered, and how it continues when the client
// vanishes and comes back (rejoin.go).
type session struct {
	*core
	legs    *legs
	saying  *saying
	hearing *hearing
	filter  *filter.Filter

	opening             []byte               // Set once, before begin: of the client's offer or secret; nil: none
	onBegun             func(*handoff.Error) // called once: the client's session has begun (nil) or was refused; or nil
	opened              bool                 // the client can set up its session, and the floor knows it
	loggedTranscription bool                 // it was logged that speech is transcribed for us
}

// sendOpening sends the model the session.update that the client began with.
func (s *session) sendOpening(event []byte) {
	s.hearing.settings.change(gjson.GetBytes(event, "session"))
	s.legs.toModel(s.filter.Opening(event))
	s.awaitAnswer()
	s.saying.tell(s.hearing.settings.listening())
}

// show gives the client what it sees of an event of the model.
func (s *session) show(event []byte) {
	kind := events.PeekType(event)
	if kind == events.TypeSessionCreated || kind == events.TypeSessionUpdated {
		s.legs.shownSession = gjson.GetBytes(event, "session").Raw
	}
	if s.legs.toClient(event); kind == events.TypeSessionCreated {
		s.begun(nil)
	}
}

// begun calls onBegun, if that was not called yet: the client's session has begun, or was refused with a fault.
func (s *session) begun(fault *handoff.Error) {
	if s.onBegun != nil {
		s.onBegun(fault)
		s.onBegun = nil
	}
}

// denied notes why the model refuses a session, which some servers report on the socket. Its message is shown to
// nobody, since it may repeat a part of the key.
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

// learn reads the audio settings of the session as the model reports them.
func (s *session) learn(event []byte) {
	h, session := s.hearing, gjson.GetBytes(event, "session")
	h.settings.learn(session)
	if h.inForce.learn(session); s.filter.Confirmed() { // then what the model does not repeat is in force, too
		h.inForce = h.settings
	}
	s.saying.tell(h.settings.listening())
}

// updated handles a session.updated of the model. shown: the client sees it.
func (s *session) updated(event []byte, shown bool) {
	if on := s.filter.Transcribing(); on && !s.loggedTranscription { // somebody pays for it
		s.loggedTranscription = true
		s.log().Info("the caller's speech is transcribed for the router, beside what the client asked for",
			zap.String("model", filter.TranscriptionModel))
	}
	s.learn(event)
	s.ready()
	if shown && s.legs.reachable() && s.filter.Configured() {
		s.saying.tell(floor.Configured{})
	}
}

// refused handles the refusal of a session update and returns what the client sees of it.
func (s *session) refused(r filter.Refusal, fault gjson.Result) []byte {
	s.awaitAnswer()
	for _, own := range r.Again {
		s.legs.toModel(own)
	}
	switch {
	case r.Renewal && len(r.Again) == 0:
		s.end(s.legs.modelGone("another session refused to be like the one before"))
	case r.Tools:
		s.log().Warn("the voice model refused Switchboard's tools: nothing can be handed over in this call")
	case r.Transcription:
		s.log().Warn("the voice model does not transcribe the caller: " +
			"permissions cannot be given by voice in this call")
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
	case r.Opening && s.onBegun != nil: // the offer is not answered yet: its answer is the error, and there is no call
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

// release shows the client its session as it is, if it still waits for the one that it asked for.
func (s *session) release() {
	if created := s.filter.Release(); created != nil {
		s.show(created)
		s.ready()
	}
}

// awaitAnswer sets the alarm for the session updates on the wire, or clears it if all are answered.
func (s *session) awaitAnswer() {
	if s.alarms[alarmAnswer].at = (time.Time{}); !s.filter.Confirmed() && s.filter.Begun() {
		s.alarms[alarmAnswer].at = time.Now().Add(answerLimit)
	}
}

// unanswered answers the client's session updates in place of the model, which did not: with the known session and what
// the client asked for.
func (s *session) unanswered() {
	asked := s.filter.Overdue()
	s.counts.made += len(asked)
	for _, session := range asked {
		if session == "" || !gjson.Parse(s.legs.shownSession).IsObject() {
			continue
		}
		s.show(events.Encode(events.Object{"type": events.TypeSessionUpdated, "event_id": s.ids.Next(),
			"session": json.RawMessage(overlay([]byte(s.legs.shownSession), []byte(session)))}))
	}
	s.release()
	if len(asked) > 0 && s.legs.reachable() {
		s.saying.tell(floor.Configured{})
	}
}

// ready tells the floor, once, that the client can be reached and knows its session, and so can set it up.
func (s *session) ready() {
	if !s.opened && s.filter.Open() && s.legs.reachable() {
		s.opened = true
		s.saying.tell(floor.Opened{})
	}
}
