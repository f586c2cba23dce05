package serverstest

import (
	"slices"
	"time"

	"switchboard/handoff"
)

// again attaches a thread on a new connection.
func (s *suite) again(thread string) handoff.Attached {
	s.Helper()
	s.link = s.dial()
	return s.attachTo(s.link, thread)
}

// texts returns the finished messages.
func texts(updates []handoff.Update) []string {
	var all []string
	for _, m := range items(updates, handoff.ItemMessage) {
		all = append(all, m.Text)
	}
	return all
}

// lost drops every connection and waits until that is known.
func (s *suite) lost() {
	s.Helper()
	s.h.Drop()
	s.waitDone(s.link)
}

// mind steers a waiting turn with [PromptMind].
func (s *suite) mind(a handoff.Attached, id handoff.TurnID) {
	s.Helper()
	if err := s.controls(a).Steer(s.Context(), id, handoff.TextInput(PromptMind)); err != nil {
		s.Fatalf("steer: %v", err)
	}
}

// rest follows a released turn to its end.
func (s *suite) rest(a handoff.Attached, id handoff.TurnID, text string) []handoff.Update {
	s.Helper()
	updates := s.toEnd(a, id)
	s.ended(updates, handoff.TurnCompleted, text)
	return updates
}

// testEndedMeanwhile: a turn that ended without a connection of ours is reported as a whole, with its answer.
func testEndedMeanwhile(s *suite) {
	a := s.create()
	id := s.wait(a)
	s.lost()
	desk := s.attachTo(s.dial(), a.Target.Thread)
	s.h.Release()
	for range desk.Agent.Follow(s.Context(), id) { // to its end
	}
	b := s.again(a.Target.Thread)
	if b.Running != "" || b.Newest != id {
		s.Errorf("attached: %+v, want turn %s at rest", b, id)
	}
	updates := s.follow(b, id)
	if _, ok := updates[0].(handoff.Started); !ok {
		s.Errorf("first comes %#v", updates[0])
	}
	if got := texts(updates); !slices.Equal(got, []string{TextWaiting, TextBack}) {
		s.Errorf("messages %q", got)
	}
	s.ended(updates, handoff.TurnCompleted, TextBack)
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started", n)
	}
}

// testMissed: what a turn finished before it is followed on another connection comes first, then the rest.
func testMissed(s *suite) {
	a := s.create()
	id := s.wait(a)
	s.lost()
	b := s.again(a.Target.Thread)
	first := s.followUntil(b, id, asWaiting)
	if _, ok := first[0].(handoff.Started); !ok || len(first) != 2 {
		s.Errorf("first come %#v", first)
	}
	s.h.Release()
	if got := texts(s.rest(b, id, TextBack)); !slices.Equal(got, []string{TextBack}) {
		s.Errorf("then come %q", got)
	}
}

// testNotHeld: following a turn that the thread does not have ends with [handoff.CodeTurnGone].
func testNotHeld(s *suite) {
	a := s.create()
	s.run(a, PromptHello)
	var last error
	for _, last = range a.Agent.Follow(s.Context(), "01a1fac5-0000-7c13-9ff2-be9c54078f33") {
	}
	s.coded("following a turn that is not there", last, handoff.CodeTurnGone)
}

// testAskedAgain: on another connection an open question comes again, with the same id.
func testAskedAgain(s *suite) {
	a, id, old := s.asked()
	s.lost()
	b := s.again(a.Target.Thread)
	q := s.question(b, id)
	if q.ID != old.ID || q.Connection == old.Connection || q.Turn != id || q.Command != old.Command || q.Kind != old.Kind {
		s.Errorf("asked again: %+v, before: %+v", q, old)
	}
	s.coded("over the lost connection", s.controls(a).Decide(s.Context(), old.ID, handoff.DecisionAccept),
		handoff.CodeAgentGone, handoff.CodeUnreachable, handoff.CodeNotPending)
	if err := s.controls(b).Decide(s.Context(), q.ID, handoff.DecisionAccept); err != nil {
		s.Fatalf("accept: %v", err)
	}
	s.decided(b, id, q, handoff.TurnCompleted, TextAccepted)
}

// testReconciles: Reconcile finds out whether a start ran whose acknowledgement was lost, and no turn runs twice.
func testReconciles(s *suite) {
	for _, runs := range []bool{true, false} {
		a := s.create()
		if _, ok := a.Agent.(handoff.Reconciler); !ok || s.h.LoseStart == nil {
			return
		}
		s.run(a, PromptHello) // a thread that never ran cannot be attached again
		before := s.attachTo(s.link, a.Target.Thread).Newest
		starts := s.h.Starts()
		s.h.LoseStart(runs)
		turn := s.next(PromptCommand)
		_, err := a.Agent.Start(s.Context(), turn)
		s.coded("a lost start", err, handoff.CodeUnknownStart)
		s.waitDone(s.link)
		b := s.again(a.Target.Thread)
		id, err := b.Agent.(handoff.Reconciler).Reconcile(s.Context(), before, turn.ID)
		if err != nil || (id != "") != runs || id == before && id != "" {
			s.Fatalf("reconciled as %q, %v, want a turn: %v", id, err, runs)
		}
		if runs {
			status := handoff.TurnCompleted
			if s.h.EndsUntold {
				status = handoff.TurnInterrupted
			}
			s.ended(s.follow(b, id), status, TextCommand)
		} else {
			s.ended(s.run(b, PromptCommand), handoff.TurnCompleted, TextCommand)
		}
		if n := s.h.Starts() - starts; n != 1 {
			s.Errorf("%d turns were started", n)
		}
	}
}

// testUnloaded: a start loads an attached thread that the server has unloaded.
func testUnloaded(s *suite) {
	if s.h.Unload == nil {
		return
	}
	a := s.create()
	s.run(a, PromptHello)
	s.h.Unload()
	s.ended(s.run(a, PromptCommand), handoff.TurnCompleted, TextCommand)
	if n := s.h.Starts(); n != 2 {
		s.Errorf("%d turns were started", n)
	}
}

// testCrashes: a turn during which the server is killed is interrupted, and not run again.
func testCrashes(s *suite) {
	if s.h.Restart == nil {
		return
	}
	a := s.create()
	id := s.wait(a)
	s.h.Restart()
	s.waitDone(s.link)
	b := s.again(a.Target.Thread)
	updates := s.follow(b, id)
	if end := s.end(updates); end.Status != handoff.TurnInterrupted {
		s.Errorf("%+v", end)
	}
	if got := texts(updates); !slices.Equal(got, []string{TextWaiting}) {
		s.Errorf("messages %q", got)
	}
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started", n)
	}
	s.ended(s.run(b, PromptHello), handoff.TurnCompleted, TextHello)
}

// testLies: a turn that the server shows as interrupted only for a moment, at its end, is reported as completed.
func testLies(s *suite) {
	if s.h.Lie == nil {
		return
	}
	a := s.create()
	id := s.wait(a)
	s.lost()
	desk := s.attachTo(s.dial(), a.Target.Thread)
	s.h.Release()
	for range desk.Agent.Follow(s.Context(), id) {
	}
	s.h.Lie(300 * time.Millisecond)
	b := s.again(a.Target.Thread)
	s.ended(s.follow(b, id), handoff.TurnCompleted, TextBack)
}

// testWords: a question is answered in words, with an option in other letter case.
func testWords(s *suite) {
	a := s.create()
	replier, ok := a.Agent.(handoff.Replier)
	if !ok {
		return
	}
	id := s.start(a, PromptInput)
	q := s.question(a, id)
	if q.Kind != handoff.QuestionInput || !q.Words || q.Turn != id {
		s.Fatalf("question: %+v", q)
	}
	s.coded("no words", replier.Reply(s.Context(), q.ID, nil), handoff.CodeMalformed)
	s.coded("a question that nobody asked", replier.Reply(s.Context(), "no-such-question", [][]string{{"x"}}), handoff.CodeNotPending)
	answers, err := q.Read(handoff.Reply{Words: "the RIGHT one"})
	if err == nil {
		err = replier.Reply(s.Context(), q.ID, answers)
	}
	if err != nil {
		s.Fatalf("reply: %v", err)
	}
	s.decided(a, id, q, handoff.TurnCompleted, TextInput+InputOptions[1])
}

func testPermits(s *suite) {
	if !s.h.Permits {
		return
	}
	for decision, text := range map[handoff.Decision]string{handoff.DecisionAccept: TextAccepted,
		handoff.DecisionDecline: TextDeclined} {
		a := s.create()
		id := s.start(a, PromptPermit)
		q := s.question(a, id)
		if q.Kind != handoff.QuestionPermissions {
			s.Fatalf("question: %+v", q)
		}
		if err := s.controls(a).Decide(s.Context(), q.ID, decision); err != nil {
			s.Fatalf("%s: %v", decision, err)
		}
		s.decided(a, id, q, handoff.TurnCompleted, text)
	}
}
