package responses

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// An attempt is a request to create a response. Its result is kept, so that a repetition of the request gets the same
// response.
type attempt struct {
	at    time.Time     // Set once
	ready chan struct{} // closed when the result is known
	live  *liveResponse // Set once, before ready is closed; nil if it failed
	name  string        // Set once: see [retryName]
	body  [32]byte      // Set once: the SHA-256 of the body
	keyed bool          // Set once: it has an Idempotency-Key, and may be repeated as long as its response is stored

	// Owned by the handler of the first request, until ready is closed.

	key      string // of its run; "": nothing about the request is stored
	stored   bool   // the store has the request under its name
	response string // id of the response that it began in an earlier process, or is about to begin; "": unknown
	// keepLong says that the response cannot be found again by the key of the run: a repetition would continue another
	// session by then, or the response has the name of an earlier run, which never began.
	keepLong bool
}

// attempts has the requests of the last minutes.
type attempts struct {
	documents *documents // Set once

	mu  sync.Mutex
	all map[string]*attempt // Guarded by mu: by name
}

// register returns the attempt that a request repeats, or else adds the request as the first. The key of its run is
// stored before the run begins, so that a repetition finds the run even after the process was killed.
func (s *attempts) register(
	ctx context.Context, g handoff.Grant, req *request, now attempt, again bool,
) (p *attempt, first bool, f *fault) {
	s.mu.Lock()
	if p = s.all[now.name]; p != nil && again && time.Since(p.at) <= retriedFor && !p.wasHandedOver() {
		s.mu.Unlock()
		return p, false, nil
	}
	p = &now
	p.at, p.ready, p.key = time.Now(), make(chan struct{}), "response "+p.name
	s.all[p.name] = p
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { return time.Since(p.at) > retriedFor })
	s.mu.Unlock()
	if g.Caller.Nameless() || !req.store() && !p.keyed {
		p.key = ""
		return p, true, nil
	}
	if again {
		d, ok, err := s.documents.Document(ctx, g.Caller, "retry_"+p.name)
		switch {
		case err != nil: // with another key the work might run twice
			close(p.ready)
			s.forget(p)
			return nil, false, s.documents.fault(err)
		case ok:
			var sum string
			p.key, sum, _ = strings.Cut(string(d.Body), "\n")
			if sum, p.response, _ = strings.Cut(sum, "\n"); sum != "" && sum != hex.EncodeToString(p.body[:]) {
				close(p.ready)
				s.forget(p)
				return nil, false, reused()
			}
		}
		return p, true, nil
	}
	s.rename(g.Caller, p)
	return p, true, nil
}

// rename gives the run of a request a new key, and stores the key for repetitions of the request.
func (s *attempts) rename(c handoff.Caller, p *attempt) {
	if p.key != "" {
		p.key, p.response = "response "+p.name+" "+rand.Text(), ""
		s.keep(c, p)
	}
}

// setResponse stores which response a request is about to begin.
func (s *attempts) setResponse(c handoff.Caller, p *attempt, id string) {
	p.response = id
	s.keep(c, p)
}

// keep stores the key of a request's run, the hash of the body, and the response if it is known. Documents without the
// last two are of failed requests, or of earlier versions.
func (s *attempts) keep(c handoff.Caller, p *attempt) {
	if p.key == "" {
		return
	}
	body := p.key + "\n" + hex.EncodeToString(p.body[:])
	if p.response != "" {
		body += "\n" + p.response
	}
	keep := retriedFor
	if p.keyed && p.keepLong { // otherwise the response is found by the key of its run
		keep = keptFor
	}
	p.stored = s.documents.store(c, "retry_"+p.name, []byte(body), keep) == nil
}

// responseID returns the id of the response that the request began, or "".
func (p *attempt) responseID() string {
	select {
	case <-p.ready:
		if p.live != nil {
			return p.live.id
		}
	default:
	}
	return ""
}

// wasHandedOver reports whether the response of the request was handed over to another process or instance. Its run is
// then found by its key; a request without one keeps its response, because another run would begin.
func (p *attempt) wasHandedOver() bool {
	select {
	case <-p.ready:
		return p.key != "" && p.live != nil && p.live.wasHandedOver()
	default:
		return false
	}
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
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { return p.responseID() == id })
}
