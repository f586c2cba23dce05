package peers

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// writeWithin bounds one write to a client. The instance that serves a request bounds how long the answer takes.
const writeWithin = 10 * time.Second

// retries are the pauses between two attempts to have a request served.
var retries = handoff.Backoff{First: 50 * time.Millisecond, Longest: 500 * time.Millisecond}

// Why a request is not served by an instance.
var (
	errNotMine = errors.New("the caller is not there")
	errGone    = errors.New("the instance is gone")
	errClosed  = errors.New("this instance ends")
)

// A flight is a request that another instance serves.
type flight struct {
	to         string                  // Set once: the instance's id
	cut        context.CancelCauseFunc // Set once
	mustFinish bool                    // Guarded by the forwarder's mu: its client does not repeat it after a cut
	endless    bool                    // Guarded by the forwarder's mu: it does not end by itself, like a WebSocket
}

// forward has a request served by an instance, or if the caller's home changes, by the next one. It reports false if
// this instance has become the home.
func (f *Forwarder) forward(w http.ResponseWriter, r *http.Request, c handoff.Caller, at handoff.Instance) (bool, error) {
	held, cancel := context.WithTimeout(r.Context(), f.holdFor)
	defer cancel()
	own := maps.Clone(w.Header())
	for try := 0; ; try++ {
		clear(w.Header()) // the answer of the instance has all headers
		err := f.attempt(w, r, at, own.Get("Connection") == "close")
		if err == nil {
			return true, nil
		}
		maps.Copy(w.Header(), own)
		why := whyAgain(err)
		if rereadable := r.GetBody != nil || r.ContentLength == 0; why == "" || !rereadable {
			return false, f.fault(r, at, err, why != "")
		}
		f.counts.again.Add(why)
		select {
		case <-time.After(retries.Step(try)):
		case <-held.Done():
			return false, f.fault(r, at, err, true)
		}
		next, unknown := f.find(held, r, c)
		if unknown == nil && next.ID == f.self { // Where counted it in this home until held ends: count it until it ends
			next, unknown = f.find(r.Context(), r, c)
		}
		if held.Err() != nil {
			return false, f.fault(r, at, err, true)
		}
		if unknown != nil {
			return false, unknown
		}
		at = next
		if at.ID == f.self {
			f.counts.forwarded.Add(forwardedHere)
			return false, nil
		}
	}
}

// whyAgain returns why a request that failed may be sent again; "" if it may not, because an instance may have read it.
func whyAgain(err error) retryReason {
	switch {
	case errors.Is(err, errClosed):
		return ""
	case errors.Is(err, errNotMine):
		return againNotMine
	}
	if fault, ok := errors.AsType[*dialFault](err); ok {
		return fault.why
	}
	return ""
}

// fault counts, logs and returns the error for a request that no instance served. unread says that no instance read it.
func (f *Forwarder) fault(r *http.Request, at handoff.Instance, err error, unread bool) error {
	f.log.Warn("request not forwarded", zap.String("instance", at.ID), zap.Bool("unread", unread), zap.Error(err))
	fault := handoff.Fault(handoff.CodeOverloaded, "Switchboard", "the instance that has the caller does not answer")
	fault.Retry = time.Second
	switch {
	case errors.Is(err, errClosed):
		f.counts.forwarded.Add(forwardedCut)
		fault.Code, fault.Subject, fault.Detail = handoff.CodeShutdown, "", ""
	case unread:
		f.counts.forwarded.Add(forwardedSilent)
	default:
		f.counts.forwarded.Add(forwardedLost)
		fault.Detail = "the instance that has the caller was lost"
		if r.Method != http.MethodGet { // a request that only reads can simply be repeated
			fault.Code, fault.Subject = handoff.CodeUnknownStart, "the instance that has you"
		}
	}
	return fault
}

// attempt has a request served by one instance. If it returns an error, nothing was written to the client. If an answer
// breaks off, it panics like [httputil.ReverseProxy], so that the client notices. closes says to close the client's
// connection afterwards.
func (f *Forwarder) attempt(w http.ResponseWriter, r *http.Request, to handoff.Instance, closes bool) (err error) {
	ctx, cut := context.WithCancelCause(context.WithValue(r.Context(), peerKey{}, to))
	defer cut(nil)
	var reached atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { reached.Store(true) },
	})
	own := &flight{to: to.ID, cut: cut, mustFinish: true}
	leave, err := f.enter(own)
	if err != nil {
		return err
	}
	defer leave()
	answered, whole := false, false
	defer func() {
		if !answered {
			return
		}
		end := forwardedServed
		if there := r.Context().Err() == nil; there && (!whole || ctx.Err() != nil) {
			end = forwardedCut
		}
		f.counts.forwarded.Add(end)
	}()
	proxy := httputil.ReverseProxy{
		Transport: f.carrier, ErrorLog: zap.NewStdLog(zap.NewNop()),
		Rewrite: func(p *httputil.ProxyRequest) { f.rewrite(p, to) },
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusMisdirectedRequest {
				return errNotMine
			}
			answered = true
			again := r.Method == http.MethodGet && isStream(answer)
			f.answered(own, again, again || answer.StatusCode == http.StatusSwitchingProtocols)
			if closes && answer.StatusCode != http.StatusSwitchingProtocols {
				answer.Header.Set("Connection", "close")
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, fault error) { err = fault },
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // each write sets its own
	proxy.ServeHTTP(paced{w, out}, r.WithContext(ctx))
	whole = err == nil
	switch {
	case r.Context().Err() != nil || answered: // the client has left, or has its answer
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if _, isDial := errors.AsType[*dialFault](err); err != nil && !reached.Load() && !isDial {
		err = &dialFault{againNoConnection, err}
	}
	return err
}

func isStream(answer *http.Response) bool {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	return kind == "text/event-stream"
}

// answered records what kind of answer a request got. again says that the client repeats it by itself after a cut, as
// for a stream that was requested by GET.
func (f *Forwarder) answered(one *flight, again, lasts bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.mustFinish, one.endless = !again, lasts
}

// Busy reports whether another instance serves a request that would fail if this process ended.
func (f *Forwarder) Busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.flights {
		if one.mustFinish {
			return true
		}
	}
	return false
}

// enter adds a request that another instance serves, until leave is called.
func (f *Forwarder) enter(one *flight) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	f.flights[one] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.flights, one)
	}, nil
}

// rewrite prepares the request to an instance: as it came, with the header of its hop.
func (f *Forwarder) rewrite(p *httputil.ProxyRequest, to handoff.Instance) {
	p.Out.URL.Scheme, p.Out.URL.Host = "https", to.Fingerprint // the transport keeps connections by host
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Host = p.In.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
	p.Out.Header.Del("Expect") // the body has arrived
	p.Out.Header.Set(hopHeader, hopOf(f.self, p.In).String())
	// Without GetBody the transport does not repeat a request with a body by itself.
	switch {
	case p.In.GetBody != nil && p.In.ContentLength != 0:
		p.Out.Body, _ = p.In.GetBody() // never fails for a body in memory
	case p.In.Header.Get("Upgrade") != "":
		p.Out.Body = io.NopCloser(strings.NewReader(""))
	}
	p.Out.GetBody = nil
}

// A paced writer sets a deadline for each write.
type paced struct {
	http.ResponseWriter
	out *http.ResponseController // Set once
}

// Write implements [http.ResponseWriter].
func (p paced) Write(b []byte) (int, error) {
	defer p.bound()()
	return p.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (p paced) FlushError() error {
	defer p.bound()()
	return p.out.Flush()
}

// bound sets the deadline of one write. lift removes it, because over HTTP/2 it would end the stream between two
// writes.
func (p paced) bound() (lift func()) {
	_ = p.out.SetWriteDeadline(time.Now().Add(writeWithin)) // fails for a writer that has no deadlines
	return func() { _ = p.out.SetWriteDeadline(time.Time{}) }
}

// Hijack takes over the connection. The result hides CloseWrite: when the other instance sends no more, the whole
// connection is closed.
func (p paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := p.out.Hijack()
	return struct{ net.Conn }{conn}, buffered, err
}

// Unwrap is for [http.ResponseController].
func (p paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
