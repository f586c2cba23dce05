package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// An app-server that nobody used for a day, and in which nothing runs, is ended, though the service is connected to it.
// Its connections end with it; the next one is greeted by its gate with what the app-server said last, and starts it
// with the first request. An agent of kind acp has a keeper, which does the same.

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

// endUnused ends an app-server when nobody used it for a day and nothing runs in it. One whose use is not told is used
// by whoever is connected. An agent of kind acp has a keeper, which knows what runs and sees to that itself.
func (p *process) endUnused(ctx context.Context, now time.Time) {
	if p.setting.Kind != kindCodex {
		return
	}
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.mu.Lock()
	unused := now.Sub(p.used) > unusedFor && (len(p.open) == 0 || p.greeting != nil)
	p.ending = unused // what comes from here on must not reach it
	p.mu.Unlock()
	if !unused {
		return
	}
	ended := false
	if !p.works(ctx) {
		ended = p.endIdle()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending, p.rests, p.used = false, ended && p.greeting != nil, now
}

// endIdle ends the agent unless another process of ours uses it, and reports whether it did. The caller has the turn.
func (p *process) endIdle() bool {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, u := range open {
		_ = u.Close() // it is gone either way
	}
	lock, err := p.lock(useFile, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return false
	}
	p.endNow()
	_ = release(lock)
	return true
}

// works reports whether a turn may run in the app-server, whoever began it and whoever follows it: whether it says so
// of any of its sessions, or does not say. One that does not take connections does not work.
func (p *process) works(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	conn, err := connect(ctx, p.socket)
	if err != nil {
		return false
	}
	works, err := anyActive(ctx, conn)
	if err != nil {
		p.log.Warn("app-server does not tell whether it works; it is not ended", zap.Error(err))
	}
	return works || err != nil
}

// anyActive asks an app-server whether a turn runs in any of its sessions, those that no list has among them.
func anyActive(ctx context.Context, conn net.Conn) (bool, error) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // who waits for an answer sees that
	agent, err := shake(conn)
	if err != nil {
		return false, errors.Join(err, conn.Close())
	}
	defer func() { _ = agent.Close() }() // nothing is to be said any more
	us := map[string]string{"name": "switchboard", "version": "1"}
	if err := call(agent, "initialize", map[string]any{"clientInfo": us}, new(struct{})); err != nil {
		return false, err
	}
	var loaded struct {
		Data       []string
		NextCursor *string
	}
	for more := true; more; more = loaded.NextCursor != nil {
		params := map[string]any{"cursor": loaded.NextCursor}
		loaded.Data, loaded.NextCursor = nil, nil
		if err := call(agent, "thread/loaded/list", params, &loaded); err != nil {
			return false, err
		}
		for _, id := range loaded.Data {
			var read struct {
				Thread struct{ Status struct{ Type string } }
			}
			if err := call(agent, "thread/read", map[string]any{"threadId": id}, &read); err != nil {
				return false, err
			}
			if read.Thread.Status.Type == "active" {
				return true, nil
			}
		}
	}
	return false, nil
}

// call has an app-server answer a request, and leaves the rest that it says.
func call(agent *websocket.Conn, method string, params map[string]any, result any) error {
	message, err := json.Marshal(map[string]any{"id": method, "method": method, "params": params})
	if err == nil {
		err = pass(agent, message, strings.NewReader(""))
	}
	for err == nil {
		var f struct {
			ID     string
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		var data []byte
		if _, data, err = agent.ReadMessage(); err != nil || json.Unmarshal(data, &f) != nil || f.ID != method {
			continue
		}
		if f.Result == nil {
			return fmt.Errorf("%s: %s", method, handoff.Clip(string(f.Error), 300))
		}
		return json.Unmarshal(f.Result, result)
	}
	return err
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
