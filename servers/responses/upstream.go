package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"switchboard/handoff"
)

// Bounds of requests.
const (
	// requestTries is how often a request is sent in all: after a temporary refusal, without an answer, or after the
	// answer broke off. The library waits as long as the server says.
	requestTries = 4
	// streamTries is how often an answer is requested that broke off before its first part.
	streamTries = 3
	// silence is how long a stream may pause.
	silence = 5 * time.Minute
	// maxWhole bounds an answer that is not streamed, in bytes.
	maxWhole = 32 << 20
)

// pauses are the pauses between the tries of a stream.
var pauses = handoff.Backoff{First: 250 * time.Millisecond, Longest: 4 * time.Second}

// HTTP is the client for APIs. It follows no redirect: key and words are for the configured address alone. Set once.
var HTTP = &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
	return fmt.Errorf("it sends on to %s, and its key is for %s alone", r.URL.Host, via[0].URL.Host)
}}

// An upstream is a Responses API.
type upstream struct {
	api   responses.ResponseService // Set once; it takes nothing from the environment
	token func() (string, error)    // Set once; nil for none
	key   string                    // Set once; identifies the API that keeps a response
}

func newUpstream(address string, token func() (string, error), client *http.Client) *upstream {
	return &upstream{
		api:   responses.NewResponseService(option.WithBaseURL(address), option.WithHTTPClient(cmp.Or(client, HTTP))),
		token: token, key: address,
	}
}

// errSilent is the cause when a stream paused for too long.
var errSilent = errors.New("the model said nothing for too long")

// ask sends a request and reads the whole answer. An answer that breaks off before its first part is requested again.
// After an error, begun reports whether the answer had begun.
func (u *upstream) ask(
	ctx context.Context, p responses.ResponseNewParams, to listener,
) (a answer, begun bool, err error) {
	for try, sent := 0, 0; ; try++ {
		r := newReader(to)
		err := u.stream(ctx, p, r, &sent)
		if err == nil {
			return r.answer, true, nil
		}
		if r.begun || try == streamTries-1 || sent >= requestTries || ctx.Err() != nil || !retryable(err) {
			return answer{}, r.begun, err
		}
		select {
		case <-time.After(pauses.Pause(try)):
		case <-ctx.Done():
			return answer{}, false, context.Cause(ctx)
		}
	}
}

// retryable reports whether another try may help after a stream broke off. A request that was refused before its
// stream was tried again by the library already.
func retryable(err error) bool {
	if _, refused := errors.AsType[*responses.Error](err); refused {
		return false
	}
	r := asRefusal(err)
	return r == nil || r.kind == refusedBroken || r.kind == refusedLimit
}

// stream sends a request, and again as often as requestTries allows, until it is answered, and reads the events. sent
// counts the requests.
func (u *upstream) stream(ctx context.Context, p responses.ResponseNewParams, r *reader, sent *int) error {
	var res *http.Response
	opts := []option.RequestOption{
		option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream"),
		option.WithResponseBodyInto(&res),
		option.WithMaxRetries(requestTries - 1 - *sent),
		option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			*sent++
			return next(req)
		}),
	}
	if u.token != nil {
		token, err := u.token()
		if err != nil {
			return handoff.Fault(handoff.CodeTokenRefused, "", "read token: "+err.Error())
		}
		opts = append(opts, option.WithAPIKey(token))
	}
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" {
		opts = append(opts, option.WithHeader("traceparent", parent))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timeout.Stop()
	if _, err := u.api.New(ctx, p, opts...); err != nil {
		return caused(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "application/json" {
		return caused(ctx, readWhole(res.Body, r))
	}
	events := ssestream.NewDecoder(res)
	for !r.done && events.Next() {
		timeout.Reset(silence)
		if err := r.take(events.Event().Data); err != nil {
			return err
		}
	}
	switch {
	case r.done:
		return nil
	case events.Err() != nil:
		return caused(ctx, fmt.Errorf("the model's answer broke off: %w", events.Err()))
	}
	return caused(ctx, errors.New("the model's answer broke off"))
}

// caused returns the cause why ctx ended, if it has ended; otherwise err.
func caused(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// readWhole reads an answer that is not streamed.
func readWhole(body io.Reader, r *reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole))
	if err != nil {
		return err
	}
	var w wireResponse
	if handoff.TooDeep(data) || json.Unmarshal(data, &w) != nil {
		return errBroken
	}
	return r.whole("response."+w.Status, w)
}
