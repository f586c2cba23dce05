package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/sessions"
)

// ownersKeys are two keys of the owner: one that may everything, and one of a program that may look at one machine.
func ownersKeys() (full, program Key) {
	full, program = NewKey("owner", ownerKey), NewKey("owner", otherKey)
	full.Approve, full.Metrics, full.Instructions = handoff.ApproveAll, true, handoff.InstructAll
	program.Servers, program.Tools = []string{"bigpc"}, []string{tools.ListServers, tools.Status}
	program.Limits, program.KeyLimits = handoff.Limits{Calls: 1}, handoff.Limits{Calls: 2}
	return full, program
}

// by sends a request with a key or a token, as a page does.
func by(s *Server, method, path, body, key string) *httptest.ResponseRecorder {
	return ask(s, method, path, body, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Origin", "http://"+r.Host)
	})
}

// codeBy makes a code for another device.
func codeBy(t *testing.T, s *Server, key string) string {
	t.Helper()
	var made struct{ Code string }
	rec := by(s, "POST", "/login/code", "", key)
	if err := json.Unmarshal(rec.Body.Bytes(), &made); err != nil || rec.Code != http.StatusOK || made.Code == "" {
		t.Fatalf("no code: %d %s", rec.Code, rec.Body)
	}
	return made.Code
}

// TestExchangedKeyMayNoMore: the logins and devices that were made with a key, directly or by another device, have the
// rights of the key.
func TestExchangedKeyMayNoMore(t *testing.T) {
	w := newWorld()
	full, program := ownersKeys()
	s := newServer(t, w, func(cfg *Config) {
		cfg.Keys = []Key{full, program}
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	})
	token := tokenOf(t, s, byKey(otherKey), nil).Token
	device := tokenOf(t, s, `{"code":"`+codeBy(t, s, token)+`"}`, nil).Token
	another := tokenOf(t, s, `{"code":"`+codeBy(t, s, device)+`"}`, nil).Token
	for name, key := range map[string]string{"key": otherKey, "login": token, "device": device, "device of the device": another} {
		t.Run(name, func(t *testing.T) {
			g := grantOf(t, s, key)
			if !slices.Equal(g.Servers, program.Servers) || !slices.Equal(g.Tools, program.Tools) || g.Approve != program.Approve || g.Metrics || g.Page ||
				g.Key != program.name() || g.Limits != program.Limits ||
				g.KeyLimits != program.KeyLimits {
				t.Errorf("it may %+v", g)
			}
			if rec := by(s, "GET", "/metrics", "", key); rec.Code != http.StatusForbidden {
				t.Errorf("/metrics: %d", rec.Code)
			}
			if rec := by(s, "POST", "/fleet/questions/q1", `{"decision":"accept_for_session"}`, key); rec.Code != http.StatusForbidden {
				t.Errorf("a tap: %d %s", rec.Code, rec.Body)
			}
		})
	}
	if asked := w.log(); len(asked) > 0 {
		t.Errorf("they reached %q", asked)
	}
}

// TestKeysOwnLogins: a key lists and ends the logins that were made with it; many logins of one key end none of another
// key.
func TestKeysOwnLogins(t *testing.T) {
	full, program := ownersKeys()
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{full, program} })
	person, login := tokenOf(t, s, byKey(ownerKey), nil), tokenOf(t, s, byKey(otherKey), nil)
	seen := func(key string) (ids []string) {
		var list struct{ Items []loginInfo }
		rec := by(s, "GET", "/login", "", key)
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK {
			t.Fatalf("list: %d %s", rec.Code, rec.Body)
		}
		for _, l := range list.Items {
			ids = append(ids, l.ID)
		}
		slices.Sort(ids)
		return ids
	}
	both := []string{person.ID, login.ID}
	slices.Sort(both)
	for name, tt := range map[string]struct {
		key  string
		want []string
	}{
		"program": {otherKey, []string{login.ID}}, "its login": {login.Token, []string{login.ID}},
		"the owner's key": {ownerKey, []string{person.ID}}, "the page": {person.Token, both},
	} {
		if got := seen(tt.key); !slices.Equal(got, tt.want) {
			t.Errorf("%s sees %q, want %q", name, got, tt.want)
		}
	}
	for _, key := range []string{otherKey, login.Token} {
		if rec := by(s, "DELETE", "/login/"+person.ID, "", key); rec.Code != http.StatusNotFound ||
			person.use(s, nil) != http.StatusOK {
			t.Errorf("it ended the owner's login: %d", rec.Code)
		}
	}
	for range maxLogins + 3 {
		tokenOf(t, s, byKey(otherKey), nil)
	}
	if person.use(s, nil) != http.StatusOK || len(seen(person.Token)) != maxLogins+1 {
		t.Errorf("many logins of a program ended the owner's, or are not bounded: %d", len(seen(person.Token)))
	}
	last := tokenOf(t, s, byKey(otherKey), nil)
	if rec := by(s, "DELETE", "/login/"+last.ID, "", person.Token); rec.Code != http.StatusNoContent ||
		last.use(s, nil) != http.StatusUnauthorized {
		t.Errorf("the page does not end what a program began: %d", rec.Code)
	}
}

// grantOf is what a key or a token lets its holder do.
func grantOf(t *testing.T, s *Server, key string) handoff.Grant {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8080/fleet/servers", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	g, err := s.auth.grant(r, time.Now())
	must(t, err)
	return g
}

// TestWhoIsAPerson: a login by a link, and a device that was added from it, count as a person, whatever the keys of the
// principal allow. A login by a key counts as a person only with approve: all, and so do the devices that were added
// from it.
func TestWhoIsAPerson(t *testing.T) {
	for _, approve := range []handoff.Approval{handoff.ApproveNone, handoff.ApproveVoice, handoff.ApproveAll} {
		t.Run(approve.String(), func(t *testing.T) {
			_, program := ownersKeys()
			program.Approve = approve
			s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{program} })
			code, err := s.NewCode(t.Context(), "owner")
			must(t, err)
			page := tokenOf(t, s, `{"code":"`+code+`"}`, nil).Token
			device := tokenOf(t, s, `{"code":"`+codeBy(t, s, page)+`"}`, nil).Token
			for name, token := range map[string]string{"page": page, "device": device} {
				if g := grantOf(t, s, token); !g.Page || g.Approve != handoff.ApproveAll || !slices.Equal(g.Tools, program.Tools) {
					t.Errorf("the %s by link may %+v", name, g)
				}
			}
			login := tokenOf(t, s, byKey(otherKey), nil).Token
			added := tokenOf(t, s, `{"code":"`+codeBy(t, s, login)+`"}`, nil).Token
			for name, token := range map[string]string{"login": login, "device": added} {
				if g := grantOf(t, s, token); g.Approve != approve || g.Page != (approve == handoff.ApproveAll) {
					t.Errorf("the %s of the key may %+v", name, g)
				}
			}
			program.Approve = handoff.ApproveNone
			s.SetKeys([]Key{program})
			for name, token := range map[string]string{"login": login, "device": added} {
				if g := grantOf(t, s, token); g.Approve != handoff.ApproveNone || g.Page {
					t.Errorf("the %s outlives what the key might: %+v", name, g)
				}
			}
			if g := grantOf(t, s, otherKey); g.Page {
				t.Error("a key is no page")
			}
		})
	}
}

// TestNamesCallersHasNoPage: a key that names its callers has no page, because without a name the page would show what
// is the principal's own.
func TestNamesCallersHasNoPage(t *testing.T) {
	full, many := ownersKeys()
	many.NamesCallers = true
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{full, many} })
	if rec := logIn(s, byKey(otherKey), nil); codeOf(t, rec) != handoff.CodeNotGranted {
		t.Errorf("it logged in: %d %s", rec.Code, rec.Body)
	}
	many.NamesCallers = false
	s.SetKeys([]Key{full, many})
	login := tokenOf(t, s, byKey(otherKey), nil)
	many.NamesCallers = true
	s.SetKeys([]Key{full, many})
	if status := login.use(s, nil); status != http.StatusUnauthorized {
		t.Errorf("a login of before counts: %d", status)
	}
	full.NamesCallers = false
	s.SetKeys([]Key{full})
	link, err := s.NewCode(t.Context(), "owner")
	must(t, err)
	full.NamesCallers = true
	s.SetKeys([]Key{full})
	if rec := logIn(s, `{"code":"`+link+`"}`, nil); codeOf(t, rec) != handoff.CodeLoginOver {
		t.Errorf("a link of before logged in: %d %s", rec.Code, rec.Body)
	}
	if _, err := s.NewCode(t.Context(), "owner"); err == nil {
		t.Error("a link for callers without names")
	}
}

// TestCodesOfOthersStay: many codes of one origin do not void the codes of another.
func TestCodesOfOthersStay(t *testing.T) {
	full, program := ownersKeys()
	s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{full, program} })
	link, err := s.NewCode(t.Context(), "owner")
	must(t, err)
	login := tokenOf(t, s, byKey(otherKey), nil).Token
	for range sessions.MaxCodes + 1 {
		codeBy(t, s, login)
	}
	tokenOf(t, s, `{"code":"`+link+`"}`, nil)
	s.SetKeys([]Key{full})
	last, err := s.auth.codes.make(t.Context(), origin{"owner", program.Sum}, [32]byte{}, time.Now())
	must(t, err)
	if rec := logIn(s, `{"code":"`+last+`"}`, nil); codeOf(t, rec) != handoff.CodeLoginOver {
		t.Errorf("a code outlives its key: %d %s", rec.Code, rec.Body)
	}
}
