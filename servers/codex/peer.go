package codex

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

// maxInFlight is how many requests may wait for their response. The server refuses beyond about 150; when
// ours are used up a request fails at once as overloaded, because waiting here would hide the delay.
const maxInFlight = 64

// maxQueued is how many frames may wait for the writer: all requests, and as many answers to questions.
// When it is full a frame fails as overloaded.
const maxQueued = 2 * maxInFlight

// A peer is one JSON-RPC connection.
type peer struct {
	*servers.Outbox // Set once

	wire   servers.Wire  // Set once
	log    *zap.Logger   // Set once
	handle func(message) // Set once: runs in the reader for everything but responses; never waits
	missed func()        // Set once: runs in the reader when something else than a response was left out; may be nil

	mu      sync.Mutex
	lastID  int64              // Guarded by mu
	waiting map[int64]*pending // Guarded by mu; at most maxInFlight
	held    int                // Guarded by mu: bytes of responses that are not decoded yet; at most maxHeld

	malformed atomic.Uint64 // frames that were none of ours to read
	late      atomic.Uint64 // responses that nobody waited for any more
	tooLong   atomic.Uint64 // frames that were left out: too long, too deep, or more than may be held
}

// pending is a request that waits for its response.
type pending struct {
	land  func(json.RawMessage) // runs in the reader before the next frame is read; may be nil
	reply chan reply            // holds one
}

type reply struct {
	result  json.RawMessage
	err     *rpcError
	leftOut error // why it was left out when it came
}

func newPeer(wire servers.Wire, log *zap.Logger, handle func(message)) *peer {
	return &peer{
		Outbox: servers.NewOutbox(wire, maxQueued, maxQueuedBytes, log), wire: wire, log: log, handle: handle,
		waiting: map[int64]*pending{},
	}
}

// run reads and writes until the connection is lost or closed, and returns when both have ended.
func (p *peer) run() { p.Run(p.readAll) }

func (p *peer) readAll() {
	for {
		bytes, err := p.wire.Read()
		if long, ok := errors.AsType[*servers.LongFrame](err); ok {
			p.leaveOut(long)
			continue
		}
		if err != nil {
			p.Lose(err)
			return
		}
		if why := unfit(bytes); why != nil {
			p.leaveOut(&servers.LongFrame{Head: bytes[:min(len(bytes), servers.LongHead)], Size: len(bytes), Cause: why})
			continue
		}
		m, kind := parse(bytes)
		switch kind {
		case kindResponse:
			p.respond(m)
		case kindMalformed:
			p.malformed.Add(1)
		default:
			p.handle(m)
		}
	}
}

// leaveOut tells whoever waits for a frame that was too long.
func (p *peer) leaveOut(long *servers.LongFrame) {
	p.tooLong.Add(1)
	p.log.Warn("frame left out", zap.Int("bytes", long.Size), zap.NamedError("reason", long.Cause))
	id, isAnswer := answered(long.Head)
	if !isAnswer {
		if p.missed != nil {
			p.missed()
		}
		return
	}
	if w := p.retire(id); w != nil {
		w.reply <- reply{leftOut: long.Cause}
	}
}

// hold counts a response that is about to be decoded, or reports that there is no room for it.
func (p *peer) hold(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+n > maxHeld {
		return false
	}
	p.held += n
	return true
}

// letGo counts a response that was decoded or is not needed.
func (p *peer) letGo(result json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= len(result)
}

// respond hands a response to whoever waits for it.
func (p *peer) respond(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		p.malformed.Add(1)
		return
	}
	w := p.retire(id)
	if w == nil {
		p.late.Add(1)
		return
	}
	if m.Error != nil {
		w.reply <- reply{err: m.Error}
		return
	}
	if w.land != nil {
		w.land(m.Result)
	}
	if !p.hold(len(m.Result)) {
		p.tooLong.Add(1)
		p.log.Warn("answer left out", zap.Int("bytes", len(m.Result)), zap.NamedError("reason", errHeld))
		w.reply <- reply{leftOut: servers.ErrLongFrame}
		return
	}
	w.reply <- reply{result: m.Result}
}

// call sends a request and waits for its response, which the caller decodes and then gives to letGo. Its errors
// are [*rpcError], [*servers.NotSentError] and [*servers.UnansweredError]. Nothing is sent twice.
func (p *peer) call(
	ctx context.Context, method string, params any, land func(json.RawMessage),
) (json.RawMessage, error) {
	id, w, err := p.enlist(land)
	if err != nil {
		return nil, &servers.NotSentError{Cause: err}
	}
	bytes, err := encode(request{ID: &id, Method: method, Params: params, Trace: traceOf(ctx)})
	if err != nil {
		p.retire(id)
		return nil, &servers.NotSentError{Cause: err}
	}
	f, err := p.Send(bytes)
	if err != nil {
		p.retire(id)
		return nil, &servers.NotSentError{Cause: err}
	}
	var cause error
	select {
	case r := <-w.reply:
		return r.unwrap()
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.Done():
		cause = p.Lost()
	}
	if p.retire(id) == nil { // the reader has it: the reply is there or comes at once
		r := <-w.reply
		return r.unwrap()
	}
	if f.Withdraw() {
		return nil, &servers.NotSentError{Cause: cause}
	}
	return nil, &servers.UnansweredError{Cause: cause}
}

func (r reply) unwrap() (json.RawMessage, error) {
	switch {
	case r.leftOut != nil:
		return nil, &servers.UnansweredError{Cause: r.leftOut}
	case r.err != nil:
		return nil, r.err
	}
	return r.result, nil
}

// tell sends a notification or an answer and waits until it is written. Its errors are [*servers.NotSentError]
// and [*servers.UnansweredError].
func (p *peer) tell(ctx context.Context, v any) error {
	bytes, err := encode(v)
	if err != nil {
		return &servers.NotSentError{Cause: err}
	}
	return p.Write(ctx, bytes)
}

// enlist registers a request.
func (p *peer) enlist(land func(json.RawMessage)) (int64, *pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Lost(); err != nil {
		return 0, nil, err
	}
	if len(p.waiting) >= maxInFlight {
		return 0, nil, servers.ErrTooMany
	}
	p.lastID++
	w := &pending{land: land, reply: make(chan reply, 1)}
	p.waiting[p.lastID] = w
	return p.lastID, w, nil
}

// retire takes a request off the list. Only one caller gets it; the others get nil.
func (p *peer) retire(id int64) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[id]
	delete(p.waiting, id)
	return w
}
