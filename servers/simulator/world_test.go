package simulator

import (
	"net"
	"strings"
	"testing"
	"time"
)

const (
	authID     = "01990000-0000-7000-8000-000000000004"
	checkoutID = "01990000-0000-7000-8000-000000000003"
	releaseID  = "01990000-0000-7000-8000-000000000002"
)

// visit opens a session of the built-in world.
func visit(t *testing.T, addr, thread string) *client {
	t.Helper()
	c := connect(t, addr)
	c.call("thread/resume", `{"threadId":"`+thread+`","excludeTurns":true}`)
	return c
}

// TestStopAtEveryPoint interrupts the fix after each of its notifications.
func TestStopAtEveryPoint(t *testing.T) {
	t.Parallel()
	w := NewWorld(Config{Speed: 100})
	c := visit(t, serve(t, w, "bigpc"), authID)
	for _, prompt := range []string{"run the tests", "push it", "run the benchmarks"} {
		for after := 0; ; after++ {
			id := field[string](t, c.call("turn/start", c.turn(authID, prompt)).Result, "turn", "id")
			ended := false
			for range after * 3 {
				m, _ := c.receive()
				if m.Method == "turn/completed" {
					ended = true
					break
				}
				if m.Method == "item/commandExecution/requestApproval" {
					break // nothing more comes by itself
				}
			}
			if ended {
				break
			}
			waiting := len(c.seen) > 0 && strings.Contains(c.seen[len(c.seen)-1], "requestApproval")
			reply := c.call("turn/interrupt", `{"threadId":"`+authID+`","turnId":"`+id+`"}`)
			if reply.Error != nil { // it ended meanwhile
				break
			}
			if status := field[string](t, c.until("turn/completed").Params, "turn", "status"); status != "interrupted" {
				t.Errorf("%q after %d: %s", prompt, after, status)
			}
			if waiting {
				c.until("serverRequest/resolved")
				break
			}
		}
	}
	m := w.find("bigpc")
	m.do(func() {
		for _, thread := range m.threads {
			if thread.turn != nil || len(m.asks) > 0 {
				t.Errorf("%s still runs, or asks", thread.name)
			}
		}
	})
}

// A machine that leaves is there until it is given work, and then gone for good; no client can tell whether the work
// began.
func TestMachineThatLeaves(t *testing.T) {
	t.Parallel()
	w := NewWorld(Config{Story: true})
	at := serve(t, w, "attic")
	c := connect(t, at)
	c.call("thread/list", `{}`)
	c.request("thread/start", `{}`)
	c.ended()
	if conn, err := net.Dial("tcp", at); err == nil {
		_ = conn.Close()
		t.Error("something still listens there")
	}
}

func TestTheWorldAtFirst(t *testing.T) {
	t.Parallel()
	w := NewWorld(Config{})
	var names []string
	for _, m := range w.Machines() {
		names = append(names, m.Name)
		if m.Down != (m.Name == "attic") {
			t.Errorf("%s is down: %v", m.Name, m.Down)
		}
	}
	if got := strings.Join(names, " "); got != "bigpc laptop attic" {
		t.Error(got)
	}
	now := time.Now().Unix()
	for machine, want := range map[string][]struct {
		name string
		old  time.Duration
	}{
		"bigpc":  {{"Auth refactor", 12 * time.Minute}, {"Checkout page polish", 3 * time.Hour}},
		"laptop": {{"Release notes 2.4", 24 * time.Hour}, {"Invoice PDF spike", 96 * time.Hour}},
	} {
		c := connect(t, serve(t, w, machine))
		list := field[[]map[string]any](t, c.call("thread/list",
			`{"sortKey":"updated_at","modelProviders":[],"sourceKinds":["vscode","exec"]}`).Result, "data")
		if usual := field[[]map[string]any](t, c.call("thread/list", `{}`).Result, "data"); machine == "laptop" &&
			len(usual) != 1 {
			t.Errorf("what codex exec did is listed unasked: %v", usual)
		}
		if len(list) != len(want) {
			t.Fatalf("%s: %v", machine, list)
		}
		for i, s := range want {
			old := now - int64(list[i]["updatedAt"].(float64))
			if list[i]["name"] != s.name || old < int64(s.old.Seconds())-1 || old > int64(s.old.Seconds())+5 {
				t.Errorf("%s: %v, %d s old", machine, list[i]["name"], old)
			}
			page := field[[]map[string]any](t, c.call("thread/turns/list",
				`{"threadId":"`+list[i]["id"].(string)+`","itemsView":"full"}`).Result, "data")
			if len(page) == 0 || page[0]["status"] != "completed" {
				t.Errorf("%s: history %v", s.name, page)
			}
		}
	}
}
