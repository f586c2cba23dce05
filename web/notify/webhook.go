package notify

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/web/guarded"
)

// Bounds of the webhook.
const (
	maxNotices       = 64 // that wait; above it, Notify drops one
	maxNoticeTitle   = 200
	maxNoticeText    = 2000     // bytes; the page has the whole text
	maxNoticeReply   = 16 << 10 // bytes of a reply that are read
	noticeTries      = 4
	noticeTimeout    = 10 * time.Second // of one try
	noticeLongest    = time.Minute      // the longest pause for a Retry-After
	noticeGrace      = 3 * time.Second  // for waiting notices when the process ends
	noticeHeaderSize = 64 << 10
)

// noticePauses are the pauses between tries.
var noticePauses = handoff.Backoff{First: time.Second, Longest: 4 * time.Second}

// errNoAddress replaces errors that would quote the address.
var errNoAddress = errors.New("notify.webhook is no address")

// errPrivate says how a name in a private network is allowed.
var errPrivate = fmt.Errorf("%w: notify.allow_private: true allows that", guarded.ErrPrivate)

// Config is what a [Webhook] needs.
type Config struct {
	URL   string                 // http or https; it may hold a secret
	Token func() (string, error) // reads the bearer token before each try; nil: none
	// Private allows a name that leads into a private network. An address, and localhost, mean what they say.
	Private bool
	Log     *zap.Logger // nil: none
}

// A Webhook posts notices to one address. It implements [handoff.Notifier].
type Webhook struct {
	url    string                 // Set once; often has a secret, so neither it nor an error that quotes it is logged
	token  func() (string, error) // Set once; nil: none
	client *http.Client           // Set once
	log    *zap.Logger            // Set once; every line has the host, and nothing else of the address

	sent    atomic.Uint64 // notices that were accepted
	failed  atomic.Uint64 // notices that were refused, or got no answer
	dropped atomic.Uint64 // notices that were never tried, because too many waited or the process ended

	waked chan struct{} // holds one token when Notify has added a notice

	mu      sync.Mutex
	waiting []notice // Guarded by mu: oldest first, at most maxNotices
}

// A notice is the body of a request. Receivers depend on the names of its fields.
type notice struct {
	Kind   handoff.NoticeKind `json:"kind"`
	Title  string             `json:"title"` // the machine, and the session if it has a name
	Text   string             `json:"text"`
	Server string             `json:"server"`
	ID     string             `json:"id"` // of the handoff

	key string // the same in each try; see [keyOf]
}

// New returns a webhook that delivers nothing before [Webhook.Run]. Its errors never quote the address.
func New(c Config) (*Webhook, error) {
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, errNoAddress
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	transport := guarded.Transport(noticeTimeout)
	if _, notAddress := netip.ParseAddr(address.Hostname()); c.Private || notAddress == nil ||
		address.Hostname() == "localhost" {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	transport.DisableKeepAlives = true // notices are hours apart
	transport.MaxResponseHeaderBytes = noticeHeaderSize
	return &Webhook{
		url: c.URL, token: c.Token, log: c.Log.With(zap.String("host", address.Host)), waked: make(chan struct{}, 1),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // neither the token nor the text goes to an address that nobody configured
		}},
	}, nil
}

// Notify adds a notice. If too many wait, it drops the oldest outcome, or else the oldest notice: newer ones are more
// likely to be news, and an agent waits for the answer to a question. Only the notice is lost: the page shows the
// outcome, and the next call tells it.
func (h *Webhook) Notify(n handoff.Notice) {
	title := n.Server
	if n.Title != "" {
		title += ": " + n.Title
	}
	m := notice{
		Kind: n.Kind, Title: handoff.Clip(title, maxNoticeTitle), Text: handoff.Clip(n.Text, maxNoticeText), Server: n.Server,
		ID: n.Handoff, key: keyOf(n),
	}
	h.mu.Lock()
	full := len(h.waiting) >= maxNotices
	if full {
		i := max(0, slices.IndexFunc(h.waiting, func(m notice) bool { return m.Kind == handoff.NoticeOutcome }))
		h.waiting = slices.Delete(h.waiting, i, i+1)
	}
	h.waiting = append(h.waiting, m)
	h.mu.Unlock()
	if full {
		h.log.Warn("notice dropped", zap.Uint64("dropped", h.dropped.Add(1)))
	}
	select {
	case h.waked <- struct{}{}:
	default: // a token is there already
	}
}

// keyOf returns the idempotency key of a notice, by which a receiver recognises a second delivery. A notice about work
// has the same key in every process and instance. A notice about a machine has a random one, because a machine can be
// gone several times.
func keyOf(n handoff.Notice) string {
	if n.Handoff == "" {
		return rand.Text()
	}
	names := []string{string(n.Kind), n.Caller.String(), n.Handoff, string(n.Question)}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return hex.EncodeToString(sum[:16])
}

// Run delivers notices until ctx ends, and then the waiting ones for [noticeGrace]. It delivers one at a time, in
// order: notices are rare, and a service that is down gets only one request at a time.
func (h *Webhook) Run(ctx context.Context) error {
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	grace := time.AfterFunc(math.MaxInt64, end)
	defer grace.Stop()
	defer context.AfterFunc(ctx, func() { grace.Reset(noticeGrace) })()
	for {
		m, ok := h.next()
		switch {
		case ok && last.Err() != nil:
			h.dropped.Add(1)
			h.log.Warn("notice given up, the process ends", zap.String("handoff", m.ID))
		case ok:
			h.deliver(ctx, last, m)
		case ctx.Err() != nil:
			return nil
		default:
			select {
			case <-h.waked:
			case <-ctx.Done():
			}
		}
	}
}

// next takes the oldest notice.
func (h *Webhook) next() (notice, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		return notice{}, false
	}
	m := h.waiting[0]
	h.waiting = slices.Delete(h.waiting, 0, 1)
	return m, true
}

// deliver posts a notice until it is accepted or refused, or [noticeTries] times. When ctx ends, it tries once more,
// with the context last.
func (h *Webhook) deliver(ctx, last context.Context, m notice) {
	for try := 1; ; try++ {
		ending := ctx.Err() != nil
		f := h.post(last, m)
		if f == nil {
			h.sent.Add(1)
			h.log.Debug("notice sent", zap.String("handoff", m.ID), zap.Int("try", try))
			return
		}
		if !f.again || try >= noticeTries || ending || last.Err() != nil {
			h.failed.Add(1)
			h.log.Warn(
				"notice not sent", zap.String("handoff", m.ID), zap.Int("tries", try), zap.Int("code", f.status), zap.Error(f.err),
			)
			return
		}
		select {
		case <-time.After(f.pause(try)):
		case <-ctx.Done():
		}
	}
}

// A postFault is why a try failed.
type postFault struct {
	status int  // 0: there was no answer
	again  bool // another try may help
	after  time.Duration
	err    error // never quotes the address; may be nil with a status
}

// pause returns how long to wait after a try, counted from 1. It is random, so that many instances do not repeat at
// once, and at least as long as a Retry-After, up to [noticeLongest].
func (f *postFault) pause(try int) time.Duration {
	return max(noticePauses.Pause(try-1), min(f.after, noticeLongest))
}

// post makes one try. It returns nil if the notice was accepted.
func (h *Webhook) post(ctx context.Context, m notice) *postFault {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	req, err := h.request(ctx, m)
	if err != nil {
		return &postFault{err: err}
	}
	resp, err := h.client.Do(req)
	if err != nil {
		if quoting, ok := errors.AsType[*url.Error](err); ok {
			err = quoting.Err
		}
		if errors.Is(err, guarded.ErrPrivate) {
			return &postFault{err: errPrivate}
		}
		return &postFault{again: true, err: err}
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxNoticeReply))
	code := resp.StatusCode
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests || code >= 500:
		return &postFault{status: code, again: true, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	}
	return &postFault{status: code}
}

// request returns the request of one try. With the X- headers, ntfy shows the text instead of the JSON
// (https://docs.ntfy.sh/publish/#message-templating); others ignore them.
func (h *Webhook) request(ctx context.Context, m notice) (*http.Request, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, &body)
	if err != nil {
		return nil, errNoAddress
	}
	req.Header = http.Header{
		"Content-Type":    {"application/json"},
		"User-Agent":      {"switchboard"},
		"Idempotency-Key": {m.key},
		"X-Template":      {"yes"},
		"X-Title":         {"{{.title}}"},
		"X-Message":       {"{{.text}}"},
	}
	if h.token != nil {
		token, err := h.token()
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// retryAfter parses a Retry-After: seconds or a date. It returns 0 for anything else.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
