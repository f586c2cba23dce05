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
	// maxValues bounds what a frame may hold apart: decoded, a value of three bytes may take hundreds.
	maxValues = 1 << 18
	// maxHeld bounds the answers that were taken off the connection and are not yet decoded, in bytes.
	maxHeld = 4 * servers.MaxFrame
)

var (
	// ErrUnreadable says that an answer is not of the form that its request has.
	ErrUnreadable = errors.New("unreadable response")

	errTooDeep = errors.New("answer nests deeper than 128")
	errHeld    = errors.New("too much waits to be read")
)

// A Config is what a peer is made with.
type Config struct {
	Wire   servers.Wire
	Log    *zap.Logger
	Handle func(Message) // runs in the reader for everything but responses; never waits
	Missed func()        // runs in the reader when something else than a response was left out; may be nil

	Version string // that our frames name; "": none
	Traced  bool   // requests say which trace they belong to

	InFlight    int // requests that may wait for their response
	Queued      int // frames that may wait for the writer
	QueuedBytes int // likewise, in bytes
}

// Counts are what a peer left out, and hold.
type Counts struct {
	Malformed atomic.Uint64 // frames that are no JSON-RPC
	Late      atomic.Uint64 // responses that nobody waited for any more
	LeftOut   atomic.Uint64 // frames that were left out: too long, too deep, or more than may be held
	held      atomic.Int64  // bytes of responses that are not decoded yet; at most maxHeld
}

// A Peer is one connection of JSON-RPC. Its methods may be used from any goroutine.
type Peer struct {
	*servers.Outbox // Set once
	Counts

	cfg Config // Set once

	mu     sync.Mutex
	lastID int64 // Guarded by mu
	// Guarded by mu; at most cfg.InFlight. Each is called once, by the reader or when the connection is lost.
	waiting map[int64]func(Reply)
	sending sync.WaitGroup // of requests that are not written yet. It grows under mu, and not when the connection is lost
}

// A Reply is what became of a request: a result, or an error that is a [*Error] or a [*servers.UnansweredError].
type Reply struct {
	Result json.RawMessage
	Err    error
}

// NewPeer returns a peer that [Peer.Run] runs.
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
	p.sending.Wait() // whoever sends one now knows best whether it left
	for _, id := range waiting {
		if land := p.retire(id); land != nil {
			land(Reply{Err: &servers.UnansweredError{Cause: p.Lost()}})
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
		case m.Method != "":
			p.cfg.Handle(m)
		default:
			p.respond(m)
		}
	}
}

// unfit says why a frame must not be decoded, or nil.
func unfit(frame []byte) error {
	switch {
	case handoff.TooDeep(frame):
		return errTooDeep
	case values(frame) > maxValues:
		return servers.ErrLongFrame
	}
	return nil
}

// leaveOut tells whoever waits for a frame that is not decoded.
func (p *Peer) leaveOut(long *servers.LongFrame) {
	p.LeftOut.Add(1)
	p.cfg.Log.Warn("frame left out", zap.Int("bytes", long.Size), zap.NamedError("reason", long.Cause))
	id, err := strconv.ParseInt(string(long.Answers()), 10, 64)
	switch {
	case err == nil:
		if land := p.retire(id); land != nil {
			land(Reply{Err: &servers.UnansweredError{Cause: long.Cause}})
		}
	case p.cfg.Missed != nil:
		p.cfg.Missed()
	}
}

// respond hands a response to whoever waits for it.
func (p *Peer) respond(m Message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		p.Malformed.Add(1)
		return
	}
	r := Reply{Result: m.Result}
	if m.Error != nil {
		r = Reply{Err: m.Error}
	}
	if land := p.retire(id); land != nil {
		land(r)
	} else {
		p.Late.Add(1)
	}
}

// Post sends a request, once, and returns when it was written. land gets what became of it, in the reader or when the
// connection is lost, before or after Post returns; not after an error of Post, which is a [*servers.NotSentError].
// Where it is not known whether the request left, land is told so.
func (p *Peer) Post(ctx context.Context, method string, params any, land func(Reply)) error {
	_, err := p.post(ctx, method, params, land)
	return err
}

func (p *Peer) post(ctx context.Context, method string, params any, land func(Reply)) (id int64, err error) {
	if id, err = p.enlist(land); err != nil {
		return 0, &servers.NotSentError{Cause: err}
	}
	defer p.sending.Done()
	request := sent{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: params}
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" && p.cfg.Traced {
		request.Trace = &trace{parent}
	}
	err = p.write(ctx, request)
	if err == nil {
		return id, nil
	}
	switch waits := p.retire(id) != nil; {
	case !waits: // it was answered nevertheless, and land knows
		return id, nil
	case servers.NotSent(err):
		return id, err
	}
	land(Reply{Err: err})
	return id, nil
}

// Call sends a request, once, waits for its response and decodes its result, unless result is nil. Its errors are
// [*Error], [*servers.NotSentError] and [*servers.UnansweredError].
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	return p.CallIn(ctx, method, params, result, nil)
}

// CallIn is Call; land gets the response in the reader, before the next frame is read. It may be nil. Where none comes,
// land may be told so, or not be called.
func (p *Peer) CallIn(ctx context.Context, method string, params, result any, land func(Reply)) error {
	came := make(chan Reply, 1)
	id, err := p.post(ctx, method, params, func(r Reply) {
		if land != nil {
			land(r)
		}
		came <- p.hold(r)
	})
	if err != nil {
		return err
	}
	var r Reply
	var cause error
	select {
	case r = <-came:
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.Done(): // the wire may take long to close
		cause = p.Lost()
	}
	if cause != nil {
		if p.retire(id) != nil {
			return &servers.UnansweredError{Cause: cause}
		}
		r = <-came // the reader has it: it is there or comes at once
	}
	defer p.held.Add(-int64(len(r.Result)))
	if r.Err == nil && result != nil && json.Unmarshal(r.Result, result) != nil {
		return &servers.UnansweredError{Cause: ErrUnreadable}
	}
	return r.Err
}

// hold counts a response that is about to be decoded, or leaves it out when there is no room for it.
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
	return p.write(ctx, sent{Method: method, Params: params})
}

// Answer answers a request of the far end, and waits until that is written. Its errors are those of
// [servers.Outbox.Write].
func (p *Peer) Answer(ctx context.Context, id json.RawMessage, result any) error {
	return p.write(ctx, sent{ID: id, Result: result})
}

// AnswerSoon answers a request of the far end, and never waits: a lost connection shows by itself.
func (p *Peer) AnswerSoon(id json.RawMessage, result any) { p.send(sent{ID: id, Result: result}) }

// Refuse answers a request that is not for us. It never waits.
func (p *Peer) Refuse(id json.RawMessage, code int, why string) {
	p.send(sent{ID: id, Error: &Error{Code: code, Message: why}})
}

func (p *Peer) send(s sent) {
	s.Version = p.cfg.Version
	if frame, err := encode(s); err == nil {
		_, _ = p.Send(frame) // counted when there is no room
	}
}

func (p *Peer) write(ctx context.Context, s sent) error {
	s.Version = p.cfg.Version
	frame, err := encode(s)
	if err != nil {
		return &servers.NotSentError{Cause: err}
	}
	return p.Write(ctx, frame)
}

// enlist registers a request.
func (p *Peer) enlist(land func(Reply)) (int64, error) {
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
	p.waiting[p.lastID] = land
	p.sending.Add(1)
	return p.lastID, nil
}

// retire takes a request off the list. Only one caller gets it; the others get nil.
func (p *Peer) retire(id int64) func(Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	land := p.waiting[id]
	delete(p.waiting, id)
	return land
}
