package simulator

import (
	"strings"
	"testing"
	"time"
)

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
