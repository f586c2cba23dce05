package mux

import (
	"slices"
	"strings"
	"testing"
)

const (
	update = `{"method":"session/update","params":{"sessionId":"s"}}`
	asking = `{"id":"q","method":"session/request_permission","params":{"sessionId":"s"}}`
	yes    = `{"id":"q","result":{"outcome":{"outcome":"selected","optionId":"a"}}}`
)

// working returns a page on which client 1 has sent a prompt, with the id 3, in session "s", and the agent has sent an
// update of it.
func working(t *testing.T) *page {
	t.Helper()
	p := opened(t).says(1, doLoad, "s").loads(2).says(1, doPrompt, "s")
	p.agent, p.told = nil, map[uint64][]string{}
	p.fromAgent([]byte(update))
	return p.sent()
}

// has fails unless the messages to a client contain these texts, one each, in this order. It forgets the messages.
func (p *page) has(t *testing.T, client uint64, want ...string) {
	t.Helper()
	got := p.told[client]
	delete(p.told, client)
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("client %d was told %q, want %q", client, got, want)
	}
}

// replies has a client answer the agent's question.
func (p *page) replies(client uint64) *page {
	p.fromClient(client, []byte(yes))
	return p.sent()
}

// TestAdoptedBeside: a client that adopts the running prompt of another client gets its messages, and so does the
// other.
func TestAdoptedBeside(t *testing.T) {
	t.Parallel()
	p := working(t)
	p.has(t, 1, update)
	p.fromAgent([]byte(asking))
	p.sent().has(t, 1, `"q"`)
	p.beside(2, doAdopt, "s").has(t, 2, onPrompted, update, `"q"`, `"found":true`)
	p.beside(2, doAdopt, "s").has(t, 2, `"found":false`)
	p.fromAgent([]byte(update))
	p.sent().has(t, 1, update)
	p.has(t, 2, update)
	p.beside(3, doList, "").replies(3) // to whom it was not put
	if slices.Contains(p.agent, "") {
		t.Error("somebody who hears nothing of the prompt answered")
	}
	p.replies(1)
	p.has(t, 2, onWithdraw) // it is answered
	p.replies(2)
	if n := len(slices.DeleteFunc(slices.Clone(p.agent), func(method string) bool { return method != "" })); n != 1 {
		t.Errorf("the agent got %d answers", n)
	}
	p.answers(3)
	p.has(t, 1, `"id":7`)
	p.has(t, 2, onAnswered)
	if p.owesOutcome() {
		t.Error("the answer is owed")
	}
}

// TestTakenOver: a client that adopts a prompt whose client dies, noticed or not, gets its messages, the open question
// and the end, each once, and may answer and cancel.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"before", "after", "never"} {
		p := working(t)
		p.fromAgent([]byte(asking))
		if p.beside(2, doList, ""); dies == "before" {
			p.detach(1)
		}
		p.sent().answers(4)
		p.told = map[uint64][]string{}
		p.beside(2, doAdopt, "s").has(t, 2, onPrompted, update, `"q"`, `"found":true`)
		if dies == "after" {
			p.detach(1)
		}
		p.agent = nil
		p.replies(2)
		p.fromClient(2, []byte(`{"method":"session/cancel","params":{"sessionId":"s"}}`))
		p.sent()
		if want := []string{"", doCancel}; !slices.Equal(p.agent, want) {
			t.Errorf("%s: the agent got %q, want %q", dies, p.agent, want)
		}
		p.fromAgent([]byte(update))
		p.sent().answers(3).has(t, 2, update, onAnswered)
		p.beside(2, doAdopt, "s").has(t, 2, `"found":false`)
	}
}

// TestTakenOverUnsent: a prompt that waits for its agent to start, and that another client has adopted, is sent though
// its own client dies; if the agent cannot be started, the other client gets the failure.
func TestTakenOverUnsent(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		p := &page{broker: newBroker(maxRecorded), told: map[uint64][]string{}}
		p.says(1, doPrompt, "s").beside(2, doAdopt, "s").has(t, 2, onPrompted, `"found":true`)
		p.detach(1)
		if fails {
			p.fail("no such program")
			p.sent().has(t, 2, onAnswered+`","params":{"sessionId":"s","error"`)
			continue
		}
		p.started()
		p.fromAgent([]byte(`{"id":2,"result":{}}`))
		if p.sent(); !slices.Equal(p.agent, []string{doInitialize, doPrompt}) {
			t.Errorf("the agent was told %q", p.agent)
		}
		p.answers(1).has(t, 2, onAnswered)
	}
}

// TestOpenBeside: a session that two clients have open is closed when the second one goes, in whichever order they
// opened it, and not while a client opens it.
func TestOpenBeside(t *testing.T) {
	t.Parallel()
	closes := func(p *page) (n int) {
		for _, method := range p.agent {
			if method == doClose {
				n++
			}
		}
		return n
	}
	p := opened(t).says(1, doLoad, "s").loads(2).beside(2, doLoad, "s").loads(3)
	p.told = map[uint64][]string{}
	p.fromAgent([]byte(update)) // which may still be of the past
	p.sent().has(t, 1)
	p.has(t, 2, update)
	p.beside(1, doPrompt, "s").answers(4).has(t, 1, `"result"`)
	p.fromAgent([]byte(update)) // which may still be of the prompt
	p.sent().has(t, 1, update)
	p.has(t, 2)
	p.beside(2, doClose, "s").has(t, 2, `"result":{}`)
	if p.detach(2); closes(p.sent()) != 0 {
		t.Error("it is closed for the first, too")
	}
	if p.beside(1, doClose, "s"); closes(p) != 1 {
		t.Errorf("it is closed %d times", closes(p))
	}
	p = opened(t).says(1, doLoad, "s").loads(2).beside(2, doLoad, "s").beside(1, doClose, "s")
	if closes(p) != 0 {
		t.Error("it is closed while another opens it")
	}
	p.loads(3).detach(1)
	if p.detach(2); closes(p.sent()) != 1 {
		t.Errorf("it is closed %d times", closes(p))
	}
}

// TestPromptAmidLoad: the history for one client is not taken for messages of another client's prompt: the prompt waits
// for the end of the history, which may come after the answer.
func TestPromptAmidLoad(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").loads(2).beside(2, doLoad, "s")
	p.told = map[uint64][]string{}
	p.beside(1, doPrompt, "s").has(t, 1, `"error"`)
	p.fromAgent([]byte(update))
	p.answers(3).beside(1, doPrompt, "s") // 4
	p.fromAgent([]byte(update))
	p.due(3) // when something has just come
	p.fromAgent([]byte(update))
	p.sent().has(t, 1)
	p.has(t, 2, update, `"id":7`, update, update)
	p.due(3)
	if p.due(3); slices.Contains(p.agent, doPrompt) {
		t.Error("the prompt is sent amid a history")
	}
	if p.sent(); !slices.Contains(p.agent, doPrompt) {
		t.Error("the prompt is not sent")
	}
	p.fromAgent([]byte(update))
	p.answers(4).has(t, 1, update, `"result"`)
	p.has(t, 2)
}

// TestStopAmidLoad: a stop does not overtake the prompt that waits for the end of a history, or for the agent to start.
// Everybody is told that the prompt was cancelled, and the agent never gets it.
func TestStopAmidLoad(t *testing.T) {
	t.Parallel()
	for _, starts := range []bool{false, true} {
		p := opened(t).says(1, doLoad, "s").loads(2).beside(2, doLoad, "s").answers(3)
		if starts {
			p = &page{broker: newBroker(maxRecorded), told: map[uint64][]string{}}
			p.attach(2)
		}
		p.agent = nil
		p.beside(1, doPrompt, "s").beside(2, doAdopt, "s").told = map[uint64][]string{}
		p.fromClient(1, []byte(`{"method":"session/cancel","params":{"sessionId":"s"}}`))
		p.sent().has(t, 1, `"result":{"stopReason":"cancelled"}`)
		if p.has(t, 2, `"cancelled"`); len(p.agent)+len(p.queue) > 0 || p.works() || p.owesOutcome() {
			t.Errorf("the agent was told %q, and %d wait", p.agent, len(p.queue))
		}
	}
}

// TestPromptAfterLoad: a prompt of the client that has loaded the session ends the history: further messages are of the
// prompt.
func TestPromptAfterLoad(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").answers(2).beside(1, doPrompt, "s").beside(2, doAdopt, "s")
	p.told = map[uint64][]string{}
	p.fromAgent([]byte(update))
	p.answers(3).has(t, 1, update, `"result"`)
	p.has(t, 2, update, onAnswered)
}

// TestLoadsInTurn: two clients that open one session at the same time each get the history once. The second one's comes
// after the end of the first one's, also if the first client has gone.
func TestLoadsInTurn(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		p := &page{broker: newBroker(maxRecorded), told: map[uint64][]string{}}
		p.says(1, doLoad, "s").beside(2, doLoad, "s") // while the agent is being started
		p.started()
		p.fromAgent([]byte(`{"id":3,"result":{}}`))
		p.sent()
		p.beside(3, doLoad, "another")
		if want := []string{doInitialize, doLoad, doLoad}; !slices.Equal(p.agent, want) {
			t.Errorf("the agent was told %q", p.agent)
		}
		if p.agent = nil; gone {
			p.detach(1)
			p.sent()
		}
		p.answers(1)
		p.fromAgent([]byte(update))
		p.sent().has(t, 2)
		if len(p.agent) > 0 {
			t.Errorf("amid a history the agent was told %q", p.agent)
		}
		p.due(1)
		p.due(1)
		if p.sent().told[1] = nil; !slices.Equal(p.agent, []string{doLoad}) {
			t.Errorf("then it was told %q", p.agent)
		}
		p.fromAgent([]byte(update))
		p.sent().has(t, 1)
		p.has(t, 2, update)
		p.answers(2).has(t, 2, `"id":7`)
	}
}

// TestLoadOfNothing: a request to open a session without an id is sent at once: the agent says what is wrong.
func TestLoadOfNothing(t *testing.T) {
	t.Parallel()
	p := opened(t).beside(1, doLoad, "").answers(2)
	if !slices.Equal(p.agent, []string{doInitialize, doLoad}) || !strings.Contains(p.told[1][1], `"id":7`) {
		t.Errorf("the agent was told %q, the client %q", p.agent, p.told[1])
	}
}

// TestLoadIsNotAnswered: other requests wait for a load that the agent does not answer, but only for a bounded time,
// whether or not its client has gone. Then it fails.
func TestLoadIsNotAnswered(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		p := opened(t).beside(1, doLoad, "s").beside(2, doLoad, "s")
		if gone {
			p.detach(1)
		}
		if p.sent(); !slices.Equal(p.agent, []string{doInitialize, doLoad}) {
			t.Errorf("soon the agent was told %q", p.agent)
		}
		p.told = map[uint64][]string{}
		p.due(2)
		if p.sent(); !slices.Equal(p.agent, []string{doInitialize, doLoad, doLoad}) {
			t.Errorf("late the agent was told %q", p.agent)
		}
		if gone {
			p.has(t, 1)
		} else {
			p.has(t, 1, `"error"`)
		}
		p.fromAgent([]byte(update))
		p.sent().has(t, 1)
		p.loads(3).has(t, 2, update, `"id":7`)
		if p.beside(2, doPrompt, "s").answers(4).has(t, 2, `"result"`); p.owesAnswer() {
			t.Error("it keeps an agent that nobody uses")
		}
		p.answers(2).has(t, 1) // it comes too late
	}
}
