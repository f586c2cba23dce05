package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"switchboard/servers"
)

// maxInFlight is how many requests may wait for their response: a prompt each session, and lists and controls.
const maxInFlight = 256

// maxQueued is how many frames may wait for the writer, and maxQueuedBytes how many bytes. When there is no room a
// frame fails.
const (
	maxQueued      = 128
	maxQueuedBytes = 32 << 20
)

var (
	errTimeout    = errors.New("timed out")
	errUnreadable = errors.New("unreadable response")
)

// A reply is what became of a request: a result, or an error that is a [*rpcError] or an [*servers.UnansweredError].
type reply struct {
	result json.RawMessage
	err    error
}

// A peer is one JSON-RPC connection.
type peer struct {
	*servers.Outbox // Set once

	wire   servers.Wire  // Set once
	log    *zap.Logger   // Set once
	handle func(message) // Set once: runs in the reader for everything but responses; never waits

	mu     sync.Mutex
	lastID int64 // Guarded by mu
	// Guarded by mu; at most maxInFlight. Each is called once, by the reader or when the connection is lost.
	waiting map[int64]func(reply)

	malformed atomic.Uint64 // lines that are no JSON-RPC
	late      atomic.Uint64 // responses that nobody waited for any more
	tooLong   atomic.Uint64 // lines that were left out because they were too long
}

func newPeer(wire servers.Wire, log *zap.Logger) *peer {
	return &peer{
		Outbox: servers.NewOutbox(wire, maxQueued, maxQueuedBytes, log), wire: wire, log: log,
		waiting: map[int64]func(reply){},
	}
}

// run reads and writes until the connection is lost or closed, and returns when both have ended.
func (p *peer) run() {
	p.Run(p.readAll)
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, land := range waiting {
		land(reply{err: &servers.UnansweredError{Cause: p.Lost()}})
	}
}

func (p *peer) readAll() {
	for {
		line, err := p.wire.Read()
		if long, ok := errors.AsType[*servers.LongFrame](err); ok {
			p.tooLong.Add(1)
			p.log.Warn("line left out", zap.Int("bytes", long.Size))
			if id, err := strconv.ParseInt(string(long.Answers()), 10, 64); err == nil {
				p.land(id, reply{err: &servers.UnansweredError{Cause: long.Cause}})
			}
			continue
		}
		if err != nil {
			p.Lose(err)
			return
		}
		m, ok := parse(line)
		switch {
		case !ok:
			p.malformed.Add(1)
		case m.Method != "":
			p.handle(m)
		default:
			p.respond(m)
		}
	}
}

// respond hands a response to whoever waits for it.
func (p *peer) respond(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		p.malformed.Add(1)
		return
	}
	r := reply{result: m.Result}
	if m.Error != nil {
		r = reply{err: m.Error}
	}
	p.land(id, r)
}

func (p *peer) land(id int64, r reply) {
	if land := p.retire(id); land != nil {
		land(r)
	} else {
		p.late.Add(1)
	}
}

// post sends a request, once, and returns when it was written. land gets what became of it, in the reader or when the
// connection is lost, before or after post returns; not after an error of post, which is a [*servers.NotSentError].
// Where it is not known whether the request left, land is told so.
func (p *peer) post(ctx context.Context, method string, params any, land func(reply)) (id int64, err error) {
	if id, err = p.enlist(land); err != nil {
		return 0, &servers.NotSentError{Cause: err}
	}
	err = p.write(ctx, sent{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: params})
	if err == nil {
		return id, nil
	}
	waits := p.retire(id) != nil
	switch _, unsent := errors.AsType[*servers.NotSentError](err); {
	case !waits: // the connection was lost, and land knows
		return id, nil
	case unsent:
		return id, err
	}
	land(reply{err: err})
	return id, nil
}

// call sends a request, once, and waits for its response. Its errors are [*rpcError], [*servers.NotSentError] and
// [*servers.UnansweredError].
func (p *peer) call(ctx context.Context, method string, params, result any) error {
	return p.ask(ctx, method, params, result, func(reply) {})
}

// ask is call; land gets the response in the reader, before the next frame is read.
func (p *peer) ask(ctx context.Context, method string, params, result any, land func(reply)) error {
	came := make(chan reply, 1)
	id, err := p.post(ctx, method, params, func(r reply) {
		land(r)
		came <- r
	})
	if err != nil {
		return err
	}
	select {
	case r := <-came:
		if r.err == nil && result != nil && json.Unmarshal(r.result, result) != nil {
			return &servers.UnansweredError{Cause: errUnreadable}
		}
		return r.err
	case <-ctx.Done():
		p.retire(id)
		return &servers.UnansweredError{Cause: context.Cause(ctx)}
	}
}

// tell sends a notification.
func (p *peer) tell(ctx context.Context, method string, params any) error {
	return p.write(ctx, sent{Method: method, Params: params})
}

// refuse answers a request that is not for us. It never waits.
func (p *peer) refuse(id json.RawMessage, code int, why string) {
	p.send(sent{ID: id, Error: &rpcError{Code: code, Message: why}})
}

// answer answers a request of the agent. It never waits: a lost connection shows by itself.
func (p *peer) answer(id json.RawMessage, result any) { p.send(sent{ID: id, Result: result}) }

func (p *peer) send(s sent) {
	if bytes, err := encode(s); err == nil {
		_, _ = p.Send(bytes) // counted when there is no room
	}
}

// write sends a frame and waits until it is written. Its errors are [*servers.NotSentError] and
// [*servers.UnansweredError].
func (p *peer) write(ctx context.Context, s sent) error {
	bytes, err := encode(s)
	if err != nil {
		return &servers.NotSentError{Cause: err}
	}
	return p.Write(ctx, bytes)
}

// enlist registers a request.
func (p *peer) enlist(land func(reply)) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Lost(); err != nil {
		return 0, err
	}
	if len(p.waiting) >= maxInFlight {
		p.Full.Add(1)
		return 0, servers.ErrTooMany
	}
	p.lastID++
	p.waiting[p.lastID] = land
	return p.lastID, nil
}

// retire takes a request off the list. Only one caller gets it; the others get nil.
func (p *peer) retire(id int64) func(reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	land := p.waiting[id]
	delete(p.waiting, id)
	return land
}
