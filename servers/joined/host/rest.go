package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/servers"
)

// An app-server that nobody used for a day is ended, though the service is connected to it. Its connections end with
// it; the next one is greeted by its gate with what the app-server said last, and starts it with the first request. An
// agent of kind acp has a keeper, which does the same.

// unusedBy are the methods by which nobody uses an app-server: the service asks for lists again and again. Set once.
var unusedBy = []string{"initialize", "initialized", "thread/list"}

// uses notes that a message passes to the app-server; false: it may not, since the app-server is being ended. What may
// have reached it is not begun again by itself.
func (p *process) uses(method string) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(unusedBy, method) {
		p.used = time.Now()
	}
	return !p.ending
}

// greets keeps what the app-server answered to initialize.
func (p *process) greets(result json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeting = slices.Clone(result)
}

// resting returns what is to be answered to initialize while the app-server rests; nil: it does not.
func (p *process) resting() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.rests {
		return nil
	}
	return p.greeting
}

// awaken lets the agent be started again, once one that is being ended is gone.
func (p *process) awaken(ctx context.Context) error {
	p.mu.Lock()
	ending := p.ending
	p.rests = false
	p.mu.Unlock()
	if !ending {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
		<-p.turn
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endUnused ends the agent when nobody used it for a day. One whose use is not told is used by whoever is connected.
func (p *process) endUnused(now time.Time) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.mu.Lock()
	unused := now.Sub(p.used) > unusedFor && (len(p.open) == 0 || p.greeting != nil)
	p.ending = unused
	var open []*used
	for u := range p.open {
		open = append(open, u)
	}
	p.mu.Unlock()
	if !unused {
		return
	}
	for _, u := range open {
		_ = u.Close() // it is gone either way
	}
	lock, err := p.lock(useFile, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil { // else another process of ours uses it
		p.endNow()
		_ = lock.Close() // it is only a lock
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending, p.rests, p.used = false, err == nil && p.greeting != nil, now
}

// wake greets the service in the place of an app-server that rests, and starts that with the first message which needs
// it.
func (g *gate) wake(service *websocket.Conn) (agent *websocket.Conn, err error) {
	service.SetReadLimit(servers.MaxFrame + 64<<10)
	var hello, first frame
	for first.method == "" {
		kind, data, err := service.ReadMessage()
		if err != nil || kind != websocket.TextMessage {
			return nil, errors.Join(err, errMethod)
		}
		f, refused := g.fromService(data)
		switch {
		case errors.Is(refused, errFull):
			return nil, refused
		case refused != nil && len(f.id) > 0 && f.method != "":
			err = pass(service, refusal(f.id, refused), strings.NewReader(""))
		case refused != nil || f.method == "initialized" || f.method == "": // it asked nothing
		case f.method == "initialize":
			hello = f
			answer, _ := json.Marshal(map[string]json.RawMessage{"id": f.id, "result": g.rested}) // both were decoded
			err = pass(service, g.fromAgent(answer), strings.NewReader(""))
		default:
			first = f
		}
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*startWithin)
	defer cancel()
	conn, err := g.of.dial(ctx)
	if err != nil {
		return nil, err
	}
	if agent, err = shake(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = agent.SetReadDeadline(time.Now().Add(startWithin)) // a connection that is gone says so when it is read
	err = errors.Join(g.introduce(agent, hello), agent.SetReadDeadline(time.Time{}))
	if err == nil && g.of.uses(first.method) {
		err = pass(agent, first.passes, strings.NewReader(""))
	}
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	return agent, nil
}

// introduce initializes an app-server that was started again. One that says something else than before is none that
// the service was greeted by.
func (g *gate) introduce(agent *websocket.Conn, hello frame) error {
	if hello.id == nil {
		return nil // it says that it is not initialized
	}
	if err := pass(agent, hello.passes, strings.NewReader("")); err != nil {
		return err
	}
	for {
		_, data, err := agent.ReadMessage()
		if err != nil {
			return err
		}
		var f struct{ ID, Result json.RawMessage }
		if json.Unmarshal(data, &f) != nil || string(f.ID) != string(hello.id) {
			continue
		}
		if string(f.Result) != string(g.rested) {
			g.of.greets(f.Result)
			return errors.New("another app-server answers than before")
		}
		return pass(agent, []byte(`{"method":"initialized"}`), strings.NewReader(""))
	}
}

// headOf is how much of a message is looked at to see whether it tells of work, in bytes.
const headOf = 64

// tellsOfWork reports whether a message of the app-server, of which this is the head, is no mere answer.
func tellsOfWork(head []byte) bool {
	return strings.Contains(string(head[:min(len(head), headOf)]), `"method"`)
}
