package call

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// A hastyVoice confirms each answer that holds an outcome before the one who gives it gets on.
type hastyVoice struct {
	events chan handoff.Event // unbuffered

	mu   sync.Mutex
	said []handoff.Utterance // Guarded by mu
}

func (v *hastyVoice) Events() <-chan handoff.Event { return v.events }

func (v *hastyVoice) Say(u handoff.Utterance) {
	v.mu.Lock()
	v.said = append(v.said, u)
	v.mu.Unlock()
	if u.CallID != "" && len(u.Tells) > 0 {
		go func() {
			v.events <- handoff.Said{ID: u.ID, At: time.Now()}
		}()
	}
}

// TestConfirmedAtOnce: an outcome that the voice model has before the call knows that it was given counts as
// heard, and is not told again.
func TestConfirmedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "server bigpc\nsticky bigpc t1 Auth\nturn t1 100ms completed Done.")
		r, calls := service(router.Config{Fleet: w, Stickies: w, Ledger: w.ledger, Life: "h"}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- r.Run(ctx) }()
		v := &hastyVoice{events: make(chan handoff.Event)}
		go func() { done <- calls.Serve(ctx, calltest.Grant, v) }()
		v.events <- handoff.FunctionCall{CallID: "c1", Tool: tools.Codex, Arguments: `{"server":"bigpc","prompt":"x"}`}
		time.Sleep(time.Hour)
		if rec, err := r.Handoff(calltest.Grant, "h-1"); err != nil || rec.State != handoff.StatusDelivered {
			t.Errorf("the record is %+v, %v", rec, err)
		}
		v.events <- handoff.CallEnded{}
		close(v.events)
		<-done
		cancel()
		<-done
		var told []string
		for _, u := range v.said {
			if slices.Contains(u.Tells, "h-1") {
				told = append(told, u.ID)
			}
		}
		if !slices.Equal(told, []string{"h-1-a"}) {
			t.Errorf("it was told as %q", told)
		}
	})
}
