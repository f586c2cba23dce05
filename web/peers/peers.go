// Package peers lets any instance take any request: one whose caller has their home at another instance is served
// there. It carries HTTP, streams of events and WebSockets alike, as bytes; the home authenticates and serves as if the
// request had come to it. Media of WebRTC never goes this way: an offer is answered where the home is.
//
// It must not know what has the homes, where that is written down, nor what a request is about: a [Locator] says where
// a caller is.
//
// # Trust
//
// Instances reach each other by a listener of its own, over TLS 1.3 with certificates that each process makes for its
// life. Nobody signs them: each end compares the other's with the fingerprint that the instances tell of themselves,
// where whoever writes could as well write a login. What comes by it has passed the Host and the Origin at the instance
// that took it, and is not asked for those again; for its key it is.
//
// # Failure
//
// A request makes one hop. An instance that is asked for a caller whom it has not answers 421, and serves nothing; the
// one that took the request then asks where the caller is, and may find that it is here by now. The same where the
// other cannot be reached. That goes on for at most [patience]. A request that may have been read by an instance is
// never sent again: its client is told, and knows whether it may ask twice.
//
// # Concurrency
//
// A [Forwarder] is safe for concurrent use. Each request is carried by its own goroutine; [Forwarder.Run] cuts those
// whose instance is gone.
package peers

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// patience is how long a request is held while no instance says that the caller is there.
	patience = 6 * time.Second
	// dialWithin bounds one try to reach an instance. One that stands still takes connections and says nothing.
	dialWithin = time.Second
	// answerWithin is how long a request may still take when the process ends: less than its server waits for it.
	answerWithin = 1500 * time.Millisecond
	// lookEvery is how often it is looked whether the instances that carry requests are there.
	lookEvery = 500 * time.Millisecond
)

// A Peer is an instance of this Switchboard.
type Peer struct {
	ID          string // of its life; no other has it
	Address     string // where its peers reach it, as host:port
	Fingerprint string // of its certificate: see [Identity]
}

// A Locator knows the instances, and which has which caller. It is safe for concurrent use, and is asked for each
// request.
type Locator interface {
	// Where returns the instance that has a caller now, which is this one where it has just taken a home that was free
	// or whose instance is dead. An error is of the vocabulary.
	Where(ctx context.Context, c handoff.Caller) (Peer, error)
	// Peers returns the instances that are there, this one among them.
	Peers() []Peer
	// Dead reports whether an instance is certainly gone.
	Dead(id string) bool
}

// Config is what a [Forwarder] is made of.
type Config struct {
	ID       string // of this instance
	Identity Identity
	Locator  Locator
	Lines    Lines       // nil: no machine keeps a line here
	Log      *zap.Logger // nil: silent
}

// A Forwarder has requests served where the homes of their callers are, and takes those that others forward.
type Forwarder struct {
	self     string          // Set once
	identity Identity        // Set once
	locator  Locator         // Set once
	lines    Lines           // Set once: nil: there are none
	log      *zap.Logger     // Set once
	carrier  *http.Transport // Set once: connections to the others, by their fingerprints
	holdFor  time.Duration   // Set once: how long a request is tried again; tests need less
	answerIn time.Duration   // Set once: how long one may take after Close; tests need more
	counts   counts

	mu      sync.Mutex
	closed  bool                 // Guarded by mu: nothing is forwarded any more
	flights map[*flight]struct{} // Guarded by mu: requests that others serve
}

// New returns a forwarder. Nothing is done before it is asked.
func New(cfg Config) *Forwarder {
	f := &Forwarder{
		self: cfg.ID, identity: cfg.Identity, locator: cfg.Locator, lines: cfg.Lines, log: cfg.Log,
		holdFor: patience - dialWithin, answerIn: answerWithin, flights: map[*flight]struct{}{},
		counts: counts{
			forwarded: handoff.NewTally(forwardedServed, forwardedHere, forwardedSilent, forwardedLost, forwardedCut),
			again:     handoff.NewTally(againNotMine, againNoConnection, againFingerprint),
			taken:     handoff.NewTally(takenServed, takenLine, takenNotMine, takenStranger, takenMalformed),
			lines:     handoff.NewTally(lineOpened, lineNone),
		},
	}
	if f.log == nil {
		f.log = zap.NewNop()
	}
	f.carrier = &http.Transport{
		DialTLSContext: f.dialTLS, DisableCompression: true, // what is packed goes along as it is
		// Less than the other end's, so that nothing is sent on a connection which that closes.
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 64,
	}
	return f
}

// A Forward has a request served by another instance. It is false where the request is to be served here after all:
// nothing was answered then, and the request is as it was. So it is with an error, which is of the vocabulary.
type Forward = func(w http.ResponseWriter, r *http.Request) (served bool, err error)

// Route says who serves a request of a caller that was let in: nil: this instance. A request without a caller of a name
// is served by the instance whose id stands in what it names, such as a call, and else here.
func (f *Forwarder) Route(r *http.Request, c handoff.Caller) (Forward, error) {
	hopped := came(r)
	if !hopped && len(r.Header.Values(hopHeader)) > 0 { // only instances say this, and they say it elsewhere
		r.Header.Del(hopHeader)
		f.counts.stripped.Add(1)
	}
	at, err := f.find(r.Context(), r, c)
	switch {
	case err != nil:
		return nil, err
	case at.ID == f.self && hopped:
		f.counts.taken.Add(takenServed)
		return nil, nil
	case at.ID == f.self:
		return nil, nil
	case hopped:
		return f.refuseMisdirected, nil
	}
	return func(w http.ResponseWriter, r *http.Request) (bool, error) { return f.forward(w, r, c, at) }, nil
}

// refuseMisdirected tells another instance that the caller is not here.
func (f *Forwarder) refuseMisdirected(w http.ResponseWriter, _ *http.Request) (bool, error) {
	f.counts.taken.Add(takenNotMine)
	clear(w.Header())
	w.WriteHeader(http.StatusMisdirectedRequest)
	return true, nil
}

// find returns the instance that serves a request of a caller.
func (f *Forwarder) find(ctx context.Context, r *http.Request, c handoff.Caller) (Peer, error) {
	if !c.Nameless() {
		return f.locator.Where(ctx, c)
	}
	here := false
	for _, id := range []string{r.PathValue("id"), r.URL.Query().Get("call_id"), r.Header.Get("Mcp-Session-Id")} {
		for _, p := range f.locator.Peers() {
			switch {
			case id == "" || !stands(p.ID, id):
			case p.ID == f.self:
				here = true
			default:
				return p, nil
			}
		}
	}
	at, err := f.locator.Where(ctx, c) // nobody has them so far
	if here && err == nil {            // also where this instance takes nobody any more
		at = Peer{ID: f.self}
	}
	return at, err
}

// stands reports whether the id of an instance stands in another id: before a low line, and after the beginning or
// another low line.
func stands(instance, id string) bool {
	before, _, found := strings.Cut(id, instance+"_")
	return found && (before == "" || strings.HasSuffix(before, "_"))
}

// Run cuts requests that wait for an instance which is gone, until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.cut(f.locator.Dead, errGone)
		case <-ctx.Done():
			f.end()
			f.carrier.CloseIdleConnections()
			return nil
		}
	}
}

// Close ends the streams and WebSockets that others serve, for the process ends, and a moment later the other requests:
// most are answered by then.
func (f *Forwarder) Close() {
	f.mu.Lock()
	for one := range f.flights {
		if one.lasts {
			one.cut(errClosed)
		}
	}
	f.mu.Unlock()
	time.AfterFunc(f.answerIn, f.end)
}

// end ends all requests that others serve. Nothing is forwarded after it.
func (f *Forwarder) end() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cut(func(string) bool { return true }, errClosed)
}

// cut ends the requests that some instances serve.
func (f *Forwarder) cut(those func(id string) bool, why error) {
	f.mu.Lock()
	gone := map[string]bool{} // an instance is asked about once
	for flight := range f.flights {
		if _, asked := gone[flight.to]; !asked {
			gone[flight.to] = false
		}
	}
	f.mu.Unlock()
	for id := range gone {
		gone[id] = those(id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for flight := range f.flights {
		if gone[flight.to] {
			flight.cut(why)
		}
	}
}
