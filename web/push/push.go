package push

import (
	"context"
	"errors"
	"io"
	"iter"
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
	"switchboard/web/guarded"
)

// Bounds of notifications.
const (
	maxWaiting   = 64 // notices; above it the oldest is dropped
	maxOfCaller  = 16 // subscriptions; above it the oldest is dropped
	maxAll       = 1000
	maxEndpoint  = 1000 // bytes
	maxTitle     = 120
	maxText      = 600 // bytes; a whole message has 4 KiB
	sendTimeout  = 10 * time.Second
	keptFor      = 6 * time.Hour // by the push service, for a device that is off
	maxReplyRead = 4 << 10
)

// Config is what a [Sender] is made of.
type Config struct {
	Store   sessions.Records // for the keys and the subscriptions
	Dir     string           // the state directory, where earlier versions stored them
	Subject string           // the sender, for the push services: https://host or an address of mail; see [Contact]
	// Grant returns what a login may do now; false: it has ended, and its subscriptions end with it. A browser is told
	// what its login may read; after an error, nothing. nil: every login may read everything.
	Grant func(ctx context.Context, principal, login string) (handoff.Grant, bool, error)
	// Plain allows addresses on this machine, for tests.
	Plain bool
	Log   *zap.Logger // nil: none
}

// A Sender sends notices to browsers. It implements [handoff.Notifier], and is safe for concurrent use.
type Sender struct {
	cfg    Config       // Set once
	keys   keys         // Set once, by load
	client *http.Client // Set once

	sent, failed, dropped atomic.Uint64 // messages that were accepted or failed, and notices that were never tried
	subscribed            atomic.Int64  // how many subscriptions there were when they were last read

	waked chan struct{} // holds one token when Notify has added a notice

	mu      sync.Mutex
	waiting []handoff.Notice // Guarded by mu: oldest first
}

// Contact returns a [Config].Subject that every push service takes, by the address of the page: Apple's refuses a
// message whose sender is no https address of a host with a domain, and no address of mail.
func Contact(publicURL string) string {
	const none = "switchboard@example.com" // sent as mailto:
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" {
		return none
	}
	host := strings.ToLower(u.Hostname())
	_, domain, found := strings.Cut(host, ".")
	if _, err := netip.ParseAddr(host); err == nil || !found || domain == "" {
		return none
	}
	for _, local := range []string{"localhost", "local", "invalid", "internal", "test", "lan"} {
		if strings.HasSuffix(host, "."+local) {
			return none
		}
	}
	return "https://" + host
}

// Open reads the keys of this installation, or makes them.
func Open(ctx context.Context, cfg Config) (*Sender, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Sender{cfg: cfg, waked: make(chan struct{}, 1)}
	transport := guarded.Transport(sendTimeout, 443)
	if cfg.Plain {
		transport = http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableKeepAlives = true
	}
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

// Key returns the public key that browsers subscribe with, in base64url.
func (s *Sender) Key() string { return s.keys.Public }

// Subscribe stores the subscription of a browser, and drops older ones above the bounds. endpoint, p256dh and auth are
// those of the browser's PushSubscription; login is the id of the login that makes it.
func (s *Sender) Subscribe(
	ctx context.Context, c handoff.Caller, login, endpoint, p256dh, auth string, wishes handoff.Wishes,
) error {
	if !wishes.Valid() {
		return handoff.Fault(handoff.CodeMalformed, "for is questions or failures, and quiet has minutes of a day", "")
	}
	if err := s.check(endpoint); err != nil || p256dh == "" || auth == "" || len(p256dh)+len(auth) > 400 {
		return handoff.Fault(handoff.CodeMalformed, "that is no subscription of a browser", "")
	}
	one := subscription{
		Caller: c, Login: login, Made: time.Now().UTC(), Wishes: wishes,
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
		if k.Caller == c && mine > maxOfCaller || left > maxAll && k.To.Endpoint == all[0].To.Endpoint {
			left--
			if err := s.drop(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unsubscribe drops a subscription of a caller.
func (s *Sender) Unsubscribe(ctx context.Context, c handoff.Caller, endpoint string) error {
	all, err := s.subscriptions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(k subscription) bool { return k.To.Endpoint == endpoint && k.Caller == c })
	if i < 0 {
		return nil
	}
	return s.drop(ctx, all[i])
}

// drop drops a subscription, unless the browser has asked anew since it was read.
func (s *Sender) drop(ctx context.Context, k subscription) error {
	was, err := s.cfg.Store.DropRecordAs(ctx, k.read)
	if was {
		s.subscribed.Add(-1)
	}
	return err
}

// check refuses an endpoint that cannot be a push service. What its name means is checked when a message is sent.
func (s *Sender) check(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > maxEndpoint || u.Host == "" || u.User != nil {
		return errors.New("no address")
	}
	if s.cfg.Plain {
		return nil
	}
	_, notName := netip.ParseAddr(strings.Trim(u.Hostname(), "[]"))
	if u.Scheme != "https" || notName == nil || !strings.Contains(u.Hostname(), ".") || u.Port() != "" && u.Port() != "443" {
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
	default: // a token is there already
	}
}

// Run sends notices until ctx ends. The next call tells those that still wait.
func (s *Sender) Run(ctx context.Context) error {
	for {
		n, ok := s.next()
		if ok {
			s.sendToAll(ctx, n)
			continue
		}
		select {
		case <-s.waked:
		case <-ctx.Done():
			return nil
		}
	}
}

// next takes the oldest notice.
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

// A message is the message to the service worker of the page.
type message struct {
	Kind     handoff.NoticeKind `json:"kind"`
	Title    string             `json:"title"`
	Text     string             `json:"text"`
	ID       string             `json:"id"`                 // of the work
	Question handoff.QuestionID `json:"question,omitempty"` // can be declined from the notification
	Rings    bool               `json:"rings,omitempty"`    // the page offers a call in which it is told, or asked
	Silent   bool               `json:"silent,omitempty"`
}

// sendToAll sends a notice to each subscription of its caller, and drops those that have ended.
func (s *Sender) sendToAll(ctx context.Context, n handoff.Notice) {
	to, err := s.subscriptions(ctx)
	if err != nil {
		s.failed.Add(1)
		s.cfg.Log.Warn("notification not sent: who is notified cannot be read", zap.Error(err))
		return
	}
	to = slices.DeleteFunc(to, func(k subscription) bool { return k.Caller != n.Caller || !k.Wishes.Wants(n) })
	title := n.Server
	if n.Title != "" {
		title += ": " + n.Title
	}
	m := message{Kind: n.Kind, Title: handoff.Clip(title, maxTitle), Text: handoff.Clip(n.Text, maxText), ID: n.Handoff,
		Question: n.Question}
	for _, k := range to {
		m.Rings, m.Silent = k.Wishes.Rings(n), k.Wishes.Silent(time.Now())
		text := []byte(handoff.Encode(m))
		g, valid := handoff.Grant{}, true
		var unread error
		if s.cfg.Grant != nil {
			g, valid, unread = s.cfg.Grant(ctx, k.Caller.Principal, k.Login)
		}
		status := http.StatusGone
		switch {
		case unread != nil:
			s.failed.Add(1)
			s.cfg.Log.Warn("notification not sent: its login cannot be read", zap.Error(unread))
			continue
		case valid && (g.May(handoff.ActRead) != nil || !g.AllowsServer(n.Server)):
			continue
		case valid:
			status = s.send(ctx, text, k)
		}
		switch {
		case status >= 200 && status < 300:
			s.sent.Add(1)
		case status == http.StatusGone || status == http.StatusNotFound:
			if err := s.drop(ctx, k); err != nil {
				s.cfg.Log.Warn("subscription not forgotten", zap.Error(err))
			}
		default:
			s.failed.Add(1)
			s.cfg.Log.Warn("notification not sent", zap.Int("status", status))
		}
	}
}

// send sends a message to a push service, and returns the HTTP status; 0 if there was no answer.
func (s *Sender) send(ctx context.Context, text []byte, k subscription) int {
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

// Metrics yields the metrics of the sender.
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
