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
	// paramRejoin is the query parameter with which a client says, as its call begins, that it comes back if it
	// vanishes; and with which a socket takes the place of a call's client. The call of a client that does not say so
	// ends at once: many clients end their calls without a goodbye.
	paramRejoin = "rejoin"
	// paramRestart is the query parameter of an offer with which a browser keeps its connection and only restarts ICE.
	paramRestart = "restart"
	// endHeldLimit bounds how long a new call waits for the end of the held call that it replaces.
	endHeldLimit = serveGrace + outbound.CloseGrace
)

// holdOf returns how long a new call is to wait for a client that vanishes. A caller without a name is not waited for:
// nobody could tell which held call a new one of theirs replaces.
func (f *Front) holdOf(r *http.Request, grant handoff.Grant) time.Duration {
	if r.URL.Query().Get(paramRejoin) != "1" || grant.Caller.Nameless() {
		return 0
	}
	return f.config.Hold
}

// place makes a leg the client's leg of the call, and closes the old one; false: the call is over, or has no session
// yet to come back to.
func (c *Call) place(l leg, parting *sync.WaitGroup) (placed bool) {
	c.do(func() {
		if c.legs.shownSession == "" {
			return
		}
		old := c.session.replaceClient(l)
		parting.Go(func() { old.Close(nil) })
		placed = true
	})
	return placed
}

// endOf returns a function that ends the call while a leg is its client's.
func (c *Call) endOf(l leg) func(*handoff.Error) {
	return func(why *handoff.Error) {
		c.do(func() {
			if c.legs.client == l {
				c.end(why)
			}
		})
	}
}

// departed handles the end of a leg: the call ends with it, unless the model's session is renewed or the client may
// come back.
func (c *Call) departed(l leg) {
	switch {
	case c.legs.model.leg == l:
		c.renewal.modelLeft("")
	case c.legs.client != l: // the leg was replaced
	case c.legs.vanished():
		c.session.clientVanished()
	default:
		c.end(c.legs.clientGone(nil))
	}
}

// clientVanished continues the call without its client. What was not heard to its end counts as not heard. What the
// caller was saying is thrown away, as its end is lost.
func (s *session) clientVanished() {
	now, l, h := time.Now(), s.legs, s.hearing
	l.client = nobody{}
	if l.opened = false; l.away() { // a client that rejoined vanished before it could be reached
		l.witness = nobody{}
		return
	}
	l.vanishedAt = now
	s.counts.holds++
	s.log().Info("client vanished; the call waits for it", zap.Duration("limit", l.hold))
	s.alarms[alarmHold].at = now.Add(l.hold)
	h.clearInterjections()
	spoke := s.saying.floor.Speaking() || !h.appended.IsZero()
	s.saying.tell(floor.Away{On: true}) // first, so that the floor makes no ask any more
	if id := s.saying.floor.Active(); id != "" {
		h.lose(id)
	}
	h.reportPlayback(now, h.playback.endAll(now))
	if h.checkSigns(now); len(h.unsure) > 0 {
		h.giveUp(len(h.unsure))
	}
	l.witness = nobody{}
	if spoke {
		h.appended = time.Time{}
		l.toModel(events.Encode(events.Object{"type": events.TypeInputClear, "event_id": s.ids.Next()}))
	}
}

// replaceClient gives the call a new client's leg, which first gets the session as the client knows it, and returns the
// old leg. That may not have ended: a client notices before we do that its connection is lost.
func (s *session) replaceClient(l leg) (old leg) {
	if old = s.legs.client; !s.legs.away() {
		s.clientVanished()
	}
	s.legs.client = l
	s.legs.witness, _ = l.(witness)
	if s.legs.performs {
		known := json.RawMessage(cmp.Or(s.filter.Known(), "{}"))
		s.legs.toLeg(events.Encode(events.Object{"type": events.TypeMade, "session": known}))
	}
	s.legs.toLeg(s.legs.created())
	if !s.legs.performs { // a browser is back when it reports that it can be reached
		s.clientBack()
	}
	return old
}

// endIfHeld ends the call if it waits for its client; false: the client is back.
func (c *Call) endIfHeld() bool {
	back := false
	c.do(func() {
		if back = !c.legs.away(); !back {
			c.end(nil)
		}
	})
	return !back
}

// isHeld reports whether the call waits for its client. It locks mu.
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
	gone := time.Since(l.vanishedAt)
	l.vanishedAt, s.alarms[alarmHold].at = time.Time{}, time.Time{}
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

// noSuchCall returns the error for a call_id of no open call of the caller.
func noSuchCall() *handoff.Error {
	return &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call", Param: "call_id"}
}

// openRejoined answers GET /v1/realtime?call_id=&rejoin=1: the socket becomes the client of the call. carry returns
// when the socket or the call has ended.
func (f *Front) openRejoined(
	w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string,
) (carry func(), fault *handoff.Error) {
	c, fault := f.live.rejoinable(grant, id, false)
	if fault != nil {
		return nil, fault
	}
	s := f.upgrade(w, r, locationOf(id), c.log(), nil)
	if s == nil {
		return nil, nil
	}
	lowered := r.URL.Query().Get(paramLowers) == "1"
	return func() {
		var running sync.WaitGroup
		defer running.Wait()
		c.do(func() { c.hearing.yielding.lowers = lowered && c.legs.takesOurs })
		if !c.place(s, &running) {
			s.End(noSuchCall())
		}
		defer guard(f.asks, grant.Revoked, c.endOf(s))()
		s.Run(c.takeFrom(s))
	}, nil
}

// serveReoffer serves POST /v1/realtime/calls?call_id=: the browser that offers becomes the client of the call. The
// session continues unchanged; a session in the offer's form is ignored. It returns when the leg or the call has ended.
func (f *Front) serveReoffer(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	id := r.URL.Query().Get("call_id")
	c, fault := f.live.rejoinable(grant, id, true)
	if fault != nil {
		return fault
	}
	if r.URL.Query().Get(paramRestart) == "1" {
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
		return noSuchCall()
	}
	running.Go(func() {
		defer answered()
		replyAnswer(w, id, answer)
		l.Answered()
	})
	defer guard(f.asks, grant.Revoked, c.endOf(l))()
	l.Run(c.takeFrom(l))
	return nil
}

// serveRestart answers an offer with which a client that is still in its call restarts ICE, to reach it by another
// network path. A client whose leg has ended gets 409, and comes back with a new offer.
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

// replyAnswer answers an offer with SDP. A failed write needs no handling: a client that is gone never connects, and
// that ends the leg.
func replyAnswer(w http.ResponseWriter, id, answer string) {
	w.Header().Set("Content-Type", "application/sdp")
	w.Header().Set("Location", callPath+id)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// enter admits a new call. First it ends the calls of the same caller and key that wait for their client, as a caller
// who begins a new call does not come back to them, and waits until they no longer count in the quota.
func (f *Front) enter(ctx context.Context, grant handoff.Grant) (*admission, *handoff.Error) {
	ending, cancel := context.WithTimeout(ctx, endHeldLimit)
	defer cancel()
	held := slices.DeleteFunc(f.live.held(grant), func(c *Call) bool { return !c.endIfHeld() })
	for _, c := range held {
		select {
		case <-c.pass.left:
		case <-ending.Done():
		}
	}
	return f.quota.enter(ctx, grant)
}
