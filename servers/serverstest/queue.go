package serverstest

import (
	"switchboard/handoff"
	"switchboard/servers"
)

// queued gives a waiting thread work for afterwards; nil when this kind has no queue.
func (s *suite) queued(a handoff.Attached, prompt string) *handoff.Turn {
	s.Helper()
	queuer, ok := a.Agent.(handoff.Queuer)
	if !ok {
		return nil
	}
	turn := s.next(prompt)
	if err := queuer.Queue(s.Context(), turn); err != nil {
		s.Fatalf("queue: %v", err)
	}
	return &turn
}

// await waits for queued work to begin.
func (s *suite) await(a handoff.Attached, id string) handoff.TurnID {
	s.Helper()
	turn, err := a.Agent.(handoff.Awaiter).Await(s.Context(), id)
	if err != nil || turn == "" {
		s.Fatalf("await: %q, %v", turn, err)
	}
	return turn
}

func (s *suite) queues() {
	a := s.create()
	id := s.wait(a)
	work := s.queued(a, PromptHello)
	if work == nil {
		return
	}
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started while one ran", n)
	}
	s.back(a, id)
	s.ended(s.followUntil(a, id, func(handoff.Update) bool { return false }), handoff.TurnCompleted, TextBack)
	next := s.await(a, work.ID)
	if next == id {
		s.Errorf("it became the turn that ran")
	}
	s.ended(s.follow(a, next), handoff.TurnCompleted, TextHello)
	// On a thread that rests it begins at once.
	work = s.queued(a, PromptCommand)
	s.ended(s.follow(a, s.await(a, work.ID)), handoff.TurnCompleted, TextCommand)
	if n := s.h.Starts(); n != 3 {
		s.Errorf("%d turns were started", n)
	}
	_, err := a.Agent.(handoff.Awaiter).Await(s.Context(), "never-queued")
	s.coded("what was never queued", err, handoff.CodeNotPending)
}

func (s *suite) queuesAway() {
	a := s.create()
	id := s.wait(a)
	work := s.queued(a, PromptHello)
	if work == nil {
		return
	}
	s.lost()
	b := s.again(a.Target.Thread)
	s.back(b, id)
	s.ended(s.follow(b, s.await(b, work.ID)), handoff.TurnCompleted, TextHello)
	c := s.again(a.Target.Thread) // once more, when it is over
	s.ended(s.follow(c, s.await(c, work.ID)), handoff.TurnCompleted, TextHello)
	if n := s.h.Starts(); n != 2 {
		s.Errorf("%d turns were started", n)
	}
	if s.h.LoseStart == nil {
		return
	}
	s.h.LoseStart(true)
	turn := s.next(PromptCommand)
	s.coded("a lost message for the queue", c.Agent.(handoff.Queuer).Queue(s.Context(), turn), handoff.CodeUnknownStart)
	s.waitDone(s.link)
	d := s.again(a.Target.Thread)
	s.ended(s.follow(d, s.await(d, turn.ID)), handoff.TurnCompleted, TextCommand)
}

func (s *suite) queueHeld() {
	a := s.create()
	id := s.wait(a)
	work := s.queued(a, PromptHello)
	if work == nil {
		return
	}
	if err := s.controls(a).Interrupt(s.Context(), id); err != nil {
		s.Fatalf("interrupt: %v", err)
	}
	s.ended(s.follow(a, s.await(a, work.ID)), handoff.TurnCompleted, TextHello)
	if n := s.h.Starts(); n != 2 {
		s.Errorf("%d turns were started", n)
	}
}

func (s *suite) unqueues() {
	a := s.create()
	back, ok := a.Agent.(handoff.Unqueuer)
	if !ok {
		return
	}
	id := s.wait(a)
	first, second := s.queued(a, PromptCommand), s.queued(a, PromptHello)
	if err := back.Unqueue(s.Context(), first.ID); err != nil {
		s.Fatalf("unqueue: %v", err)
	}
	s.coded("taken back twice", back.Unqueue(s.Context(), first.ID), handoff.CodeNotPending)
	s.back(a, id)
	s.ended(s.follow(a, s.await(a, second.ID)), handoff.TurnCompleted, TextHello)
	s.coded("what has begun", back.Unqueue(s.Context(), second.ID), handoff.CodeNotPending)
	if n := s.h.Starts(); n != 2 {
		s.Errorf("%d turns were started", n)
	}
}

// fork copies a thread; false when this kind cannot.
func (s *suite) fork(link *servers.Link, thread string) (handoff.Attached, bool) {
	s.Helper()
	forker, ok := link.Conn.(servers.Forker)
	if !ok {
		return handoff.Attached{}, false
	}
	b, err := forker.Fork(s.Context(), thread)
	if err != nil {
		s.Fatalf("fork: %v", err)
	}
	if b.Target.Thread == "" || b.Target.Thread == thread || b.Running != "" || b.Agent == nil {
		s.Fatalf("the copy is %+v", b)
	}
	s.Cleanup(func() { _ = b.Agent.Close() })
	return b, true
}

func (s *suite) copies() {
	a := s.create()
	s.run(a, PromptCommand)
	id := s.wait(a)
	b, ok := s.fork(s.link, a.Target.Thread)
	if !ok {
		return
	}
	s.ended(s.run(b, PromptHello), handoff.TurnCompleted, TextHello)
	text, err := s.link.Catalog.Read(s.Context(), b.Target.Thread, 40)
	if err != nil {
		s.Fatalf("read: %v", err)
	}
	s.reads(text.Lines, handoff.Line{Role: "agent", Text: TextCommand}, handoff.Line{Role: "user", Text: PromptHello}, handoff.Line{Role: "agent", Text: TextHello})
	s.back(a, id)
	s.ended(s.followUntil(a, id, func(handoff.Update) bool { return false }), handoff.TurnCompleted, TextBack)
	text, err = s.link.Catalog.Read(s.Context(), a.Target.Thread, 40)
	if err != nil {
		s.Fatalf("read: %v", err)
	}
	for _, line := range text.Lines {
		if line.Text == TextHello {
			s.Error("what the copy did is in its source")
		}
	}
	_, err = s.link.Conn.(servers.Forker).Fork(s.Context(), s.h.Gone)
	s.coded("a copy of nothing", err, handoff.CodeSessionGone, handoff.CodeUnknownSession)
}

func (s *suite) copiesHeld() {
	a := s.create()
	s.run(a, PromptCommand)
	if _, ok := s.link.Conn.(servers.Forker); !ok || s.h.Hold == nil {
		return
	}
	s.h.Hold()
	s.link = s.dial()
	_, err := s.link.Conn.Attach(s.Context(), a.Target.Thread)
	s.coded("what is held elsewhere", err, handoff.CodeSessionInUse)
	b, _ := s.fork(s.link, a.Target.Thread)
	s.ended(s.run(b, PromptHello), handoff.TurnCompleted, TextHello)
}
