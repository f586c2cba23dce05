package responses

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

const idempotencyKey = "Idempotency-Key"

// An origin says whether a request repeats an equal one.
type origin int

const (
	first         origin = iota
	maybeRepeated        // most clients do not say so; then it does if who made the first has no answer
	repeated
)

// A record is what the store has of a request, so that a repetition of it gets the same response.
type record struct {
	Key      string `json:"key"`                // of its handoff; "": nothing about the request is stored
	Body     string `json:"body,omitempty"`     // the SHA-256 of its body; "": any, because it failed
	Response string `json:"response,omitempty"` // that it began, or is about to begin; "": unknown, or it failed
	Given    bool   `json:"given,omitempty"`    // who asked has an answer, or has given up
}

// readRecord reads a record; nothing gives an empty one. Earlier versions wrote it as lines.
func readRecord(body []byte) (r record) {
	if json.Unmarshal(body, &r) != nil {
		lines := append(strings.Split(string(body), "\n"), "", "", "")
		r = record{lines[0], lines[1], lines[2], lines[3] != ""}
	}
	return r
}

// An attempt is a request to create a response.
type attempt struct {
	owner  handoff.Caller // Set once
	name   string         // Set once: the same for equal requests
	keyed  bool           // Set once: it has an Idempotency-Key, and may be repeated as long as its response is stored
	unkept bool           // Set once: nothing of its work is stored beyond its end
	ready  chan struct{}  // closed when the response is known, or the request has failed

	// Owned by the handler of the request, until ready is closed.

	record                 // Given is guarded by attempts.mu
	known    bool          // Guarded by attempts.mu: its response is
	replaced bool          // Guarded by attempts.mu: a newer one has its name, also once that is not in memory any more
	from     origin        // after [attempts.recall] it is first or repeated
	stored   bool          // the store has its record
	release  func()        // gives back the room that is reserved for its response
	keepFor  time.Duration // how long the store keeps which response it began
	outcome  *liveResponse // its response, if that is one of [API.unkept], which is not in memory; nil: another
}

// newAttempt returns the attempt of a request. SDKs repeat a POST whose connection broke, most of them without an
// Idempotency-Key.
func newAttempt(h http.Header, g handoff.Grant, req *request, body []byte) *attempt {
	sum, name := sha256.Sum256(body), sha256.New()
	name.Write([]byte(handoff.Encode([]string{g.Caller.String(), g.Key})))
	key := h.Get(idempotencyKey)
	if key != "" {
		name.Write([]byte("key " + key))
	} else {
		name.Write(body)
	}
	p := &attempt{
		owner: g.Caller, name: hex.EncodeToString(name.Sum(nil)[:16]), keyed: key != "", unkept: !req.store(),
		ready: make(chan struct{}), from: maybeRepeated, keepFor: retriedFor,
	}
	p.Body = hex.EncodeToString(sum[:])
	switch n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count")); {
	case g.Caller.Nameless(): // nobody else has their name
		p.from = first
		return p
	case p.keyed, err == nil && n > 0:
		p.from = repeated
	case err == nil:
		p.from = first
	}
	p.Key = "response " + p.name
	return p
}

func reused() *fault {
	return bad("idempotency_key_reused", "", "That Idempotency-Key came with another request.")
}

// document returns the id of the document with the record of the request.
func (p *attempt) document() string { return "retry_" + p.name }

// keepLong says that the response cannot be found again by the key of the handoff: a repetition would continue another
// session by then, or the response has the name of an earlier handoff, which never began.
func (p *attempt) keepLong() {
	if p.keyed {
		p.keepFor = keptFor
	}
}

// attempts has the requests that are being made, and those whose responses are in memory. The store has the others.
type attempts struct {
	documents *documents     // Set once
	live      *liveResponses // Set once

	mu  sync.Mutex
	all map[string]*attempt // Guarded by mu, which is locked before that of live: the newest of each name
}

// claim returns the attempt in memory that p repeats, or else p, which is now the newest of its name.
func (s *attempts) claim(p *attempt) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *liveResponse
	before := s.all[p.name]
	if before != nil && before.known {
		l = s.live.get(p.owner, before.Response)
	}
	switch {
	case before == nil, before.known && l == nil: // the store may know it
	case p.from == repeated, p.from == maybeRepeated && l != nil && !before.Given && l.unread():
		return before
	default:
		p.from = first
	}
	if before != nil {
		before.replaced = true
	}
	s.all[p.name] = p
	return p
}

// recall reads what the store has of an equal request. If that has no answer, or if this request says that it repeats
// it, they are the same. The key of a first request's handoff is stored before the handoff begins, so that a repetition
// finds the handoff even after a kill.
func (s *attempts) recall(ctx context.Context, p *attempt) *fault {
	if p.from != first {
		d, there, err := s.documents.Document(ctx, p.owner, p.document())
		if err != nil { // with another key the work might run twice
			return s.documents.fault(err)
		}
		before := readRecord(d.Body)
		switch {
		case before.Body != "" && before.Body != p.Body:
			return reused()
		case there && (p.from == repeated || !before.Given):
			p.from, p.Key, p.Response = repeated, before.Key, before.Response
			return nil
		case p.from == repeated:
			return nil
		}
		p.from = first
	}
	s.newKey(p)
	return nil
}

// newKey gives the handoff of a request a new key.
func (s *attempts) newKey(p *attempt) {
	if p.Key != "" {
		p.Key, p.Response = "response "+p.name+" "+rand.Text(), ""
		p.stored = s.store(p, retriedFor)
	}
}

// begins stores which response a request is about to begin.
func (s *attempts) begins(p *attempt, id string) {
	p.Response = id
	p.stored = s.store(p, p.keepFor)
}

// store stores the record of a request, if it has a key, and reports whether that was possible.
func (s *attempts) store(p *attempt, keep time.Duration) bool {
	s.mu.Lock()
	r := p.record
	s.mu.Unlock()
	return r.Key != "" && s.documents.store(p.owner, p.document(), []byte(handoff.Encode(r)), keep) == nil
}

// succeed gives an attempt its response.
func (s *attempts) succeed(p *attempt, l *liveResponse) {
	l.mu.Lock()
	l.attempt = p
	l.mu.Unlock()
	s.mu.Lock()
	p.Response, p.known = l.id, true
	s.mu.Unlock()
	close(p.ready)
}

// fail removes a request that failed, so that a repetition is a new request. Another request may use the same
// Idempotency-Key; the key of the handoff stays.
func (s *attempts) fail(p *attempt) {
	s.mu.Lock()
	p.record = record{Key: p.Key}
	if s.all[p.name] == p {
		delete(s.all, p.name)
	}
	s.mu.Unlock()
	close(p.ready)
	if p.stored && p.keyed {
		s.store(p, keptFor)
	}
}

// answered notes that who made the request has the answer, or has given up. Then an equal request is a new one, unless
// it says that it is a repetition: the bytes of the answer may have been lost on their way.
func (s *attempts) answered(p *attempt, told bool) {
	s.mu.Lock()
	newest, was := s.all[p.name], p.Given
	replaced := p.replaced || newest != nil && newest != p // the record is of a newer one
	p.Given = true
	s.mu.Unlock()
	switch {
	case p.keyed, p.Key == "", was, replaced:
	case p.unkept:
		s.documents.drop(p.owner, p.document())
	case told:
		s.store(p, lostFor)
	default:
		s.store(p, retriedFor)
	}
}

// sweep removes the requests whose responses are not in memory any more.
func (s *attempts) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { return p.known && s.live.get(p.owner, p.Response) == nil })
}
