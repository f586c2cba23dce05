package serverstest

import (
	"context"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// patience is how long the suite waits for an event that must come.
const patience = 3 * time.Minute

// TestServer runs the suite. Each case gets a server of its own from harness.
func TestServer(t *testing.T, harness func(*testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"a turn is reported in order", testTurn},
		{"a thread goes on", testGoesOn},
		{"attaching gives exactly the thread", testAttach},
		{"a command is reported with its output", testCommand},
		{"commands that run side by side are told apart", testBoth},
		{"an edit is reported with its path", testEdit},
		{"a failed turn tells why", testFails},
		{"a running turn is found", testRunning},
		{"a running turn is interrupted", testInterrupt},
		{"a turn that has just been started is interrupted", testInterruptAtOnce},
		{"a running turn is steered", testSteer},
		{"steers are heard in their order", testSteersInOrder},
		{"pictures are shown", testPictures},
		{"what a turn used is told", testUsage},
		{"a question is accepted once", testDecides(handoff.DecisionAccept, handoff.TurnCompleted, TextAccepted)},
		{"a question is declined", testDecides(handoff.DecisionDecline, handoff.TurnCompleted, TextDeclined)},
		{"a question stops the turn", testDecides(handoff.DecisionStop, handoff.TurnInterrupted, "")},
		{"leaving a turn does not touch it", testLeaving},
		{"a turn outlives the connection", testOutlives},
		{"a turn that ended meanwhile is read", testEndedMeanwhile},
		{"a turn that its thread does not hold is given up", testNotHeld},
		{"what was missed of a running turn comes first", testMissed},
		{"a question is asked again on another connection", testAskedAgain},
		{"a lost start is reconciled", testReconciles},
		{"a thread that was let go is loaded for a start", testUnloaded},
		{"a crash interrupts for good", testCrashes},
		{"a false interrupt is seen through", testLies},
		{"a thread is copied while it runs", testCopies},
		{"a thread is copied up to a turn", testCopiesUpTo},
		{"a thread that is held elsewhere is copied", testCopiesHeld},
		{"a question is answered in words", testWords},
		{"rights are granted and refused", testPermits},
		{"a closed connection says so", testClosing},
		{"threads do not mix", testApart},
		{"threads are listed and read", testCatalog},
		{"of an ephemeral thread nothing is kept", testEphemeral},
		{"a long prompt arrives", testLongPrompt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &suite{T: t, h: harness(t)}
			if why := s.h.Lacks[c.name]; why != "" {
				t.Skip(why)
			}
			s.link = s.dial()
			c.run(s)
		})
	}
}

// A suite is one case of the suite.
type suite struct {
	*testing.T
	h     Harness
	link  *servers.Link
	turns int
}

// dial opens a connection, which is closed at the end of the case.
func (s *suite) dial() *servers.Link {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	link, err := s.h.Dial(ctx)
	if err != nil {
		s.Fatalf("dial: %v", err)
	}
	s.Cleanup(func() {
		if err := link.Conn.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return link
}

func (s *suite) create() handoff.Attached {
	s.Helper()
	a, err := s.link.Conn.Create(s.Context(), s.h.Dir)
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	if a.Target.Thread == "" || a.Running != "" || a.Agent == nil {
		s.Fatalf("a fresh thread is %+v", a)
	}
	s.Cleanup(func() { _ = a.Agent.Close() })
	return a
}

func (s *suite) attachTo(link *servers.Link, thread string) handoff.Attached {
	s.Helper()
	a, err := link.Conn.Attach(s.Context(), thread)
	if err != nil {
		s.Fatalf("attach: %v", err)
	}
	if a.Target.Thread != thread {
		s.Fatalf("asked for thread %s, got %s", thread, a.Target.Thread)
	}
	s.Cleanup(func() { _ = a.Agent.Close() })
	return a
}

// next returns a turn with an id that is new in this case.
func (s *suite) next(prompt string) handoff.Turn {
	s.turns++
	return handoff.Turn{ID: "turn-" + string(rune('a'+s.turns)), Input: handoff.TextInput(prompt)}
}

func (s *suite) start(a handoff.Attached, prompt string) handoff.TurnID {
	s.Helper()
	id, err := a.Agent.Start(s.Context(), s.next(prompt))
	if err != nil || id == "" {
		s.Fatalf("start: %q, %v", id, err)
	}
	return id
}

// run starts a turn and follows it to its end.
func (s *suite) run(a handoff.Attached, prompt string) []handoff.Update {
	s.Helper()
	return s.follow(a, s.start(a, prompt))
}

// toEnd reads a turn to its end.
func (s *suite) toEnd(a handoff.Attached, id handoff.TurnID) []handoff.Update {
	s.Helper()
	return s.followUntil(a, id, func(handoff.Update) bool { return false })
}

// follow reads a turn to its end and checks the order of its updates.
func (s *suite) follow(a handoff.Attached, id handoff.TurnID) []handoff.Update {
	s.Helper()
	updates := s.toEnd(a, id)
	s.inOrder(id, updates)
	return updates
}

// followUntil reads a turn to its end, or to the update that enough accepts.
func (s *suite) followUntil(a handoff.Attached, id handoff.TurnID, enough func(handoff.Update) bool) []handoff.Update {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var updates []handoff.Update
	for u, err := range a.Agent.Follow(ctx, id) {
		if err != nil {
			s.Fatalf("follow: %v after %#v", err, updates)
		}
		updates = append(updates, u)
		if enough(u) {
			return updates
		}
	}
	return updates
}

// inOrder checks the order of a turn's updates: Started is the first, all items that have begun are done or dropped,
// and TurnEnded is the last and comes once.
func (s *suite) inOrder(id handoff.TurnID, updates []handoff.Update) {
	s.Helper()
	if len(updates) == 0 {
		s.Fatal("nothing was reported")
	}
	open := map[string]bool{}
	ends := 0
	for i, u := range updates {
		switch u := u.(type) {
		case handoff.Started:
			if i != 0 || u.Turn != id {
				s.Errorf("update %d is %+v of turn %s", i, u, id)
			}
		case handoff.ItemStarted:
			open[u.Item.ID] = true
		case handoff.ItemDone:
			delete(open, u.Item.ID)
		case handoff.ItemDropped:
			delete(open, u.ItemID)
		case handoff.TurnEnded:
			ends++
		}
	}
	if _, last := updates[len(updates)-1].(handoff.TurnEnded); !last || ends != 1 {
		s.Errorf("%d ends, the last update is %#v", ends, updates[len(updates)-1])
	}
	for item := range open {
		s.Errorf("item %s was never done or dropped", item)
	}
}

// end returns the end of a turn, which must be the last update.
func (s *suite) end(updates []handoff.Update) handoff.TurnEnded {
	s.Helper()
	end, ok := updates[len(updates)-1].(handoff.TurnEnded)
	if !ok {
		s.Fatalf("the last update is %#v", updates[len(updates)-1])
	}
	return end
}

// ended checks how a turn ended.
func (s *suite) ended(updates []handoff.Update, status handoff.TurnStatus, text string) {
	s.Helper()
	if end := s.end(updates); end.Status != status || end.Text != text {
		s.Errorf("the turn ended with status %d and %q, want %d and %q", end.Status, end.Text, status, text)
	}
}

// question reads a turn up to its question.
func (s *suite) question(a handoff.Attached, id handoff.TurnID) handoff.Question {
	s.Helper()
	updates := s.followUntil(a, id, func(u handoff.Update) bool { _, ok := u.(handoff.Question); return ok })
	q, ok := updates[len(updates)-1].(handoff.Question)
	if !ok {
		s.Fatalf("no question: %#v", updates)
	}
	return q
}

// read returns the last 40 lines of a thread.
func (s *suite) read(thread string) servers.Text {
	s.Helper()
	text, err := s.link.Catalog.Read(s.Context(), thread, 40)
	if err != nil {
		s.Fatalf("read: %v", err)
	}
	return text
}

// items returns the finished items of a kind.
func items(updates []handoff.Update, kind handoff.ItemKind) []handoff.Item {
	var found []handoff.Item
	for _, u := range updates {
		if done, ok := u.(handoff.ItemDone); ok && done.Item.Kind == kind {
			found = append(found, done.Item)
		}
	}
	return found
}

// controls returns the controls of an agent.
func (s *suite) controls(a handoff.Attached) handoff.Controls {
	s.Helper()
	c, ok := a.Agent.(handoff.Controls)
	if !ok {
		s.Fatal("the agent has no controls")
	}
	return c
}

// coded checks that an error has one of the codes.
func (s *suite) coded(what string, err error, codes ...handoff.Code) {
	s.Helper()
	if err == nil || !slices.Contains(codes, handoff.AsError(err).Code) {
		s.Errorf("%s: %v, want %v", what, err, codes)
	}
}

// waitDone waits for the loss of a connection.
func (s *suite) waitDone(link *servers.Link) {
	s.Helper()
	select {
	case <-link.Done:
	case <-time.After(patience):
		s.Fatal("the loss of the connection was not told")
	}
}

// asWaiting reports whether an update is the message [TextWaiting].
func asWaiting(u handoff.Update) bool {
	done, ok := u.(handoff.ItemDone)
	return ok && done.Item.Text == TextWaiting
}

// streams checks the streamed output of a command.
func (s *suite) streams(command, got, want string) {
	s.Helper()
	if got != want && (got != "" || !s.h.Unstreamed) {
		s.Errorf("%q streamed %q", command, got)
	}
}
