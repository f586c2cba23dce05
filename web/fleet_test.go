package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions"
)

// routeCases are requests, what of them reaches the world, and what is answered.
var routeCases = []struct {
	name, method, path, body string
	asked                    string // what reached the world
	status                   int
	answer                   string // a part of the answer
}{
	{"servers", "GET", "/fleet/servers", "", "servers owner;document owner " + coloursID + ";put owner " + coloursID + ` {"bigpc":0}`, 200, `{"items":[{"name":"bigpc","kind":"codex","health":"up"}],"say":"bigpc is ready.","colours":{"bigpc":0},"voice":{"simulated":true,"model":"simulated","chips":[]}}`},
	{"sessions", "GET", "/fleet/sessions?server=bigpc&query=auth&limit=5", "",
		`sessions owner {"Server":"bigpc","Text":"auth","Limit":5};handoffs owner`, 200, `{"items":[],"say":"I found no sessions."}`},
	{"older sessions", "GET", "/fleet/sessions?skip=40", "", `sessions owner {"Server":"","Text":"","Limit":10,"Skip":40};handoffs owner`, 200, `"items"`},
	{"skip of words", "GET", "/fleet/sessions?skip=all", "", "", 400, "malformed"},
	{"sessions of all", "GET", "/fleet/sessions", "", `sessions owner {"Server":"","Text":"","Limit":10};handoffs owner`, 200, `"items"`},
	{"session", "GET", "/fleet/sessions/bigpc/t-1?limit=12", "",
		`read owner {"Server":"bigpc","Project":"","Thread":"t-1","Limit":12}`, 200, `"lines":[]`},
	{"session of a project", "GET", "/fleet/sessions/bigpc%2Fapi/t-1", "",
		`read owner {"Server":"bigpc/api","Project":"","Thread":"t-1","Limit":12}`, 200, `"lines":[]`},
	{"handoffs", "GET", "/fleet/handoffs", "", "handoffs owner", 200, `{"items":[{"id":"h1"`},
	{"handoff", "GET", "/fleet/handoffs/h1", "", "handoff owner h1", 200, `{"id":"h1"`},
	{"unknown handoff", "GET", "/fleet/handoffs/h9", "", "handoff owner h9", 404, `not_found`},
	{"move", "POST", "/fleet/handoffs/h2/move", `{"before":"h1"}`, "move owner h2 h1", 204, ""},
	{"move to the end", "POST", "/fleet/handoffs/h2/move", `{}`, "move owner h2 ", 204, ""},
	{"stop", "POST", "/fleet/handoffs/h1/stop", "", "stop owner h1", 204, ""},
	{"stop theirs", "POST", "/fleet/handoffs/h1/stop?sure=true", "", "stop theirs owner h1", 204, ""},
	{"stop watching", "POST", "/fleet/handoffs/h1/stop?watching=true", "", "stop watching owner h1", 204, ""},
	{"stop both", "POST", "/fleet/handoffs/h1/stop?watching=true&sure=true", "", "", 400, "either"},
	{"questions", "GET", "/fleet/questions", "", "questions owner", 200, `{"items":[]}`},
	{"accept", "POST", "/fleet/questions/q1", `{"decision":"accept"}`, "decide owner q1 accept", 204, ""},
	{"accept for the session", "POST", "/fleet/questions/q1", `{"decision":"accept_for_session"}`,
		"decide owner q1 accept_for_session", 204, ""},
	{"decline", "POST", "/fleet/questions/q1", `{"decision":"decline"}`, "decide owner q1 decline", 204, ""},
	{"in words", "POST", "/fleet/questions/q1", `{"text":"the staging one"}`, "reply owner q1 the staging one", 204, ""},
	{"decline and stop", "POST", "/fleet/questions/q1", ` {"decision":"stop"} `, "decide owner q1 stop", 204, ""},
	{"stickies", "GET", "/fleet/sticky", "", "stickies owner", 200, `{"items":[]}`},
	{"clear", "DELETE", "/fleet/sticky/bigpc", "", "clear owner bigpc", 204, ""},
	{"clear a project", "DELETE", "/fleet/sticky/bigpc/api", "", "clear owner bigpc/api", 204, ""},
	{"socket", "GET", "/v1/realtime?model=m", "", "socket owner", 204, ""},
	{"call", "POST", "/v1/realtime/calls", "v=0", "calls owner v=0", 502, "voice_unreachable"},
	{"hang up", "POST", "/v1/realtime/calls/rtc_1/hangup", "", "hangup owner rtc_1", 204, ""},
	{"live calls", "GET", "/fleet/calls", "", "live calls owner", 200, `{"items":[]}`},
	{"end a call", "DELETE", "/fleet/calls/rtc_1", "", "hangup owner rtc_1", 204, ""},
	{"health", "GET", "/healthz", "", "", 200, `{"status":"ok"}`},
	{"ready", "GET", "/readyz", "", "", 200, `{"status":"ready"}`},
	{"head", "HEAD", "/healthz", "", "", 200, ""},
	// Bad input.
	{"before what is not there", "GET", "/fleet/handoffs?before=h9", "", "handoffs owner", 400,
		"before is the id of work in this list"},
	{"before nothing", "GET", "/fleet/handoffs?before=", "", "handoffs owner", 400, "malformed"},
	{"work without a limit", "GET", "/fleet/handoffs?limit=0", "", "", 400, "limit is a number from 1 to 100"},
	{"too much work", "GET", "/fleet/handoffs?limit=101", "", "", 400, "malformed"},
	{"limit of words", "GET", "/fleet/sessions?limit=ten", "", "", 400, "malformed"},
	{"limit too small", "GET", "/fleet/sessions?limit=0", "", "", 400, "malformed"},
	{"limit too large", "GET", "/fleet/sessions?limit=41", "", "", 400, "malformed"},
	{"limit of lines", "GET", "/fleet/sessions/bigpc/t-1?limit=-1", "", "", 400, "malformed"},
	{"no decision", "POST", "/fleet/questions/q1", `{}`, "", 400, "malformed"},
	{"empty body", "POST", "/fleet/questions/q1", ``, "", 400, "malformed"},
	{"unknown decision", "POST", "/fleet/questions/q1", `{"decision":"yes"}`, "", 400, "malformed"},
	{"text and decision", "POST", "/fleet/questions/q1", `{"text":"yes","decision":"accept"}`, "", 400, "malformed"},
	{"no text", "POST", "/fleet/questions/q1", `{"text":""}`, "", 400, "malformed"},
	{"list", "POST", "/fleet/questions/q1", `[]`, "", 400, "malformed"},
	{"two objects", "POST", "/fleet/questions/q1", `{"decision":"accept"}{"decision":"stop"}`, "", 400, "malformed"},
	{"cut off", "POST", "/fleet/questions/q1", `{"decision":"acc`, "", 400, "malformed"},
	{"too long", "POST", "/fleet/questions/q1", `{"decision":"` + strings.Repeat("a", maxJSON) + `"}`, "", 413,
		"too_large"},
	{"offer too long", "POST", "/v1/realtime/calls", strings.Repeat("a", maxCall+1), "", 413, "too_large"},
	// Wrong methods and unknown paths.
	{"POST servers", "POST", "/fleet/servers", "{}", "", 404, "not_found"},
	{"GET stop", "GET", "/fleet/handoffs/h1/stop", "", "", 404, "not_found"},
	{"DELETE handoff", "DELETE", "/fleet/handoffs/h1", "", "", 404, "not_found"},
	{"give work", "POST", "/fleet/handoffs", `{"server":"bigpc","prompt":"run the tests"}`,
		"start owner bigpc  run the tests", 202, `{"id":"h1"`},
	{"give work to a session", "POST", "/fleet/handoffs", `{"server":"bigpc/api","thread_id":"t-1","prompt":"x"}`,
		"start owner bigpc/api t-1 x", 202, `{"id":"h1"`},
	{"give work after other work", "POST", "/fleet/handoffs",
		`{"server":"bigpc","thread_id":"t-1","prompt":"x","mode":"next"}`, "start next owner bigpc t-1 x", 202, `{"id":"h1"`},
	{"begin work that is paused", "POST", "/fleet/handoffs", `{"begin":"h1"}`, "start owner h1  ", 202, `{"id":"h1"`},
	{"give work beside it", "POST", "/fleet/handoffs", `{"server":"bigpc","prompt":"x","mode":"aside"}`,
		"start aside owner bigpc  x", 202, `{"id":"h1"`},
	{"go on with a session from elsewhere", "POST", "/fleet/handoffs",
		`{"server":"laptop","from_server":"bigpc","from_thread_id":"t-1","prompt":"x"}`,
		"start from bigpc t-1 for owner laptop  x", 202, `{"id":"h1"`},
	{"give work some day", "POST", "/fleet/handoffs", `{"server":"bigpc","prompt":"x","mode":"later"}`, "", 400,
		"mode is now, next, aside or watch"},
	{"give work with more", "POST", "/fleet/handoffs", `{"server":"bigpc","prompt":"x","sandbox":"none"}`, "", 400,
		"malformed"},
	{"give too much", "POST", "/fleet/handoffs", `{"prompt":"` + strings.Repeat("a", maxRun) + `"}`, "", 413, "too_large"},
	{"steer", "POST", "/fleet/handoffs/h1/steer", `{"prompt":"and the linter"}`, "steer owner h1 and the linter", 202,
		`{"id":"h1"`},
	{"PUT handoffs", "PUT", "/fleet/handoffs", "{}", "", 404, "not_found"},
	{"logins", "GET", "/login", "", "", 200, `{"items":[]}`},
	{"log out nobody", "DELETE", "/login/none", "", "", 404, "not_found"},
	{"PUT login", "PUT", "/login", "", "", 404, "not_found"},
	{"PUT question", "PUT", "/fleet/questions/q1", "{}", "", 404, "not_found"},
	{"POST page", "POST", "/", "", "", 404, "not_found"},
	{"GET calls", "GET", "/v1/realtime/calls", "", "", 404, "not_found"},
	{"POST realtime", "POST", "/v1/realtime", "{}", "", 404, "not_found"},
	{"OPTIONS", "OPTIONS", "/v1/realtime/calls", "", "", 404, "not_found"},
	{"slash at the end", "GET", "/fleet/servers/", "", "", 404, "not_found"},
	{"metrics without the grant", "GET", "/metrics", "", "", 403, "not_granted"},
	{"unknown file", "GET", "/page/secret.js", "", "", 404, "not_found"},
	{"source of the page", "GET", "/page/index.go", "", "", 404, "not_found"},
}

func TestRoutes(t *testing.T) {
	for _, row := range routeCases {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld()
			w.servers = []handoff.ServerInfo{{Name: "bigpc", Kind: "codex", Health: handoff.HealthUp}}
			w.records = []handoff.Record{{ID: "h1"}}
			s := newServer(t, w, func(cfg *Config) { cfg.Voice = VoiceInfo{Simulated: true, Model: "simulated"} })
			rec := ask(s, row.method, row.path, row.body, nil)
			if rec.Code != row.status || !strings.Contains(rec.Body.String(), row.answer) {
				t.Errorf("got %d %s, want %d with %q", rec.Code, rec.Body, row.status, row.answer)
			}
			if got := strings.Join(w.log(), ";"); got != row.asked {
				t.Errorf("asked %q, want %q", got, row.asked)
			}
			if rec.Code >= 400 {
				codeOf(t, rec)
			}
			if rec.Header().Get("X-Content-Type-Options") != "nosniff" || rec.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("headers are missing: %v", rec.Header())
			}
		})
	}
}

func TestErrorsOfTheRouter(t *testing.T) {
	routes := [][2]string{
		{"POST", "/fleet/handoffs/h1/stop"}, {"POST", "/fleet/questions/q1"}, {"GET", "/fleet/sticky"}, {"DELETE", "/fleet/sticky/bigpc"},
		{"GET", "/fleet/sessions"}, {"GET", "/fleet/sessions/bigpc/t"}, {"POST", "/v1/realtime/calls/c/hangup"},
	}
	for code, meaning := range handoff.Vocabulary {
		for _, route := range routes {
			w := newWorld()
			w.fail = handoff.Fault(code, "bigpc", "an inner detail")
			rec := ask(newServer(t, w, nil), route[0], route[1], `{"decision":"accept"}`, nil)
			if got := codeOf(t, rec); got != code {
				t.Errorf("%s: got %s, want %s", route, got, code)
			}
			if strings.Contains(rec.Body.String(), "inner detail") {
				t.Errorf("%s: the detail went out", route)
			}
			if meaning.Next != "" && !strings.Contains(rec.Body.String(), `"next":`) {
				t.Errorf("%s %s: says not what to do", route, code)
			}
		}
	}
	w := newWorld()
	w.fail = errors.New("dial tcp: something private")
	rec := ask(newServer(t, w, nil), "GET", "/fleet/sticky", "", nil)
	if got := codeOf(t, rec); got != handoff.CodeInternal || strings.Contains(rec.Body.String(), "private") {
		t.Errorf("a plain error: %s", rec.Body)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	s := newServer(t, newWorld(), func(cfg *Config) {
		cfg.Ready = func(context.Context) error { return handoff.Fault(handoff.CodeUnreachable, "Redis", "") }
	})
	if got := codeOf(t, ask(s, "GET", "/readyz", "", nil)); got != handoff.CodeUnreachable {
		t.Errorf("got %s", got)
	}
	if got := ask(s, "GET", "/healthz", "", nil).Code; got != http.StatusOK {
		t.Errorf("health: %d", got)
	}
}

func TestCallersAreApart(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	for _, path := range []string{"/fleet/handoffs", "/fleet/questions", "/fleet/sticky", "/fleet/servers"} {
		ask(s, "GET", path, "", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+otherKey) })
	}
	want := []string{"handoffs other", "questions other", "stickies other", "servers other", "document other " + coloursID}
	if got := w.log(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// TestDeepBodies: a body that nests too deep reaches no parser.
func TestDeepBodies(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := newServer(t, w, nil)
	for _, unit := range []string{"[", `{"decision":`} {
		rec := ask(s, "POST", "/fleet/questions/q1", strings.Repeat(unit, handoff.MaxDepth+1), nil)
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "nests deeper than 128") {
			t.Errorf("%s: %d %s", unit, rec.Code, rec.Body)
		}
	}
}

// FuzzBodies: every body gets a valid answer, and no invalid one decides a question.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"decision":"accept"}`, `{}`, ``, `{"decision":`, `[1]`, "\x00", `{"decision":"accept","decision":"stop"}`, `{"DECISION":"decline"}`, `{"key":"` + ownerKey + `"}`, strings.Repeat("[", 5000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld()
		s := newServer(t, w, nil)
		rec := ask(s, "POST", "/fleet/questions/q1", body, nil)
		var got struct{ Decision string }
		valid := json.Unmarshal([]byte(body), &got) == nil
		if rec.Code == http.StatusNoContent {
			if asked := w.log(); !valid || len(asked) != 1 || asked[0] != "decide owner q1 "+got.Decision {
				t.Errorf("body %q decided %q", body, asked)
			}
		} else {
			codeOf(t, rec)
			if asked := w.log(); len(asked) > 0 {
				t.Errorf("body %q was refused and reached %q", body, asked)
			}
		}
		if rec := logIn(s, body, nil); rec.Code == http.StatusOK && !strings.Contains(body, ownerKey) && !strings.Contains(body, `\u`) {
			t.Errorf("body %q logged in", body)
		}
	})
}

// TestInstances: only the owner sees the addresses of the instances, and which one serves the request.
func TestInstances(t *testing.T) {
	several := newServer(t, newWorld(), func(cfg *Config) {
		sceneOfSeveral(cfg)
		limited := NewKey("owner", "limited-key-0123456789")
		limited.Servers, limited.Approve = []string{"bigpc"}, handoff.ApproveAll
		cfg.Keys = append(cfg.Keys, limited)
	})
	told := `"instances":[{"id":"a","address":"10.0.0.5:8090","here":true},{"id":"b","address":"10.0.0.6:8090","draining":true},`
	for _, row := range []struct {
		name, key string
		server    *Server
		told      bool
	}{
		{"the owner", ownerKey, several, true}, {"another principal", otherKey, several, false},
		{"a key for some machines", "limited-key-0123456789", several, false},
		{"the only instance", ownerKey, newServer(t, newWorld(), func(cfg *Config) {
			cfg.Keys[0].Approve = handoff.ApproveAll
		}), false},
	} {
		rec := ask(row.server, "GET", "/fleet/servers", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+row.key)
		})
		if body := rec.Body.String(); rec.Code != http.StatusOK || strings.Contains(body, told) != row.told ||
			strings.Contains(body, "instances") != row.told {
			t.Errorf("%s: %d %s", row.name, rec.Code, body)
		}
	}
}

// TestColours: a machine keeps its colour whatever comes and goes, a new one gets one that few others have, and the
// store has them.
func TestColours(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	colours := func(names ...string) string {
		w.servers = nil
		for _, name := range names {
			w.servers = append(w.servers, handoff.ServerInfo{Name: name})
		}
		var got struct{ Colours json.RawMessage }
		must(t, json.Unmarshal(ask(s, "GET", "/fleet/servers", "", nil).Body.Bytes(), &got))
		return string(got.Colours)
	}
	for _, row := range []struct{ names, want string }{
		{"c a", `{"a":1,"c":0}`}, {"b a c", `{"a":1,"b":2,"c":0}`}, {"d b", `{"b":2,"d":0}`}, {"c d b a", `{"a":1,"b":2,"c":0,"d":0}`},
		{"c d b a e", `{"a":1,"b":2,"c":0,"d":0,"e":3}`},
	} {
		if got := colours(strings.Fields(row.names)...); got != row.want {
			t.Errorf("%s: %s, want %s", row.names, got, row.want)
		}
	}
	if n := strings.Count(strings.Join(w.log(), ";"), "put owner "+coloursID); n != 4 {
		t.Errorf("they were written %d times", n)
	}
	w.desk.documents[coloursID] = sessions.Document{Owner: w.desk.documents[coloursID].Owner, ID: coloursID, Body: []byte("{")}
	if got := colours("x"); got != `{"x":0}` {
		t.Errorf("what cannot be read: %s", got)
	}
}
