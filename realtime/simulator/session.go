package simulator

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// A session is the state of one connection. It is pure: receive, happen and advance are given the time, and leave the
// frames to send in out. Owned by the run loop of its connection.
type session struct {
	decide  func(Heard) []Move // Set once
	words   <-chan string      // Set once: of the next speech; nil: it has none
	hurry   float64            // Set once: how many times faster than people it speaks
	manner  *Manner            // Set once; nil: reacts at once, and sends sound as fast as it plays
	conv    string             // Set once: id of the default conversation
	expires time.Time          // when the session's time is over

	ids       ids
	now       time.Time // when the event that is being handled came
	settings  settings
	items     conversation
	input     input
	running   []*response // at most one of the conversation; the others are out of band
	audioSent bool        // sound of the assistant was sent
	answerDue bool        // speech ended while a response ran: it is answered after that
	answered  int         // responses so far, without those out of band
	later     []pending   // in the order of their times
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
func newSession(decide func(Heard) []Move, now time.Time, first settings) *session {
	s := &session{decide: decide, ids: newIDs(), now: now, expires: now.Add(sessionLimit), settings: first, hurry: 1}
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
	for s.end == nil && len(s.later) > 0 && !s.later[0].at.After(now) {
		next := s.later[0]
		s.later = s.later[1:]
		next.do()
	}
}

// wake returns when advance has something to do next.
func (s *session) wake() time.Time {
	if len(s.later) > 0 && s.later[0].at.Before(s.expires) {
		return s.later[0].at
	}
	return s.expires
}

// A pending is an action that a session does later.
type pending struct {
	at time.Time
	of *response // which it is a part of; or nil
	do func()
}

// schedule has an action done at a time. Actions of the same time are done in the order in which they were scheduled.
func (s *session) schedule(of *response, at time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(s.later, at, func(p pending, at time.Time) int {
		if p.at.After(at) {
			return 1
		}
		return -1
	})
	s.later = slices.Insert(s.later, i, pending{at, of, do})
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
