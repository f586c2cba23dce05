package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
)

// TestProofAttached: the instance that is in a call which the voice model's server carries is killed, and the next one
// is asked to end. Each time another instance takes its place: the call goes on, what was begun is told in it, and
// nothing is begun twice.
func TestProofAttached(t *testing.T) {
	t.Parallel()
	voice := scriptedVoice(t).URL
	w := newTeamBy(t, "", voice)
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), voice+"?model=x", nil)
	must(t, err)
	p := newPhone(t, conn)
	id := strings.TrimPrefix(answer.Header.Get("Location"), "/v1/realtime/calls/")
	until(t, "the call to be joined", func() bool {
		status, _, text := w.ask(w.there[0].base, "anna", http.MethodPost, "/v1/realtime/attach", `{"call_id":"`+id+`"}`)
		if status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", status, text)
		}
		return status == http.StatusCreated
	})
	for !strings.Contains(p.await("session.updated").raw, `"codex"`) { // one more tells that the call was joined
	}
	joins := func(but int) int { // which instance has joined it again
		return slices.IndexFunc(w.children(), func(c *child) bool {
			return c != w.there[but] && strings.Contains(c.logs.String(), "call of the voice model's server joined again")
		})
	}
	home := 0
	for n, fault := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		job := fmt.Sprintf("job %d takes 4000", n)
		p.say(work("bigpc", job))
		until(t, "the turn", func() bool { return w.f.turns()[job] == 1 })
		ended := w.there[home]
		gone := make(chan struct{})
		go func() { defer close(gone); ended.signal(fault) }()
		next := -1
		until(t, "another instance to be in the call", func() bool { next = joins(home); return next >= 0 })
		p.hear(fmt.Sprintf("job %d is done", n))
		if turns := w.f.turns()[job]; turns != 1 {
			t.Errorf("%q has %d turns", job, turns)
		}
		<-gone
		w.start(home)
		home = next
	}
}
