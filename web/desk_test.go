package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestDesk: the routes for machines, archived sessions and the level of updates.
func TestDesk(t *testing.T) {
	for _, row := range []struct {
		method, path, body, asked string
		status                    int
		answer                    string
	}{
		{"GET", "/fleet/machines", "", "machines owner", 200,
			`{"items":[{"name":"bigpc","ceiling":"read-only","voice_approvals":"low"}]}`},
		{"POST", "/fleet/machines/bigpc/test", "", "test owner bigpc", 200, `{"took_ms":12}`},
		{"POST", "/fleet/sessions/bigpc/t1/archive", "", "archive owner bigpc t1 true", 204, ""},
		{"POST", "/fleet/sessions/bigpc/t1/rename", `{"name":"auth"}`, "name owner bigpc t1 auth", 204, ""},
		{"DELETE", "/fleet/sessions/bigpc/t1/archive", "", "archive owner bigpc t1 false", 204, ""},
		{"PUT", "/fleet/sticky/bigpc/api", `{"thread_id":"t1","title":"Auth"}`, "pin owner bigpc/api t1 Auth", 204, ""},
		{"PUT", "/fleet/sticky/bigpc", `{"title":"Auth"}`, "", 400, "thread_id is missing"},
		{"GET", "/fleet/updates", "", "", 200, `{"level":"milestones"}`},
		{"PUT", "/fleet/updates", `{"level":"quiet"}`, "level owner quiet", 204, ""},
		{"GET", "/fleet/cleared", "", "document owner page: finished work was put away", 200, `{}`},
		{"PUT", "/fleet/cleared", `{"at":"2026-11-22T10:00:00Z"}`,
			"put owner page: finished work was put away 2026-11-22T10:00:00Z", 204, ""},
		{"PUT", "/fleet/cleared", `{"at":"yesterday"}`, "", 400, ""},
		{"PUT", "/fleet/updates", `{"level":"loud"}`, "", 400, "quiet, milestones or chatty"},
		{"GET", "/fleet/decisions?limit=1", "", "decisions owner", 200, `{"items":[{"server":"bigpc","thread_id":"t1","decision":"accept","risk":"low","by":"voice","at":"2026-01-02T03:04:05Z"}]}`},
		{"POST", "/login/code", "", "", 403, "a device is added from the page"},
	} {
		w := newWorld()
		w.desk.machines = []handoff.Machine{{Name: "bigpc", Ceiling: "read-only", VoiceApprovals: "low"}}
		w.desk.decisions = []handoff.AuditRecord{{Who: "owner", Server: "bigpc", Thread: "t1", Decision: handoff.DecisionAccept, Tier: "low", By: "voice", CommandHash: "x", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, {Server: "laptop"}}
		rec := ask(newServer(t, w, nil), row.method, row.path, row.body, nil)
		if got := strings.Join(w.log(), ";"); rec.Code != row.status || !strings.Contains(rec.Body.String(), row.answer) || got != row.asked {
			t.Errorf("%s %s: got %d %s, asked %q", row.method, row.path, rec.Code, rec.Body, got)
		}
	}
}

// TestDeviceCode: a page with a login makes a code for another device, which works once.
func TestDeviceCode(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	in := tokenOf(t, s, byKey(ownerKey), nil)
	code := codeBy(t, s, in.Token)
	for i, want := range []int{http.StatusOK, http.StatusForbidden} {
		if rec := logIn(s, `{"code":"`+code+`"}`, nil); rec.Code != want {
			t.Errorf("login %d: %d %s", i, rec.Code, rec.Body)
		}
	}
}
