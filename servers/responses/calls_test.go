package responses

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
)

// askingTools are tools of which one asks a person before it does anything.
type askingTools struct{ stub }

func (a askingTools) Run(ctx context.Context, _ string, _ json.RawMessage, call workspace.Call) workspace.Result {
	yes, err := call.Ask(ctx, handoff.Question{Kind: handoff.QuestionCommand, Text: "May this command run?",
		Command: "make", Asked: time.Now(),
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline,
			handoff.DecisionStop}})
	if err != nil || !yes {
		return workspace.Result{Text: "Error: declined", Failed: true}
	}
	return workspace.Result{Text: "made"}
}

// questions runs a turn to its end, gives all questions the same answer, and returns how many there were.
func (k *talk) questions(words string, d handoff.Decision) (asked int, end handoff.TurnEnded) {
	k.Helper()
	id := k.start(handoff.Turn{ID: words, Input: handoff.TextInput(words)})
	for u, err := range k.Agent.Follow(k.Context(), id) {
		must(k, err)
		switch u := u.(type) {
		case handoff.Question:
			asked++
			must(k, k.Agent.(handoff.Controls).Decide(k.Context(), u.ID, d))
		case handoff.TurnEnded:
			end = u
		}
	}
	return asked, end
}

// TestAllowedForASession: an act that was allowed for a session is not asked about again in it, but is in every other
// session; a stop ends the turn.
func TestAllowedForASession(t *testing.T) {
	r := newRig(t, newFake(t, looksOnce("make")),
		func(c *Config) { c.Workspace = askingTools{stub{use: map[string]use{"make": nil}}} })
	here, there := newTalk(t, r), newTalk(t, r)
	for _, c := range []struct {
		k      *talk
		words  string
		answer handoff.Decision
		asked  int
		status handoff.TurnStatus
	}{
		{here, "one", handoff.DecisionAccept, 1, handoff.TurnCompleted},
		{here, "two", handoff.DecisionAcceptForSession, 1, handoff.TurnCompleted},
		{here, "three", handoff.DecisionDecline, 0, handoff.TurnCompleted},
		{there, "four", handoff.DecisionDecline, 1, handoff.TurnCompleted},
		{there, "five", handoff.DecisionStop, 1, handoff.TurnInterrupted},
		{here, "six", handoff.DecisionDecline, 0, handoff.TurnCompleted},
	} {
		if asked, end := c.k.questions(c.words, c.answer); asked != c.asked || end.Status != c.status {
			t.Errorf("%s: asked %d times, want %d, and ended as %+v", c.words, asked, c.asked, end)
		}
	}
}

// TestNothingBeginsAfterAStop: a call that has not begun when its turn is stopped does nothing, and gets an output.
func TestNothingBeginsAfterAStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	r := &run{server: &Server{cfg: Config{Log: zaptest.NewLogger(t),
		Workspace: stub{use: map[string]use{"look": func(context.Context, io.Writer) workspace.Result {
			ran = true
			return workspace.Result{Text: "seen"}
		}}}}}}
	w := &toolCall{call: wire.Item{CallID: "1", Name: "look", Arguments: "{}"}, done: make(chan struct{})}
	r.runTool(ctx, w)
	<-w.done
	if ran || w.result.Text != unanswered || !w.result.Failed {
		t.Errorf("it ran: %t, and gave back %+v", ran, w.result)
	}
}

// TestPrinted: what a tool prints is shown in complete characters only, however it was written and whenever it is
// shown, and is bounded.
func TestPrinted(t *testing.T) {
	for _, late := range []bool{false, true} {
		p, got := printed{room: maxPrinted}, ""
		show := func(text string) {
			if got += text; strings.ToValidUTF8(text, "") != text {
				t.Errorf("shown %q", text)
			}
		}
		if !late {
			p.to(show)
		}
		for _, b := range []byte("aé€😀\xff") {
			_, _ = p.Write([]byte{b})
		}
		p.to(show)
		if p.close(); got != "aé€😀?" {
			t.Errorf("shown %q", got)
		}
		if got, p = "", (printed{room: maxPrinted}); !late {
			p.to(show)
		}
		for range 100 {
			_, _ = p.Write([]byte(strings.Repeat("x", 60<<10)))
		}
		if p.to(show); len(got) != maxPrinted/(60<<10)*(60<<10)+len(leftOut) || !strings.HasSuffix(got, "x"+leftOut) {
			t.Errorf("shown are %d bytes", len(got))
		}
	}
}

// TestCallIDsTwice: of calls with the same id the first is run.
func TestCallIDsTwice(t *testing.T) {
	var a answer
	for _, it := range []simulator.Item{simulator.Call("1", "look", object{}), simulator.Call("1", "look again", object{}),
		simulator.Call("2", "look", object{})} {
		a.Items = append(a.Items, wire.Encode(it.JSON))
	}
	calls := a.calls()
	if len(calls) != 2 || calls[0].Name != "look" || calls[1].CallID != "2" {
		t.Errorf("it runs %+v", calls)
	}
}

// TestStopComesFirst: a stop as an answer to a question stops the turn before the tool gets the answer. The id of the
// question is from the item: calls of several answers may have the same call id.
func TestStopComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Config{Name: "helper", Threads: threads.NewMemory(), Workspace: stub{}, Log: zaptest.NewLogger(t)})
		ctx, cancel := context.WithCancelCause(t.Context())
		stopping := make(chan struct{})
		r := &run{server: s, thread: "t", id: "a", hub: newHub("a"), inbox: newInbox(), stop: func(err error) {
			<-stopping
			cancel(err)
		}}
		s.runs["t"] = r
		a := &agent{conn: &conn{server: s, done: make(chan struct{})}, thread: "t", closed: make(chan struct{})}
		call, heard := wire.Item{ID: "item_1", CallID: "1", Name: "make"}, false
		go func() {
			yes, _ := r.askPerson(ctx, call, handoff.Question{Decisions: []handoff.Decision{handoff.DecisionStop}})
			if heard = true; yes || !errors.Is(context.Cause(ctx), errInterrupted) {
				t.Errorf("the tool heard %t, and of the turn that %v", yes, context.Cause(ctx))
			}
		}()
		synctest.Wait()
		go func() {
			if err := a.Decide(ctx, questionID("helper", "t", "a", "item_1"), handoff.DecisionStop); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		close(stopping)
		synctest.Wait()
		if !heard {
			t.Error("the tool waits still")
		}
	})
}
