package codex

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/servers"
)

// maxInFlight is how many requests may wait for their response. The server refuses beyond about 150; when
// ours are used up a request fails at once as overloaded, because waiting here would hide the delay.
const maxInFlight = 64

// maxQueued is how many frames may wait for the writer: all requests, and as many answers to questions.
// When it is full a frame fails as overloaded.
const maxQueued = 2 * maxInFlight

// pingEvery is how often a wire that can be pinged is. The server itself never pings.
const pingEvery = 12 * time.Second

var (
	errFrameTooLarge = errors.New("frame larger than 16 MiB")
	errTooMany       = errors.New("too many requests in flight")
	errClosed        = errors.New("connection closed")
)

// A notSentError says that a frame certainly never left.
type notSentError struct{ cause error }

func (e *notSentError) Error() string { return "not sent: " + e.cause.Error() }
func (e *notSentError) Unwrap() error { return e.cause } // callers look for errTooMany and errFrameTooLarge

// An unansweredError says that a frame may have left and that no response came.
type unansweredError struct{ cause error }

func (e *unansweredError) Error() string { return "no answer: " + e.cause.Error() }
func (e *unansweredError) Unwrap() error { return e.cause } // callers look for servers.ErrLongFrame

// A pinger is a wire that can notice a dead peer.
type pinger interface{ Ping() error }

// A peer is one JSON-RPC connection.
type peer struct {
	wire   servers.Wire  // Set once
	log    *zap.Logger   // Set once
	handle func(message) // Set once: runs in the reader for everything but responses; never waits
	missed func()        // Set once: runs in the reader when something else than a response was left out; may be nil
	out    chan *frame   // Set once, never closed; taken by the writer
	done   chan struct{} // Set once, closed by lose

	mu      sync.Mutex
	lastID  int64              // Guarded by mu
	waiting map[int64]*pending // Guarded by mu; at most maxInFlight
	held    int                // Guarded by mu: bytes of responses that are not decoded yet; at most maxHeld
	queued  int                // Guarded by mu: bytes of frames in out; at most maxQueuedBytes
	cause   error              // Guarded by mu: why the connection was lost

	malformed atomic.Uint64 // frames that were none of ours to read
	late      atomic.Uint64 // responses that nobody waited for any more
	tooLong   atomic.Uint64 // frames that were left out: too long, too deep, or more than may be held
	full      atomic.Uint64 // frames of ours that found no room
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

// A frame is on its way to the writer. Whoever moves state away from frameQueued decides whether it is sent.
type frame struct {
	bytes   []byte
	state   atomic.Int32
	written chan error // holds one
}

const (
	frameQueued int32 = iota
	frameTaken
	frameWithdrawn
)

func newPeer(wire servers.Wire, log *zap.Logger, handle func(message)) *peer {
	return &peer{
		wire: wire, log: log, handle: handle,
		out:     make(chan *frame, maxQueued),
		done:    make(chan struct{}),
		waiting: map[int64]*pending{},
	}
}

// run reads and writes until the connection is lost or closed, and returns when both have ended.
func (p *peer) run() {
	var wg sync.WaitGroup
	wg.Go(p.readAll)
	wg.Go(p.writeAll)
	<-p.done
	if err := p.wire.Close(); err != nil {
		p.log.Debug("close wire", zap.Error(err))
	}
	wg.Wait()
}

// lose ends the connection. The first cause is kept.
func (p *peer) lose(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
		close(p.done)
	}
}

// lost returns why the connection ended, or nil.
func (p *peer) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

func (p *peer) readAll() {
	for {
		bytes, err := p.wire.Read()
		if long, ok := errors.AsType[*servers.LongFrame](err); ok {
			p.leaveOut(long)
			continue
		}
		if err != nil {
			p.lose(err)
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

func (p *peer) writeAll() {
	var tick <-chan time.Time
	ping, canPing := p.wire.(pinger)
	if canPing {
		ticker := time.NewTicker(pingEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		var err error
		select {
		case <-p.done:
			return
		case <-tick:
			err = ping.Ping()
		case f := <-p.out:
			p.room(-len(f.bytes))
			if !f.state.CompareAndSwap(frameQueued, frameTaken) {
				continue
			}
			err = p.wire.Write(f.bytes)
			f.written <- err
		}
		if err != nil {
			p.lose(err)
			return
		}
	}
}

// call sends a request and waits for its response, which the caller decodes and then gives to letGo. Its errors
// are [*rpcError], [*notSentError] and [*unansweredError]. Nothing is sent twice.
func (p *peer) call(
	ctx context.Context, method string, params any, land func(json.RawMessage),
) (json.RawMessage, error) {
	id, w, err := p.enlist(land)
	if err != nil {
		return nil, &notSentError{err}
	}
	bytes, err := encode(request{ID: &id, Method: method, Params: params, Trace: traceOf(ctx)})
	if err != nil {
		p.retire(id)
		return nil, &notSentError{err}
	}
	f, err := p.send(bytes)
	if err != nil {
		p.retire(id)
		return nil, &notSentError{err}
	}
	var cause error
	select {
	case r := <-w.reply:
		return r.unwrap()
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.done:
		cause = p.lost()
	}
	if p.retire(id) == nil { // the reader has it: the reply is there or comes at once
		r := <-w.reply
		return r.unwrap()
	}
	if f.state.CompareAndSwap(frameQueued, frameWithdrawn) {
		return nil, &notSentError{cause}
	}
	return nil, &unansweredError{cause}
}

func (r reply) unwrap() (json.RawMessage, error) {
	switch {
	case r.leftOut != nil:
		return nil, &unansweredError{r.leftOut}
	case r.err != nil:
		return nil, r.err
	}
	return r.result, nil
}

// tell sends a notification or an answer and waits until it is written. Its errors are [*notSentError]
// and [*unansweredError].
func (p *peer) tell(ctx context.Context, v any) error {
	bytes, err := encode(v)
	if err != nil {
		return &notSentError{err}
	}
	f, err := p.send(bytes)
	if err != nil {
		return &notSentError{err}
	}
	var cause error
	select {
	case err := <-f.written:
		if err != nil {
			return &unansweredError{err}
		}
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.done:
		cause = p.lost()
	}
	if f.state.CompareAndSwap(frameQueued, frameWithdrawn) {
		return &notSentError{cause}
	}
	select {
	case err := <-f.written: // it was done before the connection was lost
		if err == nil {
			return nil
		}
	default:
	}
	return &unansweredError{cause}
}

// send queues a frame for the writer. It never waits.
func (p *peer) send(bytes []byte) (*frame, error) {
	if err := p.lost(); err != nil {
		return nil, err
	}
	if !p.room(len(bytes)) {
		p.full.Add(1)
		return nil, errTooMany
	}
	f := &frame{bytes: bytes, written: make(chan error, 1)}
	select {
	case p.out <- f:
		return f, nil
	default:
		p.room(-len(bytes))
		p.full.Add(1)
		return nil, errTooMany
	}
}

// room takes n bytes of what may wait for the writer, or gives them back.
func (p *peer) room(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 && p.queued+n > maxQueuedBytes {
		return false
	}
	p.queued += n
	return true
}

// enlist registers a request.
func (p *peer) enlist(land func(json.RawMessage)) (int64, *pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != nil {
		return 0, nil, p.cause
	}
	if len(p.waiting) >= maxInFlight {
		return 0, nil, errTooMany
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
