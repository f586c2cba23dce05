package filter

import "slices"

// The methods with which a call asks about the session of its [Filter].

// Begun reports whether the model's session exists.
func (s *session) Begun() bool { return s.created }

// Open reports whether the client has seen session.created.
func (s *session) Open() bool { return s.created && !s.awaiting }

// AwaitOpening makes session.created wait for the opening update: see [Filter.Opening]. It is called before the session
// begins.
func (s *session) AwaitOpening() { s.awaiting = true }

// SetEffort sets the reasoning effort for sessions in which the client sets none; "" leaves it to the model. It is
// called before the session begins. The effort has an update of its own, so that a model without reasoning refuses
// nothing else.
func (s *session) SetEffort(effort string) { s.effort = effort }

// ForLeg reports whether the newest session.updated answered an update that the client's leg made.
func (s *session) ForLeg() bool { return s.forLeg }

// TranscriptionOnly reports whether the session only transcribes: it has no voice, and nothing of ours.
func (s *session) TranscriptionOnly() bool { return s.transcriptionOnly }

// Forced reports whether the client forces the model to call a tool, so that ours are left out.
func (s *session) Forced() bool { return s.now.forced }

// Confirmed reports whether no session update waits for the model's answer.
func (s *session) Confirmed() bool {
	return !slices.ContainsFunc(s.updates, func(u update) bool { return !u.overdue })
}

// Configured reports whether the model has what the client set, all of it.
func (s *session) Configured() bool { return s.configured && s.Confirmed() }

// Known returns the session as the model reported it last, raw JSON and unmasked, with only the names of its tools; "":
// it has not begun.
func (s *session) Known() string { return s.reported }

// Transcribing reports whether the model transcribes the caller's speech because we asked for it.
func (s *session) Transcribing() bool { return s.inForce().ourTranscription }
