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

// callIDs are those of providers: OpenAI's begin with rtc_, others have UUIDs.
var callIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// steady is how long a sideband must have lived for the next loss of one to be the first again.
const steady = time.Minute

// ServeAttach serves POST /v1/realtime/attach to a client that was let in with this grant, and has read the id from its
// body: Switchboard joins a call that the provider carries, by a second socket, and gives it our tools. The answer is
// 201 and {"id", "object"} once the session has begun for us; the call lives on in Run under the provider's id.
func (f *Front) ServeAttach(w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string) {
	switch {
	case id == "":
		handoff.Malformed("call_id", "call_id names a call of the provider (rtc_...), and is missing").Reply(w, true)
		return
	case !callIDs.MatchString(id):
		handoff.Malformed("call_id", "call_id is not the id of a call").Reply(w, true)
		return
	}
	grant = chosen(r, grant)
	f.launch(w, r, func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error {
		staying, leave := context.WithCancel(ctx)
		defer leave()
		lasts := f.lasting(grant, id)
		if !f.live.attach(id, attachment{grant: grant, leave: leave, in: make(chan struct{}), lasts: lasts}) {
			return &handoff.Error{Code: handoff.CodeAttached, Param: "call_id"}
		}
		defer f.live.detach(id)
		if fault := lasts.keep(staying, lastingCall{Safety: r.Header.Get(safetyHeader)}); fault != nil {
			return fault
		}
		defer lasts.end(ctx)
		return f.serveAttached(ctx, staying, w, r, grant, id, &attached{lasts: lasts}, answered)
	})
}

// serveAttached is a [door]. A socket that is dialled again begins, to the router, a next call, in which nothing is
// said that was heard in this one.
func (f *Front) serveAttached(
	ctx, staying context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string,
	state *attached, answered func(),
) *handoff.Error {
	f.yield(r.Context(), grant)
	pass, fault := f.quota.enter(r.Context(), grant)
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

// stay carries a call of the provider from its socket on, and dials again when that is lost while the call goes on and
// nobody left it (staying). begins hears of the session, or is nil.
func (f *Front) stay(
	ctx, staying context.Context, grant handoff.Grant, id string, header http.Header, model connection, pass *admission,
	state *attached, begins func(*handoff.Error),
) {
	remembered := func(*Call) {}
	for in, tries := false, 0; model != nil; {
		p := newPeer()
		c := f.admit(grant, id, 0, p, model, func(c *Call) {
			state.there = func(ctx context.Context) *handoff.Error {
				l, fault := f.provider.join(ctx, id, header)
				if fault == nil {
					l.Abandon()
				}
				return fault
			}
			c.attach(state)
			c.session.begins, begins = begins, nil
			c.earlier = state.earlier
		})
		if staying.Err() != nil && ctx.Err() == nil { // after the dial, before there was a call to hang up
			c.hangUp()
		}
		if state.resumed {
			c.Say(handoff.Utterance{ID: "resumed", Text: resumedNote})
		}
		if (grant.Page || state.ours) && !in { // others go without a goodbye
			remembered = f.remember(staying, c)
		}
		began := time.Now()
		// How the call ended was logged by the call.
		_ = f.serve(ctx, c, p, model, pass)
		if in = in || c.mask.Begun(); !in || !c.legs.wasLost() {
			remembered(c)
			return
		}
		if time.Since(began) > steady {
			tries = 0
		}
		if c.mask.Begun() {
			state = c.leftOpen()
		}
		if model, tries = f.provider.rejoin(staying, id, header, tries); model == nil {
			remembered(c)
		}
	}
}

// ServeCarried carries a call of ours that the provider has begun with a client which lowers the sound, until either
// end or ctx ends it.
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

// A peer is the client's leg of a call whose caller the provider carries: what is for the client reaches it there.
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

// Performs implements [performer]: the provider tells what it played.
func (*peer) Performs() {}

const (
	// perLetter is how long a letter takes to be spoken, rather too long: 12 a second.
	perLetter = 80 * time.Millisecond
	// lateStop is how much longer than that a provider may take which tells when its sound stops.
	lateStop = 15 * time.Second
	// detectLag is how long voice detection takes to tell that somebody speaks; nobody counts the caller's sound here.
	detectLag = 300 * time.Millisecond
	// vigilAfter is how long nothing is seen of a caller until the provider is asked whether the call is still there.
	vigilAfter = 5 * time.Minute
	// longSpeech is how long a caller may speak, beyond [floor.TimerSpeech], until a stop that never came is not
	// waited for.
	longSpeech = time.Minute
)

// lostOutput answers a request of which it is not known what came of it.
const lostOutput = `{"status":"unknown","say":"","note":"The connection was lost for a moment. ` +
	`What was begun goes on; do not call again. What comes of it will be told."}`

// An attached is what a call knows of a caller whom the provider carries. Guarded by the call's mu.
type attached struct {
	// Set once: asks the provider whether it has the call; nil: it is not asked
	there   func(context.Context) *handoff.Error
	orphans []string           // requests of a lost socket that have no output, for all that is known
	earlier []handoff.SaidLine // what was said over lost sockets
	sounded []string           // responses that the caller heard as the socket before was lost
	making  string             // the one that the model made then, and may still; "": none
	tells   bool               // the provider tells when its sound begins and stops
	until   time.Time          // when it will have played what it said, as far as that is estimated
	spoke   time.Time          // when the caller began to speak last

	lowers bool // Set once: its client lowers the sound while its person speaks into it

	lasts   *lasting // Set once; nil: no other instance goes on in it
	resumed bool     // Set once: another instance was in it before

	ours  bool        // the call is one of our page: what the caller types comes by [Front.Say]
	typed []typedLine // what came so, newest last
}

// A typedLine is what the caller typed in a call of our page.
type typedLine struct {
	id    string
	known chan struct{} // closed once the model has it
}

// item finds what the caller typed; nil: they did not.
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

// attach makes the call one that the provider carries, before it begins. Its own instructions stand. What was typed
// over a lost socket, and the model is not known to have, is to be said again: [Front.Say] tells so.
func (c *Call) attach(state *attached) {
	state.typed = slices.DeleteFunc(state.typed, func(it typedLine) bool { return !it.isKnown() })
	c.hearing.attached, c.legs.witness, c.legs.opened = state, nil, true
	c.hearing.yielding.lowers = state.lowers
	// The session may hold items of a call before, here or on another instance, whose utterances had the same ids, and
	// a response to it may still run.
	word := rand.Text()[:4] + "_"
	c.saying.naming = itemPrefix + word
	c.saying.floor.NameAsks(word)
	c.alarms[alarmVigil].at = time.Now().Add(vigilAfter)
}

// vigil asks the provider whether it has the call still: a socket may stay open when the caller has gone. Silence
// alone ends no call. The provider carries the caller's connection and ends the call when that goes; what it tells this
// socket meanwhile (speech, items, what it plays) is the same of a caller who listens and of one who is not there. To
// end the call of somebody who waits for an outcome is the greater harm: silence costs nothing, since a provider bills
// responses.
func (c *Call) vigil(ctx context.Context) {
	ask := c.hearing.attached.there
	if ask == nil {
		return
	}
	fault := ask(ctx)
	c.do(func() {
		if fault != nil && fault.Code == handoff.CodeNotFound {
			c.end(c.legs.modelGone("the caller has gone"))
			return
		}
		c.alarms[alarmVigil].at = time.Now().Add(vigilAfter)
	})
}

// wasLost reports, once the call has ended, whether the model's socket was lost, and the provider's call may go on.
func (l *legs) wasLost() bool {
	e, knows := l.model.leg.(ender)
	return l.cause != nil && l.cause.Code == handoff.CodeVoiceGone && knows && e.Vanished()
}

// leftOpen is what the next socket of a lost call begins with.
func (c *Call) leftOpen() *attached {
	was := c.hearing.attached
	next := &attached{earlier: c.lastLines(), until: was.until, making: c.saying.floor.Active(),
		lowers: was.lowers, lasts: was.lasts, ours: was.ours, typed: was.typed}
	for id, v := range c.hearing.playback.voices {
		if v.sounds && !v.over {
			next.sounded = append(next.sounded, id)
		}
	}
	for id, r := range c.saying.requests {
		if !r.answered {
			next.orphans = append(next.orphans, id)
		}
	}
	for _, s := range c.saying.sent {
		if u := c.saying.utterances[s.what]; s.item > 0 && u.CallID != "" {
			next.orphans = append(next.orphans, u.CallID)
		}
	}
	return next
}

// overlook sees, of what the model reports, what in our own calls comes from the client or its leg.
func (c *Call) overlook(kind string, event []byte) {
	h, now := &c.hearing, time.Now()
	state := h.attached
	switch kind {
	case events.TypeSpeechStarted, events.TypeCommitted, events.TypeTranscribed, events.TypeNotTranscribed:
		c.alarms[alarmVigil].at = now.Add(vigilAfter)
	}
	switch kind {
	case events.TypeSessionCreated:
		for _, id := range state.orphans {
			c.legs.toModel(events.Output(c.ids.Next(), c.ids.Next(), id, lostOutput))
		}
		state.orphans = nil
		for _, id := range state.sounded { // somebody may say "stop" into it
			h.plays(now, id, true)
		}
		state.sounded = nil
	case events.TypeSessionUpdated:
		if own := c.mask.Reclaim(event); own != nil {
			c.legs.toModel(own)
			c.session.awaitAnswer()
		}
	case events.TypeItemAdded, events.TypeItemCreated:
		it := events.ReadItem(gjson.GetBytes(event, "item"))
		switch typed := state.item(it.ID); {
		case typed != nil && !typed.isKnown():
			close(typed.known)
		case typed == nil && !c.mask.Hidden(it.ID):
			c.given(it)
		}
	case events.TypeCreated, events.TypeDone:
		state.making = ""
	case events.TypeSpokenDelta:
		state.notBefore(now)
		h.playback.itemOf(responseOf(event), gjson.GetBytes(event, "item_id").String())
		letters := utf8.RuneCountInString(gjson.GetBytes(event, "delta").String())
		state.until = state.until.Add(time.Duration(letters) * perLetter)
		h.plays(now, responseOf(event), false)
	case events.TypeOutputStarted:
		state.tells = true
		state.notBefore(now) // its words may never be told
		h.plays(now, responseOf(event), true)
	case events.TypeOutputStopped, events.TypeOutputCleared:
		h.stops(now, responseOf(event), kind == events.TypeOutputCleared)
	case events.TypeSpeechStarted:
		if state.spoke = now; !state.tells && !h.settings.patient {
			h.stops(now, "", true)
		}
	}
}

// plays notes that the provider plays a response, or is about to; started: it said so.
func (h *hearing) plays(now time.Time, response string, started bool) {
	first, known := h.playback.plays(now, response, started)
	if !known {
		return
	}
	h.alarms[alarmSideband].at = h.attached.deadline()
	if first {
		h.saying.tell(floor.Sounded{Response: response})
	}
	h.overhear(now, nil)
	h.voice(response, false)
}

// stops notes that nothing more of a response, or of any ("") is heard.
func (h *hearing) stops(now time.Time, response string, cut bool) {
	h.attached.until = now
	h.overhear(now, h.playback.stops(now, response, cut))
}

// notBefore notes that something plays at a time, at least.
func (a *attached) notBefore(now time.Time) {
	if a.until.Before(now) {
		a.until = now
	}
}

// deadline is when sound must be over whose end nobody told.
func (a *attached) deadline() time.Time {
	if a.tells {
		return a.until.Add(lateStop)
	}
	return a.until
}

// played ends what must be over by now. Of a provider that tells, its word was lost.
func (h *hearing) played(now time.Time) {
	if next := h.attached.deadline(); next.After(now) {
		h.alarms[alarmSideband].at = next
		return
	}
	if h.saying.floor.Active() != "" {
		h.alarms[alarmSideband].at = now.Add(time.Second)
		return
	}
	h.stops(now, "", h.attached.tells)
}
