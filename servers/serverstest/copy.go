package serverstest

import (
	"slices"

	"switchboard/handoff"
	"switchboard/servers"
)

// fork copies a thread up to a turn; "": all of it. It returns false if this kind cannot copy threads.
func (s *suite) fork(link *servers.Link, thread string, last handoff.TurnID) (handoff.Attached, bool) {
	s.Helper()
	forker, ok := link.Conn.(servers.Forker)
	if !ok {
		return handoff.Attached{}, false
	}
	b, err := forker.Fork(s.Context(), thread, last)
	if err != nil {
		s.Fatalf("fork: %v", err)
	}
	if b.Target.Thread == "" || b.Target.Thread == thread || b.Running != "" || b.Agent == nil {
		s.Fatalf("the copy is %+v", b)
	}
	s.Cleanup(func() { _ = b.Agent.Close() })
	return b, true
}

func testCopies(s *suite) {
	a := s.create()
	s.run(a, PromptCommand)
	id := s.wait(a)
	b, ok := s.fork(s.link, a.Target.Thread, "")
	if !ok {
		return
	}
	s.ended(s.run(b, PromptHello), handoff.TurnCompleted, TextHello)
	text := s.read(b.Target.Thread)
	s.reads(text.Lines, handoff.Line{Role: "agent", Text: TextCommand}, handoff.Line{Role: "user", Text: PromptHello},
		handoff.Line{Role: "agent", Text: TextHello})
	s.h.Release()
	s.rest(a, id, TextBack)
	text = s.read(a.Target.Thread)
	for _, line := range text.Lines {
		if line.Text == TextHello {
			s.Error("what the copy did is in its source")
		}
	}
	_, err := s.link.Conn.(servers.Forker).Fork(s.Context(), s.h.Gone, "")
	s.coded("a copy of nothing", err, handoff.CodeSessionGone, handoff.CodeUnknownSession)
}

// testCopiesUpTo: a copy ends with the given turn, and can go on from there.
func testCopiesUpTo(s *suite) {
	a := s.create()
	first := s.start(a, PromptHello)
	s.follow(a, first)
	s.run(a, PromptCommand)
	runs := s.wait(a)
	b, ok := s.fork(s.link, a.Target.Thread, first)
	if !ok {
		return
	}
	if id := b.Newest; id == "" || id == runs { // the ids of turns in a copy may differ from the source's
		s.Errorf("the newest turn of the copy is %q", id)
	}
	s.ended(s.run(b, PromptEdit), handoff.TurnCompleted, TextEdit)
	text := s.read(b.Target.Thread)
	s.reads(text.Lines, handoff.Line{Role: "user", Text: PromptHello}, handoff.Line{Role: "agent", Text: TextHello},
		handoff.Line{Role: "agent", Text: TextEdit})
	for _, line := range text.Lines {
		if line.Text == TextCommand || line.Text == PromptCommand || line.Text == TextWaiting {
			s.Errorf("the copy has %q of a later turn", line.Text)
		}
	}
	forker := s.link.Conn.(servers.Forker)
	_, err := forker.Fork(s.Context(), a.Target.Thread, runs)
	s.coded("a copy up to what runs", err, handoff.CodeBusy)
	_, err = forker.Fork(s.Context(), a.Target.Thread, handoff.TurnID(s.h.Gone))
	s.coded("a copy up to a turn that is not there", err, handoff.CodeNotFound)
	if err := s.controls(a).Interrupt(s.Context(), runs); err != nil {
		s.Errorf("interrupt: %v", err)
	}
}

func testCopiesHeld(s *suite) {
	a := s.create()
	s.run(a, PromptCommand)
	if _, ok := s.link.Conn.(servers.Forker); !ok || s.h.Hold == nil {
		return
	}
	s.h.Hold()
	s.link = s.dial()
	_, err := s.link.Conn.Attach(s.Context(), a.Target.Thread)
	s.coded("what is held elsewhere", err, handoff.CodeSessionInUse)
	b, _ := s.fork(s.link, a.Target.Thread, "")
	s.ended(s.run(b, PromptHello), handoff.TurnCompleted, TextHello)
}

// copiesAside: an ephemeral copy has the history of its source, and the source and the list do not change.
func (s *suite) copiesAside(maker servers.Ephemeral, kept handoff.Attached) {
	s.Helper()
	before := s.read(kept.Target.Thread)
	b, err := maker.ForkEphemeral(s.Context(), kept.Target.Thread, "")
	if err != nil || b.Target.Thread == "" || b.Target.Thread == kept.Target.Thread || b.Running != "" {
		s.Fatalf("the copy is %+v, %v", b, err)
	}
	s.Cleanup(func() { _ = b.Agent.Close() })
	s.ended(s.run(b, PromptEdit), handoff.TurnCompleted, TextEdit)
	list, err := s.link.Catalog.List(s.Context(), 10)
	if err != nil || len(list) != 1 || list[0].ID != kept.Target.Thread {
		s.Errorf("the list has %+v, %v", list, err)
	}
	if after, err := s.link.Catalog.Read(s.Context(), kept.Target.Thread, 40); err != nil ||
		!slices.Equal(after.Lines, before.Lines) {
		s.Errorf("the source had %+v, and has %+v, %v", before.Lines, after.Lines, err)
	}
	_, err = maker.ForkEphemeral(s.Context(), kept.Target.Thread, handoff.TurnID(s.h.Gone))
	s.coded("such a copy up to a turn that is not there", err, handoff.CodeNotFound)
}
