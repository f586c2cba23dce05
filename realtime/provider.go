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
	"switchboard/realtime/outbound"
)

// dialLimit bounds reaching the model: a person waits for it.
const dialLimit = 10 * time.Second

// readBuffer is what the library keeps for each socket.
const readBuffer = 4 << 10

// safetyHeader names the end user to OpenAI; the only header of a client that is passed on.
const safetyHeader = "OpenAI-Safety-Identifier"

// anyModel is the alias for every name that has none of its own.
const anyModel = "*"

// tokenHead begins a JSON Web Token, which is no key: Azure takes it as a bearer token.
const tokenHead = "eyJ"

// azure reports whether a model is at Azure OpenAI, or behind a gateway with its addresses.
func azure(model *url.URL) bool {
	return strings.HasSuffix(model.Hostname(), ".azure.com") || strings.HasPrefix(model.Path, "/openai/")
}

// A provider is the voice model's server: its sessions, and the calls that it carries. Its methods may be used from any
// goroutine.
type provider struct {
	address *url.URL          // Set once: of its sessions
	key     string            // Set once; "": it needs none
	model   string            // Set once: what a client gets that names none; "": the server's choice
	aliases map[string]string // Set once: its names of the models that clients ask for
	log     *zap.Logger       // Set once
	counts  *frontCounts      // Set once; safe by itself
	buffers *sync.Pool        // Set once; safe by itself
	reach   time.Duration     // Set once: bounds a dial; tests need less

	network func(ctx context.Context, network, address string) (net.Conn, error) // Set once; nil: the network itself
}

func newProvider(c Config, address *url.URL, counts *frontCounts, buffers *sync.Pool) *provider {
	return &provider{
		address: address, key: c.Key, model: c.Model, aliases: c.Aliases, network: c.Dial, log: c.Log,
		counts: counts, buffers: buffers, reach: dialLimit,
	}
}

// dialModel opens a model session. model overrides the configured one when it is not empty; client holds
// the headers of the client's request. The connection does not run yet. Errors have code
// [handoff.CodeVoiceUnreachable], or one that says what the server refused.
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

// modelNamed is the model that a client means: the configured one when it names none ("").
func (p *provider) modelNamed(model string) string {
	if model == "" {
		return p.model
	}
	return cmp.Or(p.aliases[model], p.aliases[anyModel], model)
}

// credentials are the headers of a request to the model's server on behalf of a client with these, which may be nil.
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

// another opens further sessions of the model that a client asked for.
func (p *provider) another(model string, client http.Header) func(context.Context) (connection, *handoff.Error) {
	header := http.Header{}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	return func(ctx context.Context) (connection, *handoff.Error) { return p.dialModel(ctx, model, header) }
}

// dial opens a socket to the model's server. Without an answer of the server the response is nil.
func (p *provider) dial(ctx context.Context, query url.Values, client http.Header) (connection, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, p.reach)
	defer cancel()
	target := *p.address
	target.RawQuery = query.Encode()
	var prompt *promptConn
	var handshake *handoff.Handshake
	going := func() bool { return true }
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, ReadBufferSize: readBuffer, WriteBufferPool: p.buffers,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			reach := p.network
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
	s := newSocket(conn, prompt, outbound.MaxBytes, writeLimit, p.log)
	s.client, s.pace, s.idle = true, modelPing, modelIdle
	return s, response, nil
}

// unreachable says why without the model's words, which may repeat a part of the key.
func (p *provider) unreachable(response *http.Response, err error, model string) *handoff.Error {
	if !errors.Is(err, websocket.ErrBadHandshake) || response == nil {
		return handoff.Fault(handoff.CodeVoiceUnreachable, p.address.Host, err.Error())
	}
	return p.declined(response, model)
}

// declined says why the model's server did not do what it was asked for.
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

// maxModelSaid bounds the model's name in an error, in bytes; maxRetry what a server may make clients wait.
const (
	maxModelSaid = 80
	maxRetry     = 24 * time.Hour
)

// retryAfter reads the header of that name: seconds or a date. What is neither, or has passed, is 0.
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

// redials are the pauses before a lost sideband is dialled again; after the last the call is left.
var redials = []time.Duration{250 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// tries yields each try of something, from 0, after its pause. It ends with ctx, but not before a try without a pause.
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

// rejoin dials a call again whose socket was lost, and was so often before. It returns how often that is now. No model:
// the call is over, or cannot be reached.
func (p *provider) rejoin(ctx context.Context, id string, header http.Header, before int) (connection, int) {
	for n := range tries(ctx, redials[before:]) {
		model, fault := p.join(ctx, id, header)
		if fault == nil {
			return model, before + n + 1
		}
		if fault.Code == handoff.CodeNotFound {
			break // it was the end of the call
		}
		p.log.Warn("lost call of the voice model's server not joined again",
			zap.String("call", id), zap.String("code", string(fault.Code)))
	}
	return nil, before
}

// join opens a sideband: a second socket on the session of a call. OpenAI and Inworld have it at the address of the
// model with ?call_id= in place of ?model=, with the project's own key, and answer 404 to a call that is not there.
func (p *provider) join(ctx context.Context, id string, header http.Header) (connection, *handoff.Error) {
	query := p.without("model")
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

// post asks the provider for something of its calls. Its answer is not followed elsewhere: the key goes along.
func (p *provider) post(
	ctx context.Context, below, kind string, body io.Reader, header http.Header,
) (*http.Response, error) {
	to := *p.address
	to.Scheme = strings.Replace(to.Scheme, "ws", "http", 1)
	to.Path = strings.TrimSuffix(to.Path, "/") + "/calls" + below
	to.RawQuery = p.without("model").Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header = p.credentials(header)
	r.Header.Set("Content-Type", kind)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(r)
}

// without returns the query of the model's address, but for one parameter.
func (p *provider) without(name string) url.Values {
	query := p.address.Query()
	query.Del(name)
	return query
}

// Probe opens a session of the model and closes it at once, before anything is said in it. Of c it needs ModelURL,
// Model, Aliases and Key. Its errors are those that a caller would get: [handoff.CodeVoiceUnreachable], or one that
// says what the server refused. It does not notice what a server refuses only after the socket is open.
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
