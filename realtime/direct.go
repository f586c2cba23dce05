package realtime

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

const (
	// MediaHeader is set to "direct" in the answer to an offer whose sound does not go through Switchboard.
	MediaHeader = "Switchboard-Media"
	mediaDirect = "direct"
	// saidLimit bounds how long [Front.Say] waits until the model has the words.
	saidLimit = 5 * time.Second
	// maxTyped bounds the typed items that are remembered as the caller's. They are needed until the model has shown
	// them.
	maxTyped = 64
)

// itemIDs matches item ids as the API allows them: at most 32 characters.
var itemIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// joinPauses are the pauses before each try to join a call that the provider has just begun: it may not be known
// everywhere there at once.
var joinPauses = []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}

// direct reports whether the sound of an offered call is to go between its client and the provider: if that is
// configured, and the client says that it needs no masking.
func (f *Front) direct(r *http.Request) bool {
	return f.config.Direct && r.URL.Query().Get("media") == mediaDirect
}

// serveDirect begins a call at the provider with the client's offer, joins it as [Front.ServeAttach] does, and hangs it
// up there when it ends here. If the provider has no such calls, [Front.serveOffer] takes over. It is a [callHandler].
func (f *Front) serveDirect(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	pass, fault := f.enter(r.Context(), grant)
	if fault != nil {
		return fault
	}
	header := r.Header.Clone()
	staying, leave := context.WithCancel(ctx)
	defer leave()
	dialing, cancel := whileBoth(r.Context(), staying)
	defer cancel()
	id, answer, fault := f.carried.begin(dialing, grant, offer, header)
	if fault != nil && fault.Code == codeNoCalls {
		pass.leave()
		f.log.Warn("the voice model's server carries no calls: their sound goes through here",
			zap.String("detail", fault.Detail))
		return f.serveOffer(ctx, w, r, grant, offer, answered)
	}
	defer pass.leave()
	if fault != nil {
		f.logUnreachable(fault)
		return fault
	}
	claimed := f.newClaim(grant, id)
	defer f.carried.end(ctx, id, claimed)
	if dialing.Err() != nil { // the client has gone
		return handoff.Fault(handoff.CodeShutdown, "", "the request has ended")
	}
	if !f.live.attach(id, attachment{
		grant: grant, leave: leave, began: time.Now(), pass: pass, in: make(chan struct{}), claim: claimed,
	}) {
		return &handoff.Error{Code: handoff.CodeAttached}
	}
	defer f.live.detach(id)
	if fault := claimed.keep(staying, claimedCall{
		Safety: header.Get(safetyHeader), Ours: true, Lowers: offer.lowers,
	}); fault != nil {
		return fault
	}
	defer claimed.end(ctx)
	w.Header().Set(MediaHeader, mediaDirect)
	replyAnswer(w, id, answer)
	answered()
	for range tries(staying, joinPauses) {
		model, fault := f.provider.join(staying, id, header)
		if fault == nil {
			f.stay(ctx, staying, grant, id, header, model, pass,
				&attached{ours: true, lowers: offer.lowers, claim: claimed}, nil)
			return nil
		}
		f.log.Warn("call of the voice model's server not joined",
			zap.String("call", id), zap.String("code", string(fault.Code)), zap.String("detail", fault.Detail))
	}
	return nil
}

// serveInstead serves POST /v1/realtime/calls?call_id= of a client that lost its connection to a call of the provider,
// and with it the call: a new call takes its place, and begins with what was said.
func (f *Front) serveInstead(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant, offer rtcOffer, answered func(),
) *handoff.Error {
	c, a := f.live.get(r.URL.Query().Get("call_id"))
	if c == nil || a.pass == nil || !c.grant.MayJoin(grant) {
		return noSuchCall()
	}
	c.do(func() {
		c.legs.vanishedAt = time.Now() // nobody hung up
		c.end(nil)
	})
	ended, cancel := context.WithTimeout(r.Context(), endHeldLimit)
	defer cancel()
	select {
	case <-a.pass.left:
	case <-ended.Done():
	}
	return f.serveDirect(ctx, w, r, grant, offer, answered)
}

// Say adds what the caller typed, as the item with this id, to a call whose sound does not go through here. In such a
// call any program may have a socket, so items that arrive there cannot approve anything; text that comes this way
// counts as typed by the holder of the grant. It is idempotent by item: a client whose answer was lost may send the
// text again. It waits until the call is joined, and at most saidLimit until the model has the item. Errors have code
// [handoff.CodeMalformed], or [handoff.CodeNotFound] if there is no such call, or if it ended before the model had the
// item: then the text has to be sent again.
func (f *Front) Say(ctx context.Context, grant handoff.Grant, id, item, text string) error {
	if text == "" || !itemIDs.MatchString(item) {
		return handoff.Fault(handoff.CodeMalformed, "a sentence has an id and a text", "")
	}
	if _, a := f.live.get(id); a.in != nil {
		select {
		case <-a.in:
		case <-ctx.Done():
		}
	}
	c, _ := f.live.get(id)
	var said typedLine
	if c != nil && c.grant.MayJoin(grant) {
		c.do(func() { said = c.giveTyped(item, text) })
	}
	if said.known == nil {
		return handoff.Fault(handoff.CodeNotFound, "such call", "")
	}
	late := time.NewTimer(saidLimit)
	defer late.Stop()
	select {
	case <-said.known:
	case <-c.past:
		if !said.isKnown() {
			return handoff.Fault(handoff.CodeNotFound, "such call", "it ended before the voice model had the words")
		}
	case <-late.C: // a model that does not report items
	case <-ctx.Done():
	}
	return nil
}

// giveTyped gives the model what the caller typed, and asks for its answer. The result is zero if the call is not ours
// at the provider: then typed text comes over the client's leg.
func (c *Call) giveTyped(item, text string) typedLine {
	state := c.hearing.attached
	if state == nil || !state.ours {
		return typedLine{}
	}
	if it := state.item(item); it != nil {
		return *it // a "yes" given twice would answer the next question, too
	}
	said := typedLine{item, make(chan struct{})}
	if state.typed = append(state.typed, said); len(state.typed) > maxTyped {
		state.typed = state.typed[1:]
	}
	c.fromClient(events.Encode(events.Object{"type": events.TypeItemCreate, "item": events.Object{
		"id": item, "type": events.ItemMessage, "role": "user",
		"content": []events.Object{{"type": "input_text", "text": text}},
	}}))
	c.fromClient(events.Encode(events.Object{"type": events.TypeCreate}))
	return said
}
