package web

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/handoff"
)

// callGrants is a front that keeps what calls were let in with.
type callGrants struct {
	*world
	grants []handoff.Grant
}

func (f *callGrants) ServeWebSocket(_ http.ResponseWriter, _ *http.Request, g handoff.Grant) {
	f.grants = append(f.grants, g)
}

// TestWhatCredentialsOpened: what was opened with a key, a login or a client secret is over once that ended, or what it
// was made with. A secret that expires ends no call.
func TestWhatCredentialsOpened(t *testing.T) {
	type made struct {
		text   string // of the credential
		logins []tokenAnswer
	}
	login := func(t *testing.T, s *Server) made {
		l := tokenOf(t, s, byKey(ownerKey), nil)
		return made{l.Token, []tokenAnswer{l}}
	}
	linked := func(t *testing.T, s *Server) made {
		code, err := s.NewCode(t.Context(), "owner")
		must(t, err)
		l := tokenOf(t, s, `{"code":"`+code+`"}`, nil)
		return made{l.Token, []tokenAnswer{l}}
	}
	secretOf := func(make func(*testing.T, *Server) made) func(*testing.T, *Server) made {
		return func(t *testing.T, s *Server) made {
			m := make(t, s)
			m.text = mint(t, s, "{}", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+m.text) }).Value
			return m
		}
	}
	key := func(*testing.T, *Server) made { return made{text: ownerKey} }
	for name, make := range map[string]func(*testing.T, *Server) made{
		"a key": key, "a login by a key": login, "a login by a link": linked,
		"a secret": secretOf(key), "a secret of a login": secretOf(login), "a secret of a login by a link": secretOf(linked),
	} {
		for _, end := range []string{"the key", "the login"} {
			t.Run(name+", without "+end, func(t *testing.T) {
				front := &callGrants{world: newWorld()}
				s := newServer(t, front.world, func(c *Config) { c.Front = front })
				m := make(t, s)
				by(s, "GET", "/v1/realtime", "", m.text)
				if len(front.grants) != 1 || front.grants[0].Revoked == nil {
					t.Fatalf("it opened %+v", front.grants)
				}
				revoked := front.grants[0].Revoked
				if err := revoked(); err != nil {
					t.Errorf("over from the start: %v", err)
				}
				over := true
				if end == "the key" {
					s.SetKeys([]Key{NewKey("another", "another key")})
				} else {
					over = len(m.logins) > 0
					for _, l := range m.logins {
						if rec := by(s, "DELETE", "/login/"+l.ID, "", l.Token); rec.Code != http.StatusNoContent {
							t.Fatalf("%d %s", rec.Code, rec.Body)
						}
					}
				}
				if err := revoked(); (handoff.CodeOf(err) == handoff.CodeUnauthorized) != over {
					t.Errorf("what it opened ends with %v", err)
				}
				if rec := by(s, "GET", "/v1/realtime", "", m.text); (rec.Code == http.StatusUnauthorized) != over {
					t.Errorf("it opens something else: %d", rec.Code)
				}
			})
		}
	}
}

// TestCodeOfAnEndedLogin: a login that was ended lets no device in any more, by a code that it made before.
func TestCodeOfAnEndedLogin(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	l := tokenOf(t, s, byKey(ownerKey), nil)
	code := codeBy(t, s, l.Token)
	ask(s, "DELETE", "/login/"+l.ID, "", nil)
	if rec := logIn(s, `{"code":"`+code+`"}`, nil); codeOf(t, rec) != handoff.CodeLoginOver {
		t.Errorf("it let a device in: %d %s", rec.Code, rec.Body)
	}
}

// TestEndedLoginStaysEnded: the record of its last use does not bring back a login that ended meanwhile.
func TestEndedLoginStaysEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newServer(t, w, nil)
		l := tokenOf(t, s, byKey(ownerKey), nil)
		time.Sleep(loginUsed)
		w.endRead = true
		l.use(s, nil) // which has read it, and goes on
		w.endRead = false
		if status := l.use(s, nil); status != http.StatusUnauthorized {
			t.Errorf("it lives on: %d", status)
		}
	})
}

// TestAgain: the grantor of a call authorises the same caller at another instance, with its present rights, as long as
// it is valid; it authorises no other caller.
func TestAgain(t *testing.T) {
	front := &callGrants{world: newWorld()}
	s := newServer(t, front.world, func(c *Config) {
		full, _ := ownersKeys()
		c.Front, c.Keys = front, []Key{full}
	})
	login := tokenOf(t, s, byKey(ownerKey), nil)
	for _, key := range []string{ownerKey, login.Token, mint(t, s, "{}", nil).Value} {
		by(s, "GET", "/v1/realtime", "", key)
	}
	if len(front.grants) != 3 {
		t.Fatalf("%+v", front.grants)
	}
	again := func(g handoff.Grant) handoff.Grant {
		now, err := s.Again(t.Context(), g.By, g.Caller)
		if code := handoff.CodeOf(err); err != nil && code != handoff.CodeUnauthorized {
			t.Fatal(err)
		}
		return now
	}
	for _, g := range front.grants {
		now := again(g)
		if diff := cmp.Diff(g, now, cmpopts.IgnoreFields(handoff.Grant{}, "Revoked", "Session")); diff != "" || now.Revoked() != nil {
			t.Errorf("by %s (revoked: %v):\n%s", g.By, now.Revoked(), diff)
		}
	}
	byKey, byLogin := again(front.grants[0]), again(front.grants[1])
	stranger := byKey
	if stranger.Caller.User = "somebody"; again(stranger).By != "" || again(handoff.Grant{Caller: byKey.Caller}).By != "" {
		t.Error("somebody else is let in")
	}
	if rec := ask(s, "DELETE", "/login/"+login.ID, "", nil); rec.Code != http.StatusNoContent {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if again(byLogin).By != "" || byLogin.Revoked() == nil || again(byKey).By == "" || byKey.Revoked() != nil {
		t.Error("a login was ended: that counts, or the key does not")
	}
	s.SetKeys([]Key{NewKey("owner", "another key")})
	if again(byKey).By != "" || byKey.Revoked() == nil || again(front.grants[2]).By != "" {
		t.Error("the key was removed, and counts")
	}
}
