package realtime

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc"
)

const (
	// rejoins is the query parameter by which a client says, as its call begins, that it comes back if it vanishes; and
	// by which a socket takes the place of a call's client. Who does not say so never comes back: many clients end
	// their calls without a goodbye.
	rejoins = "rejoin"
	// restarts is the query parameter of an offer by which a browser keeps its connection, and restarts ICE alone.
	restarts = "restart"
	// yieldLimit bounds how long a new call waits for the end of the one that gives way to it.
	yieldLimit = serveGrace + outbound.CloseGrace
)

// holdOf is how long a call that begins waits for its client. A caller without a name could not say whose call gives
// way to a new one.
func (f *Front) holdOf(r *http.Request, grant handoff.Grant) time.Duration {
	if r.URL.Query().Get(rejoins) != "1" || grant.Caller.Nameless() {
		return 0
	}
	return f.config.Hold
}

// place puts a leg into a call in place of its client's, which ends; false: the call is over, or has no session yet to
// come back to.
func (c *Call) place(l leg, parting *sync.WaitGroup) (placed bool) {
	c.do(func() {
		if c.legs.shown == "" {
			return
		}
		old := c.session.replaceClient(l)
		parting.Go(func() { old.Close(nil) })
		placed = true
	})
	return placed
}

// departed handles the end of a leg: the call ends with it, unless it is the client's and that may come back.
func (c *Call) departed(l leg) {
	switch {
	case c.legs.model.leg == l:
		c.renewal.modelLeft("")
	case c.legs.client != l: // another one took its place
	case c.legs.vanished():
		c.session.clientVanished()
	default:
		c.end(c.legs.clientGone(nil))
	}
}

// clientVanished lets the call go on without its client. Nothing of what was not heard to its end counts as heard, and
// what the caller was saying is thrown away: its end is lost.
func (s *session) clientVanished() {
	now, l, h := time.Now(), s.legs, s.hearing
	l.client = nobody{}
	if l.opened = false; l.away() { // one that rejoined went before it could be reached
		l.witness = nobody{}
		return
	}
	l.left = now
	s.counts.holds++
	s.log().Info("client vanished; the call waits for it", zap.Duration("limit", l.hold))
	s.alarms[alarmHold].at = now.Add(l.hold)
	h.goesOn()
	spoke := s.saying.floor.Speaking() || !h.speeches.appended.IsZero()
	s.saying.tell(floor.Away{On: true}) // first: nothing is asked for any more
	if id := s.saying.floor.Active(); id != "" {
		h.lose(id)
	}
	h.overhear(now, h.playback.lose(now))
	if h.signs(now); len(h.unsure) > 0 {
		h.doubt(len(h.unsure))
	}
	l.witness = nobody{}
	if spoke {
		h.speeches.appended = time.Time{}
		l.toModel(events.Encode(events.Object{"type": events.TypeInputClear, "event_id": s.ids.Next()}))
	}
}

// replaceClient gives the call a client's leg in place of the one that it has or waits for, which is returned: a client
// notices before we do that its connection is lost. The leg begins with the session as the client knows it.
func (s *session) replaceClient(l leg) (old leg) {
	if old = s.legs.client; !s.legs.away() {
		s.clientVanished()
	}
	s.legs.client = l
	s.legs.witness, _ = l.(witness)
	if s.legs.performs {
		known := json.RawMessage(cmp.Or(s.mask.Known(), "{}"))
		s.legs.toLeg(events.Encode(events.Object{"type": events.TypeMade, "session": known}))
	}
	s.legs.toLeg(s.legs.created())
	if !s.legs.performs { // a browser is there when it can be reached
		s.clientBack()
	}
	return old
}

// giveWay ends the call if it waits for its client. False: the client is back.
func (c *Call) giveWay() bool {
	back := false
	c.do(func() {
		if back = !c.legs.away(); !back {
			c.end(nil)
		}
	})
	return !back
}

// isHeld reports whether the call waits for its client, to who does not hold mu.
func (c *Call) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legs.away()
}

// clientBack ends the wait: the client can be reached again.
func (s *session) clientBack() {
	l := s.legs
	if !l.away() {
		return
	}
	gone := time.Since(l.left)
	l.left, s.alarms[alarmHold].at = time.Time{}, time.Time{}
	s.counts.rejoins++
	s.log().Info("client is back", zap.Duration("took", gone))
	s.saying.say(handoff.Utterance{
		ID: "back-" + strconv.Itoa(s.counts.rejoins),
		Text: "The caller's connection was lost for " + strconv.Itoa(1+int(gone.Seconds())) + " s; they are back. " +
			"They heard nothing meanwhile, and may have missed the end of what you said before: say that again if it " +
			"matters. Say nothing of the connection unless asked.",
	})
	s.saying.tell(floor.Away{})
}

// overAlready is the error of a call that ended while somebody came back to it.
func overAlready() *handoff.Error {
	return &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call", Param: "call_id"}
}

// openRejoined answers GET /v1/realtime?call_id=&rejoin=1: a socket that is the client of a call from now on. carry
// returns when the socket or the call has ended.
func (f *Front) openRejoined(
	w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string,
) (carry func(), fault *handoff.Error) {
	c, fault := f.live.rejoinable(grant, id, false)
	if fault != nil {
		return nil, fault
	}
	s := f.upgrade(w, r, at(id), c.log(), nil)
	if s == nil {
		return nil, nil
	}
	lowered := r.URL.Query().Get(lowers) == "1"
	return func() {
		var running sync.WaitGroup
		defer running.Wait()
		c.do(func() { c.hearing.yielding.lowers = lowered && c.legs.tells })
		if !c.place(s, &running) {
			s.End(overAlready())
		}
		s.Run(c.takeFrom(s))
	}, nil
}

// serveReoffer serves POST /v1/realtime/calls?call_id=: an offer of a browser that is the client of a call from now on.
// The session goes on as it is: one in the offer's form is not looked at. It returns when the leg or the call has
// ended.
func (f *Front) serveReoffer(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	id := r.URL.Query().Get("call_id")
	c, fault := f.live.rejoinable(grant, id, true)
	if fault != nil {
		return fault
	}
	if r.URL.Query().Get(restarts) == "1" {
		return serveRestart(ctx, w, r, c, offer)
	}
	offer.Session = nil
	l, fault := f.media.NewLeg(offer.Offer, c.log())
	if fault != nil {
		return fault
	}
	gathering, cancel := whileBoth(r.Context(), ctx)
	defer cancel()
	answer, fault := l.Answer(gathering)
	if fault != nil {
		l.Abandon()
		return fault
	}
	var running sync.WaitGroup
	defer running.Wait()
	c.do(func() { c.hearing.yielding.lowers = offer.lowers })
	if !c.place(l, &running) {
		l.Abandon()
		return overAlready()
	}
	running.Go(func() {
		defer answered()
		replyAnswer(w, id, answer)
		l.Answered()
	})
	l.Run(c.takeFrom(l))
	return nil
}

// serveRestart answers an offer with which a client that is still in its call takes another way to it. One whose leg
// has ended is told so (409), and comes back with a new one.
func serveRestart(
	ctx context.Context, w http.ResponseWriter, r *http.Request, c *Call, offer rtcOffer,
) *handoff.Error {
	var l *rtc.Leg
	c.do(func() { l, _ = c.legs.client.(*rtc.Leg) })
	if l == nil {
		return handoff.Fault(handoff.CodeConflict, "the connection of this call has ended", "")
	}
	gathering, cancel := whileBoth(r.Context(), ctx)
	defer cancel()
	answer, fault := l.Restart(gathering, offer.SDP)
	if fault != nil {
		return fault
	}
	c.log().Debug("client takes another way")
	replyAnswer(w, c.id, answer)
	return nil
}

// replyAnswer answers an offer. A client that is gone does not connect, which ends the leg.
func replyAnswer(w http.ResponseWriter, id, answer string) {
	w.Header().Set("Content-Type", "application/sdp")
	w.Header().Set("Location", callPath+id)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// yield ends the calls of the same caller and key that wait for their client: who begins a new one does not come back
// to them. It returns when they count no more.
func (f *Front) yield(ctx context.Context, grant handoff.Grant) {
	ctx, cancel := context.WithTimeout(ctx, yieldLimit)
	defer cancel()
	held := slices.DeleteFunc(f.live.held(grant), func(c *Call) bool { return !c.giveWay() })
	for _, c := range held {
		select {
		case <-c.pass.left:
		case <-ctx.Done():
		}
	}
}
