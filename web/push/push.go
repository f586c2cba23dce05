package push

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// Bounds of notifications.
const (
	maxWaiting   = 64 // notices; the oldest goes
	maxOfCaller  = 16 // subscriptions; the oldest goes
	maxAll       = 1000
	maxEndpoint  = 1000 // bytes
	maxTitle     = 120
	maxText      = 600 // bytes; all of a message has 4 KiB
	sendTimeout  = 10 * time.Second
	keptFor      = 6 * time.Hour // by the push service, for a device that is off
	maxReplyRead = 4 << 10
)

// Config is what a [Sender] is made of.
type Config struct {
	Store   sessions.Records // has the keys and the subscriptions
	Dir     string           // the state directory, where earlier versions had them
	Subject string           // who sends, for the push services: https://host or mailto:address
	// Alive reports whether a login still stands. A subscription ends with the login that made it.
	Alive func(ctx context.Context, principal, login string) bool
	// Plain lets tests subscribe to addresses on this machine.
	Plain bool
	Log   *zap.Logger // nil: none
}

// A Sender tells browsers that subscribed. It implements [handoff.Notifier] and is safe for concurrent use.
type Sender struct {
	cfg    Config       // Set once
	keys   keys         // Set once, by load
	client *http.Client // Set once

	sent, failed, dropped atomic.Uint64 // messages that were taken, that were not, and notices that were never tried
	subscribed            atomic.Int64  // subscriptions, when they were last read

	waked chan struct{} // holds one token while something waits

	mu      sync.Mutex
	waiting []handoff.Notice // Guarded by mu: oldest first
}

// Open reads the keys of this installation, or makes them.
func Open(ctx context.Context, cfg Config) (*Sender, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Sender{cfg: cfg, waked: make(chan struct{}, 1)}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // notices are hours apart
	s.client = &http.Client{
		Transport:     transport,
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	_, err := s.subscriptions(ctx)
	return s, err
}

// Key is the public key that browsers subscribe with, base64url.
func (s *Sender) Key() string { return s.keys.Public }

// Subscribe keeps where a browser wants to be told. endpoint, p256dh and auth are those of the browser's
// PushSubscription; login is what made it.
func (s *Sender) Subscribe(ctx context.Context, c handoff.Caller, login, endpoint, p256dh, auth string) error {
	if err := s.check(endpoint); err != nil || p256dh == "" || auth == "" || len(p256dh)+len(auth) > 400 {
		return handoff.Fault(handoff.CodeMalformed, "that is no subscription of a browser", "")
	}
	one := kept{
		Caller: c, Login: login, Made: time.Now().UTC(),
		To: webpush.Subscription{Endpoint: endpoint, Keys: webpush.Keys{P256dh: p256dh, Auth: auth}},
	}
	if err := s.put(ctx, one); err != nil {
		return err
	}
	all, err := s.subscriptions(ctx)
	if err != nil {
		return err
	}
	mine, left := 0, len(all)
	for _, k := range slices.Backward(all) {
		if k.Caller == c {
			mine++
		}
		if k.Caller == c && mine > maxOfCaller || left > maxAll && k == all[0] {
			left--
			if err := s.drop(ctx, k.To.Endpoint); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unsubscribe forgets a subscription of a caller.
func (s *Sender) Unsubscribe(ctx context.Context, c handoff.Caller, endpoint string) error {
	all, err := s.subscriptions(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(k kept) bool { return k.To.Endpoint == endpoint && k.Caller == c }) {
		return nil
	}
	return s.drop(ctx, endpoint)
}

func (s *Sender) drop(ctx context.Context, endpoint string) error {
	was, err := s.cfg.Store.DropRecord(ctx, subscribedKind, nameOf(endpoint))
	if was {
		s.subscribed.Add(-1)
	}
	return err
}

// check refuses what no push service of a browser has: we send there, so it must not lead into a private network.
func (s *Sender) check(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > maxEndpoint || u.Host == "" || u.User != nil {
		return errors.New("no address")
	}
	if s.cfg.Plain {
		return nil
	}
	_, notName := netip.ParseAddr(strings.Trim(u.Hostname(), "[]"))
	if u.Scheme != "https" || notName == nil || !strings.Contains(u.Hostname(), ".") || net.ParseIP(u.Hostname()) != nil {
		return errors.New("no push service")
	}
	return nil
}

// Notify implements [handoff.Notifier].
func (s *Sender) Notify(n handoff.Notice) {
	s.mu.Lock()
	s.waiting = append(s.waiting, n)
	if len(s.waiting) > maxWaiting {
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.dropped.Add(1)
	}
	s.mu.Unlock()
	select {
	case s.waked <- struct{}{}:
	default: // it is awake already
	}
}

// Run sends until ctx ends. What waits then is told by the next call.
func (s *Sender) Run(ctx context.Context) error {
	for {
		n, ok := s.next()
		if ok {
			s.tell(ctx, n)
			continue
		}
		select {
		case <-s.waked:
		case <-ctx.Done():
			return nil
		}
	}
}

// next takes a notice out.
func (s *Sender) next() (handoff.Notice, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return handoff.Notice{}, false
	}
	n := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return n, true
}

// message is what the service worker of the page reads.
type message struct {
	Kind     handoff.NoticeKind `json:"kind"`
	Title    string             `json:"title"`
	Text     string             `json:"text"`
	ID       string             `json:"id"`                 // of the work
	Question handoff.QuestionID `json:"question,omitempty"` // that can be declined
}

// tell sends a notice to each subscription; those that are over are forgotten.
func (s *Sender) tell(ctx context.Context, n handoff.Notice) {
	to, err := s.subscriptions(ctx)
	if err != nil {
		s.failed.Add(1)
		s.cfg.Log.Warn("notification not sent: who is notified cannot be read", zap.Error(err))
		return
	}
	to = slices.DeleteFunc(to, func(k kept) bool { return k.Caller != n.Caller })
	title := n.Server
	if n.Title != "" {
		title += ": " + n.Title
	}
	text, err := json.Marshal(
		message{
			Kind: n.Kind, Title: handoff.Clip(title, maxTitle), Text: handoff.Clip(n.Text, maxText), ID: n.Handoff,
			Question: n.Question,
		},
	)
	if err != nil {
		s.failed.Add(1)
		return
	}
	for _, k := range to {
		status := http.StatusGone
		if s.cfg.Alive == nil || s.cfg.Alive(ctx, k.Caller.Principal, k.Login) {
			status = s.send(ctx, text, k)
		}
		switch {
		case status >= 200 && status < 300:
			s.sent.Add(1)
		case status == http.StatusGone || status == http.StatusNotFound:
			if err := s.drop(ctx, k.To.Endpoint); err != nil {
				s.cfg.Log.Warn("subscription not forgotten", zap.Error(err))
			}
		default:
			s.failed.Add(1)
			s.cfg.Log.Warn("notification not sent", zap.Int("status", status))
		}
	}
}

// send gives a message to a push service; 0: it did not answer.
func (s *Sender) send(ctx context.Context, text []byte, k kept) int {
	resp, err := webpush.SendNotificationWithContext(ctx, text, &k.To, &webpush.Options{
		HTTPClient: s.client, Subscriber: s.cfg.Subject, TTL: int(keptFor.Seconds()), Urgency: webpush.UrgencyHigh,
		VAPIDPublicKey: s.keys.Public, VAPIDPrivateKey: s.keys.Private,
	})
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReplyRead))
	return resp.StatusCode
}

// Metrics yields what became of the notifications.
func (s *Sender) Metrics() iter.Seq[handoff.Metric] {
	s.mu.Lock()
	waiting := len(s.waiting)
	s.mu.Unlock()
	const name, help = "switchboard_push_total", "Notifications to browsers, by result; dropped: never tried, because too many waited."
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_push_subscriptions", "Browsers that asked to be told.", s.subscribed.Load()),
		handoff.NewMetric("switchboard_push_waiting", "Notices that wait for the push services.", waiting),
		handoff.NewMetric(name, help, s.sent.Load(), "result", "sent"),
		handoff.NewMetric(name, help, s.failed.Load(), "result", "failed"),
		handoff.NewMetric(name, help, s.dropped.Load(), "result", "dropped"),
	})
}
