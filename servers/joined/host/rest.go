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

// An app-server that nobody used for a day, and in which no turn runs, is ended, even while the service is connected.
// It rests then. Its connections end with it. To the next connection, the gate answers initialize with the app-server's
// last answer, and the first other request starts the app-server again. For an agent of kind acp the keeper does this.

// idleMethods are the methods that do not count as use: the service polls the list of threads. Set once.
var idleMethods = []string{"initialize", "initialized", "thread/list"}

// noteUse notes that a message passes to or from the app-server. method is "" for an answer, and for a message from the
// app-server. It returns false while the app-server is being ended: then the message must not pass, since a request
// that may have reached the old process is not repeated.
func (p *process) noteUse(method string) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(idleMethods, method) {
		p.lastUsed = time.Now()
	}
	return !p.ending
}

// keepGreeting stores the app-server's answer to initialize.
func (p *process) keepGreeting(result json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeting = slices.Clone(result)
}

// resting returns the gate's answer to initialize while the app-server rests; nil: it does not rest.
func (p *process) resting() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.rests {
		return nil
	}
	return p.greeting
}

// awaken ends the agent's rest, so that it may be started, and waits for its end if it is being ended.
func (p *process) awaken(ctx context.Context) error {
	p.mu.Lock()
	ending := p.ending
	p.rests = false
	p.mu.Unlock()
	if !ending {
		return nil
	}
	select {
	case p.lifecycle <- struct{}{}:
		<-p.lifecycle
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endUnused ends an app-server that nobody used for a day and in which no turn runs. As long as there is no greeting,
// any open connection counts as use. An agent of kind acp is left to its keeper, which knows what runs in it.
func (p *process) endUnused(ctx context.Context, now time.Time) {
	if p.setting.Kind != kindCodex {
		return
	}
	p.lifecycle <- struct{}{}
	defer func() { <-p.lifecycle }()
	p.mu.Lock()
	unused := now.Sub(p.lastUsed) > unusedFor && (len(p.open) == 0 || p.greeting != nil)
	p.ending = unused // from here on no request may reach it
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
	p.ending, p.rests, p.lastUsed = false, ended && p.greeting != nil, now
}

// endIdle ends the agent unless another process of ours uses it, and reports whether it did. The caller holds
// lifecycle.
func (p *process) endIdle() bool {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, u := range open {
		_ = u.Close() // the agent ends now
	}
	lock, err := p.lock(useFile, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return false
	}
	ended := p.endNow()
	_ = release(lock)
	return ended
}

// works reports whether a turn may be running in the app-server, whichever client began it. It is true also if the
// app-server does not answer, and false if it takes no connections.
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

// anyActive asks an app-server whether a turn runs in any of its loaded threads, also those that thread/list omits.
func anyActive(ctx context.Context, conn net.Conn) (bool, error) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends a read that waits for an answer
	agent, err := handshake(conn)
	if err != nil {
		return false, errors.Join(err, conn.Close())
	}
	defer func() { _ = agent.Close() }() // nothing more is sent
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

// call sends a request to an app-server and decodes its result. It skips other messages of the app-server.
func call(agent *websocket.Conn, method string, params map[string]any, result any) error {
	message, err := json.Marshal(map[string]any{"id": method, "method": method, "params": params})
	if err == nil {
		err = writeMessage(agent, message, strings.NewReader(""))
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

// wake answers initialize in place of an app-server that rests, and starts the app-server with the first message that
// needs it.
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
			err = writeMessage(service, refusal(f.id, refused), strings.NewReader(""))
		case refused != nil || f.method == "initialized" || f.method == "": // it needs no answer
		case f.method == "initialize":
			hello = f
			answer, _ := json.Marshal(map[string]json.RawMessage{"id": f.id, "result": g.greeting}) // both were decoded
			err = writeMessage(service, g.fromAgent(answer), strings.NewReader(""))
		default:
			first = f
		}
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*startWithin)
	defer cancel()
	conn, err := g.process.dial(ctx)
	if err != nil {
		return nil, err
	}
	if agent, err = handshake(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = agent.SetReadDeadline(time.Now().Add(startWithin)) // on a closed connection the read fails
	err = errors.Join(g.introduce(agent, hello), agent.SetReadDeadline(time.Time{}))
	if err == nil && g.process.noteUse(first.method) {
		err = writeMessage(agent, first.passes, strings.NewReader(""))
	}
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	return agent, nil
}

// introduce initializes an app-server that was started again, with the service's initialize. It fails if the answer is
// not the one that the service has got.
func (g *gate) introduce(agent *websocket.Conn, hello frame) error {
	if hello.id == nil {
		return nil // the service did not initialize: the app-server refuses its first request
	}
	if err := writeMessage(agent, hello.passes, strings.NewReader("")); err != nil {
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
		if string(f.Result) != string(g.greeting) {
			g.process.keepGreeting(f.Result)
			return errors.New("another app-server answers than before")
		}
		return writeMessage(agent, []byte(`{"method":"initialized"}`), strings.NewReader(""))
	}
}

// headBytes is how much of a message is searched for a method, in bytes.
const headBytes = 256

// hasMethod reports whether a message of the app-server is a notification or request, by its first bytes.
func hasMethod(head []byte) bool {
	return strings.Contains(string(head[:min(len(head), headBytes)]), `"method"`)
}
