package web

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/sessions"
)

const programToken = appMark + "of-a-program"

// letIn is a way in that let one program in, whose token is [programToken]. What is asked of people is of no use here.
type letIn struct {
	OAuth
	app  sessions.App
	gone bool // it was disconnected
}

func (l *letIn) Challenge() string { return "Bearer x" }

func (l *letIn) App(_ context.Context, token string) (sessions.App, bool, error) {
	return l.app, token == programToken && !l.gone, nil
}

func (l *letIn) Standing(ctx context.Context, token string) (sessions.App, bool, error) {
	return l.App(ctx, token)
}

// mcpGrants is an /mcp that keeps what requests were let in with.
type mcpGrants struct{ grants []handoff.Grant }

func (*mcpGrants) Patterns() []string { return []string{"POST /mcp"} }
func (*mcpGrants) Close()             {}

func (m *mcpGrants) Serve(_ http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	m.grants = append(m.grants, g)
	return nil
}

// TestProgramMayNoMore: a program with access may use /mcp with the rights of the key of the person's login, less those
// that the person refused, as long as both are valid, and no other route.
func TestProgramMayNoMore(t *testing.T) {
	key := NewKey("owner", ownerKey)
	key.Servers, key.Tools, key.Approve = []string{"bigpc"}, []string{tools.Codex}, handoff.ApproveVoice
	key.Metrics, key.Instructions, key.Limits = true, handoff.InstructAll, handoff.Limits{Calls: 1}
	program := &letIn{
		app: sessions.App{Principal: "owner", Key: sha256.Sum256([]byte(ownerKey)), Approve: handoff.ApproveAll},
	}
	front := &mcpGrants{}
	s := newServer(t, newWorld(), func(c *Config) { c.Keys, c.OAuth, c.MCP = []Key{key}, program, front })
	enters := func(want int) handoff.Grant {
		t.Helper()
		front.grants = nil
		rec := by(s, "POST", "/mcp", "", programToken)
		if rec.Code != want || (want == http.StatusUnauthorized) != (rec.Header().Get("WWW-Authenticate") == "Bearer x") {
			t.Fatalf("%d %q, want %d", rec.Code, rec.Header(), want)
		}
		if want != http.StatusOK {
			return handoff.Grant{}
		}
		return front.grants[0]
	}
	g := enters(http.StatusOK)
	if g.Caller.Principal != "owner" || strings.Join(g.Servers, " ") != "bigpc" || len(g.Tools) != 1 || g.Limits != key.Limits ||
		g.Approve != handoff.ApproveVoice || g.Metrics || g.Instructions != handoff.InstructNone || g.Page ||
		g.Key != key.name() ||
		g.Revoked() != nil {
		t.Errorf("it may %+v", g)
	}
	program.app.Approve = handoff.ApproveNone
	if g := enters(http.StatusOK); g.Approve != handoff.ApproveNone {
		t.Errorf("its yes counts: %v", g.Approve)
	}
	for _, path := range []string{"/fleet/servers", "/fleet/apps", "/metrics", "/login", "/v1/realtime"} {
		if rec := by(s, "GET", path, "", programToken); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	program.gone = true
	enters(http.StatusUnauthorized)
	if g.Revoked() == nil {
		t.Error("it was disconnected, and what it has open goes on")
	}
	program.gone = false
	s.SetKeys([]Key{NewKey("owner", "another key")})
	enters(http.StatusUnauthorized)
	if g.Revoked() == nil {
		t.Error("the key was removed, and what the program has open goes on")
	}
	program.app.Key = [sha256.Size]byte{} // let in by who logged in with a link: it ends with the last key of the principal
	enters(http.StatusOK)
	s.SetKeys([]Key{NewKey("other", otherKey)})
	enters(http.StatusUnauthorized)
}
