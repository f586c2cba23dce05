package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/handoff"
)

// A scriptedHook answers requests without a network: each with the next reply, the last one for ever.
type scriptedHook struct {
	replies []string // a status, "STATUS RETRY-AFTER", "lost" or "silent"

	mu    sync.Mutex
	tries []string        // Guarded by mu: ids of the notices
	keys  map[string]bool // Guarded by mu
}

func (s *scriptedHook) RoundTrip(req *http.Request) (*http.Response, error) {
	var m notice
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.tries = append(s.tries, m.ID)
	s.keys[req.Header.Get("Idempotency-Key")] = true
	reply := s.replies[0]
	s.replies = s.replies[min(1, len(s.replies)-1):]
	s.mu.Unlock()
	resp := &http.Response{Header: http.Header{}, Body: http.NoBody, Request: req}
	switch n, _ := fmt.Sscan(reply, &resp.StatusCode, new(string)); {
	case reply == "silent":
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	case n == 0:
		return nil, errors.New("connection reset")
	case n == 2:
		resp.Header.Set("Retry-After", strings.SplitN(reply, " ", 2)[1])
	}
	return resp, nil
}

// newScripted returns a webhook and what stands at its end.
func newScripted(t *testing.T, replies ...string) (*Webhook, *scriptedHook) {
	t.Helper()
	h, err := New(Config{URL: "https://ntfy.example.com/me"})
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedHook{replies: replies, keys: map[string]bool{}}
	h.client.Transport = s
	return h, s
}

func outcomeNotice(id string) handoff.Notice {
	return handoff.Notice{Kind: handoff.NoticeOutcome, Handoff: id, Server: "bigpc", Title: "Auth", Text: "All pass."}
}

func TestWebhookTries(t *testing.T) {
	for _, tt := range []struct {
		replies     []string
		tries       int
		sent        uint64
		least, most time.Duration
	}{
		{[]string{"200"}, 1, 1, 0, 0},
		{[]string{"204"}, 1, 1, 0, 0},
		{[]string{"503", "lost", "502", "200"}, 4, 1, 3500 * time.Millisecond, 7 * time.Second},
		{[]string{"500"}, noticeTries, 0, 3500 * time.Millisecond, 7 * time.Second},
		{[]string{"lost"}, noticeTries, 0, 3500 * time.Millisecond, 7 * time.Second},
		{[]string{"silent", "200"}, 2, 1, noticeTimeout + 500*time.Millisecond, noticeTimeout + time.Second},
		{[]string{"429 7", "200"}, 2, 1, 7 * time.Second, 7 * time.Second},
		{[]string{"503 86400", "200"}, 2, 1, noticeLongest, noticeLongest},
		{[]string{"503 Sat, 01 Jan 2000 00:00:20 GMT", "200"}, 2, 1, 20 * time.Second, 20 * time.Second}, // a bubble begins in 2000
		{[]string{"503 soon", "200"}, 2, 1, 500 * time.Millisecond, time.Second},
		{[]string{"400"}, 1, 0, 0, 0},
		{[]string{"401 5"}, 1, 0, 0, 0},
		{[]string{"404"}, 1, 0, 0, 0},
		{[]string{"302"}, 1, 0, 0, 0},
	} {
		t.Run(strings.Join(tt.replies, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, far := newScripted(t, tt.replies...)
				h.Notify(outcomeNotice("h-1"))
				began := time.Now()
				m, _ := h.next()
				h.deliver(t.Context(), t.Context(), m)
				if took := time.Since(began); len(far.tries) != tt.tries || took < tt.least || took > tt.most {
					t.Errorf("%d tries in %s, want %d in %s to %s", len(far.tries), took, tt.tries, tt.least, tt.most)
				}
				if h.sent.Load() != tt.sent || h.failed.Load() != 1-tt.sent || len(far.keys) != 1 {
					t.Errorf("sent %d, failed %d, with %d keys", h.sent.Load(), h.failed.Load(), len(far.keys))
				}
			})
		})
	}
}

// TestWebhookIsFull: if too many notices wait, the oldest outcome is dropped before any question.
func TestWebhookIsFull(t *testing.T) {
	h, _ := newScripted(t, "200")
	for i := range maxNotices {
		n := outcomeNotice(fmt.Sprint("o", i))
		if i%2 == 0 {
			n.Kind, n.Handoff = handoff.NoticeQuestion, fmt.Sprint("q", i)
		}
		h.Notify(n)
	}
	h.Notify(outcomeNotice("late1"))
	h.Notify(outcomeNotice("late2"))
	for range maxNotices {
		h.Notify(handoff.Notice{Kind: handoff.NoticeQuestion, Handoff: "more"})
	}
	h.Notify(handoff.Notice{Kind: handoff.NoticeQuestion, Handoff: "last"})
	var left []string
	for m, ok := h.next(); ok; m, ok = h.next() {
		left = append(left, m.ID)
	}
	want := append(slices.Repeat([]string{"more"}, maxNotices-1), "last")
	if !slices.Equal(left, want) || h.dropped.Load() != maxNotices+3 {
		t.Errorf("dropped %d, left %q", h.dropped.Load(), left)
	}
	for i := range maxNotices + 2 { // two more than fit
		h.Notify(
			handoff.Notice{
				Kind:    []handoff.NoticeKind{handoff.NoticeQuestion, handoff.NoticeOutcome}[i%2],
				Handoff: fmt.Sprint(i),
			},
		)
	}
	left = nil
	for m, ok := h.next(); ok; m, ok = h.next() {
		left = append(left, m.ID)
	}
	if len(left) != maxNotices || !slices.Equal(left[:4], []string{"0", "2", "4", "5"}) {
		t.Errorf("left %q: the two oldest outcomes must go", left)
	}
}

// TestWebhookEnds: when the process ends, each waiting notice is tried once, for a short time.
func TestWebhookEnds(t *testing.T) {
	for _, tt := range []struct {
		name, reply           string
		tries                 int
		sent, failed, dropped uint64
		took                  time.Duration
	}{
		{"there", "200", 3, 3, 0, 0, 0},
		{"down", "503", 4, 0, 3, 0, 0}, // the first was under way, and is tried once more
		{"silent", "silent", 1, 0, 1, 2, noticeGrace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, far := newScripted(t, tt.reply)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- h.Run(ctx) }()
				for i := range 3 {
					h.Notify(outcomeNotice(fmt.Sprint(i)))
				}
				synctest.Wait()
				began := time.Now()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if sent, failed, dropped := h.sent.Load(), h.failed.Load(), h.dropped.Load(); sent != tt.sent ||
					failed != tt.failed ||
					dropped != tt.dropped {
					t.Errorf("sent %d, failed %d, dropped %d", sent, failed, dropped)
				}
				if len(far.tries) != tt.tries || time.Since(began) != tt.took {
					t.Errorf("tries %q in %s", far.tries, time.Since(began))
				}
			})
		})
	}
}

// TestWebhookRequest: the request has the fields and headers that receivers rely on.
func TestWebhookRequest(t *testing.T) {
	elsewhere := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }),
	)
	defer elsewhere.Close()
	token := filepath.Join(t.TempDir(), "token")
	var headers []http.Header
	var bodies []string
	reply := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		headers, bodies = append(headers, r.Header), append(bodies, r.Method+" "+r.URL.String()+" "+string(body))
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(reply)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) // more than is read
	}))
	defer server.Close()
	h, err := New(Config{URL: server.URL + "/me?a=b", Token: func() (string, error) {
		text, err := os.ReadFile(token)
		return string(text), err
	}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(n handoff.Notice) *postFault {
		h.Notify(n)
		m, _ := h.next()
		return h.post(t.Context(), m)
	}
	if f := send(outcomeNotice("h-0")); f == nil || f.again || len(bodies) != 0 {
		t.Errorf("sent without its token: %+v", f)
	}
	for i, n := range []handoff.Notice{outcomeNotice("h-1"), {Kind: handoff.NoticeQuestion, Handoff: "h-2", Server: "laptop", Text: "a < b, " + strings.Repeat("ü", maxNoticeText)}} {
		if err := os.WriteFile(token, fmt.Append(nil, "token-", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if f := send(n); f != nil {
			t.Fatal(f)
		}
	}
	reply = http.StatusTemporaryRedirect
	if f := send(outcomeNotice("h-3")); f == nil || f.again || f.status != reply {
		t.Errorf("a redirect: %+v", f)
	}
	want := []string{
		`POST /me?a=b {"kind":"outcome","title":"bigpc: Auth","text":"All pass.","server":"bigpc","id":"h-1"}` + "\n",
		`POST /me?a=b {"kind":"question","title":"laptop","text":"a < b, ` + strings.Repeat(
			"ü",
			995,
		) + `…","server":"laptop","id":"h-2"}` + "\n",
	}
	if diff := cmp.Diff(want, bodies[:2]); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	for i, head := range headers[:2] {
		got := fmt.Sprint(head["Authorization"], head["Content-Type"], head["X-Template"], head["X-Title"], head["X-Message"])
		if want := fmt.Sprintf("[Bearer token-%d] [application/json] [yes] [{{.title}}] [{{.text}}]", i); got != want {
			t.Errorf("headers %s, want %s", got, want)
		}
	}
}

// TestWebhookHidesItsAddress: the address and the token are in no log and no error.
func TestWebhookHidesItsAddress(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	logs := &bytes.Buffer{}
	log := zap.New(
		zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(logs), zap.DebugLevel),
	)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // no second tries
	for _, base := range []string{"http://" + closed.Addr().String(), refusing.URL, "https" + strings.TrimPrefix(refusing.URL, "http")} {
		h, err := New(
			Config{URL: base + "/t0pic?auth=s3cret", Token: func() (string, error) { return "t0ken\x00", nil }, Log: log},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []func() (string, error){h.token, nil} {
			h.token = token
			h.Notify(outcomeNotice("h-1"))
			m, _ := h.next()
			h.deliver(ended, t.Context(), m)
		}
		if h.failed.Load() != 2 {
			t.Errorf("%s: %d failed", base, h.failed.Load())
		}
	}
	if _, err := New(Config{URL: "http://s3cret\x00/", Log: log}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an address that is none: %v", err)
	}
	text := logs.String()
	for _, hidden := range []string{"t0pic", "s3cret", "t0ken", "All pass", "bigpc"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in the log:\n%s", hidden, text)
		}
	}
	if !strings.Contains(text, closed.Addr().String()) || strings.Count(text, "notice not sent") != 6 {
		t.Errorf("the log does not tell what failed:\n%s", text)
	}
}

// TestNamesOfNotices: a notice about work has the same idempotency key in every process; each other notice has its own.
func TestNamesOfNotices(t *testing.T) {
	base := handoff.Notice{Caller: handoff.Caller{Principal: "owner"}, Kind: handoff.NoticeQuestion, Handoff: "h", Question: "q"}
	again := base
	again.Title, again.Text = "Auth refactor", "told in other words"
	if keyOf(base) != keyOf(again) {
		t.Error("told again it has another name")
	}
	seen := map[string]bool{keyOf(base): true}
	for _, alter := range []func(*handoff.Notice){
		func(n *handoff.Notice) { n.Caller.User = "mia" }, func(n *handoff.Notice) { n.Kind = handoff.NoticeOutcome },
		func(n *handoff.Notice) { n.Handoff = "h2" }, func(n *handoff.Notice) { n.Question = "q2" },
		func(n *handoff.Notice) { n.Kind, n.Handoff, n.Question = handoff.NoticeMachine, "", "" },
		func(n *handoff.Notice) { n.Kind, n.Handoff, n.Question = handoff.NoticeMachine, "", "" },
	} {
		n := base
		alter(&n)
		if seen[keyOf(n)] {
			t.Errorf("%+v has the name of another", n)
		}
		seen[keyOf(n)] = true
	}
}

// TestWebhookAndPrivateNames: a name that leads into a private network, as any spelling of localhost but the usual one
// here, is called only if the settings say so. An address, and localhost itself, are what they say.
func TestWebhookAndPrivateNames(t *testing.T) {
	for _, tt := range []struct {
		host    string
		private bool
		called  bool
	}{
		{"127.0.0.1", false, true}, {"localhost", false, true}, {"LocalHost", false, false}, {"LocalHost", true, true},
	} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
		_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
		h, err := New(Config{URL: "http://" + tt.host + ":" + port + "/t0pic", Private: tt.private})
		if err != nil {
			t.Fatal(err)
		}
		f := h.post(t.Context(), notice{})
		server.Close()
		if (calls == 1) != tt.called || (f == nil) != tt.called {
			t.Errorf("%s, private names %v: called %d times, %+v", tt.host, tt.private, calls, f)
		}
		if f != nil && (f.again || !strings.Contains(f.err.Error(), "notify.allow_private")) {
			t.Errorf("%s: %+v", tt.host, f)
		}
	}
}
