package simulator

import (
	"encoding/json"
	"strings"
	"time"

	"switchboard/handoff"
)

// A session is the state of one connection. It is pure: receive, happen and advance are given the time, and leave the
// frames to send in out. Owned by the run loop of its connection.
type session struct {
	hurry   float64   // Set once: how many times faster than people it speaks
	mind    mind      // Set once
	manner  *Manner   // Set once; nil: reacts at once, and sends sound as fast as it plays
	conv    string    // Set once: id of the default conversation
	expires time.Time // when the session's time is over

	ids       ids
	now       time.Time // when the event that is being handled came
	settings  settings
	items     conversation
	input     input
	running   []*response // at most one of the conversation; the others are out of band
	audioSent bool        // sound of the assistant was sent
	answerDue bool        // speech ended while a response ran: it is answered after that
	answered  int         // responses so far, without those out of band
	later     []pending
	out       [][]byte
	end       *ending
}

// An ending closes the connection after the frames in out: with a close frame, or without one if code is 0.
type ending struct {
	code int
	text string
}

// Close codes the simulator sends itself (RFC 6455).
const (
	closeGoingAway = 1001
	closeTooSlow   = 1008
)

// newSession returns a session whose first frame is session.created.
func newSession(m mind, now time.Time, first settings) *session {
	s := &session{mind: m, ids: newIDs(), now: now, expires: now.Add(sessionLimit), settings: first, hurry: 1}
	s.settings.ID, s.settings.Expires, s.conv = s.ids.next("sess"), s.expires.Unix(), s.ids.next("conv")
	s.emit("session.created", fields{"session": s.settings})
	return s
}

// receive handles one frame of the client.
func (s *session) receive(now time.Time, frame []byte) {
	s.advance(now)
	if s.end != nil {
		return
	}
	var head struct {
		Type    *string `json:"type"`
		EventID string  `json:"event_id"`
	}
	if handoff.TooDeep(frame) {
		s.refuse(refusal("invalid_json", "", "The message nests deeper than %d levels.", handoff.MaxDepth), "")
		return
	}
	if !json.Valid(frame) {
		s.refuse(refusal("invalid_json", "", "The message is not valid JSON."), "")
		return
	}
	if err := json.Unmarshal(frame, &head); err != nil {
		s.refuse(refusal("invalid_event", "", "An event is a JSON object; its type and event_id are strings."), "")
		return
	}
	if head.Type == nil {
		s.refuse(missing("type"), head.EventID)
		return
	}
	if f := s.handle(*head.Type, frame); f != nil {
		s.refuse(f, head.EventID)
	}
	s.advance(now)
}

func (s *session) handle(kind string, frame []byte) *fault {
	switch kind {
	case "session.update":
		return s.updateSession(frame)
	case "input_audio_buffer.append":
		return s.appendAudio(frame)
	case "input_audio_buffer.commit":
		return s.commitAudio()
	case "input_audio_buffer.clear":
		s.input.clear()
		s.emit("input_audio_buffer.cleared", fields{})
		return nil
	case "conversation.item.create":
		return s.createItem(frame)
	case "conversation.item.retrieve", "conversation.item.delete", "conversation.item.truncate":
		return s.changeItem(strings.TrimPrefix(kind, "conversation.item."), frame)
	case "response.create":
		return s.createResponse(frame)
	case "response.cancel":
		return s.cancelResponse(frame)
	}
	return invalid("type", kind, "session.update", "input_audio_buffer.append", "input_audio_buffer.commit",
		"input_audio_buffer.clear", "conversation.item.create", "conversation.item.retrieve",
		"conversation.item.delete", "conversation.item.truncate", "response.create", "response.cancel")
}

// happen handles an event of a script.
func (s *session) happen(now time.Time, e Event) {
	s.advance(now)
	switch e := e.(type) {
	case Hear:
		s.hear(e)
	case Close:
		s.close(e)
	}
	s.advance(now)
}

func (s *session) close(c Close) {
	if s.end == nil {
		s.end = &ending{code: c.Code, text: c.Reason}
	}
}

// setLimit sets how long the session still lasts, and announces it.
func (s *session) setLimit(now time.Time, left time.Duration) {
	s.expires = now.Add(left)
	s.settings.Expires = s.expires.Unix()
	if s.advance(now); s.end == nil {
		s.emit("session.updated", fields{"session": s.settings})
	}
}

// advance does everything that is due now.
func (s *session) advance(now time.Time) {
	s.now = now
	if s.end == nil && !now.Before(s.expires) {
		s.refuse(&fault{code: "session_expired", message: "Your session hit the maximum duration of 60 " +
			"minutes."}, "")
		s.close(Close{Code: closeGoingAway, Reason: "session expired"})
	}
	if i := s.input.injected; i != nil && !now.Before(i.until) {
		s.injectedEnd()
	}
	for s.end == nil && (s.doDue() || s.playDue()) {
		continue
	}
}

// wake returns when advance has something to do next.
func (s *session) wake() time.Time {
	at := s.expires
	if i := s.input.injected; i != nil && i.until.Before(at) {
		at = i.until
	}
	for _, p := range s.later {
		if p.at.Before(at) {
			at = p.at
		}
	}
	for _, r := range s.running {
		if due := r.due(); due.Before(at) {
			at = due
		}
	}
	return at
}

func (s *session) updateSession(frame []byte) *fault {
	in, f := decode[struct {
		Session json.RawMessage `json:"session"`
	}](frame, "")
	if f != nil {
		return f
	}
	if in.Session == nil {
		return missing("session")
	}
	next, f := s.settings.patch(in.Session, s.audioSent)
	if f != nil {
		return f
	}
	now, then := s.settings.Audio.Input, next.Audio.Input
	if then.Format != now.Format || then.TurnDetection == nil {
		s.input.forgetSpeech()
	}
	s.settings = next
	s.emit("session.updated", fields{"session": s.settings})
	return nil
}
