package simulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const missing = "01a1fac5-6c65-7c13-9ff2-be9c54078f33"

func TestErrorsAreThoseOfTheRealOne(t *testing.T) {
	t.Parallel()
	w := scripted(Hang{})
	c := connect(t, serve(t, w, "bigpc"))
	archived := w.AddThread("bigpc", "Old work", "~", true)
	never := c.start()
	busy := c.start()
	running := field[string](t, c.call("turn/start", c.turn(busy, "go")).Result, "turn", "id")
	c.until("turn/started")
	on := func(thread string) string { return `{"threadId":"` + thread + `"}` }
	steer := func(thread, turn, text string) string {
		return fmt.Sprintf(`{"threadId":%q,"expectedTurnId":%q,"input":[%s]}`, thread, turn, text)
	}
	for _, row := range []struct{ method, params, want string }{
		{"initialize", `{"clientInfo":{"name":"x","version":"1"}}`, "-32600 Already initialized"},
		{"thread/read", `{}`, "-32600 Invalid request: missing field `threadId`"},
		{"turn/start", c.turn("nope", "x"), "-32600 invalid thread id: nope"},
		{"turn/start", c.turn(missing, "x"), "-32600 thread not found: " + missing},
		{"turn/start", c.turn(archived, "x"), "-32600 thread not found: " + archived},
		{"turn/start", c.turn(never, strings.Repeat("x", maxInput+1)), "-32602 input is too large"},
		{"turn/steer", steer(missing, "t", ""), "-32600 thread not found: " + missing},
		{"turn/steer", steer(never, "t", ""), "-32600 no active turn to steer"},
		{"turn/steer", steer(busy, missing, ""), "-32600 expected active turn id `" + missing + "` but found `" + running +
			"`"},
		{"turn/interrupt", `{"threadId":"` + never + `","turnId":"t"}`, "-32600 no active turn to interrupt"},
		{"turn/interrupt", `{"threadId":"` + busy + `","turnId":"t"}`, "-32600 expected active turn id t but found " +
			running},
		{"turn/interrupt", `{"threadId":"` + never + `","turnId":""}`, "accepted: {}"},
		{"thread/resume", on(missing), "-32600 no rollout found for thread id " + missing},
		{"thread/resume", on(never), "-32600 no rollout found for thread id " + never},
		{"thread/resume", on(archived), "-32600 session " + archived + " is archived. Run `codex unarchive " + archived +
			"` to unarchive it first."},
		{"thread/read", on(missing), "-32600 thread not loaded: " + missing},
		{"thread/turns/list", on(missing), "-32600 thread not loaded: " + missing},
		{"thread/turns/list", on(never), "-32600 thread " + never +
			" is not materialized yet; thread/turns/list is unavailable before first user message"},
		{"thread/items/list", on(never), "-32601 thread/items/list is not supported yet"},
		{"thread/archive", on(missing), "-32600 no rollout found for thread id " + missing},
		{"thread/list", `{"cursor":"zzz"}`, "-32600 invalid cursor: zzz"},
		{"thread/start", `{"sandbox":"foo"}`,
			"-32600 Invalid request: unknown variant `foo`, expected one of `read-only`, `workspace-write`, " +
				"`danger-full-access`"},
		{"thread/unsubscribe", on(missing), `accepted: {"status":"notLoaded"}`},
	} {
		if got := c.refused(row.method, row.params); got != row.want {
			t.Errorf("%s %.80s: %s\nwant %s", row.method, row.params, got, row.want)
		}
	}
	if got := c.refused("foo/bar", `{}`); !strings.HasPrefix(got,
		"-32600 Invalid request: unknown variant `foo/bar`, expected one of `initialize`, `") {
		t.Error(got)
	}
	if starts := w.Starts("bigpc"); len(starts) != 1 {
		t.Errorf("refused starts count: %+v", starts)
	}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	addr := serve(t, scripted(), "bigpc")
	c := dial(t, addr)
	connect(t, addr).start() // only initialized clients are notified
	if got := c.refused("thread/list", `{}`); len(c.seen) != 2 || got != "-32600 Not initialized" {
		t.Error(got)
	}
	for _, dropped := range []string{`{bad json`, `[]`, `[{"id":900,"method":"thread/list","params":{}}]`, `"str"`,
		`{"foo":1}`,
		`{"id":null,"method":"thread/list","params":{}}`, `{"id":1.5,"method":"thread/list","params":{}}`,
		`{"id":55,"result":{}}`} {
		c.send(dropped)
	}
	if got := c.refused("initialize", `{}`); got != "-32600 Invalid request: missing field `clientInfo`" {
		t.Errorf("the next reply is %s", got)
	}
	m := c.call("initialize",
		`{"clientInfo":{"name":"lab","version":"0.0.1"},"capabilities":{"optOutNotificationMethods":["thread/started"]}}`)
	if agent := field[string](t, m.Result, "userAgent"); !strings.HasPrefix(agent, "lab/0.169.0 (") {
		t.Error(agent)
	}
	c.call("thread/start", `{}`)
	c.call("thread/loaded/list", `{}`)
	if log := strings.Join(c.seen, "\n"); strings.Contains(log, "< thread/started") {
		t.Errorf("opted out, still told:\n%s", log)
	}
}

func TestBrowsersAreRefused(t *testing.T) {
	t.Parallel()
	addr := serve(t, scripted(), "bigpc")
	header := http.Header{"Origin": {"http://" + addr}}
	if ws, reply, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+addr, header); err == nil ||
		reply.StatusCode != http.StatusForbidden {
		t.Errorf("a browser got in: %v %v", ws, err)
	}
}

func TestWhoHearsWhat(t *testing.T) {
	t.Parallel()
	addr := serve(t, scripted(Say{Text: "hello"}), "bigpc")
	a, b := connect(t, addr), connect(t, addr)
	thread := a.start()
	b.until("thread/started")
	// Starting a turn does not subscribe.
	b.call("turn/start", b.turn(thread, "go"))
	a.until("turn/completed")
	for b.until("thread/status/changed").line() != "< thread/status/changed idle" {
	}
	if log := strings.Join(b.seen, "\n"); strings.Contains(log, "turn/") && !strings.Contains(log, "> turn/start") ||
		strings.Contains(log, "item/") {
		t.Errorf("not subscribed, and heard\n%s", log)
	}
	// Resuming does.
	m := b.call("thread/resume", `{"threadId":"`+thread+`","excludeTurns":true,"initialTurnsPage":{"limit":1}}`)
	if turns := field[[]map[string]any](t, m.Result, "initialTurnsPage", "data"); len(turns) != 1 ||
		turns[0]["status"] != "completed" {
		t.Errorf("page: %v", turns)
	}
	b.call("turn/start", b.turn(thread, "again"))
	done := b.until("turn/completed")
	if items := field[[]map[string]any](t, done.Params, "turn", "items"); len(items) != 1 || items[0]["text"] != "hello" {
		t.Errorf("last message: %v", items)
	}
	if done.At < time.Now().Add(-time.Hour).UnixMilli() {
		t.Errorf("emittedAtMs is %d", done.At)
	}
	// And unsubscribing ends it.
	for _, want := range []string{"unsubscribed", "notSubscribed"} {
		if got := field[string](t, b.call("thread/unsubscribe", `{"threadId":"`+thread+`"}`).Result, "status"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestApprovalsAreReplayedAndTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	w := scripted(Ask{Command: "make", Accepted: []Step{Say{Text: "made"}}, Declined: []Step{Say{Text: "left"}}})
	addr := serve(t, w, "bigpc")
	a := connect(t, addr)
	thread := a.start()
	a.call("turn/start", a.turn(thread, "go"))
	first := a.until("item/commandExecution/requestApproval")
	if *first.ID != 0 || field[string](t, first.Params, "command") != "/bin/bash -lc 'make'" {
		t.Errorf("%d %s", *first.ID, first.Params)
	}
	b, stranger := connect(t, addr), connect(t, addr)
	b.call("thread/resume", `{"threadId":"`+thread+`","excludeTurns":true}`)
	again := b.until("item/commandExecution/requestApproval")
	if *again.ID != *first.ID || string(again.Params) != string(first.Params) {
		t.Errorf("replayed as %d %s", *again.ID, again.Params)
	}
	stranger.answer(*first.ID, "decline") // never subscribed
	for _, c := range []*client{a, b} {
		if got := field[int](t, c.until("serverRequest/resolved").Params, "requestId"); got != 0 {
			t.Errorf("resolved %d", got)
		}
	}
	a.answer(*first.ID, "accept")
	done := a.until("turn/completed")
	if items := field[[]map[string]any](t, done.Params, "turn", "items"); items[0]["text"] != "left" {
		t.Errorf("the second answer counted: %v", items)
	}
	// Accepted for the session, the same command is not asked about again. An error is a no.
	a.call("turn/start", a.turn(thread, "go"))
	a.answer(*a.until("item/commandExecution/requestApproval").ID, "acceptForSession")
	a.until("turn/completed")
	a.seen = nil
	a.call("turn/start", a.turn(thread, "go"))
	a.until("turn/completed")
	if log := strings.Join(a.seen, "\n"); strings.Contains(log, "requestApproval") {
		t.Errorf("asked again:\n%s", log)
	}
	other := a.start()
	a.call("turn/start", a.turn(other, "go"))
	id := *a.until("item/commandExecution/requestApproval").ID
	a.send(fmt.Sprintf(`{"id":%d,"error":{"code":-32601,"message":"method not found"}}`, id))
	for a.until("item/completed").line() != "< item/completed commandExecution" {
	}
	if done := a.until("turn/completed"); field[[]map[string]any](t, done.Params, "turn", "items")[0]["text"] != "left" {
		t.Errorf("%s", done.Params)
	}
}
