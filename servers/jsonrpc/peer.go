package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

const (
	// maxValues bounds the values in a frame: decoded, a value of three bytes may take hundreds.
	maxValues = 1 << 18
	// maxHeld bounds the responses that were received and are not decoded yet, in bytes.
	maxHeld = 4 * servers.MaxFrame
)

var (
	// ErrUnreadable says that the result of a request cannot be decoded.
	ErrUnreadable = errors.New("unreadable response")

	errTooDeep = errors.New("answer nests deeper than 128")
	errHeld    = errors.New("too much waits to be read")
)

// A Config is what a peer is made with.
type Config struct {
	Wire   servers.Wire
	Log    *zap.Logger
	Handle func(Message) // gets all messages but responses, in the reader; must not wait
	Missed func(Message) // gets, in the reader, what is known of a frame other than a response that was left out

	Version string // in our frames; "": none
	Traced  bool   // requests have a trace

	InFlight    int // requests that may wait for their response
	Queued      int // frames that may wait for the writer
	QueuedBytes int // bytes of these frames
}

// Counts are the counters of a peer.
type Counts struct {
	Malformed atomic.Uint64 // frames that are no JSON-RPC
	Late      atomic.Uint64 // responses that nobody waited for any more
	LeftOut   atomic.Uint64 // frames that were too long or too deep, and responses beyond maxHeld
	held      atomic.Int64  // bytes of responses that are not decoded yet; at most maxHeld
}

// A Peer is one connection of JSON-RPC. It is safe for concurrent use.
type Peer struct {
	*servers.Outbox // Set once
	Counts

	cfg Config // Set once

	mu     sync.Mutex
	lastID int64 // Guarded by mu
	// waiting are the callbacks of requests without a response, at most cfg.InFlight. Guarded by mu. Each is called
	// once, by the reader or after the loss of the connection.
	waiting map[int64]func(Reply)
	sending sync.WaitGroup // of requests that are not written yet; added to under mu, unless the connection is lost
}

// A Reply is the outcome of a request: a result, or an error that is a [*Error] or a [*servers.UnansweredError].
type Reply struct {
	Result json.RawMessage
	Err    error
}

// NewPeer returns a peer, whose Run must be called.
func NewPeer(cfg Config) *Peer {
	return &Peer{
		Outbox: servers.NewOutbox(cfg.Wire, cfg.Queued, cfg.QueuedBytes, cfg.Log), cfg: cfg,
		waiting: map[int64]func(Reply){},
	}
}

// Run reads and writes until the connection is lost or closed, and returns when both have ended.
func (p *Peer) Run() {
	p.Outbox.Run(p.readAll)
	p.mu.Lock()
	waiting := slices.Collect(maps.Keys(p.waiting))
	p.mu.Unlock()
	p.sending.Wait() // post itself handles a request that it is sending: it knows whether the request was sent
	for _, id := range waiting {
		if onReply := p.retire(id); onReply != nil {
			onReply(Reply{Err: &servers.UnansweredError{Cause: p.Lost()}})
		}
	}
}

func (p *Peer) readAll() {
	for {
		frame, err := p.cfg.Wire.Read()
		if long, ok := errors.AsType[*servers.LongFrame](err); ok {
			p.leaveOut(long)
			continue
		}
		if err != nil {
			p.Lose(err)
			return
		}
		if why := unfit(frame); why != nil {
			p.leaveOut(&servers.LongFrame{Head: frame[:min(len(frame), servers.LongHead)], Size: len(frame), Cause: why})
			continue
		}
		m, ok := Parse(frame)
		switch {
		case !ok:
			p.Malformed.Add(1)
		case m.Method == servers.LeftOut:
			p.leaveOut(&servers.LongFrame{Cause: servers.ErrLongFrame})
		case m.Method != "":
			p.cfg.Handle(m)
		default:
			p.respond(m)
		}
	}
}

// unfit returns why a frame must not be decoded, or nil.
func unfit(frame []byte) error {
	switch {
	case handoff.TooDeep(frame):
		return errTooDeep
	case values(frame) > maxValues:
		return servers.ErrLongFrame
	}
	return nil
}

// leaveOut handles a frame that is not decoded: the request that it answers fails, or Missed gets its id and method, if
// it is a request of the far end.
func (p *Peer) leaveOut(long *servers.LongFrame) {
	p.LeftOut.Add(1)
	p.cfg.Log.Warn("frame left out", zap.Int("bytes", long.Size), zap.NamedError("reason", long.Cause))
	id, err := strconv.ParseInt(string(long.Answers()), 10, 64)
	switch {
	case err == nil:
		if onReply := p.retire(id); onReply != nil {
			onReply(Reply{Err: &servers.UnansweredError{Cause: long.Cause}})
		}
	case p.cfg.Missed != nil:
		var m Message
		m.ID, m.Method = long.Asks()
		p.cfg.Missed(m)
	}
}

// respond passes a response to the callback of its request.
func (p *Peer) respond(m Message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		p.Malformed.Add(1)
		return
	}
	r := Reply{Result: m.Result}
	if m.Error != nil {
		r = Reply{Err: m.Error}
		if m.Error.Message == servers.ErrLongFrame.Error() { // a gate or mux on the machine has left it out
			r.Err = &servers.UnansweredError{Cause: servers.ErrLongFrame}
		}
	}
	if onReply := p.retire(id); onReply != nil {
		onReply(r)
	} else {
		p.Late.Add(1)
	}
}

// Post sends a request, once, and returns when it is written. Its error is a [*servers.NotSentError]. If there is no
// error, onReply is called once, in the reader or after the loss of the connection, before or after Post returns. If
// it is not known whether the request was sent, onReply gets a [*servers.UnansweredError].
func (p *Peer) Post(ctx context.Context, method string, params any, onReply func(Reply)) error {
	_, err := p.post(ctx, method, params, onReply)
	return err
}

func (p *Peer) post(ctx context.Context, method string, params any, onReply func(Reply)) (id int64, err error) {
	if id, err = p.enlist(onReply); err != nil {
		return 0, &servers.NotSentError{Cause: err}
	}
	defer p.sending.Done()
	request := outgoing{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: params}
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" && p.cfg.Traced {
		request.Trace = &trace{parent}
	}
	err = p.write(ctx, request)
	if err == nil {
		return id, nil
	}
	switch waits := p.retire(id) != nil; {
	case !waits: // it was answered nevertheless, and onReply was called
		return id, nil
	case servers.NotSent(err):
		return id, err
	}
	onReply(Reply{Err: err})
	return id, nil
}

// Call sends a request, once, waits for its response and decodes its result, unless result is nil. Its errors are
// [*Error], [*servers.NotSentError] and [*servers.UnansweredError].
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	return p.CallIn(ctx, method, params, result, nil)
}

// CallIn is like Call, but passes the response also to onReply, in the reader, before the next frame is read. onReply
// may be nil. If there is no response, onReply may or may not be called.
func (p *Peer) CallIn(ctx context.Context, method string, params, result any, onReply func(Reply)) error {
	replies := make(chan Reply, 1)
	id, err := p.post(ctx, method, params, func(r Reply) {
		if onReply != nil {
			onReply(r)
		}
		replies <- p.hold(r)
	})
	if err != nil {
		return err
	}
	var r Reply
	var cause error
	select {
	case r = <-replies:
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.Done(): // the wire may take long to close
		cause = p.Lost()
	}
	if cause != nil {
		if p.retire(id) != nil {
			return &servers.UnansweredError{Cause: cause}
		}
		r = <-replies // the reader has the response: it comes at once
	}
	defer p.held.Add(-int64(len(r.Result)))
	if r.Err == nil && result != nil && json.Unmarshal(r.Result, result) != nil {
		return &servers.UnansweredError{Cause: ErrUnreadable}
	}
	return r.Err
}

// hold counts a response that is about to be decoded, or replaces it by an error if it is beyond maxHeld.
func (p *Peer) hold(r Reply) Reply {
	n := int64(len(r.Result))
	if p.held.Add(n) <= maxHeld {
		return r
	}
	p.held.Add(-n)
	p.LeftOut.Add(1)
	p.cfg.Log.Warn("answer left out", zap.Int64("bytes", n), zap.NamedError("reason", errHeld))
	return Reply{Err: &servers.UnansweredError{Cause: servers.ErrLongFrame}}
}

// Tell sends a notification, and waits until it is written. Its errors are those of [servers.Outbox.Write].
func (p *Peer) Tell(ctx context.Context, method string, params any) error {
	return p.write(ctx, outgoing{Method: method, Params: params})
}

// Answer answers a request of the far end, and waits until the answer is written. Its errors are those of
// [servers.Outbox.Write].
func (p *Peer) Answer(ctx context.Context, id json.RawMessage, result any) error {
	return p.write(ctx, outgoing{ID: id, Result: result})
}

// AnswerSoon answers a request of the far end. It never waits, and returns no error: a connection that is lost or full
// shows elsewhere.
func (p *Peer) AnswerSoon(id json.RawMessage, result any) { p.send(outgoing{ID: id, Result: result}) }

// Refuse answers a request of the far end with an error. It never waits.
func (p *Peer) Refuse(id json.RawMessage, code int, why string) {
	p.send(outgoing{ID: id, Error: &Error{Code: code, Message: why}})
}

func (p *Peer) send(s outgoing) {
	s.Version = p.cfg.Version
	if frame, err := encode(s); err == nil {
		_, _ = p.Send(frame) // Full counts a frame without room
	}
}

func (p *Peer) write(ctx context.Context, s outgoing) error {
	s.Version = p.cfg.Version
	frame, err := encode(s)
	if err != nil {
		return &servers.NotSentError{Cause: err}
	}
	return p.Write(ctx, frame)
}

// enlist registers a request, and returns its id.
func (p *Peer) enlist(onReply func(Reply)) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Lost(); err != nil {
		return 0, err
	}
	if len(p.waiting) >= p.cfg.InFlight {
		p.Full.Add(1)
		return 0, servers.ErrTooMany
	}
	p.lastID++
	p.waiting[p.lastID] = onReply
	p.sending.Add(1)
	return p.lastID, nil
}

// retire removes a request and returns its callback. Only the first call for an id does; later ones return nil.
func (p *Peer) retire(id int64) func(Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	onReply := p.waiting[id]
	delete(p.waiting, id)
	return onReply
}
