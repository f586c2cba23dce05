package web

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// minted is what the order of a client secret answers.
type minted struct {
	Value     string         `json:"value"`
	ExpiresAt int64          `json:"expires_at"`
	Session   map[string]any `json:"session"`
}

// mint orders a secret with the owner's key.
func mint(t *testing.T, s *Server, body string, adjust func(*http.Request)) minted {
	t.Helper()
	rec := ask(s, "POST", "/v1/realtime/client_secrets", body, adjust)
	var got minted
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK ||
		!strings.HasPrefix(got.Value, "ek_") ||
		len(got.Value) < 40 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	return got
}

// with asks for something with a secret.
func (m minted) with(s *Server, method, path string, adjust func(*http.Request)) *httptest.ResponseRecorder {
	return ask(s, method, path, "v=0", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+m.Value)
		if adjust != nil {
			adjust(r)
		}
	})
}

func TestClientSecret(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, func(cfg *Config) { cfg.Voice.Model = "gpt-usual" })
	began := time.Now().Unix()
	const order = `{"expires_after":{"anchor":"created_at","seconds":60},"session":{"type":"realtime","instructions":"Be brief."}}`
	got := mint(t, s, order, nil)
	if got.ExpiresAt < began+58 || got.ExpiresAt > time.Now().Unix()+60 {
		t.Errorf("expires at %d, %d s from now", got.ExpiresAt, got.ExpiresAt-began)
	}
	if id := fmt.Sprint(got.Session["id"]); got.Session["type"] != "realtime" ||
		got.Session["object"] != "realtime.session" ||
		got.Session["model"] != "gpt-usual" ||
		got.Session["instructions"] != "Be brief." ||
		!strings.HasPrefix(id, "sess_") {
		t.Errorf("session %v", got.Session)
	}
	kept := w.secrets[sha256.Sum256([]byte(got.Value))]
	if text, _ := json.Marshal(kept); kept.Principal != "owner" || strings.Contains(string(text), got.Value) ||
		string(kept.Session) != `{"type":"realtime","instructions":"Be brief."}` {
		t.Errorf("kept %s", text)
	}
	for name, adjust := range map[string]func(*http.Request){
		"at home": nil, "elsewhere": func(r *http.Request) { r.Header.Set("Origin", elsewhere); r.Host = "switchboard:8080" },
	} {
		if rec := got.with(s, "POST", "/v1/realtime/calls", adjust); codeOf(t, rec) != handoff.CodeVoiceUnreachable {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		rec := got.with(s, "GET", "/v1/realtime", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-WebSocket-Protocol", "realtime, "+protocolKey+got.Value)
			if adjust != nil {
				adjust(r)
			}
		})
		if rec.Code != http.StatusNoContent {
			t.Errorf("%s, socket: %d %s", name, rec.Code, rec.Body)
		}
	}
	if asked := strings.Join(w.log(), ";"); asked != "calls owner v=0;socket owner;calls owner v=0;socket owner" {
		t.Errorf("asked %q", asked)
	}
}

// TestClientSecretOpensNothingElse: a client secret can be used for routes that begin calls, and for no others.
func TestClientSecretOpensNothingElse(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	got := mint(t, s, "{}", nil)
	opens := map[string]bool{"GET /v1/realtime": true, "POST /v1/realtime/calls": true}
	for pattern, r := range s.known {
		method, path, _ := strings.Cut(pattern, " ")
		if r.access == accessPublic || opens[pattern] {
			continue
		}
		path = strings.NewReplacer("{id}", "x", "{server}", "x", "{server...}", "x", "{thread}", "x").Replace(path)
		if code := codeOf(t, got.with(s, method, path, nil)); code != handoff.CodeNotGranted {
			t.Errorf("%s: %s", pattern, code)
		}
	}
	if asked := w.log(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// TestGrantOfAClientSecret: a client secret has the present rights of its key, less those that need the key or a
// person.
func TestGrantOfAClientSecret(t *testing.T) {
	key := NewKey("assistant", otherKey)
	key.Servers, key.Tools, key.Approve, key.Metrics, key.Instructions = []string{
		"helper",
	}, []string{
		"codex",
	}, handoff.ApproveAll, true, handoff.InstructAll
	key.Limits, key.KeyLimits = handoff.Limits{Calls: 2}, handoff.Limits{Calls: 9}
	many := key
	many.Principal, many.NamesCallers = "many", true
	for name, row := range map[string]struct {
		key         Key
		made, used  string // names in the header
		user, model string // the caller's, and what the model's server is told
	}{
		"a key":                           {key, "", "", "", ""},
		"a key with a name":               {key, "alice", "", "", "alice"},
		"a name that the page makes up":   {key, "", "mallory", "", ""},
		"a key of many":                   {many, "alice", "", "alice", "alice"},
		"another name by the page":        {many, "alice", "bob", "alice", "alice"},
		"a key of many without a name":    {many, "", "", "~", ""},
		"a name by the page, none before": {many, "", "bob", "~", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			s := newServer(t, w, func(cfg *Config) { cfg.Keys = []Key{NewKey("owner", ownerKey), row.key} })
			got := mint(t, s, `{"session":{"model":"m"}}`, func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+otherKey)
				if row.made != "" {
					r.Header.Set(callerHeader, row.made)
				}
			})
			r := httptest.NewRequest("POST", "/v1/realtime/calls", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+got.Value)
			if row.used != "" {
				r.Header.Set(callerHeader, row.used)
			}
			g, err := s.auth.grant(r, time.Now())
			must(t, err)
			user := g.Caller.User
			if g.Caller.Nameless() {
				user = "~"
			}
			if g.Caller.Principal != row.key.Principal || user != row.user || r.Header.Get(callerHeader) != row.model {
				t.Errorf("caller %+v, the model is told %q", g.Caller, r.Header.Get(callerHeader))
			}
			if !g.Secret || g.Approve != handoff.ApproveVoice || g.Metrics || g.Page || g.Instructions != handoff.InstructAll ||
				len(g.Servers) != 1 ||
				len(g.Tools) != 1 ||
				g.Limits != key.Limits ||
				g.KeyLimits != key.KeyLimits ||
				g.Key != key.name() ||
				string(g.Session) != `{"model":"m"}` {
				t.Errorf("grant %+v", g)
			}
			s.SetKeys([]Key{NewKey("owner", ownerKey)})
			if _, err := s.auth.grant(r, time.Now()); err == nil || handoff.AsError(err).Code != handoff.CodeSecretOver {
				t.Errorf("it outlives its key: %v", err)
			}
		})
	}
}

// TestApproveOfAClientSecret: a client secret is for calls: a yes in them counts as far as one of its key.
func TestApproveOfAClientSecret(t *testing.T) {
	for of, want := range map[handoff.Approval]handoff.Approval{
		handoff.ApproveNone: handoff.ApproveNone, handoff.ApproveVoice: handoff.ApproveVoice, handoff.ApproveAll: handoff.ApproveVoice,
	} {
		s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys[0].Approve = of })
		r := httptest.NewRequest("POST", "/v1/realtime/calls", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+mint(t, s, "{}", nil).Value)
		if g, err := s.auth.grant(r, time.Now()); err != nil || g.Approve != want {
			t.Errorf("of a key with approve: %s it has %s, %v", of, g.Approve, err)
		}
	}
}

func TestClientSecretEnds(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	got := mint(t, s, "{}", nil)
	if rec := got.with(newServer(t, w, nil), "POST", "/v1/realtime/calls", nil); codeOf(
		t,
		rec,
	) != handoff.CodeVoiceUnreachable {
		t.Errorf("after a restart: %s", rec.Body)
	}
	r := httptest.NewRequest("POST", "/v1/realtime/calls", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+got.Value)
	for after, open := range map[time.Duration]bool{9 * time.Minute: true, 10*time.Minute + time.Second: false} {
		if _, err := s.auth.grant(r, time.Now().Add(after)); (err == nil) != open {
			t.Errorf("after %v: %v", after, err)
		}
	}
	for name, text := range map[string]string{"another": got.Value[:len(got.Value)-1] + "-", "short": "ek_x", "longer": got.Value + "x"} {
		if code := codeOf(t, minted{Value: text}.with(s, "POST", "/v1/realtime/calls", nil)); code != handoff.CodeSecretOver {
			t.Errorf("%s: %s", name, code)
		}
	}
	w.change(func(w *world) { w.failLogins = handoff.Fault(handoff.CodeStoreDown, "", "") })
	if code := codeOf(t, got.with(s, "POST", "/v1/realtime/calls", nil)); code != handoff.CodeStoreDown {
		t.Errorf("without the store: %s", code)
	}
}

func TestOrdersOfClientSecrets(t *testing.T) {
	long := strings.Repeat("x", maxConfigured)
	for body, param := range map[string]string{
		`{}`:                                                 "ok",
		`{"session":null,"expires_after":null}`:              "ok",
		`{"expires_after":{}}`:                               "ok",
		`{"expires_after":{"seconds":10}}`:                   "ok",
		`{"expires_after":{"seconds":7200}}`:                 "ok",
		`{"expires_after":{"seconds":9}}`:                    "expires_after.seconds",
		`{"expires_after":{"seconds":7201}}`:                 "expires_after.seconds",
		`{"expires_after":{"seconds":0}}`:                    "expires_after.seconds",
		`{"expires_after":{"seconds":-60}}`:                  "expires_after.seconds",
		`{"expires_after":{"seconds":60.5}}`:                 "expires_after.seconds",
		`{"expires_after":{"seconds":1e3}}`:                  "expires_after.seconds",
		`{"expires_after":{"seconds":99999999999999999999}}`: "expires_after.seconds",
		`{"expires_after":{"anchor":"now"}}`:                 "expires_after.anchor",
		`{"session":{"type":"transcription"}}`:               "session.type",
		`{"session":[]}`:                                     "session",
		`{"session":{"tools":[7]}}`:                          "session.tools[0]",
		`{"session":{"instructions":"` + long + `"}}`:        "session",
		`{"sessions":{}}`:                                    "sessions",
		`{"expires_after":7}`:                                "expires_after",
		`{"expires_after":{"seconds":true}}`:                 "expires_after.seconds",
		`{"expires_after":{"minutes":1}}`:                    "minutes",
		`[]`:                                                 "",
		`{`:                                                  "",
	} {
		w := newWorld()
		rec := ask(newServer(t, w, nil), "POST", "/v1/realtime/client_secrets", body, nil)
		if param == "ok" {
			if rec.Code != http.StatusOK {
				t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
			}
			continue
		}
		var p struct{ Error handoff.Problem }
		_ = json.Unmarshal(rec.Body.Bytes(), &p)
		got := ""
		if p.Error.Param != nil {
			got = *p.Error.Param
		}
		if rec.Code != http.StatusBadRequest || got != param || p.Error.Type != "invalid_request_error" ||
			len(w.secrets) > 0 {
			t.Errorf("%.80s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

// TestClientSecretsAreBounded: the number of client secrets of a principal is limited; a refused request gets a
// Retry-After, and is counted.
func TestClientSecretsAreBounded(t *testing.T) {
	w := newWorld()
	w.mostSecrets = 2
	s := newServer(t, w, nil)
	mint(t, s, "{}", nil)
	mint(t, s, "{}", nil)
	rec := ask(s, "POST", "/v1/realtime/client_secrets", "{}", nil)
	if code := codeOf(t, rec); code != handoff.CodeLimited || rec.Header().Get("Retry-After") == "" {
		t.Errorf("%s %v", code, rec.Header())
	}
	if made, refused := s.secrets.made.Load(), s.secrets.refused.Load(); made != 2 || refused != 1 {
		t.Errorf("counted %d and %d", made, refused)
	}
}
