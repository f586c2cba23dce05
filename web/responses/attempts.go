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

// attempt is a create request whose result is kept, so that the same request sent again gets the same response.
type attempt struct {
	at    time.Time     // Set once
	ready chan struct{} // closed once it is known what came of it
	live  *live         // Set once, before ready is closed; nil: it failed
	name  string        // Set once: what it is known by
	body  [32]byte      // Set once: its hash
	keyed bool          // Set once: its sender named it, and may send it again as long as its response is kept

	// Owned by whoever answers the request, until ready is closed.

	key   string // of its run; "": nothing of it is kept
	noted bool   // it is in the store what was asked under the name
	made  string // the response that it began in a former life, or that it is about to begin; "": not known
	// lasts: the key of the run does not lead to the response. What the request goes on from is another session then,
	// or the response has the name of a run that never began.
	lasts bool
}

// attempts are the create requests of the last minutes.
type attempts struct {
	documents *documents // Set once

	mu  sync.Mutex
	all map[string]*attempt // Guarded by mu: by what they are known by
}

// note finds the request that this one repeats, or notes it as the first. What names its run is in the store before
// the run begins, so that a repetition finds it also after the process was killed.
func (s *attempts) note(
	ctx context.Context, g handoff.Grant, req *request, now attempt, again bool,
) (p *attempt, first bool, f *fault) {
	s.mu.Lock()
	if p = s.all[now.name]; p != nil && again && time.Since(p.at) <= retriedFor && !p.parted() {
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
		case err != nil: // under another key it might run twice
			close(p.ready)
			s.forget(p)
			return nil, false, s.documents.fault(err)
		case ok:
			var sum string
			p.key, sum, _ = strings.Cut(string(d.Body), "\n")
			if sum, p.made, _ = strings.Cut(sum, "\n"); sum != "" && sum != hex.EncodeToString(p.body[:]) {
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

// rename gives the run of a request a new key, and keeps it for those who send the request again.
func (s *attempts) rename(c handoff.Caller, p *attempt) {
	if p.key != "" {
		p.key, p.made = "response "+p.name+" "+rand.Text(), ""
		s.keep(c, p)
	}
}

// makes keeps which response a request is about to begin.
func (s *attempts) makes(c handoff.Caller, p *attempt, id string) {
	p.made = id
	s.keep(c, p)
}

// keep stores the key of a request's run, what was asked under it, and the response if that is known. Where the last
// two are missing, what was asked has failed, or a former version stored it.
func (s *attempts) keep(c handoff.Caller, p *attempt) {
	if p.key == "" {
		return
	}
	body := p.key + "\n" + hex.EncodeToString(p.body[:])
	if p.made != "" {
		body += "\n" + p.made
	}
	known := retriedFor
	if p.keyed && p.lasts { // else the key of its run leads to it
		known = keptFor
	}
	p.noted = s.documents.store(c, "retry_"+p.name, []byte(body), known)
}

// begun is the response that came of the request, or "".
func (p *attempt) begun() string {
	select {
	case <-p.ready:
		if p.live != nil {
			return p.live.id
		}
	default:
	}
	return ""
}

// parted reports whether the response that came of the request has ended here and its run, which the key leads to, goes
// on. Without a key another run would begin.
func (p *attempt) parted() bool {
	select {
	case <-p.ready:
		return p.key != "" && p.live != nil && p.live.parted()
	default:
		return false
	}
}

// forget forgets a request that failed: sent again it is a new one.
func (s *attempts) forget(p *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[p.name] == p {
		delete(s.all, p.name)
	}
}

// drop forgets the requests that began a response: who sends one again is told that it is gone.
func (s *attempts) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(_ string, p *attempt) bool { return p.begun() == id })
}
