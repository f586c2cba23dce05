package responses

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/handoff"
)

const idempotencyKey = "Idempotency-Key"

// A repetition says whether a request repeats an equal one.
type repetition int

const (
	isFirst   repetition = iota
	mayRepeat            // most clients do not say so; then it does if who made the first has no answer
	repeated
)

// retryName returns the name under which repetitions of a request are recognised, and whether the request is one: SDKs
// repeat a POST whose connection broke, most of them without an Idempotency-Key.
func retryName(h http.Header, g handoff.Grant, body []byte) (string, repetition) {
	sum := sha256.New()
	sum.Write([]byte(encode([]string{g.Caller.String(), g.Key})))
	key := h.Get(idempotencyKey)
	if key != "" {
		sum.Write([]byte("key " + key))
	} else {
		sum.Write(body)
	}
	name := hex.EncodeToString(sum.Sum(nil)[:16])
	switch n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count")); {
	case key != "", err == nil && n > 0:
		return name, repeated
	case err == nil:
		return name, isFirst
	}
	return name, mayRepeat
}

func reused() *fault {
	return bad("idempotency_key_reused", "", "That Idempotency-Key came with another request.")
}

// An attempt is a request to create a response. Its result is kept, so that a repetition of the request gets the same
// response.
type attempt struct {
	ready chan struct{} // closed when the result is known
	live  *liveResponse // Set once, before ready is closed; nil if it failed
	name  string        // Set once: see [retryName]
	body  [32]byte      // Set once: the SHA-256 of the body
	kept  bool          // Set once: something of its work is stored beyond its end
	keyed bool          // Set once: it has an Idempotency-Key, and may be repeated as long as its response is stored
	given atomic.Bool   // who asked has an answer, or has given up

	// Owned by the handler of the first request, until ready is closed.

	key      string // of its handoff; "": nothing about the request is stored
	again    bool   // it repeats a request of an earlier process, or may do so
	stored   bool   // the store has the request under its name
	response string // id of the response that it began in an earlier process, or is about to begin; "": unknown
	// keepLong says that the response cannot be found again by the key of the handoff: a repetition would continue
	// another session by then, or the response has the name of an earlier handoff, which never began.
	keepLong bool
}

// document returns the id of the document with what is stored of the request.
func (p *attempt) document() string { return "retry_" + p.name }

// attempts has the requests whose responses are in memory. The others are in the store.
type attempts struct {
	documents *documents // Set once

	mu  sync.Mutex
	all map[string]*attempt // Guarded by mu: by name
}

// register returns the attempt that a request repeats, or else adds the request, p, as the first. The key of its
// handoff is stored before the handoff begins, so that a repetition finds the handoff even after a kill.
func (s *attempts) register(
	ctx context.Context, g handoff.Grant, p *attempt, repeats repetition,
) (same *attempt, first bool, f *fault) {
	s.mu.Lock()
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { return p.isOver() })
	before := s.all[p.name]
	if before != nil && before.wasHandedOver() {
		before = nil
	}
	if before != nil && (repeats == repeated || repeats == mayRepeat && before.unread()) {
		s.mu.Unlock()
		return before, false, nil
	}
	p.ready, p.key = make(chan struct{}), "response "+p.name
	s.all[p.name] = p
	s.mu.Unlock()
	switch {
	case g.Caller.Nameless():
		p.key = ""
	case repeats == repeated, repeats == mayRepeat && before == nil:
		if f := s.recall(ctx, g.Caller, p, repeats == repeated); f != nil {
			close(p.ready)
			s.forget(p)
			return nil, false, f
		}
	default:
		s.rename(g.Caller, p)
	}
	return p, true, nil
}

// recall reads what the store has of an equal request. If that has no answer, or if this request says that it repeats
// it, they are the same.
func (s *attempts) recall(ctx context.Context, c handoff.Caller, p *attempt, repeats bool) *fault {
	d, there, err := s.documents.Document(ctx, c, p.document())
	if err != nil { // with another key the work might run twice
		return s.documents.fault(err)
	}
	parts := append(strings.Split(string(d.Body), "\n"), "", "", "") // see [attempts.keep]
	key, sum, response, given := parts[0], parts[1], parts[2], parts[3] != ""
	switch {
	case there && sum != "" && sum != hex.EncodeToString(p.body[:]):
		return reused()
	case there && (repeats || !given):
		p.key, p.response, p.again = key, response, true
	case repeats:
		p.again = true
	default:
		s.rename(c, p)
	}
	return nil
}

// settler returns what is called when who asked has the answer to a request that was made, or has given up. Then an
// equal request is a new one, unless it says that it is a repetition: the bytes of the answer may have been lost on
// their way.
func (s *attempts) settler(c handoff.Caller, p *attempt) func(told bool) {
	return func(told bool) {
		s.mu.Lock()
		newest := s.all[p.name] == p
		s.mu.Unlock()
		switch {
		case p.keyed, p.given.Swap(true), !newest, p.key == "":
		case !p.kept:
			s.documents.drop(c, p.document())
		case told:
			s.keep(c, p, lostFor)
		default:
			s.keep(c, p, retriedFor)
		}
	}
}

// rename gives the handoff of a request a new key, and stores the key for repetitions of the request.
func (s *attempts) rename(c handoff.Caller, p *attempt) {
	if p.key != "" {
		p.key, p.response = "response "+p.name+" "+rand.Text(), ""
		s.keep(c, p, retriedFor)
	}
}

// setResponse stores which response a request is about to begin.
func (s *attempts) setResponse(c handoff.Caller, p *attempt, id string) {
	p.response = id
	keep := retriedFor
	if p.keyed && p.keepLong { // otherwise the response is found by the key of its handoff
		keep = keptFor
	}
	s.keep(c, p, keep)
}

// keep stores the key of a request's handoff, the hash of the body, the response if it is known, and whether who asked
// has the answer. Documents without the last three are of failed requests, or of earlier versions.
func (s *attempts) keep(c handoff.Caller, p *attempt, keep time.Duration) {
	if p.key == "" {
		return
	}
	parts := []string{p.key, hex.EncodeToString(p.body[:]), p.response, ""}
	if p.given.Load() {
		parts[3] = "given"
	}
	p.stored = s.documents.store(c, p.document(), []byte(strings.Join(parts, "\n")), keep) == nil
}

// known returns the response of the request once it is known; nil: it is not, or the request failed.
func (p *attempt) known() *liveResponse {
	select {
	case <-p.ready:
		return p.live
	default:
		return nil
	}
}

// wasHandedOver reports whether the response of the request was handed over to another process or instance. Its handoff
// is then found by its key; a request without one keeps its response, because another handoff would begin.
func (p *attempt) wasHandedOver() bool {
	l := p.known()
	return l != nil && p.key != "" && l.wasHandedOver()
}

// unread reports whether who made the request has left without an answer, so that an equal request repeats it.
func (p *attempt) unread() bool {
	l := p.known()
	return l != nil && !p.given.Load() && l.unread()
}

// isOver reports whether the response of the request ended long ago, so that only the store still has the request.
func (p *attempt) isOver() bool {
	l := p.known()
	return l != nil && l.overFor(lostFor)
}

// forget removes a request that failed, so that a repetition is a new request.
func (s *attempts) forget(p *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[p.name] == p {
		delete(s.all, p.name)
	}
}

// drop removes the requests that began a response, so that a repetition learns that the response was deleted.
func (s *attempts) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { l := p.known(); return l != nil && l.id == id })
}
