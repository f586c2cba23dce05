package realtime

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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

// dialModel opens a model session. model overrides the configured one when it is not empty; client holds
// the headers of the client's request. The connection does not run yet. Errors have code
// [handoff.CodeVoiceUnreachable], or one that says what the server refused.
func (f *Front) dialModel(ctx context.Context, model string, client http.Header) (connection, *handoff.Error) {
	query := f.model.Query()
	if model = f.modelNamed(model); model != "" {
		query.Set("model", model)
	}
	conn, response, err := f.dial(ctx, query, client)
	if err != nil {
		return nil, f.unreachable(response, err, query.Get("model"))
	}
	return conn, nil
}

// modelNamed is the model that a client means: the configured one when it names none ("").
func (f *Front) modelNamed(model string) string {
	if model == "" {
		return f.config.Model
	}
	return cmp.Or(f.config.Aliases[model], f.config.Aliases[anyModel], model)
}

// credentials are the headers of a request to the model's server on behalf of a client with these, which may be nil.
func (f *Front) credentials(client http.Header) http.Header {
	header := http.Header{}
	switch {
	case f.config.Key == "":
	case azure(f.model) && !strings.HasPrefix(f.config.Key, tokenHead):
		header.Set("Api-Key", f.config.Key)
	default:
		header.Set("Authorization", "Bearer "+f.config.Key)
	}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	return header
}

// another opens further sessions of the model that a client asked for.
func (f *Front) another(model string, client http.Header) func(context.Context) (connection, *handoff.Error) {
	header := http.Header{}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	return func(ctx context.Context) (connection, *handoff.Error) { return f.dialModel(ctx, model, header) }
}

// dial opens a socket to the model's server. Without an answer of the server the response is nil.
func (f *Front) dial(ctx context.Context, query url.Values, client http.Header) (connection, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, f.reach)
	defer cancel()
	target := *f.model
	target.RawQuery = query.Encode()
	var prompt *promptConn
	var handshake *handoff.Handshake
	going := func() bool { return true }
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, ReadBufferSize: readBuffer, WriteBufferPool: &f.buffers,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			reach := f.config.Dial
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
	conn, response, err := dialer.DialContext(ctx, target.String(), f.credentials(client))
	if err == nil && !going() {
		_ = conn.Close()
		err = context.Cause(ctx)
	}
	f.counts.dialled(err == nil)
	if err != nil {
		return nil, response, err
	}
	handshake.Done()
	s := newSocket(conn, prompt, outbound.MaxBytes, writeLimit, f.log)
	s.client, s.pace, s.idle = true, modelPing, modelIdle
	return s, response, nil
}

// unreachable says why without the model's words, which may repeat a part of the key.
func (f *Front) unreachable(response *http.Response, err error, model string) *handoff.Error {
	if !errors.Is(err, websocket.ErrBadHandshake) || response == nil {
		return handoff.Fault(handoff.CodeVoiceUnreachable, f.model.Host, err.Error())
	}
	return f.declined(response, model)
}

// declined says why the model's server did not do what it was asked for.
func (f *Front) declined(response *http.Response, model string) *handoff.Error {
	e := handoff.Fault(handoff.CodeVoiceUnreachable, f.model.Host, "it answered "+strconv.Itoa(response.StatusCode))
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

// Probe opens a session of the model and closes it at once, before anything is said in it. Of c it needs ModelURL,
// Model, Aliases and Key. Its errors are those that a caller would get: [handoff.CodeVoiceUnreachable], or one that
// says what the server refused. It does not notice what a server refuses only after the socket is open.
func Probe(ctx context.Context, c Config) error {
	u, err := url.Parse(c.ModelURL)
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the model's URL", "want ws:// or wss:// with a host")
	}
	f := &Front{config: c, model: u, log: zap.NewNop(), counts: newFrontCounts(), reach: dialLimit}
	model, fault := f.dialModel(ctx, "", nil)
	if fault != nil {
		return fault
	}
	model.Abandon()
	return nil
}
