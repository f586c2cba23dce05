package serverstest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

func testTurn(s *suite) {
	a := s.create()
	id := s.start(a, PromptHello)
	updates := s.follow(a, id)
	if _, ok := updates[0].(handoff.Started); !ok {
		s.Errorf("first comes %#v", updates[0])
	}
	var streamed strings.Builder
	var message string
	for _, u := range updates {
		switch u := u.(type) {
		case handoff.ItemStarted:
			if u.Item.Kind == handoff.ItemMessage {
				message = u.Item.ID
			}
		case handoff.Delta:
			if u.ItemID == message {
				streamed.WriteString(u.Text)
			}
		}
	}
	if streamed.String() != TextHello {
		s.Errorf("streamed %q", streamed.String())
	}
	if done := items(updates, handoff.ItemMessage); len(done) != 1 || done[0].Text != TextHello || done[0].ID != message {
		s.Errorf("messages: %+v", done)
	}
	s.ended(updates, handoff.TurnCompleted, TextHello)
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started", n)
	}
}

// testGoesOn: a second turn reports nothing of the first.
func testGoesOn(s *suite) {
	a := s.create()
	first := s.start(a, PromptHello)
	s.follow(a, first)
	second := s.start(a, PromptCommand)
	if first == second {
		s.Fatalf("two turns have the id %s", first)
	}
	updates := s.follow(a, second)
	for _, m := range items(updates, handoff.ItemMessage) {
		if m.Text == TextHello {
			s.Error("an old message was repeated")
		}
	}
	s.ended(updates, handoff.TurnCompleted, TextCommand)
}

func testAttach(s *suite) {
	a := s.create()
	id := s.start(a, PromptHello)
	s.follow(a, id)
	if err := a.Agent.Close(); err != nil {
		s.Errorf("detach: %v", err)
	}
	again := s.attachTo(s.dial(), a.Target.Thread)
	if again.Running != "" || again.Newest != id || again.Title == "" {
		s.Errorf("attached: %+v, want newest turn %s", again, id)
	}
	s.ended(s.run(again, PromptHello), handoff.TurnCompleted, TextHello)
	// Attaching twice is one attachment more, and closing one leaves the other.
	twice := s.attachTo(s.link, a.Target.Thread)
	third := s.attachTo(s.link, a.Target.Thread)
	if err := twice.Agent.Close(); err != nil {
		s.Errorf("detach: %v", err)
	}
	s.ended(s.run(third, PromptHello), handoff.TurnCompleted, TextHello)

	before := s.h.Starts()
	_, err := s.link.Conn.Attach(s.Context(), s.h.Gone)
	s.coded("a thread that is not there", err, handoff.CodeSessionGone, handoff.CodeUnknownSession)
	_, err = s.link.Conn.Attach(s.Context(), "no such thread")
	s.coded("no id at all", err, handoff.CodeSessionGone, handoff.CodeUnknownSession)
	if n := s.h.Starts(); n != before {
		s.Errorf("attaching started %d turns", n-before)
	}
}

func testCommand(s *suite) {
	updates := s.run(s.create(), PromptCommand)
	done := items(updates, handoff.ItemCommand)
	if len(done) != 1 {
		s.Fatalf("commands: %+v", done)
	}
	c := done[0]
	if c.Text != cmp.Or(s.h.Command, Command) || !s.printed(c, CommandOutput, CommandExit) || !c.Failed {
		s.Errorf("%+v", c)
	}
	var streamed strings.Builder
	for _, u := range updates {
		if d, ok := u.(handoff.Delta); ok && d.ItemID == c.ID {
			streamed.WriteString(d.Text)
		}
	}
	s.streams(c.Text, streamed.String(), CommandOutput)
	s.ended(updates, handoff.TurnCompleted, TextCommand)
}

// printed reports whether a command has this output and exit code, as far as this kind reports them.
func (s *suite) printed(c handoff.Item, output string, exit int) bool {
	if s.h.Terse {
		return c.Output == strings.TrimSuffix(output, "\n") && (c.Exit == nil || *c.Exit == exit)
	}
	return c.Output == output && c.Exit != nil && *c.Exit == exit
}

// testBoth: the outputs of commands that run at the same time are not mixed.
func testBoth(s *suite) {
	updates := s.run(s.create(), PromptBoth)
	streamed := map[string]string{}
	for _, u := range updates {
		if d, ok := u.(handoff.Delta); ok && d.Kind == handoff.DeltaOutput {
			streamed[d.ItemID] += d.Text
		}
	}
	done := items(updates, handoff.ItemCommand)
	if len(done) != 2 || done[0].ID == done[1].ID {
		s.Fatalf("commands: %+v", done)
	}
	slices.SortFunc(done, func(a, b handoff.Item) int { return cmp.Compare(a.Output, b.Output) })
	for i, want := range []struct {
		command, output string
		exit            int
	}{
		{cmp.Or(s.h.Command, Command), CommandOutput, CommandExit},
		{cmp.Or(s.h.OtherCommand, OtherCommand), OtherOutput, 0},
	} {
		c := done[i]
		if c.Text != want.command || !s.printed(c, want.output, want.exit) || c.Failed != (want.exit != 0) {
			s.Errorf("%+v, want %+v", c, want)
		}
		s.streams(want.command, streamed[c.ID], want.output)
	}
	s.ended(updates, handoff.TurnCompleted, TextBoth)
}

func testEdit(s *suite) {
	updates := s.run(s.create(), PromptEdit)
	done := items(updates, handoff.ItemFileChange)
	if len(done) != 1 || !strings.Contains(done[0].Text, EditPath) || done[0].Failed ||
		len(done[0].Changes) != 1 || !strings.HasPrefix(done[0].Changes[0].Diff, "@@ ") || done[0].Changes[0].Added == 0 {
		s.Errorf("edits: %+v", done)
	}
	s.ended(updates, handoff.TurnCompleted, TextEdit)
}

func testFails(s *suite) {
	a := s.create()
	end := s.end(s.run(a, PromptFail))
	if end.Status != handoff.TurnFailed || !strings.Contains(end.Detail, DetailFail) {
		s.Errorf("%+v", end)
	}
	s.ended(s.run(a, PromptHello), handoff.TurnCompleted, TextHello)
}

// wait starts a turn of [PromptWait], and reads its updates until it waits.
func (s *suite) wait(a handoff.Attached) handoff.TurnID {
	s.Helper()
	id := s.start(a, PromptWait)
	s.followUntil(a, id, asWaiting)
	return id
}

func testRunning(s *suite) {
	a := s.create()
	id := s.wait(a)
	b := s.attachTo(s.dial(), a.Target.Thread)
	if b.Running != id || b.Newest != id {
		s.Errorf("attached to a running turn: %+v, want %s", b, id)
	}
	s.h.Release()
	s.ended(s.follow(b, id), handoff.TurnCompleted, TextBack)
	for range a.Agent.Follow(s.Context(), id) { // the other connection gets the end too
	}
}

func testInterrupt(s *suite) {
	a := s.create()
	id := s.wait(a)
	c := s.controls(a)
	if err := c.Interrupt(s.Context(), id); err != nil {
		s.Fatalf("interrupt: %v", err)
	}
	updates := s.toEnd(a, id)
	if end := s.end(updates); end.Status != handoff.TurnInterrupted {
		s.Errorf("%+v", end)
	}
	s.coded("a second interrupt", c.Interrupt(s.Context(), id), handoff.CodeNotPending)
	s.coded("a steer after the end", c.Steer(s.Context(), id, handoff.TextInput(PromptMind)), handoff.CodeNotPending)
	s.ended(s.run(a, PromptHello), handoff.TurnCompleted, TextHello)
}

// testInterruptAtOnce: an interrupt right after the start has an effect.
func testInterruptAtOnce(s *suite) {
	if s.h.SlowStart != nil {
		s.h.SlowStart()
	}
	a := s.create()
	id := s.start(a, PromptWait)
	if err := s.controls(a).Interrupt(s.Context(), id); err != nil {
		s.Fatalf("interrupt: %v", err)
	}
	if end := s.end(s.follow(a, id)); end.Status != handoff.TurnInterrupted {
		s.Errorf("%+v", end)
	}
}

func testSteer(s *suite) {
	a := s.create()
	id := s.wait(a)
	c := s.controls(a)
	s.coded("a steer of another turn", c.Steer(s.Context(), "no-such-turn", handoff.TextInput(PromptMind)),
		handoff.CodeNotPending)
	s.mind(a, id)
	s.h.Release()
	s.rest(a, id, TextMinded)
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started", n)
	}
}

// asked starts a turn of [PromptAsk], and reads its updates up to the question.
func (s *suite) asked() (handoff.Attached, handoff.TurnID, handoff.Question) {
	s.Helper()
	a := s.create()
	id := s.start(a, PromptAsk)
	q := s.question(a, id)
	if q.ID == "" || q.Turn != id || q.Kind != handoff.QuestionCommand || !strings.Contains(q.Command, AskCommand) ||
		q.Text == "" || q.Asked.IsZero() || len(q.Decisions) == 0 {
		s.Errorf("question: %+v", q)
	}
	return a, id, q
}

// decided checks that a question was closed and how the turn ended.
func (s *suite) decided(a handoff.Attached, id handoff.TurnID, q handoff.Question, status handoff.TurnStatus,
	text string) {
	s.Helper()
	updates := s.toEnd(a, id)
	closed := 0
	for _, u := range updates {
		if c, ok := u.(handoff.QuestionClosed); ok && c.ID == q.ID {
			closed++
		}
	}
	if closed != 1 {
		s.Errorf("the question was closed %d times", closed)
	}
	if end := s.end(updates); end.Status != status || status == handoff.TurnCompleted && end.Text != text {
		s.Errorf("the turn ended with %+v, want %q", end, text)
	}
	s.coded("a second answer", s.controls(a).Decide(s.Context(), q.ID, handoff.DecisionAccept), handoff.CodeNotPending)
}

// testDecides returns the case of a question that is answered with a decision.
func testDecides(d handoff.Decision, status handoff.TurnStatus, text string) func(*suite) {
	return func(s *suite) {
		a, id, q := s.asked()
		s.coded("a question that nobody asked",
			s.controls(a).Decide(s.Context(), "no-such-question", handoff.DecisionAccept), handoff.CodeNotPending)
		if err := s.controls(a).Decide(s.Context(), q.ID, d); err != nil {
			s.Fatalf("%s: %v", d, err)
		}
		s.decided(a, id, q, status, text)
	}
}

func testLeaving(s *suite) {
	a := s.create()
	id := s.wait(a) // its follower has left
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	failed := false
	for u, err := range a.Agent.Follow(ctx, id) {
		failed = failed || err != nil
		if _, ended := u.(handoff.TurnEnded); ended {
			s.Error("a cancelled follower ended the turn")
		}
	}
	if !failed {
		s.Error("a cancelled follower was not told")
	}
	if b := s.attachTo(s.dial(), a.Target.Thread); b.Running != id {
		s.Errorf("running is %q, want %s", b.Running, id)
	}
	s.h.Release()
	s.rest(a, id, TextBack)
}

func testOutlives(s *suite) {
	a, idle := s.create(), s.create()
	id := s.wait(a)
	for range 2 { // the second time, the turn was not started by this connection
		s.h.Drop()
		s.waitDone(s.link)
		var cause error
		for _, err := range a.Agent.Follow(s.Context(), id) {
			cause = err
		}
		s.coded("following over a lost connection", cause, handoff.CodeAgentGone)
		_, err := idle.Agent.Start(s.Context(), handoff.Turn{ID: "late", Input: handoff.TextInput(PromptHello)})
		s.coded("a start over a lost connection", err, handoff.CodeUnreachable) // certainly not sent
		s.coded("a steer over a lost connection", s.controls(a).Steer(s.Context(), id, handoff.TextInput(PromptMind)),
			handoff.CodeUnreachable)

		s.link = s.dial()
		a = s.attachTo(s.link, a.Target.Thread)
		if a.Running != id {
			s.Fatalf("running is %q, want %s", a.Running, id)
		}
	}
	s.mind(a, id)
	s.h.Release()
	s.rest(a, id, TextMinded)
	if n := s.h.Starts(); n != 1 {
		s.Errorf("%d turns were started", n)
	}
}

func testClosing(s *suite) {
	a := s.create()
	id := s.wait(a)
	left := make(chan error, 1)
	go func() {
		var cause error
		for _, err := range a.Agent.Follow(s.Context(), id) {
			cause = err
		}
		left <- cause
	}()
	for range 2 {
		if err := s.link.Conn.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	}
	s.waitDone(s.link)
	select {
	case err := <-left:
		s.coded("following when the connection is closed", err, handoff.CodeAgentGone)
	case <-time.After(patience):
		s.Error("the follower was not told")
	}
	if _, err := s.link.Conn.Create(s.Context(), s.h.Dir); err == nil {
		s.Error("a closed connection makes threads")
	}
	if _, err := s.link.Catalog.List(s.Context(), 10); err == nil {
		s.Error("a closed connection lists threads")
	}
}

func testApart(s *suite) {
	prompts := map[string]string{PromptHello: TextHello, PromptCommand: TextCommand, PromptEdit: TextEdit}
	var work sync.WaitGroup
	defer work.Wait()
	for prompt, text := range prompts {
		for range 3 {
			a := s.create()
			id := s.start(a, prompt)
			work.Go(func() {
				last := handoff.TurnEnded{}
				for u, err := range a.Agent.Follow(s.Context(), id) {
					if err != nil {
						s.Errorf("%q: %v", prompt, err)
						return
					}
					if end, ok := u.(handoff.TurnEnded); ok {
						last = end
					}
				}
				if last.Text != text {
					s.Errorf("%q ended with %q", prompt, last.Text)
				}
			})
		}
	}
}

func testCatalog(s *suite) {
	first, second := s.create(), s.create()
	s.run(first, PromptHello)
	s.run(first, PromptCommand)
	id := s.wait(second)
	list, err := s.link.Catalog.List(s.Context(), 10)
	if err != nil || len(list) != 2 {
		s.Fatalf("list: %+v, %v", list, err)
	}
	if list[0].Updated.Before(list[1].Updated) {
		s.Error("the newest is not first")
	}
	for _, t := range list {
		if t.Title == "" || t.Dir != s.h.Dir || time.Since(t.Updated) > time.Hour ||
			!t.Created.IsZero() && (time.Since(t.Created) > time.Hour || t.Created.After(t.Updated)) {
			s.Errorf("%+v", t)
		}
		want := handoff.SessionIdle
		if t.ID == second.Target.Thread {
			want = handoff.SessionRunning
		}
		if t.Status != want {
			s.Errorf("thread %s is %s, want %s", t.Title, t.Status, want)
		}
	}
	if one, err := s.link.Catalog.List(s.Context(), 1); err != nil || len(one) != 1 {
		s.Errorf("a list of one: %+v, %v", one, err)
	}
	text, err := s.link.Catalog.Read(s.Context(), first.Target.Thread, 40)
	if err != nil || text.Thread.ID != first.Target.Thread || text.More != 0 {
		s.Fatalf("read: %+v, %v", text, err)
	}
	s.reads(text.Lines, handoff.Line{Role: "user", Text: PromptHello}, handoff.Line{Role: "agent", Text: TextHello},
		handoff.Line{Role: "user", Text: PromptCommand}, handoff.Line{Role: "agent", Text: TextCommand})
	if text, err = s.link.Catalog.Read(s.Context(), first.Target.Thread, 1); err != nil || len(text.Lines) != 1 ||
		text.Lines[0].Text != TextCommand || text.More == 0 {
		s.Errorf("the last line: %+v, %v", text, err)
	}
	_, err = s.link.Catalog.Read(s.Context(), s.h.Gone, 10)
	s.coded("reading a thread that is not there", err, handoff.CodeSessionGone, handoff.CodeUnknownSession)
	if err := s.controls(second).Interrupt(s.Context(), id); err != nil {
		s.Errorf("interrupt: %v", err)
	}
}

// testEphemeral: an ephemeral thread runs turns like any other, and is gone afterwards.
func testEphemeral(s *suite) {
	maker, ok := s.link.Conn.(servers.Ephemeral)
	if !ok {
		return
	}
	kept := s.create()
	s.run(kept, PromptHello)
	a, err := maker.CreateEphemeral(s.Context(), s.h.Dir)
	if err != nil || a.Target.Thread == "" || a.Running != "" || a.Workspace == "" {
		s.Fatalf("an ephemeral thread is %+v, %v", a, err)
	}
	s.Cleanup(func() { _ = a.Agent.Close() })
	s.ended(s.run(a, PromptHello), handoff.TurnCompleted, TextHello)
	s.run(a, PromptCommand)
	id := s.wait(a)
	list, err := s.link.Catalog.List(s.Context(), 10)
	if err != nil || len(list) != 1 || list[0].ID != kept.Target.Thread {
		s.Fatalf("the list has %+v, %v", list, err)
	}
	_, err = s.dial().Conn.Attach(s.Context(), a.Target.Thread)
	s.coded("attaching it from elsewhere", err, handoff.CodeSessionGone)
	if reconciler, ok := a.Agent.(handoff.Reconciler); ok {
		_, err = reconciler.Reconcile(s.Context(), "", "turn-never")
		s.coded("asking what became of a start there", err, handoff.CodeUnsupported)
	}
	s.h.Release()
	s.rest(a, id, TextBack)
	s.copiesAside(maker, kept)
}

// reads checks that lines contain the wanted ones in this order, perhaps with others between them.
func (s *suite) reads(lines []handoff.Line, want ...handoff.Line) {
	s.Helper()
	for _, line := range lines {
		if len(want) > 0 && line == want[0] {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		s.Errorf("%+v lacks %+v", lines, want)
	}
}

func testLongPrompt(s *suite) {
	a := s.create()
	prompt := PromptHello + strings.Repeat(" ü", handoff.MaxPrompt/4)
	if end := s.end(s.run(a, prompt)); end.Status != handoff.TurnCompleted {
		s.Errorf("%+v", end)
	}
	text, err := s.link.Catalog.Read(s.Context(), a.Target.Thread, 40)
	if err != nil || len(text.Lines) == 0 || !strings.HasPrefix(text.Lines[0].Text, PromptHello+" ü") {
		s.Errorf("read: %v", err)
	}
}
