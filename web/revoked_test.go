package web

import (
	"net/http"
	"testing"

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

// TestCallKnowsItIsRevoked: a call can check whether the key or login that authorised it is still valid. A client
// secret expires without ending its calls.
func TestCallKnowsItIsRevoked(t *testing.T) {
	front := &callGrants{world: newWorld()}
	s := newServer(t, front.world, func(c *Config) { c.Front = front })
	login := tokenOf(t, s, byKey(ownerKey), nil)
	for _, key := range []string{ownerKey, login.Token, mint(t, s, "{}", nil).Value} {
		by(s, "GET", "/v1/realtime", "", key)
	}
	if len(front.grants) != 3 || front.grants[2].Revoked != nil {
		t.Fatalf("%+v", front.grants)
	}
	byKey, byLogin := front.grants[0], front.grants[1]
	revoked := func(g handoff.Grant) bool {
		err := g.Revoked()
		return err != nil && handoff.AsError(err).Code == handoff.CodeUnauthorized
	}
	if revoked(byKey) || revoked(byLogin) {
		t.Error("revoked from the start")
	}
	if rec := ask(s, "DELETE", "/login/"+login.ID, "", nil); rec.Code != http.StatusNoContent {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if revoked(byKey) || !revoked(byLogin) {
		t.Errorf("a login was ended: key %v, login %v", byKey.Revoked(), byLogin.Revoked())
	}
	s.SetKeys([]Key{NewKey("owner", "another key")})
	if !revoked(byKey) {
		t.Error("the key was removed, and counts")
	}
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
