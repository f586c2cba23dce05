package mux

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/servers"
)

// A page is a broker with a running agent, and the messages that it has sent.
type page struct {
	*broker
	agent []string
	told  map[uint64][]string // messages to clients
}

func opened(t *testing.T) *page {
	t.Helper()
	p := &page{broker: newBroker(maxRecorded), told: map[uint64][]string{}}
	p.says(1, "initialize", "")
	p.started()
	p.fromAgent([]byte(`{"id":1,"result":{"agentCapabilities":{"sessionCapabilities":{"close":{}}}}}`))
	return p.sent()
}

// says has a client, which replaces the others, send a request about a session.
func (p *page) says(client uint64, method, session string) *page {
	for other := range p.clients {
		if other != client {
			p.detach(other)
		}
	}
	return p.beside(client, method, session)
}

// beside has a client, beside the others, send a request.
func (p *page) beside(client uint64, method, session string) *page {
	p.attach(client)
	p.fromClient(client, fmt.Appendf(nil, `{"id":7,"method":%q,"params":{"sessionId":%q,"cwd":"/"}}`, method, session))
	return p.sent()
}

// answers has the agent answer the request with an id.
func (p *page) answers(id int) *page {
	p.fromAgent(fmt.Appendf(nil, `{"id":%d,"result":{}}`, id))
	return p.sent()
}

// loads has the agent answer the session/load with an id, and send no more of the history.
func (p *page) loads(id int64) *page {
	p.answers(int(id)).due(id)
	return p.sent()
}

func (p *page) sent() *page {
	for _, line := range p.toAgent {
		f, _ := read(line)
		p.agent = append(p.agent, f.Method)
	}
	for _, m := range p.toClients {
		p.told[m.client] = append(p.told[m.client], string(m.line))
	}
	p.toAgent, p.toClients = nil, nil
	return p
}

// TestOpenedByTheNext: a session that a client is opening is not closed when an earlier client with the session goes.
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

// TestTwoInstances: each message of the agent goes to the right client, and clients do not disturb each other.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").loads(2).beside(2, doList, "").answers(3)
	p.told = map[uint64][]string{}
	p.beside(1, doPrompt, "s")
	said := `{"method":"session/update","params":{"sessionId":"s"}}`
	p.fromAgent([]byte(said))
	for _, method := range []string{doLoad, doResume, doPrompt} {
		if p.sent().beside(2, method, "s"); len(p.told[2]) != 1 || !strings.Contains(p.told[2][0], `"error"`) {
			t.Errorf("%s amid another's prompt: %q", method, p.told[2])
		}
		delete(p.told, 2)
	}
	p.beside(2, doClose, "s") // is answered
	p.attach(2)
	p.fromClient(2, []byte(`{"method":"session/cancel","params":{"sessionId":"s"}}`))
	p.detach(2)
	p.sent().answers(4)
	want := []string{doInitialize, doLoad, doList, doPrompt}
	if !slices.Equal(p.agent, want) || len(p.told[1]) != 2 || p.told[1][0] != said || !strings.Contains(p.told[1][1], `"id":7`) {
		t.Errorf("the agent was told %v, its client %q", p.agent, p.told[1])
	}

	p.beside(2, doLoad, "s") // only this client gets the history
	p.told = map[uint64][]string{}
	p.fromAgent([]byte(said))
	if p.sent(); len(p.told[1]) > 0 || len(p.told[2]) != 1 {
		t.Errorf("amid a load: %v", p.told)
	}
}

// TestLateClose: a request that opens a session waits for the close of that session, but not longer than closedBy. The
// late answer of a close is not taken for that to the next one.
func TestLateClose(t *testing.T) {
	t.Parallel()
	p := opened(t).says(1, doLoad, "s").loads(2).says(2, doLoad, "other").beside(2, doLoad, "s") // 3 closes
	if want := []string{doInitialize, doLoad, doClose, doLoad}; !slices.Equal(p.agent, want) {
		t.Errorf("the agent was told %q, want %q", p.agent, want)
	}
	p.due(3)
	p.sent().loads(5).says(3, doLoad, "s") // 6 closes
	if want := []string{doLoad, doClose}; !slices.Equal(p.agent[4:6], want) {
		t.Errorf("then it was told %q, want %q", p.agent[4:], want)
	}
	if p.answers(3); slices.Contains(p.agent[6:], doLoad) {
		t.Error("the next close is not waited for")
	}
	if p.answers(6); !slices.Contains(p.agent[6:], doLoad) {
		t.Error("one that was answered is waited for")
	}
}

// TestHeldBounds: the queue for an agent that is being started is bounded, also for notifications.
func TestHeldBounds(t *testing.T) {
	t.Parallel()
	b := newBroker(maxRecorded)
	b.attach(1)
	b.fromClient(1, []byte(`{"id":1,"method":"session/list","params":{}}`))
	for range 2 * maxQueued {
		b.fromClient(1, []byte(`{"method":"session/cancel","params":{"sessionId":"s"}}`))
	}
	if len(b.queue) > maxQueued {
		t.Errorf("%d wait", len(b.queue))
	}
}

// TestEndsCount: the outcomes of prompts count for the room too.
func TestEndsCount(t *testing.T) {
	t.Parallel()
	p := opened(t)
	p.log.limit = 1 << 12
	for i := range 4 {
		p.says(1, doPrompt, fmt.Sprint("s", i))
		p.fromAgent(fmt.Appendf(nil, `{"id":%d,"result":{"stopReason":%q}}`, i+2, strings.Repeat("x", 1<<11)))
	}
	if p.log.size > p.log.limit || p.forgotten == 0 {
		t.Errorf("%d bytes are kept, %d forgotten", p.log.size, p.forgotten)
	}
}

// TestLostIsFreed: what a log has lost is not kept in memory.
func TestLostIsFreed(t *testing.T) {
	t.Parallel()
	l := log{limit: 3 * entryRoom}
	l.entries = make([]entry, 0, 9)
	all := l.entries[:9]
	for range 9 {
		l.add(entry{line: []byte("said"), turn: &turn{}})
	}
	for i, e := range all[:l.lost] {
		if l.lost == 0 || e.line != nil || e.turn != nil {
			t.Errorf("entry %d is kept: %v", i, e)
		}
	}
}

// TestNoWorkWithoutAnswer: what begins work or opens a session is a request. Without an id it is dropped.
func TestNoWorkWithoutAnswer(t *testing.T) {
	t.Parallel()
	b := newBroker(maxRecorded)
	b.attach(1)
	b.fromClient(1, []byte(`{"id":1,"method":"session/list","params":{}}`))
	for _, method := range []string{doInitialize, doPrompt, doLoad, doResume} {
		b.fromClient(1, fmt.Appendf(nil, `{"method":%q,"params":{"sessionId":"s"}}`, method))
	}
	if len(b.queue) != 1 {
		t.Errorf("%d wait", len(b.queue))
	}
	b.detach(1)
}

// TestAskedTooLong: a request of the agent that is too long to be read is refused, since the agent waits for an answer.
func TestAskedTooLong(t *testing.T) {
	p, a := opened(t), &agent{}
	m := &mux{broker: p.broker, agent: a}
	m.fromAgent(a, nil, &servers.LongFrame{Head: []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"a`)})
	m.fromAgent(a, nil, &servers.LongFrame{Head: []byte(`{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"a`)})
	want := `{"jsonrpc":"2.0","id":3,"result":{"outcome":{"outcome":"cancelled"}}}`
	if len(p.toAgent) != 1 || strings.TrimSpace(string(p.toAgent[0])) != want {
		t.Errorf("to the agent: %s", p.toAgent)
	}
}
