package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// TestGrant: a request may do what its key says, and so may the page's login.
func TestGrant(t *testing.T) {
	limited := NewKey("assistant", otherKey)
	limited.Approve = handoff.ApproveVoice
	limited.Servers, limited.Tools = []string{"helper"}, []string{tools.Codex}
	limited.Limits, limited.KeyLimits = handoff.Limits{Calls: 2}, handoff.Limits{Calls: 9}
	w := newWorld()
	s := newServer(t, w, func(cfg *Config) { cfg.Keys = []Key{NewKey("owner", ownerKey), limited} })
	a, now := &s.auth, time.Now()
	for name, page := range map[string]bool{"by its key": false, "by its login": true} {
		t.Run(name, func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodGet, "/", nil)
			r.Host = "127.0.0.1:8080"
			if page {
				r.Header.Set("Authorization", "Bearer "+tokenOf(t, s, byKey(otherKey), nil).Token)
			} else {
				r.Header.Set("Authorization", "Bearer "+otherKey)
			}
			g, err := a.grant(r, now)
			must(t, err)
			if g.Caller.Principal != "assistant" || !slices.Equal(g.Servers, limited.Servers) || !slices.Equal(g.Tools, limited.Tools) {
				t.Errorf("grant %+v", g)
			}
			if g.Key != limited.name() || len(g.Key) != 12 || g.Limits != limited.Limits || g.KeyLimits != limited.KeyLimits {
				t.Errorf("limits of %+v", g)
			}
			if g.Page || (g.Instructions == handoff.InstructAll) != page || g.Approve != handoff.ApproveVoice {
				t.Errorf("page %v, instructions %v, approve %v", g.Page, g.Instructions, g.Approve)
			}
		})
	}
}

// TestNamedCallers: a key that names its callers separates them by the name in the header; a request without a name is
// a caller of its own. For other keys the header means nothing.
func TestNamedCallers(t *testing.T) {
	many := NewKey("assistant", otherKey)
	many.NamesCallers = true
	a := &newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{NewKey("owner", ownerKey), many} }).auth
	ask := func(key string, names ...string) (handoff.Caller, handoff.Code) {
		r, _ := http.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		for _, name := range names {
			r.Header.Add("OpenAI-Safety-Identifier", name)
		}
		g, err := a.grant(r, time.Now())
		if err != nil {
			return g.Caller, handoff.AsError(err).Code
		}
		return g.Caller, ""
	}
	for _, good := range []string{"a", "alice@example.com", "auth0|5f7c8ec7", strings.Repeat("0123456789abcdef", 8)} {
		if c, code := ask(otherKey, good); c != (handoff.Caller{Principal: "assistant", User: good}) || code != "" {
			t.Errorf("%q is %+v %s", good, c, code)
		}
	}
	for _, bad := range [][]string{{""}, {"~x"}, {"a b"}, {"a/b"}, {"-a"}, {"é"}, {"a\x00"}, {"a\"b"}, {"alice", "bob"}, {strings.Repeat("a", 129)}} {
		if c, code := ask(otherKey, bad...); code != handoff.CodeMalformed || c != (handoff.Caller{}) {
			t.Errorf("%q is %+v %s", bad, c, code)
		}
	}
	first, _ := ask(otherKey)
	second, _ := ask(otherKey)
	if !first.Nameless() || !second.Nameless() || first == second || first.Principal != "assistant" {
		t.Errorf("without a name: %+v, then %+v", first, second)
	}
	for _, name := range []string{"alice", "a b", ""} {
		if c, code := ask(ownerKey, name); c != (handoff.Caller{Principal: "owner"}) || code != "" {
			t.Errorf("%q at a key that names nobody: %+v %s", name, c, code)
		}
	}
}

// TestRoutesAskTheTools: a key without a tool cannot use the routes of that tool, and the error says what to do.
func TestRoutesAskTheTools(t *testing.T) {
	for _, row := range [][]string{
		{"GET", "/fleet/servers", tools.ListServers}, {"GET", "/fleet/sessions", tools.ListSessions},
		{"GET", "/fleet/sessions/bigpc/t-1", tools.ReadSession}, {"GET", "/fleet/handoffs", tools.Status},
		{"GET", "/fleet/handoffs/h1", tools.Status}, {"POST", "/fleet/handoffs/h1/stop", tools.StopWork},
		{"POST", "/fleet/handoffs/h1/move", tools.QueueNext},
		{"POST", "/fleet/handoffs", tools.Codex, `{"server":"bigpc","prompt":"x"}`},
		{"POST", "/fleet/handoffs", tools.QueueNext, `{"server":"bigpc","prompt":"x","mode":"next"}`},
		{"POST", "/fleet/handoffs", tools.RunOnServer, `{"server":"bigpc","prompt":"x","mode":"aside"}`},
		{"POST", "/fleet/handoffs", tools.Codex, `{"begin":"h1","mode":"aside"}`}, {
			"POST", "/fleet/handoffs/h1/steer", tools.Codex,
		},
		{"GET", "/fleet/questions", tools.Status}, {"POST", "/fleet/questions/q1", tools.AnswerAgent},
		{"GET", "/fleet/events", tools.Status}, {"GET", "/fleet/handoffs/h1/events", tools.Status},
		{"GET", "/fleet/sticky", tools.ListSessions}, {
			"DELETE", "/fleet/sticky/bigpc", tools.Codex,
		}, {"GET", "/fleet/decisions", tools.Status},
		{"GET", "/fleet/cleared", tools.Status}, {"POST", "/fleet/push", tools.Status},
		{"GET", "/fleet/conversation", ""}, {"PUT", "/fleet/cleared", ""}, // for a key without a limit
		{"POST", "/fleet/conversation", ""}, {"DELETE", "/fleet/conversation", ""},
	} {
		var all []string
		for _, tool := range tools.All() {
			if tool.Name != row[2] {
				all = append(all, tool.Name)
			}
		}
		w := newWorld()
		s := newServer(t, w, func(cfg *Config) { cfg.Keys[0].Tools = all })
		body := `{"decision":"accept"}`
		if len(row) > 3 {
			body = row[3]
		}
		rec := ask(s, row[0], row[1], body, nil)
		if got := codeOf(t, rec); got != handoff.CodeNotGranted || rec.Code != http.StatusForbidden || len(w.log()) > 0 {
			t.Errorf("%s %s without %s: %d %s, reached %q", row[0], row[1], row[2], rec.Code, got, w.log())
		}
	}
}

// TestEveryRouteAsksATool: each route of the fleet without a tool is listed here, because every key may use it.
func TestEveryRouteAsksATool(t *testing.T) {
	open := []string{
		"GET /fleet/updates",                                                         // a setting
		"GET /fleet/calls", "DELETE /fleet/calls/{id}", "POST /fleet/calls/{id}/say", // calls of their own
		"GET /fleet/apps", "DELETE /fleet/apps/{id}", // programs that they let in
		"GET /fleet/machines/{server}/log",
		"POST /fleet/machines", "DELETE /fleet/machines/{server}", // the owner's alone, which these ask by themselves
		"POST /fleet/machines/{server}/rename", "POST /fleet/settings/reload",
		"GET /fleet/push", "DELETE /fleet/push", // the key of the sender, and their own browser
		"POST /fleet/render",              // shows the caller's own words
		"POST /fleet/handoffs",            // asks by its mode
		"POST /fleet/handoffs/{id}/heard", // asks the work who gave it
	}
	for pattern, r := range newServer(t, newWorld(), nil).known {
		_, path, _ := strings.Cut(pattern, " ")
		if strings.HasPrefix(path, "/fleet/") && (r.act == handoff.ActNone) != slices.Contains(open, pattern) {
			t.Errorf("%s asks for act %d", pattern, r.act)
		}
	}
}

// TestNoToolsNoCalls: a key without tools, such as one for /metrics, cannot begin a call, which would be billed.
func TestNoToolsNoCalls(t *testing.T) {
	for _, route := range []string{"GET /v1/realtime", "POST /v1/realtime/calls", "POST /v1/realtime/client_secrets", "POST /v1/realtime/attach"} {
		method, path, _ := strings.Cut(route, " ")
		w := newWorld()
		s := newServer(t, w, func(cfg *Config) { cfg.Keys[0].Tools = []string{} })
		rec := ask(s, method, path, "{}", nil)
		if got := codeOf(t, rec); got != handoff.CodeNotGranted || len(w.log()) > 0 {
			t.Errorf("%s: %d %s, reached %q", route, rec.Code, got, w.log())
		}
	}
}

// TestEventsOfGrantedServers: a stream has only events of machines that the grant allows.
func TestEventsOfGrantedServers(t *testing.T) {
	w := newWorld()
	w.records = []handoff.Record{{ID: "h1", Server: "bigpc"}}
	s := newServer(t, w, nil)
	g := handoff.Grant{Servers: []string{"bigpc"}}
	for _, tt := range []struct {
		event handoff.PageEvent
		want  bool
	}{
		{handoff.PageEvent{Kind: handoff.PageServers}, true},
		{handoff.PageEvent{Record: &handoff.Record{ID: "h1"}}, true},
		{handoff.PageEvent{Handoff: "h1", Delta: "x"}, true},
		{handoff.PageEvent{Record: &handoff.Record{ID: "h2"}}, false},
		{handoff.PageEvent{Handoff: "h2", Delta: "x"}, false},
		{handoff.PageEvent{Question: &handoff.RecordQuestion{Server: "bigpc"}}, true},
		{handoff.PageEvent{Question: &handoff.RecordQuestion{Server: "laptop"}}, false},
	} {
		if got := s.streams.maySee(g, tt.event); got != tt.want {
			t.Errorf("%+v is told: %v", tt.event, got)
		}
		if !s.streams.maySee(handoff.Grant{}, tt.event) {
			t.Errorf("%+v is not told to who may use all", tt.event)
		}
	}
}
