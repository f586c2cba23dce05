package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// logIn posts a key as the page does.
func logIn(s *Server, body string, adjust func(*http.Request)) *httptest.ResponseRecorder {
	return ask(s, "POST", "/login", body, func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Origin", "http://"+r.Host)
		if adjust != nil {
			adjust(r)
		}
	})
}

func TestLogin(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	rec := logIn(s, `{"key":"`+ownerKey+`"}`, nil)
	if rec.Code != http.StatusNoContent {
		t.Fatalf("login: %d %s", rec.Code, rec.Body)
	}
	cookies := rec.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("got %d cookies", len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.MaxAge <= 0 || c.Name != "switchboard-8080" {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(c.Value, ownerKey) {
		t.Error("the cookie holds the key")
	}
	use := func(s *Server) int {
		return ask(s, "GET", "/fleet/handoffs", "", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(c)
		}).Code
	}
	if got := use(s); got != http.StatusOK {
		t.Errorf("with the cookie: %d", got)
	}
	if got := w.log(); len(got) != 1 || got[0] != "handoffs owner" {
		t.Errorf("asked %q", got)
	}
	if got := use(newServer(t, w, nil)); got != http.StatusOK {
		t.Errorf("after a restart: %d", got)
	}
	if got := use(newServer(t, w, func(cfg *Config) { cfg.Keys = []Key{NewKey("owner", "a new key")} })); got != http.StatusUnauthorized {
		t.Errorf("after the key changed: %d", got)
	}
	if got := use(newServer(t, w, func(cfg *Config) { cfg.CookieSecret = []byte("another secret of thirty-two byte") })); got != http.StatusUnauthorized {
		t.Errorf("with another secret: %d", got)
	}
}

func TestLoginIsSecureBehindTLS(t *testing.T) {
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.PublicURL = tailnet })
	rec := logIn(s, `{"key":"`+ownerKey+`"}`, func(r *http.Request) {
		r.Host = tailHost
		r.Header.Set("Origin", tailnet)
	})
	cookies := rec.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].Secure || cookies[0].Name != secureCookie {
		t.Fatalf("got %d %v", rec.Code, cookies)
	}
}

func TestLoginRefused(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	for body, want := range map[string]handoff.Code{
		`{"key":"wrong"}`:                  handoff.CodeUnauthorized,
		`{"key":""}`:                       handoff.CodeUnauthorized,
		`{}`:                               handoff.CodeUnauthorized,
		``:                                 handoff.CodeMalformed,
		`{`:                                handoff.CodeMalformed,
		`"` + ownerKey + `"`:               handoff.CodeMalformed,
		`{"key":7}`:                        handoff.CodeMalformed,
		`{"key":"` + ownerKey + `","x":1}`: handoff.CodeMalformed,
		`{"key":"` + ownerKey + `"} {}`:    handoff.CodeMalformed,
		`{"key":"` + strings.Repeat("a", 32<<10) + `}`: handoff.CodeTooLarge,
	} {
		rec := logIn(s, body, nil)
		if got := codeOf(t, rec); got != want {
			t.Errorf("login %.40s: got %s, want %s", body, got, want)
		}
		if len(rec.Result().Cookies()) > 0 {
			t.Errorf("login %.40s: a cookie came with it", body)
		}
	}
}

func TestCookieToken(t *testing.T) {
	a := newAuth(config(newWorld(), "127.0.0.1:8080"))
	owner, other := NewKey("owner", ownerKey), NewKey("other", otherKey)
	now := time.Unix(1_800_000_000, 0)
	token := a.seal(owner, now.Add(time.Hour))
	if key, ok := a.open(token, now); !ok || key.Sum != owner.Sum {
		t.Errorf("opened %v %v", key.Principal, ok)
	}
	if _, ok := a.open(token, now.Add(time.Hour)); ok {
		t.Error("a login outlived its end")
	}
	if token == a.seal(other, now.Add(time.Hour)) {
		t.Error("two keys have one token")
	}
	for i := range len(token) {
		changed := []byte(token)
		changed[i] ^= 4
		if _, ok := a.open(string(changed), now); ok && !sameBits(string(changed), token) {
			t.Errorf("a token with byte %d changed opens", i)
		}
	}
	for _, bad := range []string{"", "AAAA", token + "A", token[:len(token)-4], "!" + token[1:]} {
		if _, ok := a.open(bad, now); ok {
			t.Errorf("token %q opens", bad)
		}
	}
}

// sameBits: the last letter of base64 holds bits that are not part of the token.
func sameBits(a, b string) bool { return a[:len(a)-1] == b[:len(b)-1] }

func TestNewRefuses(t *testing.T) {
	for name, adjust := range map[string]func(*Config){
		"no key":        func(c *Config) { c.Keys = nil },
		"no router":     func(c *Config) { c.Work = nil },
		"no listen":     func(c *Config) { c.Listen = "" },
		"no port":       func(c *Config) { c.Listen = "localhost" },
		"bad public":    func(c *Config) { c.PublicURL = "bigpc" },
		"other public":  func(c *Config) { c.PublicURL = "ftp://bigpc" },
		"public letter": func(c *Config) { c.PublicURL = "https://%" },
	} {
		cfg := config(newWorld(), "127.0.0.1:8080")
		adjust(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
