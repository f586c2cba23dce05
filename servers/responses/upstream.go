package responses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"switchboard/handoff"
)

// Bounds of requests.
const (
	// requestTries is how often a request is sent in all: after a temporary refusal, without an answer, or after the
	// answer broke off.
	requestTries = 4
	// streamTries is how often an answer is requested that broke off before its first part.
	streamTries = 3
	// silence is how long a stream may pause.
	silence = 5 * time.Minute
	// maxWhole bounds an answer that is not streamed, in bytes.
	maxWhole = 32 << 20
	// maxRefusal bounds what is read of a refusal, in bytes.
	maxRefusal = 64 << 10
)

// pauses are the pauses between these tries, unless the API says how long to wait.
var pauses = handoff.Backoff{First: 500 * time.Millisecond, Longest: 8 * time.Second}

// HTTP is the client for APIs. It follows no redirect: key and words are for the configured address alone. Set once.
var HTTP = &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
	return fmt.Errorf("it sends on to %s, and its key is for %s alone", r.URL.Host, via[0].URL.Host)
}}

// An upstream is a Responses API.
type upstream struct {
	client *http.Client           // Set once
	token  func() (string, error) // Set once; nil for none
	key    string                 // Set once; its address, which identifies the API that keeps a response
}

func newUpstream(address string, token func() (string, error), client *http.Client) *upstream {
	return &upstream{client: cmp.Or(client, HTTP), token: token, key: address}
}

// errSilent is the cause when a stream paused for too long.
var errSilent = errors.New("the model said nothing for too long")

// ask sends a request and reads the whole answer. What may pass is tried again until the answer has begun. After an
// error, begun reports whether it had.
func (u *upstream) ask(ctx context.Context, p request, to listener) (a answer, begun bool, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return answer{}, false, err
	}
	for try, streams := 1, 0; ; try++ {
		r := newReader(to)
		opened, err := u.stream(ctx, body, r)
		if err == nil {
			return r.answer, true, nil
		}
		if opened {
			streams++
		}
		refusal := asRefusal(err)
		passing := refusal == nil || refusal.passing
		if r.begun || !passing || try == requestTries || streams == streamTries || ctx.Err() != nil {
			return answer{}, r.begun, err
		}
		pause := pauses.Pause(try - 1)
		if refusal != nil && refusal.after >= 0 {
			pause = refusal.after
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer{}, false, context.Cause(ctx)
		}
	}
}

// stream sends a request and reads the events of its answer. opened reports whether it was answered at all.
func (u *upstream) stream(ctx context.Context, body []byte, r *reader) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timeout.Stop()
	res, err := u.post(ctx, body)
	if err != nil {
		return false, caused(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "application/json" {
		return true, caused(ctx, readWhole(res.Body, r))
	}
	events := ssestream.NewDecoder(res)
	for !r.done && events.Next() {
		timeout.Stop() // the silence of the model is measured, not that of our store
		if err := r.take(events.Event().Data); err != nil {
			return true, err
		}
		timeout.Reset(silence)
	}
	switch {
	case r.done:
		return true, nil
	case events.Err() != nil:
		return true, caused(ctx, fmt.Errorf("the model's answer broke off: %w", events.Err()))
	}
	return true, caused(ctx, errors.New("the model's answer broke off"))
}

// post sends a request. It returns an answer that is none of an error.
func (u *upstream) post(ctx context.Context, body []byte) (*http.Response, error) {
	to, err := url.JoinPath(u.key, "responses")
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "switchboard")
	if u.token != nil {
		token, err := u.token()
		if err != nil {
			return nil, handoff.Fault(handoff.CodeTokenRefused, "", "read token: "+err.Error())
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if parent := handoff.SpanOf(ctx).Parent(); parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	res, err := u.client.Do(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err != nil {
		return nil, err
	}
	return nil, refusedBy(res, text)
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
