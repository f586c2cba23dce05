// Package peers lets any instance take any request: a request of a caller whose home is another instance is forwarded
// there. It forwards HTTP, event streams and WebSockets alike, as bytes. The home checks the key and serves the request
// as if it had come there. Media of WebRTC is never forwarded: the home answers the offer with its own address.
//
// It must not know how homes are assigned and stored, nor what a request is about: a [Locator] says which instance is
// the home of a caller.
//
// # Trust
//
// Instances connect over a listener of their own, by TLS 1.3 with certificates that each process makes for itself.
// Nobody signs them: each end compares the other's certificate with the fingerprint that the instance has published in
// the shared store; whoever can write there could also write a login. The instance that took a request has checked its
// Host and Origin, which are not checked again; the key is.
//
// # Failure
//
// A request is forwarded once. An instance that is not the caller's home answers 421. The forwarding instance then, and
// when it cannot reach the other, asks the locator again, and may have become the home itself. It tries for at most
// [patience]. A request that an instance may have read is never sent again: the client gets an error, and can decide
// whether to repeat it.
//
// # Concurrency
//
// A [Forwarder] is safe for concurrent use. Each request is forwarded by its own goroutine; [Forwarder.Run] cuts
// requests to dead instances.
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
	// patience is how long a request is held while no instance takes it.
	patience = 6 * time.Second
	// dialWithin bounds one attempt to connect, with the TLS handshake: an instance that hangs accepts connections,
	// too.
	dialWithin = time.Second
	// answerWithin is how long a request may still take when the process ends: less than its HTTP server waits for it.
	answerWithin = 1500 * time.Millisecond
	// lookEvery is the time between two checks whether the instances that serve requests are dead.
	lookEvery = 500 * time.Millisecond
)

// A Locator knows the instances, and the home of each caller. It is safe for concurrent use, and is called for each
// request.
type Locator interface {
	// Where returns the home of a caller. If the caller has none, or its instance is dead, this instance becomes the
	// home. Errors are a [handoff.Error].
	Where(ctx context.Context, c handoff.Caller) (handoff.Instance, error)
	// Instances returns the living instances, including this one.
	Instances() []handoff.Instance
	// Dead reports whether an instance is certainly dead.
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

// A Forwarder forwards requests to the homes of their callers, and takes those that other instances forward.
type Forwarder struct {
	self     string          // Set once
	identity Identity        // Set once
	locator  Locator         // Set once
	lines    Lines           // Set once; may be nil
	log      *zap.Logger     // Set once
	carrier  *http.Transport // Set once: connects to the other instances; the host of a URL is a fingerprint
	holdFor  time.Duration   // Set once: how long to try to have a request served; tests shorten it
	answerIn time.Duration   // Set once: how long a request may take after Close; tests lengthen it
	counts   counts

	mu      sync.Mutex
	closed  bool                 // Guarded by mu: no more requests are forwarded
	flights map[*flight]struct{} // Guarded by mu: requests that other instances serve
}

// New returns a forwarder. It starts nothing.
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
		DialTLSContext: f.dialTLS, DisableCompression: true, // answers pass unchanged
		// Shorter than the timeout of the other end, so that no request is sent on a connection that it closes.
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 64,
	}
	return f
}

// A Forward has a request served by another instance. It reports false if the request has to be served here after all;
// then, and after an error, nothing was answered, and the request is unchanged. Errors are a [handoff.Error].
type Forward = func(w http.ResponseWriter, r *http.Request) (served bool, err error)

// Route returns how another instance serves a caller's request, or nil if this instance serves it. A request of a
// nameless caller goes to the instance whose id is part of an id in the request, such as that of a call, or else stays
// here.
func (f *Forwarder) Route(r *http.Request, c handoff.Caller) (Forward, error) {
	hopped := wasForwarded(r)
	if !hopped && len(r.Header.Values(hopHeader)) > 0 { // a client pretends to be an instance
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

// refuseMisdirected answers 421: this instance is not the caller's home.
func (f *Forwarder) refuseMisdirected(w http.ResponseWriter, _ *http.Request) (bool, error) {
	f.counts.taken.Add(takenNotMine)
	clear(w.Header())
	w.WriteHeader(http.StatusMisdirectedRequest)
	return true, nil
}

// find returns the instance that serves a request of a caller.
func (f *Forwarder) find(ctx context.Context, r *http.Request, c handoff.Caller) (handoff.Instance, error) {
	if !c.Nameless() {
		return f.locator.Where(ctx, c)
	}
	here := false
	for _, id := range []string{r.PathValue("id"), r.URL.Query().Get("call_id"), r.Header.Get("Mcp-Session-Id")} {
		for _, p := range f.locator.Instances() {
			switch {
			case id == "" || p.Address == "" || !contains(p.ID, id):
			case p.ID == f.self:
				here = true
			default:
				return p, nil
			}
		}
	}
	at, err := f.locator.Where(ctx, c) // the caller has no home yet
	if here && err == nil {            // even if this instance is draining and takes no new callers
		at = handoff.Instance{ID: f.self}
	}
	return at, err
}

// contains reports whether an id contains that of an instance: at its beginning or after an underscore, and followed by
// an underscore.
func contains(instance, id string) bool {
	before, _, found := strings.Cut(id, instance+"_")
	return found && (before == "" || strings.HasSuffix(before, "_"))
}

// Run cuts requests to dead instances until ctx ends.
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

// Close ends the streams and WebSockets that other instances serve, and after [answerWithin] the other requests, most
// of which have been answered by then.
func (f *Forwarder) Close() {
	f.mu.Lock()
	for one := range f.flights {
		if one.endless {
			one.cut(errClosed)
		}
	}
	f.mu.Unlock()
	time.AfterFunc(f.answerIn, f.end)
}

// end ends all requests that other instances serve. No request is forwarded after it.
func (f *Forwarder) end() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cut(func(string) bool { return true }, errClosed)
}

// cut ends the requests that the instances for which dead reports true serve.
func (f *Forwarder) cut(dead func(id string) bool, why error) {
	f.mu.Lock()
	gone := map[string]bool{} // by instance, so that dead is called once for each, and not under mu
	for flight := range f.flights {
		gone[flight.to] = false
	}
	f.mu.Unlock()
	for id := range gone {
		gone[id] = dead(id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for flight := range f.flights {
		if gone[flight.to] {
			flight.cut(why)
		}
	}
}
