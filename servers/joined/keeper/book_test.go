package keeper

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A page is a book whose agent is there, and what it has sent.
type page struct {
	*book
	agent []string
}

func opened(t *testing.T) *page {
	t.Helper()
	p := &page{book: newBook(maxKept)}
	p.says(1, "initialize", "")
	p.began()
	p.fromAgent([]byte(`{"id":1,"result":{"agentCapabilities":{"sessionCapabilities":{"close":{}}}}}`))
	return p.sent()
}

// says has a client, which takes the place of another one, send a request about a session.
func (p *page) says(client uint64, method, session string) *page {
	if p.client != client {
		p.detach()
		p.attach(client)
	}
	p.fromClient(fmt.Appendf(nil, `{"id":7,"method":%q,"params":{"sessionId":%q,"cwd":"/"}}`, method, session))
	return p.sent()
}

// answers has the agent answer its request of a number.
func (p *page) answers(id int) *page {
	p.fromAgent(fmt.Appendf(nil, `{"id":%d,"result":{}}`, id))
	return p.sent()
}

func (p *page) sent() *page {
	for _, line := range p.toAgent {
		f, _ := read(line)
		p.agent = append(p.agent, f.Method)
	}
	p.toAgent, p.toClient = nil, nil
	return p
}

// TestOpenedByTheNext: a session that a client is opening is not closed because the one before had opened it too.
func TestOpenedByTheNext(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").says(2, doLoad, "s").answers(2).answers(3)
	if slices.Contains(p.agent, doClose) {
		t.Errorf("the agent was told %v", p.agent)
	}
	p = opened(t).says(1, doLoad, "s").says(2, doList, "").answers(2)
	if !slices.Contains(p.agent, doClose) {
		t.Errorf("nobody closes it: the agent was told %v", p.agent)
	}
}

// TestLateClose: an answer to a close that is not waited for any more does not count for the next one.
func TestLateClose(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").answers(2).says(2, doList, "") // 3 closes, 4 lists
	if p.closing != 1 {
		t.Fatalf("%d close", p.closing)
	}
	p.giveUp()
	p.says(2, doLoad, "other").answers(5).says(3, doList, "") // 6 closes
	if p.answers(3).closing != 1 {
		t.Errorf("%d close, want one", p.closing)
	}
	if p.answers(6).closing != 0 {
		t.Errorf("%d close, want none", p.closing)
	}
}

// TestHeldBounds: not even messages that nobody answers wait without bounds for an agent to start.
func TestHeldBounds(t *testing.T) {
	t.Parallel()
	b := newBook(maxKept)
	b.attach(1)
	b.fromClient([]byte(`{"id":1,"method":"session/list","params":{}}`))
	for range 2 * maxHeld {
		b.fromClient([]byte(`{"method":"session/cancel","params":{"sessionId":"s"}}`))
	}
	if len(b.held) > maxHeld {
		t.Errorf("%d wait", len(b.held))
	}
}

// TestEndsCount: what became of prompts counts for the room, too.
func TestEndsCount(t *testing.T) {
	t.Parallel()
	p := opened(t)
	p.most = 1 << 12
	for i := range 4 {
		p.says(1, doPrompt, fmt.Sprint("s", i))
		p.fromAgent(fmt.Appendf(nil, `{"id":%d,"result":{"stopReason":%q}}`, i+2, strings.Repeat("x", 1<<11)))
	}
	if p.kept > p.most || p.forgotten == 0 {
		t.Errorf("%d bytes are kept, %d forgotten", p.kept, p.forgotten)
	}
}
