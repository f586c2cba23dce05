package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// An app-server that nobody used for a day, and in which no turn runs, is ended, even while the service is connected.
// It rests then. Its connections end with it. To the next connection, the gate answers initialize with the app-server's
// last answer, and the first other request starts the app-server again. For an agent of kind acp the mux does this.

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
	if p == nil {
		return
	}
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
func (p *process) awaken() error {
	p.mu.Lock()
	ending := p.ending
	p.rests = false
	p.mu.Unlock()
	if !ending {
		return nil
	}
	free, err := p.alone()
	if err == nil {
		free()
	}
	return err
}

// endUnused ends an app-server that nobody used for a day and in which no turn runs. As long as there is no greeting,
// any open connection counts as use. An agent of kind acp is left to its mux, which knows what runs in it.
func (p *process) endUnused(ctx context.Context, now time.Time) {
	if !p.setting.listens() {
		return
	}
	free, err := p.alone()
	if err != nil {
		return
	}
	defer free()
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

// endIdle ends the agent unless another process of ours uses it, and reports whether it did. The caller has
// the agent alone.
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
	agent, err := open(ctx, conn)
	if err != nil {
		return false, err
	}
	defer func() { _ = agent.Close() }() // nothing more is sent
	ask := func(method string, params map[string]any, into any) error {
		request, err := json.Marshal(map[string]any{"id": method, "method": method, "params": params})
		if err != nil {
			return err
		}
		is, err := agent.call(json.RawMessage(strconv.Quote(method)), request)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		return json.Unmarshal(is, into)
	}
	us := map[string]string{"name": "switchboard", "version": "1"}
	if err := ask("initialize", map[string]any{"clientInfo": us}, new(struct{})); err != nil {
		return false, err
	}
	var loaded struct {
		Data       []string
		NextCursor *string
	}
	for more := true; more; more = loaded.NextCursor != nil {
		params := map[string]any{"cursor": loaded.NextCursor}
		loaded.Data, loaded.NextCursor = nil, nil
		if err := ask("thread/loaded/list", params, &loaded); err != nil {
			return false, err
		}
		for _, id := range loaded.Data {
			var read struct {
				Thread struct{ Status struct{ Type string } }
			}
			if err := ask("thread/read", map[string]any{"threadId": id}, &read); err != nil {
				return false, err
			}
			if read.Thread.Status.Type == "active" {
				return true, nil
			}
		}
	}
	return false, nil
}
