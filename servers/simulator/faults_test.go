package simulator

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestServedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	w := scripted(Say{Text: "one ", Every: time.Millisecond}, Hang{})
	addr, stop := serveUntil(t, w, "bigpc")
	c := connect(t, addr)
	thread := c.start()
	c.call("turn/start", c.turn(thread, "go"))
	for c.until("item/completed").line() != "< item/completed agentMessage" {
	}
	stop()
	c.ended()
	if n := w.Connections("bigpc"); n != 0 {
		t.Errorf("%d connections", n)
	}
	again := connect(t, serve(t, w, "bigpc"))
	if got := again.refused("turn/start", again.turn(thread, "x")); got != "-32600 thread not found: "+thread {
		t.Error(got)
	}
	m := again.call("thread/resume",
		`{"threadId":"`+thread+`","excludeTurns":true,"initialTurnsPage":{"limit":1,"itemsView":"full"}}`)
	last := field[[]map[string]any](t, m.Result, "initialTurnsPage", "data")[0]
	if last["status"] != "interrupted" || last["completedAt"] != nil || len(last["items"].([]any)) != 2 {
		t.Errorf("%v", last)
	}
}

func TestSlowReaderIsCut(t *testing.T) {
	t.Parallel()
	w := scripted(Say{Text: strings.Repeat(strings.Repeat("x", 12000)+" ", 800)}) // more than the buffers of the kernel
	w.find("bigpc").unsent = 64
	addr := serve(t, w, "bigpc")
	driver := connect(t, addr)
	made := driver.call("thread/start", `{}`)
	thread := field[string](t, made.Result, "thread", "id")
	lazy := dialLazy(t, addr, thread)
	defer lazy()
	driver.call("thread/unsubscribe", `{"threadId":"`+thread+`"}`)
	driver.call("turn/start", driver.turn(thread, "go"))
	deadline := time.Now().Add(patience)
	for w.Connections("bigpc") > 1 {
		if time.Now().After(deadline) {
			t.Fatal("it was never cut")
		}
		time.Sleep(5 * time.Millisecond)
	}
	m := w.find("bigpc")
	m.do(func() {
		if m.tooSlow != 1 || len(m.conns) != 1 {
			t.Errorf("%d were cut, %d connections are left", m.tooSlow, len(m.conns))
		}
	})
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		addr, stop := serveUntil(t, scripted(Say{Text: "on and on and on", Every: 10 * time.Millisecond}), "bigpc")
		c := connect(t, addr)
		thread := c.start()
		c.call("turn/start", c.turn(thread, "go"))
		stop()
		c.ended()
		_ = c.ws.Close()
	}
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before+2 {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}
