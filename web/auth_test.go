package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// logIn posts a key as the page does.
func logIn(s *Server, body string, adjust func(*http.Request)) *httptest.ResponseRecorder {
	return postKeyless(s, "/login", body, adjust)
}

// postKeyless posts without a key, as a page does that is not logged in.
func postKeyless(s *Server, path, body string, adjust func(*http.Request)) *httptest.ResponseRecorder {
	return ask(s, "POST", path, body, func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Origin", "http://"+r.Host)
		if adjust != nil {
			adjust(r)
		}
	})
}

// a token is what a login answers.
type tokenAnswer struct{ Token, ID, Principal string }

// tokenOf logs in and reads the token.
func tokenOf(t *testing.T, s *Server, body string, adjust func(*http.Request)) tokenAnswer {
	t.Helper()
	rec := logIn(s, body, adjust)
	var got tokenAnswer
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK || got.Token == "" {
		t.Fatalf("login: %d %s", rec.Code, rec.Body)
	}
	if len(rec.Result().Cookies()) > 0 {
		t.Error("a cookie came with it")
	}
	return got
}

// use asks for something with a token and returns the status.
func (a tokenAnswer) use(s *Server, adjust func(*http.Request)) int {
	return ask(s, "GET", "/fleet/handoffs", "", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+a.Token)
		if adjust != nil {
			adjust(r)
		}
	}).Code
}

func byKey(key string) string { return `{"key":"` + key + `"}` }

func TestLogin(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	got := tokenOf(t, s, byKey(ownerKey), func(r *http.Request) {
		r.Header.Set("User-Agent", "Browser\x00 1"+strings.Repeat("x", 300))
	})
	if status := got.use(s, nil); status != http.StatusOK {
		t.Errorf("with the token: %d", status)
	}
	l := w.kept[0]
	if l.Sum != sha256.Sum256([]byte(got.Token)) || l.ID != got.ID || l.Principal != "owner" || l.Host != "127.0.0.1:8080" || !strings.HasPrefix(l.Device, "Browser 1x") || len(l.Device) > maxDevice {
		t.Errorf("kept %+v", l)
	}
	for name, row := range map[string]struct {
		s      *Server
		adjust func(*http.Request)
		want   int
	}{
		"after a restart": {newServer(t, w, nil), nil, http.StatusOK},
		"after the key changed": {
			newServer(t, w, func(cfg *Config) { cfg.Keys = []Key{NewKey("owner", "a new key")} }), nil, http.StatusUnauthorized,
		},
		"the key is somebody's now": {
			newServer(t, w, func(cfg *Config) { cfg.Keys = []Key{NewKey("other", ownerKey)} }), nil, http.StatusUnauthorized,
		},
		"at another host": {s, func(r *http.Request) { r.Host = "localhost:8080" }, http.StatusUnauthorized},
		"changed": {
			s, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+got.Token+"A") }, http.StatusUnauthorized,
		},
		"as a cookie": {s, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "t", Value: got.Token})
		}, http.StatusUnauthorized},
	} {
		if status := got.use(row.s, row.adjust); status != row.want {
			t.Errorf("%s: %d, want %d", name, status, row.want)
		}
	}
	w.change(func(w *world) { w.failLogins = handoff.Fault(handoff.CodeStoreDown, "", "") })
	if status := got.use(s, nil); status != http.StatusServiceUnavailable {
		t.Errorf("without the store: %d", status)
	}
	w.change(func(w *world) { w.failLogins = nil; w.kept[0].Ends = time.Now() })
	if status := got.use(s, nil); status != http.StatusUnauthorized {
		t.Errorf("after its end: %d", status)
	}
}

// TestLoginByLink: a link logs in once, within ten minutes, as a principal whose key has a text or none.
func TestLoginByLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newServer(t, w, func(cfg *Config) { cfg.Keys = append([]Key{{Principal: "guest"}}, cfg.Keys...) })
		for _, principal := range []string{"owner", "guest"} {
			code, err := s.NewCode(t.Context(), principal)
			must(t, err)
			got := tokenOf(t, s, `{"code":"`+code+`"}`, nil)
			if status := got.use(s, nil); status != http.StatusOK || got.Principal != principal {
				t.Errorf("%s: %d as %s", principal, status, got.Principal)
			}
			if again := codeOf(t, logIn(s, `{"code":"`+code+`"}`, nil)); again != handoff.CodeLoginOver {
				t.Errorf("the link counts twice: %s", again)
			}
		}
		if _, err := s.NewCode(t.Context(), "nobody"); err == nil {
			t.Error("nobody got a link")
		}
		code, err := s.NewCode(t.Context(), "owner")
		must(t, err)
		time.Sleep(codeLife)
		if late := codeOf(t, logIn(s, `{"code":"`+code+`"}`, nil)); late != handoff.CodeLoginOver {
			t.Errorf("after ten minutes: %s", late)
		}
		first, _ := s.NewCode(t.Context(), "owner")
		for range sessions.MaxCodes {
			_, _ = s.NewCode(t.Context(), "owner")
		}
		if many := codeOf(t, logIn(s, `{"code":"`+first+`"}`, nil)); many != handoff.CodeLoginOver || len(w.codes) != sessions.MaxCodes {
			t.Errorf("links are not bounded: %s, %d kept", many, len(w.codes))
		}
	})
}

func TestLoginsAreListedAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newServer(t, w, nil)
		phone, desk, other := tokenOf(t, s, byKey(ownerKey), nil), tokenOf(t, s, byKey(ownerKey), nil), tokenOf(t, s, byKey(otherKey), nil)
		for _, l := range w.kept {
			if g, ok := s.LoginGrant(l); !ok || g.Caller.Principal != l.Principal {
				t.Errorf("a login of %s may do %+v, %t", l.Principal, g, ok)
			}
		}
		if _, ok := s.LoginGrant(sessions.Login{Principal: "owner", Key: [32]byte{1}, Ends: time.Now().Add(1)}); ok {
			t.Error("a login outlives its key")
		}
		time.Sleep(loginUsed)
		if phone.use(s, nil) != http.StatusOK || w.kept[0].ID != phone.ID || !w.kept[0].Used.Equal(time.Now()) {
			t.Errorf("the use is not written: %+v", w.kept)
		}
		asPhone := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+phone.Token) }
		var list struct{ Items []loginInfo }
		rec := ask(s, "GET", "/login", "", asPhone)
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list.Items) != 2 || list.Items[0].ID != phone.ID || !list.Items[0].This || list.Items[1].ID != desk.ID || list.Items[1].This {
			t.Errorf("list %s %v", rec.Body, err)
		}
		if strings.Contains(rec.Body.String(), phone.Token) || strings.Contains(strings.ToLower(rec.Body.String()), "sum") {
			t.Errorf("the list tells too much: %s", rec.Body)
		}
		if rec := ask(s, "DELETE", "/login/"+other.ID, "", asPhone); codeOf(t, rec) != handoff.CodeNotFound || other.use(s, nil) != http.StatusOK {
			t.Error("somebody else was logged out")
		}
		if rec := ask(s, "DELETE", "/login/"+desk.ID, "", asPhone); rec.Code != http.StatusNoContent || desk.use(s, nil) != http.StatusUnauthorized || phone.use(s, nil) != http.StatusOK {
			t.Errorf("logged out: %d", rec.Code)
		}
		for range maxLogins + 3 {
			tokenOf(t, s, byKey(ownerKey), nil)
		}
		if all, _ := w.Logins(t.Context(), "owner"); len(all) != maxLogins || phone.use(s, nil) != http.StatusUnauthorized {
			t.Errorf("%d logins are kept", len(all))
		}
	})
}

// TestLoginProof: the server proves that it knows a token without seeing it, and an eavesdropper cannot use the proof.
func TestLoginProof(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, func(cfg *Config) { cfg.PublicURL = tailnet })
	got := tokenOf(t, s, byKey(ownerKey), nil)
	const nonce = "AAAAAAAAAAAAAAAAAAAAAAAA"
	prove := func(principal, id, nonce string, adjust func(*http.Request)) *httptest.ResponseRecorder {
		body, _ := json.Marshal(map[string]string{"principal": principal, "id": id, "nonce": nonce})
		return postKeyless(s, "/login/proof", string(body), adjust)
	}
	key := sha256.Sum256([]byte(got.Token))
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("switchboard login proof v1\n127.0.0.1:8080\n" + nonce))
	want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	var answer struct{ Proof string }
	rec := prove("owner", got.ID, nonce, nil)
	if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || answer.Proof != want {
		t.Fatalf("proof %d %s, want %s", rec.Code, rec.Body, want)
	}
	there := func(r *http.Request) { r.Host = tailHost; r.Header.Set("Origin", tailnet) }
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"another id": prove("owner", "other", nonce, nil), "another principal": prove("other", got.ID, nonce, nil), "another host": prove("owner", got.ID, nonce, there),
	} {
		if code := codeOf(t, rec); code != handoff.CodeUnauthorized {
			t.Errorf("%s: %s", name, code)
		}
	}
	for _, bad := range []string{"", "short", strings.Repeat("a", 200)} {
		if code := codeOf(t, prove("owner", got.ID, bad, nil)); code != handoff.CodeMalformed {
			t.Errorf("nonce %q: %s", bad, code)
		}
	}
	s.SetKeys([]Key{NewKey("owner", "a new key")})
	if code := codeOf(t, prove("owner", got.ID, nonce, nil)); code != handoff.CodeUnauthorized {
		t.Errorf("of a login that ended: %s", code)
	}
	w.change(func(w *world) { w.failLogins = errors.New("no store") })
	if code := codeOf(t, prove("owner", got.ID, nonce, nil)); code != handoff.CodeInternal {
		t.Errorf("without the store: %s", code)
	}
}

func TestLoginRefused(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	for body, want := range map[string]handoff.Code{
		`{"key":"wrong"}`:  handoff.CodeUnauthorized,
		`{"key":""}`:       handoff.CodeUnauthorized,
		`{}`:               handoff.CodeUnauthorized,
		`{"code":"WRONG"}`: handoff.CodeLoginOver,
		`{"code":"WRONG","key":"` + ownerKey + `"}`: handoff.CodeMalformed,
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
		if len(w.kept) > 0 || len(rec.Result().Cookies()) > 0 {
			t.Errorf("login %.40s: it left a login or a cookie", body)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, adjust := range map[string]func(*Config){
		"no key":        func(c *Config) { c.Keys = nil },
		"no store":      func(c *Config) { c.Store = nil },
		"no router":     func(c *Config) { c.Router = nil },
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
