package web

import (
	"net/http"
	"testing"

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

// TestCallKnowsItIsRevoked: who carries a call can ask whether the key or login that let it in still does. A client
// secret ends by itself, and no call with it.
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
