package mask

import "slices"

// What a call asks about the session of its [Mask].

// Begun reports whether the model's session exists.
func (s *session) Begun() bool { return s.created }

// Open reports whether the client knows of the session.
func (s *session) Open() bool { return s.created && !s.awaiting }

// Await says, before the session begins, that an update which the client never sends comes first: see [Mask.Opening].
func (s *session) Await() { s.awaiting = true }

// Reasons says, before the session begins, how hard the model is to think where the client does not say it itself; ""
// leaves it to the model. One that cannot refuses that alone.
func (s *session) Reasons(effort string) { s.effort = effort }

// ForLeg reports whether the newest session.updated answered an update that the client's leg made.
func (s *session) ForLeg() bool { return s.forLeg }

// Foreign reports whether the session transcribes only: nobody speaks in it, and nothing of ours is in it.
func (s *session) Foreign() bool { return s.foreign }

// Forced reports whether the client makes the model call a tool: ours are left out.
func (s *session) Forced() bool { return s.now.forced }

// Confirmed reports whether no session update waits for the model's answer.
func (s *session) Confirmed() bool {
	return !slices.ContainsFunc(s.updates, func(u update) bool { return !u.late })
}

// Configured reports whether the model has what the client set, all of it.
func (s *session) Configured() bool { return s.configured && s.Confirmed() }

// Known returns the session as the model described it last, raw and unmasked; of its tools only the names. "" before
// it has begun.
func (s *session) Known() string { return s.known }

// Transcribing reports whether the model transcribes the caller's speech because we asked for it.
func (s *session) Transcribing() bool { return s.force().transcribing }
