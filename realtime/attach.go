package realtime

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// callIDs matches ids of a provider's calls: OpenAI's begin with rtc_, others are UUIDs.
var callIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// steady is how long a sideband must have lived for its loss to count as the first again.
const steady = time.Minute

// ServeAttach serves POST /v1/realtime/attach for a client with this grant: Switchboard joins a call that the provider
// carries, by a second socket, and adds our tools. id is from the body of the request. The answer is 201 and {"id",
// "object"} once the session has begun for us; the call goes on in Run under the provider's id.
func (f *Front) ServeAttach(w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string) {
	switch {
	case id == "":
		handoff.Malformed("call_id", "call_id names a call of the provider (rtc_...), and is missing").Reply(w, true)
		return
	case !callIDs.MatchString(id):
		handoff.Malformed("call_id", "call_id is not the id of a call").Reply(w, true)
		return
	}
	grant = withLanguage(r, grant)
	f.launch(w, r, func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error {
		staying, leave := context.WithCancel(ctx)
		defer leave()
		claimed := f.newClaim(grant, id)
		if !f.live.attach(id, attachment{grant: grant, leave: leave, in: make(chan struct{}), claim: claimed}) {
			return &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
		}
		defer f.live.detach(id)
		if fault := claimed.keep(staying, claimedCall{Safety: r.Header.Get(safetyHeader)}); fault != nil {
			return fault
		}
		defer claimed.end(ctx)
		return f.serveAttached(ctx, staying, w, r, grant, id, &attached{claim: claimed}, answered)
	})
}

// serveAttached is the [callHandler] of ServeAttach, once the call is claimed.
func (f *Front) serveAttached(
	ctx, staying context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string,
	state *attached, answered func(),
) *handoff.Error {
	pass, fault := f.enter(r.Context(), grant)
	if fault != nil {
		return fault
	}
	defer pass.leave()
	header := r.Header.Clone()
	dialing, cancel := whileBoth(r.Context(), staying)
	defer cancel()
	model, fault := f.provider.join(dialing, id, header)
	left := func() bool { return staying.Err() != nil && ctx.Err() == nil }
	if fault != nil && left() {
		fault = handoff.Fault(handoff.CodeNotFound, "such call", "it was hung up")
	}
	if fault != nil {
		f.log.Warn("call of the voice model's server not joined",
			zap.String("code", string(fault.Code)), zap.String("detail", fault.Detail))
		return fault
	}
	begun := make(chan *handoff.Error, 1)
	var replying sync.WaitGroup
	defer replying.Wait()
	replying.Go(func() {
		defer answered()
		if fault := <-begun; fault != nil {
			fault.Reply(w, true)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(events.Encode(events.Object{"id": id, "object": "realtime.call"}))
	})
	f.stay(ctx, staying, grant, id, header, model, pass, state, func(fault *handoff.Error) { begun <- fault })
	return nil
}

// stay carries a call of the provider. When its socket is lost, it dials again, unless the call has ended or staying
// has. To the router each socket is another call; what was heard over an earlier one is not said again. begins is
// called once the first session has begun or was refused; it may be nil.
func (f *Front) stay(
	ctx, staying context.Context, grant handoff.Grant, id string, header http.Header, model connection, pass *admission,
	state *attached, begins func(*handoff.Error),
) {
	staying, leave := context.WithCancel(staying)
	defer leave()
	defer guard(f.asks, grant.Revoked, func(*handoff.Error) { leave() })() // also while it is dialled
	remembered := func(*Call) {}
	for in, tries := false, 0; model != nil; {
		p := newPeer()
		c := f.admit(grant, id, 0, p, model, func(c *Call) {
			state.probe = func(ctx context.Context) *handoff.Error {
				l, fault := f.provider.join(ctx, id, header)
				if fault == nil {
					l.Abandon()
				}
				return fault
			}
			c.attach(state)
			c.session.onBegun, begins = begins, nil
			c.earlier = state.earlier
		})
		if staying.Err() != nil && ctx.Err() == nil { // left after the dial, when there was no Call yet to hang up
			c.hangUp()
		}
		if state.resumed {
			c.Say(handoff.Utterance{ID: "resumed", Text: resumedNote})
		}
		if (grant.Page || state.ours) && !in { // other clients end their calls without a goodbye
			remembered = f.remember(staying, c)
		}
		began := time.Now()
		// How the call ended was logged by the call.
		_ = f.serve(ctx, c, p, model, pass)
		if in = in || c.filter.Begun(); !in || !c.legs.wasLost() {
			remembered(c)
			return
		}
		if time.Since(began) > steady {
			tries = 0
		}
		if c.filter.Begun() {
			state = c.nextAttached()
		}
		if model, tries = f.provider.rejoin(staying, id, header, tries); model == nil {
			remembered(c)
		}
	}
}

// ServeCarried joins a call of ours that the provider carries with a client which lowers the sound, until a leg or ctx
// ends it.
func (f *Front) ServeCarried(ctx context.Context, grant handoff.Grant, id string) error {
	pass, fault := f.quota.enter(ctx, grant)
	if fault != nil {
		return fault
	}
	defer pass.leave()
	header := http.Header{}
	model, fault := f.provider.join(ctx, id, header)
	if fault != nil {
		return fault
	}
	f.stay(ctx, ctx, grant, id, header, model, pass, &attached{ours: true, lowers: true}, nil)
	return nil
}

// A peer is the client's leg of a call whose caller the provider carries. It drops every event, as the provider sends
// its own to the client.
type peer struct {
	nobody
	gone func()
	over <-chan struct{}
}

func newPeer() *peer {
	ctx, cancel := context.WithCancel(context.Background())
	return &peer{gone: cancel, over: ctx.Done()}
}

func (p *peer) Run(func([]byte))     { <-p.over }
func (p *peer) Abandon()             { p.gone() }
func (p *peer) Close(*handoff.Error) { p.gone() }

// Performs implements [performer]: the provider reports what it played.
func (*peer) Performs() {}

const (
	// perLetter is how long a letter takes to be spoken, a high estimate: 12 a second.
	perLetter = 80 * time.Millisecond
	// lateStop is how much later than estimated a provider that reports the end of its sound may do so.
	lateStop = 15 * time.Second
	// detectLag is how long voice detection takes to report that the caller speaks. It is used where the caller's sound
	// is not counted here.
	detectLag = 300 * time.Millisecond
	// checkCallerAfter is after how long without a sign of the caller the provider is asked whether the call is still
	// there.
	checkCallerAfter = 5 * time.Minute
	// longSpeech is how much longer than [floor.TimerSpeech] a caller may speak, until the call no longer waits for the
	// end of the speech to be reported.
	longSpeech = time.Minute
)

// lostOutput is the output of a request whose outcome was lost with its socket.
const lostOutput = `{"status":"unknown","say":"","note":"The connection was lost for a moment. ` +
	`What was begun goes on; do not call again. What comes of it will be told."}`

// An attached is the state of a call whose caller the provider carries. Guarded by the call's mu.
type attached struct {
	// Set once: asks the provider whether it still has the call; nil: it is not asked
	probe         func(context.Context) *handoff.Error
	orphans       []string           // requests of a lost socket that may have no output
	earlier       []handoff.SaidLine // what was said over lost sockets
	soundedBefore []string           // responses that sounded as the socket before was lost
	running       string             // the response that ran then, and may still run; "": none
	reportsSound  bool               // the provider reports when its sound begins and stops
	until         time.Time          // estimate: when all sound so far will have been played
	speechBegan   time.Time          // when the caller began to speak

	lowers bool // Set once: see [paramLowers]

	claim   *claim // Set once; nil: no other instance can take the call over
	resumed bool   // Set once: another instance was in the call before

	ours  bool        // we began the call: what the caller types comes by [Front.Say]
	typed []typedLine // the items that came so, newest last
}

// A typedLine is an item that the caller typed, which came by [Front.Say].
type typedLine struct {
	id    string
	known chan struct{} // closed once the model has the item
}

// item returns the typed item with this id; nil: there is none.
func (a *attached) item(id string) *typedLine {
	i := slices.IndexFunc(a.typed, func(it typedLine) bool { return it.id == id })
	if i < 0 {
		return nil
	}
	return &a.typed[i]
}

// isKnown reports whether the model has the item.
func (it typedLine) isKnown() bool {
	select {
	case <-it.known:
		return true
	default:
		return false
	}
}

// attach makes the call one that the provider carries. It is called before the call begins. Typed items that the model
// did not confirm over a lost socket are forgotten: [Front.Say] has told the client to send them again.
func (c *Call) attach(state *attached) {
	state.typed = slices.DeleteFunc(state.typed, func(it typedLine) bool { return !it.isKnown() })
	c.hearing.attached, c.legs.witness, c.legs.opened = state, nil, true
	c.hearing.yielding.lowers = state.lowers
	// The session may hold items of an earlier socket, here or at another instance, whose utterances had the same ids,
	// and a response to one of its asks may still run: a random word tells ours apart.
	word := rand.Text()[:4] + "_"
	c.saying.naming = itemPrefix + word
	c.saying.floor.NameAsks(word)
	c.alarms[alarmCaller].at = time.Now().Add(checkCallerAfter)
}

// checkCaller asks the provider whether it still has the call: a socket may stay open when the caller has gone. Silence
// alone ends no call: what the provider reports on this socket is the same of a caller who listens and of one who has
// gone, and to end the call of somebody who waits for an outcome is the greater harm. Silence costs nothing, since a
// provider bills responses.
func (c *Call) checkCaller(ctx context.Context) {
	ask := c.hearing.attached.probe
	if ask == nil {
		return
	}
	fault := ask(ctx)
	c.do(func() {
		if fault != nil && fault.Code == handoff.CodeNotFound {
			c.end(c.legs.modelGone("the caller has gone"))
			return
		}
		c.alarms[alarmCaller].at = time.Now().Add(checkCallerAfter)
	})
}

// wasLost reports, once the call has ended, whether it ended because the model's socket was lost, so that the
// provider's call may still go on.
func (l *legs) wasLost() bool {
	e, knows := l.model.leg.(ender)
	return l.cause != nil && l.cause.Code == handoff.CodeVoiceGone && knows && e.Vanished()
}

// nextAttached returns the state with which the next socket of a call begins.
func (c *Call) nextAttached() *attached {
	was := c.hearing.attached
	next := &attached{earlier: c.lastLines(), until: was.until, running: c.saying.floor.Active(),
		lowers: was.lowers, claim: was.claim, ours: was.ours, typed: was.typed}
	for id, v := range c.hearing.playback.voices {
		if v.sounds && !v.over {
			next.soundedBefore = append(next.soundedBefore, id)
		}
	}
	for id, r := range c.saying.requests {
		if !r.answered {
			next.orphans = append(next.orphans, id)
		}
	}
	for _, s := range c.saying.sent {
		if u := c.saying.utterances[s.subject]; s.item > 0 && u.CallID != "" {
			next.orphans = append(next.orphans, u.CallID)
		}
	}
	return next
}

// observeAttached handles the events of the model that report what, in other calls, the client or its leg would: items
// of the client, and what is played.
func (c *Call) observeAttached(kind string, event []byte) {
	h, now := &c.hearing, time.Now()
	state := h.attached
	switch kind {
	case events.TypeSpeechStarted, events.TypeCommitted, events.TypeTranscribed, events.TypeNotTranscribed:
		c.alarms[alarmCaller].at = now.Add(checkCallerAfter)
	}
	switch kind {
	case events.TypeSessionCreated:
		for _, id := range state.orphans {
			c.legs.toModel(events.Output(c.ids.Next(), c.ids.Next(), id, lostOutput))
		}
		state.orphans = nil
		for _, id := range state.soundedBefore { // the caller may say "stop" into it
			h.plays(now, id, true)
		}
		state.soundedBefore = nil
	case events.TypeSessionUpdated:
		if own := c.filter.Reclaim(event); own != nil {
			c.legs.toModel(own)
			c.session.awaitAnswer()
		}
	case events.TypeItemAdded, events.TypeItemCreated:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		switch typed := state.item(it.ID); {
		case typed != nil && !typed.isKnown():
			close(typed.known)
		case typed == nil && !c.filter.Hidden(it.ID):
			it.Sound = false // what was spoken its commit has told, and only its transcript says whether it was words
			c.noteClientItem(it)
		}
	case events.TypeCreated, events.TypeDone:
		state.running = ""
	case events.TypeSpokenDelta:
		state.extendTo(now)
		h.playback.itemOf(responseOf(event), gjson.GetBytes(event, "item_id").String())
		letters := utf8.RuneCountInString(gjson.GetBytes(event, "delta").String())
		state.until = state.until.Add(time.Duration(letters) * perLetter)
		h.plays(now, responseOf(event), false)
	case events.TypeOutputStarted:
		state.reportsSound = true
		state.extendTo(now) // its transcript may never come
		h.plays(now, responseOf(event), true)
	case events.TypeOutputStopped, events.TypeOutputCleared:
		h.stops(now, responseOf(event), kind == events.TypeOutputCleared)
	case events.TypeSpeechStarted:
		if state.speechBegan = now; !state.reportsSound && !h.settings.patient {
			h.stops(now, "", true)
		}
	}
}

// plays notes that the provider plays a response, or is about to; started: it has reported that the sound begins.
func (h *hearing) plays(now time.Time, response string, started bool) {
	first, known := h.playback.plays(now, response, started)
	if !known {
		return
	}
	h.alarms[alarmSideband].at = h.attached.deadline()
	if first {
		h.saying.tell(floor.Sounded{Response: response})
	}
	h.reportPlayback(now, nil)
	h.noteReached(response, false)
}

// stops notes that no more of a response, or of any (""), is heard.
func (h *hearing) stops(now time.Time, response string, cut bool) {
	h.attached.until = now
	h.reportPlayback(now, h.playback.stops(now, response, cut))
}

// extendTo moves the estimated end of the sound to now, if it is earlier.
func (a *attached) extendTo(now time.Time) {
	if a.until.Before(now) {
		a.until = now
	}
}

// deadline returns when the sound counts as over if the provider has not reported its end.
func (a *attached) deadline() time.Time {
	if a.reportsSound {
		return a.until.Add(lateStop)
	}
	return a.until
}

// checkPlayed ends the sound that must be over by now. If the provider reports such ends, it counts as cut, as the
// report was lost.
func (h *hearing) checkPlayed(now time.Time) {
	if next := h.attached.deadline(); next.After(now) {
		h.alarms[alarmSideband].at = next
		return
	}
	if h.saying.floor.Active() != "" {
		h.alarms[alarmSideband].at = now.Add(time.Second)
		return
	}
	h.stops(now, "", h.attached.reportsSound)
}
