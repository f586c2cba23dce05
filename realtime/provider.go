package realtime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// dialLimit bounds a dial of the model's server: a person waits for it.
const dialLimit = 10 * time.Second

// readBuffer is the size of the library's read buffer of each socket: an event with 20 ms of sound fits. What is longer
// is read into the event's own buffer.
const readBuffer = 2 << 10

// safetyHeader names the end user to OpenAI. It is the only header of a client that is passed on.
const safetyHeader = "OpenAI-Safety-Identifier"

// anyModel is the alias for every name without one of its own.
const anyModel = "*"

// tokenHead is how a JSON Web Token begins. It is no key: Azure takes it as a bearer token.
const tokenHead = "eyJ"

// azure reports whether a model is at Azure OpenAI, or behind a gateway with its addresses.
func azure(model *url.URL) bool {
	return strings.HasSuffix(model.Hostname(), ".azure.com") || strings.HasPrefix(model.Path, "/openai/")
}

// A provider is the voice model's server: its sessions, and the calls that it carries. It is safe for concurrent use.
type provider struct {
	address     *url.URL          // Set once: of its sessions
	key         string            // Set once; "": it needs none
	model       string            // Set once: for clients that name none; "": the server's choice
	aliases     map[string]string // Set once: the server's names for those that clients use
	log         *zap.Logger       // Set once
	counts      *frontCounts      // Set once; safe by itself
	buffers     *sync.Pool        // Set once; safe by itself
	dialTimeout time.Duration     // Set once: bounds a dial; tests lower it

	dialNet func(ctx context.Context, network, address string) (net.Conn, error) // Set once; nil: a [net.Dialer]
	http    http.Client                                                          // Set once: for what needs no socket
}

func newProvider(c Config, address *url.URL, counts *frontCounts, buffers *sync.Pool) *provider {
	// No redirect is followed, since the key would be sent along.
	asks := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.Dial != nil {
		asks.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: c.Dial}
	}
	return &provider{
		address: address, key: c.Key, model: c.Model, aliases: c.Aliases, dialNet: c.Dial, log: c.Log,
		counts: counts, buffers: buffers, dialTimeout: dialLimit, http: asks,
	}
}

// dialModel opens a model session. model overrides the configured one unless it is empty; client holds the headers of
// the client's request. The connection does not run yet. Errors have code [handoff.CodeVoiceUnreachable], or a code
// that says what the server refused.
func (p *provider) dialModel(ctx context.Context, model string, client http.Header) (connection, *handoff.Error) {
	query := p.address.Query()
	if model = p.modelNamed(model); model != "" {
		query.Set("model", model)
	}
	conn, response, err := p.dial(ctx, query, client)
	if err != nil {
		return nil, p.unreachable(response, err, query.Get("model"))
	}
	return conn, nil
}

// modelNamed returns the server's name of the model that a client asks for: the configured one if it names none ("").
func (p *provider) modelNamed(model string) string {
	if model == "" {
		return p.model
	}
	return cmp.Or(p.aliases[model], p.aliases[anyModel], model)
}

// credentials returns the headers of a request to the model's server. client holds the headers of the client's request,
// and may be nil.
func (p *provider) credentials(client http.Header) http.Header {
	header := http.Header{}
	switch {
	case p.key == "":
	case azure(p.address) && !strings.HasPrefix(p.key, tokenHead):
		header.Set("Api-Key", p.key)
	default:
		header.Set("Authorization", "Bearer "+p.key)
	}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	return header
}

// sessionOpener returns a function that opens further sessions of the model that a client asked for.
func (p *provider) sessionOpener(model string, client http.Header) func(context.Context) (connection, *handoff.Error) {
	header := http.Header{}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	return func(ctx context.Context) (connection, *handoff.Error) { return p.dialModel(ctx, model, header) }
}

// dial opens a socket to the model's server. The response is nil if the server gave no answer.
func (p *provider) dial(ctx context.Context, query url.Values, client http.Header) (connection, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, p.dialTimeout)
	defer cancel()
	target := *p.address
	target.RawQuery = query.Encode()
	var prompt *promptConn
	var handshake *handoff.Handshake
	going := func() bool { return true }
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, ReadBufferSize: readBuffer, WriteBufferPool: p.buffers,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			reach := p.dialNet
			if reach == nil {
				reach = new(net.Dialer).DialContext
			}
			conn, err := reach(ctx, network, address)
			if err != nil {
				return nil, err
			}
			going = context.AfterFunc(ctx, func() { _ = conn.Close() }) // the library ignores ctx while it shakes hands
			prompt = newPromptConn(conn)
			handshake = &handoff.Handshake{Conn: prompt}
			return handshake, nil
		},
	}
	conn, response, err := dialer.DialContext(ctx, target.String(), p.credentials(client))
	if err == nil && !going() {
		_ = conn.Close()
		err = context.Cause(ctx)
	}
	p.counts.dialled(err == nil)
	if err != nil {
		return nil, response, err
	}
	handshake.Done()
	s := newSocket(conn, prompt, writeLimit, p.log)
	s.client, s.pingInterval, s.idleTimeout = true, modelPing, modelIdle
	return s, response, nil
}

// unreachable returns the error for a failed dial, without the server's own message, which may repeat a part of the
// key.
func (p *provider) unreachable(response *http.Response, err error, model string) *handoff.Error {
	if !errors.Is(err, websocket.ErrBadHandshake) || response == nil {
		return handoff.Fault(handoff.CodeVoiceUnreachable, p.address.Host, err.Error())
	}
	return p.declined(response, model)
}

// declined returns the error for a response in which the model's server refuses a request.
func (p *provider) declined(response *http.Response, model string) *handoff.Error {
	e := handoff.Fault(handoff.CodeVoiceUnreachable, p.address.Host, "it answered "+strconv.Itoa(response.StatusCode))
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Code = handoff.CodeVoiceKey
	case http.StatusNotFound:
		e.Code, e.Param, e.Subject = handoff.CodeVoiceModel, "model", handoff.Clip(model, maxModelSaid)+" at "+e.Subject
	case http.StatusTooManyRequests:
		e.Code, e.Retry = handoff.CodeVoiceLimit, retryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return e
}

// maxModelSaid bounds a model's name or error code in an error of ours, in bytes; maxRetry bounds how long a server may
// make clients wait.
const (
	maxModelSaid = 80
	maxRetry     = 24 * time.Hour
)

// retryAfter reads a Retry-After header: seconds or a date. Anything else, and a date in the past, is 0.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetry/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetry)
}

// redialPauses are the pauses before each try to dial a lost sideband again; after the last one the call is left.
var redialPauses = []time.Duration{
	250 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
}

// tries yields the numbers of tries, from 0, each after its pause. It ends with ctx, but only during a pause.
func tries(ctx context.Context, pauses []time.Duration) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n, pause := range pauses {
			if pause > 0 {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return
				}
			}
			if !yield(n) {
				return
			}
		}
	}
}

// rejoin dials again a call whose socket was lost. before is the number of tries so far, and the result the number
// after this. A nil connection means that the call is over, or cannot be reached.
func (p *provider) rejoin(ctx context.Context, id string, header http.Header, before int) (connection, int) {
	for n := range tries(ctx, redialPauses[before:]) {
		model, fault := p.join(ctx, id, header)
		if fault == nil {
			return model, before + n + 1
		}
		if fault.Code == handoff.CodeNotFound {
			break // the call has ended
		}
		p.log.Warn("lost call of the voice model's server not joined again",
			zap.String("call", id), zap.String("code", string(fault.Code)))
	}
	return nil, before
}

// join opens a sideband: a second socket on the session of a call. At OpenAI and Inworld it has the address of the
// model with ?call_id= in place of ?model=, needs the project's own key, and gives 404 for a call that is not there.
func (p *provider) join(ctx context.Context, id string, header http.Header) (connection, *handoff.Error) {
	query := p.withoutModel()
	query.Set("call_id", id)
	conn, response, err := p.dial(ctx, query, header)
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != nil {
		return nil, handoff.Fault(handoff.CodeShutdown, "", "the request has ended")
	}
	fault := p.unreachable(response, err, "")
	if fault.Code == handoff.CodeVoiceModel {
		fault = &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call at " + p.address.Host, Param: "call_id"}
	}
	return nil, fault
}

// post sends a request to the provider's address of calls.
func (p *provider) post(
	ctx context.Context, below, kind string, body io.Reader, header http.Header,
) (*http.Response, error) {
	to := *p.address
	to.Scheme = strings.Replace(to.Scheme, "ws", "http", 1)
	to.Path = strings.TrimSuffix(to.Path, "/") + "/calls" + below
	to.RawQuery = p.withoutModel().Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header = p.credentials(header)
	r.Header.Set("Content-Type", kind)
	return p.http.Do(r)
}

// withoutModel returns the query of the server's address without the parameter model.
func (p *provider) withoutModel() url.Values {
	query := p.address.Query()
	query.Del("model")
	return query
}

// Probe opens a session of the model and closes it at once, before anything is said in it. It uses ModelURL, Model,
// Aliases and Key of c. Its errors are those that a caller would get: [handoff.CodeVoiceUnreachable], or a code that
// says what the server refused. It does not notice a refusal that comes after the socket is open.
func Probe(ctx context.Context, c Config) error {
	u, err := url.Parse(c.ModelURL)
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the model's URL", "want ws:// or wss:// with a host")
	}
	c.Log = zap.NewNop()
	model, fault := newProvider(c, u, newFrontCounts(), new(sync.Pool)).dialModel(ctx, "", nil)
	if fault != nil {
		return fault
	}
	model.Abandon()
	return nil
}
