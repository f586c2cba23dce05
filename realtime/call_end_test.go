package realtime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

func TestCallEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*stage)
		want handoff.Code
		tell bool // the client is told by an event
	}{
		{"client gone", func(s *stage) { close(s.client.gone) }, "", false},
		{"hung up", func(s *stage) { s.call.hangUp() }, "", false},
		{"model gone", func(s *stage) { close(s.model.gone) }, handoff.CodeVoiceGone, true},
		{"slow client", func(s *stage) {
			for range cap(s.client.out) + 1 {
				s.fromModel(`{"type":"response.output_text.delta","response_id":"r","delta":"x"}`)
			}
		}, handoff.CodeSlowClient, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.open(freshSession)
				s.requests("r1", "call_1", "call_2")
				s.say(handoff.Utterance{ID: "a", CallID: "call_1", Text: "1"})
				s.model.sent()
				s.client.sent()
				c.end(s)
				err := <-s.ended
				s.wantEnd(err, c.want)
				if up := s.wantSent(s.model, "conversation.item.create:function_call_output")[0]; gjson.Get(up,
					"item.call_id").String() != "call_2" {
					t.Errorf("left open: %s", up)
				}
				if c.tell {
					if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.code").String() != string(c.want) {
						t.Errorf("client was told %s", got)
					}
				}
				s.call.Say(handoff.Utterance{ID: "late", Text: "x"})
				s.call.hangUp()
			})
		})
	}
}

// wantEnd checks that the router got the end once, last, with its cause, and that both legs are closed.
func (s *stage) wantEnd(err error, want handoff.Code) {
	s.t.Helper()
	if want == "" && err != nil || want != "" && handoff.AsError(err).Code != want {
		s.t.Errorf("ended with %v, want %q", err, want)
	}
	all := s.router.heard()
	ends := 0
	for _, e := range all {
		if _, ok := e.(handoff.CallEnded); ok {
			ends++
		}
	}
	last, _ := all[len(all)-1].(handoff.CallEnded)
	if ends != 1 || !errors.Is(last.Cause, err) && fmt.Sprint(last.Cause) != fmt.Sprint(err) {
		s.t.Errorf("router heard %v", all)
	}
	if !s.client.closed || !s.model.closed {
		s.t.Error("a leg is open")
	}
	if reason := s.client.reason; want != "" && (reason == nil || reason.Code != want) || want == "" && reason != nil {
		s.t.Errorf("client closed with %v", reason)
	}
}

// ending is a wire that takes nothing more, and an [ender].
type ending struct {
	*wire
	why *handoff.Error
}

func (ending) Send([]byte) bool        { return false }
func (e ending) Ended() *handoff.Error { return e.why }
func (ending) Vanished() bool          { return false }

// A client that cannot be sent anything has gone or is slow; its leg knows.
func TestCallEndsAsItsLegSays(t *testing.T) {
	for _, why := range []*handoff.Error{nil, handoff.Fault(handoff.CodeSlowClient, "", "bytes")} {
		for name, end := range map[string]func(*stage){
			"sent to": func(s *stage) { s.fromModel(freshSession) },
			"gone":    func(s *stage) { close(s.client.gone) },
		} {
			synctest.Test(t, func(t *testing.T) {
				client := newWire()
				s := newStageFor(t, client, ending{client, why})
				end(s)
				if err := <-s.ended; (err == nil) != (why == nil) || err != nil && handoff.AsError(err).Code != why.Code {
					t.Errorf("%s: ended with %v, want %v", name, err, why)
				}
			})
		}
	}
}

func TestShutdownEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, client: newWire(), model: newWire(), router: &listener{}, ended: make(chan error, 1)}
		s.call = newCall(someone, ours, "rtc_test", s.client, s.model, nopLog())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { s.ended <- s.call.run(ctx, s.router) }()
		s.open(freshSession)
		cancel()
		s.wantEnd(<-s.ended, handoff.CodeShutdown)
	})
}

// TestEndIsKeptBeforeTheClientKnows: a client that calls again at once is told of the call that broke off.
func TestEndIsKeptBeforeTheClientKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, client := make(chan struct{}), newWire()
		s := newStageBy(t, someone, client, client, func(c *Call) { c.atEnd = func() { <-kept } })
		s.open(freshSession)
		s.client.sent()
		s.call.halt(handoff.Fault(handoff.CodeVoiceGone, "", ""))
		synctest.Wait()
		if told := s.client.sent(); s.client.closed || told != nil {
			t.Errorf("the client knows already: closed %t, told %q", s.client.closed, told)
		}
		close(kept)
		s.wantEnd(<-s.ended, handoff.CodeVoiceGone)
		if told := s.client.sent(); len(told) != 1 {
			t.Errorf("the client was told %q", told)
		}
	})
}

// deserter is a router that leaves.
type deserter struct{}

func (deserter) Serve(context.Context, *handoff.Grant, handoff.Voice) error { return errors.New("no") }

func TestRouterThatLeavesEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, model := newWire(), newWire()
		err := newCall(someone, ours, "rtc_test", client, model, nopLog()).run(t.Context(), deserter{})
		if handoff.AsError(err).Code != handoff.CodeInternal {
			t.Errorf("ended with %v", err)
		}
	})
}

// A router that takes no events for a while must miss no request. It may miss the caller's words, but not that they
// spoke: it may have been a no.
func TestBusyRouterMissesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		s := newStage(t)
		s.router.on = func(handoff.Voice, handoff.VoiceEvent) { <-busy }
		s.open(freshSession)
		for i := range eventQueue {
			if i < 9 {
				s.fromModel(speechStarted(fmt.Sprint("u", i)))
			}
			s.fromModel(`{"type":"conversation.item.input_audio_transcription.completed","transcript":"x"}`)
			if i < 50 {
				s.fromModel(done("r", "", "completed", callItem(fmt.Sprint("i", i), fmt.Sprint("c", i), "codex", "completed")))
			}
		}
		close(busy)
		synctest.Wait()
		requests, spoke := 0, 0
		for _, e := range s.router.heard() {
			switch e.(type) {
			case handoff.FunctionCall:
				requests++
			case handoff.Spoke:
				spoke++
			}
		}
		if requests != 50 || spoke != 9 || s.call.counts.unheard == 0 {
			t.Errorf("%d requests, %d times spoke, %d unheard", requests, spoke, s.call.counts.unheard)
		}
		s.close()
	})
}

// routing is a router made of a function.
type routing func(handoff.Voice)

func (r routing) Serve(_ context.Context, _ *handoff.Grant, v handoff.Voice) error {
	r(v)
	return nil
}

// If a call ends while the router takes an event, the router does not get that event twice.
func TestRouterIsToldOnceAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall(someone, ours, "rtc_test", newWire(), newWire(), nopLog())
		told := 0
		_ = c.run(t.Context(), routing(func(v handoff.Voice) {
			c.do(func() { c.report(handoff.FunctionCall{CallID: "call_1"}) })
			synctest.Wait() // the loop offers it
			c.mu.Lock()
			first := <-v.Events()
			c.end(nil) // as an event of a far end does
			c.mu.Unlock()
			for e := first; e != nil; e = <-v.Events() {
				if _, ok := e.(handoff.FunctionCall); ok {
					told++
				}
			}
		}))
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

// The model's leg is replaced: the events of the old leg are dropped, its end does not end the call, and all our events
// go to the new one.
func TestModelLegIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.open(freshSession)
		old, renewed := s.model, newWire()
		s.call.do(func() { s.call.legs.model = modelLeg{leg: renewed, dialect: newDialect()} })
		s.fromModel(began("r1", ""), audio("r1", time.Second))
		s.fromClient(`{"type":"response.cancel"}`)
		s.wantSent(s.client, "")
		s.wantSent(old, "")
		s.wantSent(renewed, "response.cancel")
		close(old.gone)
		s.wait(time.Minute)
		s.call.do(func() { s.call.departed(old) })
		s.model = renewed
		s.fromModel(began("r2", ""))
		s.wantSent(s.client, "response.created")
		close(renewed.gone)
		err := take(t, s.ended, "the end of the call")
		if why, ok := errors.AsType[*handoff.Error](err); !ok || why.Code != handoff.CodeVoiceGone {
			t.Errorf("it ended with %v", err)
		}
		if old.closed || !renewed.closed { // who replaces a leg closes it
			t.Errorf("closed: the old leg %t, the new one %t", old.closed, renewed.closed)
		}
	})
}

// The end of a leg that has just taken the place of another is noticed at once.
func TestEndOfANewModelLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.open(freshSession)
		renewed := newWire()
		s.call.do(func() { s.call.legs.model = modelLeg{leg: renewed, dialect: newDialect()} })
		synctest.Wait()
		closed := time.Now()
		if close(renewed.gone); take(t, s.ended, "the end of the call") == nil || time.Since(closed) > 0 {
			t.Errorf("it ended after %v", time.Since(closed))
		}
	})
}
