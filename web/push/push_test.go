package push

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"switchboard/handoff"
)

var owner = handoff.Caller{Principal: "owner"}

// A browser is the far end: it has keys, and a push service that takes messages for it.
type browser struct {
	t    *testing.T
	key  *ecdh.PrivateKey
	auth []byte
	url  string

	mu     sync.Mutex
	got    []message // Guarded by mu
	signed string    // Guarded by mu: how the last one was signed
	status int       // Guarded by mu: what is answered
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	must(t, err)
	b := &browser{t: t, key: key, auth: []byte("sixteen bytes of"), status: http.StatusCreated}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL + "/push/abc"
	return b
}

func (b *browser) subscribe(s *Sender, login string) error {
	to := b.subscription()
	return s.Subscribe(b.t.Context(), owner, login, to.Endpoint, to.Keys.P256dh, to.Keys.Auth, handoff.Wishes{})
}

func (b *browser) subscription() webpush.Subscription {
	text := base64.RawURLEncoding.EncodeToString
	return webpush.Subscription{
		Endpoint: b.url, Keys: webpush.Keys{P256dh: text(b.key.PublicKey().Bytes()), Auth: text(b.auth)},
	}
}

func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text, err := b.open(body)
	var m message
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || r.Header.Get("Content-Encoding") != "aes128gcm" || r.Header.Get("TTL") == "" {
		b.t.Errorf("message %q, %v, %v", text, err, r.Header)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got, b.signed = append(b.got, m), r.Header.Get("Authorization")
	w.WriteHeader(b.status)
}

// open decrypts a message as RFC 8291 says.
func (b *browser) open(body []byte) ([]byte, error) {
	if len(body) < 86 || body[20] != 65 {
		return nil, errors.New("no header")
	}
	salt, theirs, sealed := body[:16], body[21:86], body[86:]
	public, err := ecdh.P256().NewPublicKey(theirs)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(b.key.PublicKey().Bytes()) + string(theirs)
	ikm, err := hkdf.Key(sha256.New, shared, b.auth, info, 32)
	if err != nil {
		return nil, err
	}
	key, err1 := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, err2 := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	block, err3 := aes.NewCipher(key)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	text, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	return []byte(strings.TrimRight(strings.TrimRight(string(text), "\x00"), "\x02")), nil
}

func (b *browser) messages() []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]message(nil), b.got...)
}

// running opens a sender and runs it until the test ends.
func running(t *testing.T, cfg Config) *Sender {
	t.Helper()
	cfg.Plain, cfg.Subject = true, "https://switchboard.example"
	s, err := Open(t.Context(), cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !what(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}

// TestNoticesReachBrowsers: a notice reaches only the browsers of its caller, encrypted and signed, even after a
// restart.
func TestNoticesReachBrowsers(t *testing.T) {
	store, dir := newMemory(), t.TempDir()
	b := newBrowser(t)
	first, err := Open(t.Context(), Config{Store: store, Dir: dir, Plain: true})
	must(t, err)
	must(t, b.subscribe(first, "l1"))
	s := running(t, Config{Store: store, Dir: dir})
	if s.Key() != first.Key() || len(s.Key()) != 87 {
		t.Errorf("keys %q and %q", s.Key(), first.Key())
	}
	other := handoff.Caller{Principal: "somebody"}
	s.Notify(handoff.Notice{Caller: other, Kind: handoff.NoticeOutcome, Text: "not for you"})
	s.Notify(handoff.Notice{Caller: owner, Kind: handoff.NoticeQuestion, Handoff: "h1", Question: "q1", Server: "bigpc", Title: "auth", Text: strings.Repeat("é", 2000)})
	waitFor(t, func() bool { return len(b.messages()) == 1 && s.sent.Load() == 1 })
	m := b.messages()[0]
	if m.Title != "bigpc: auth" || m.Question != "q1" || m.ID != "h1" || m.Kind != handoff.NoticeQuestion || len(m.Text) > maxText {
		t.Errorf("message %+v", m)
	}
	b.mu.Lock()
	if !strings.HasPrefix(b.signed, "vapid t=") || !strings.Contains(b.signed, "k="+s.Key()) {
		t.Errorf("signed %q", b.signed)
	}
	b.mu.Unlock()
}

// TestSubscriptionsEnd: a subscription ends with its login, and when the push service says that it has ended.
func TestSubscriptionsEnd(t *testing.T) {
	var mu sync.Mutex
	alive, unread := true, errors.New("the store is away")
	grant := func(_ context.Context, principal, login string) (handoff.Grant, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return handoff.Grant{Servers: []string{"bigpc"}}, alive && principal == "owner" && login == "l1", unread
	}
	s := running(t, Config{Store: newMemory(), Dir: t.TempDir(), Grant: grant})
	left := func() int {
		all, err := s.subscriptions(t.Context())
		must(t, err)
		return len(all)
	}
	gone, out := newBrowser(t), newBrowser(t)
	gone.status = http.StatusGone
	must(t, gone.subscribe(s, "l1"))
	must(t, out.subscribe(s, "l1"))
	s.Notify(handoff.Notice{Caller: owner, Server: "bigpc", Text: "nobody knows what its login may read"})
	waitFor(t, func() bool { return s.failed.Load() == 2 && left() == 2 })
	mu.Lock()
	unread = nil
	mu.Unlock()
	s.Notify(handoff.Notice{Caller: owner, Server: "laptop", Text: "its key may not use that machine"})
	s.Notify(handoff.Notice{Caller: owner, Server: "bigpc", Text: "a"})
	waitFor(t, func() bool { return left() == 1 && len(out.messages()) == 1 })
	mu.Lock()
	alive = false
	mu.Unlock()
	s.Notify(handoff.Notice{Caller: owner, Server: "bigpc", Text: "b"})
	waitFor(t, func() bool { return left() == 0 })
	if all := out.messages(); len(all) != 1 || all[0].Text != "a" {
		t.Errorf("it was told %+v", all)
	}
	for range maxOfCaller + 3 {
		must(t, newBrowser(t).subscribe(s, "l1"))
	}
	if n := left(); n != maxOfCaller {
		t.Errorf("%d subscriptions of one caller", n)
	}
}

// TestSubscribedAnewMeanwhile: a browser that asks anew while its former login is found to have ended stays subscribed.
func TestSubscribedAnewMeanwhile(t *testing.T) {
	var s *Sender
	b := newBrowser(t)
	s = running(t, Config{Store: newMemory(), Dir: t.TempDir(), Grant: func(_ context.Context, _, login string) (handoff.Grant, bool, error) {
		if login == "l1" {
			if err := b.subscribe(s, "l2"); err != nil {
				t.Error(err)
			}
		}
		return handoff.Grant{}, login == "l2", nil
	}})
	must(t, b.subscribe(s, "l1"))
	s.Notify(handoff.Notice{Caller: owner, Text: "a"})
	s.Notify(handoff.Notice{Caller: owner, Text: "b"})
	waitFor(t, func() bool { return s.sent.Load() == 1 || s.subscribed.Load() == 0 })
	if got := b.messages(); len(got) != 1 || got[0].Text != "b" {
		t.Errorf("it got %+v", got)
	}
}

// TestNoOtherAddresses: only addresses that can be push services are accepted.
func TestNoOtherAddresses(t *testing.T) {
	s, err := Open(t.Context(), Config{Store: newMemory(), Dir: t.TempDir()})
	must(t, err)
	for endpoint, ok := range map[string]bool{
		"https://fcm.googleapis.com/fcm/send/x": true, "https://updates.push.services.mozilla.com/wpush/v2/x": true,
		"http://push.example.com/x": false, "https://127.0.0.1/x": false, "https://localhost/x": false, "https://[::1]/x": false, "https://10.0.0.1:8443/": false, "https://push.corp.example:6443/x": false, "https://fcm.googleapis.com:443/x": true,
		"https://me:pw@push.example.com/": false, "file:///etc/passwd": false, "": false, "https://push.example.com/" + strings.Repeat("x", 1000): false,
	} {
		if err := s.Subscribe(t.Context(), owner, "l", endpoint, "p", "a", handoff.Wishes{}); (err == nil) != ok {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// TestNothingPrivateIsCalled: whatever a name of a push service turns out to mean, no connection goes to a private
// address.
func TestNothingPrivateIsCalled(t *testing.T) {
	s, err := Open(t.Context(), Config{Store: newMemory(), Dir: t.TempDir()})
	must(t, err)
	here, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	called := make(chan error, 1)
	go func() {
		conn, err := here.Accept()
		if err == nil {
			_ = conn.Close()
		}
		called <- err
	}()
	b := newBrowser(t)
	b.url = "https://" + here.Addr().String() + "/push" // as what a name means that passed
	one := subscription{Caller: owner, To: b.subscription()}
	if status := s.send(t.Context(), []byte("{}"), one); status != 0 {
		t.Errorf("it answered %d", status)
	}
	_ = here.Close()
	if err := <-called; err == nil {
		t.Error("this machine was called")
	}
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestContact: the sender is an https address with a domain, or an address of mail; Apple takes no other.
func TestContact(t *testing.T) {
	const mail = "switchboard@example.com"
	for address, want := range map[string]string{
		"https://bigpc.tail1234.ts.net": "https://bigpc.tail1234.ts.net", "https://Voice.Example.com:8443/x": "https://voice.example.com",
		"": mail, "http://bigpc.example.com": mail, "https://localhost:8080": mail, "https://bigpc": mail, "https://bigpc.local": mail,
		"https://10.0.0.1": mail, "https://[fd00::1]": mail, "https://a.localhost": mail, "https://switchboard.invalid": mail, "::": mail,
	} {
		if got := Contact(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}
