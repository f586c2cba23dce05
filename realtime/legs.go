package realtime

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A leg is one side of a call, the client's or the model's, whatever carries it: it reads and writes Realtime
// events as raw JSON. A leg that carries audio in another way (WebRTC) turns it into events on this side: what
// it hears becomes input_audio_buffer.append, output audio deltas become sound, and what its client cannot send
// (conversation.item.truncate after a barge-in) it sends itself. Beside that the call cannot tell legs apart.
type leg interface {
	// Send enqueues an event for the far end; it never blocks and may keep the slice, which nobody else looks at any
	// more if it is one of sound. False means that the leg is ending: the far end is too slow, unless the leg is an
	// [ender] and says otherwise. Where the leg is a [flusher], the event may wait for that.
	Send(event []byte) bool
	// Ending is closed when the leg begins to end. If its far end has gone, all that came of it was taken before.
	Ending() <-chan struct{}
	// Close ends the leg with a reason (nil: a normal end) and returns when its goroutines have ended.
	Close(reason *handoff.Error)
}

// A connection is a leg that somebody has to run. Whoever has one calls Run or Abandon, once.
type connection interface {
	leg
	// Run carries the leg until the far end has gone or Close was called, and returns when its goroutines have
	// ended. It gives take the events of the far end in order, one at a time, in the goroutine that read them: to
	// hand them to another would cost more than all else. take must not wait, and has the slice for itself.
	Run(take func(event []byte))
	// Abandon lets go of the far end without a word.
	Abandon()
}

// A flusher is a leg that writes what it was sent when Flush is called: the goroutine that handled an event writes the
// result itself, after it has let go of the call's lock.
type flusher interface {
	// Flush writes what waits, as far as the far end takes it at once; the rest is written later. It never waits.
	Flush()
}

// An ender is a leg that knows why it ends.
type ender interface {
	// Ended returns the reason, nil when the far end went away or nothing has ended yet.
	Ended() *handoff.Error
	// Vanished reports, once the leg ends, whether its far end went without a word that it hangs up.
	Vanished() bool
}

// A witness is a leg that knows when its far end last showed that it is there.
type witness interface {
	leg
	// Seen returns when anything of the far end came, or it took something that only it can have taken.
	Seen() time.Time
	// Probe asks the far end for a sign, and returns at once. Where the leg is a [flusher], that waits for Flush.
	Probe()
}

// A performer is a leg that plays the model's voice itself and knows what was heard of it. It sets the sound that it
// carries with one switchboard.formats, and says switchboard.opened once its client can be reached. For every
// response it reports one event of type switchboard.played among those received, once nothing more of it will be
// heard; its client cannot send them. What other clients hear is estimated.
type performer interface {
	leg
	Performs()
}

// nobody stands in for a leg that is away: what it is sent is lost.
type nobody struct{}

func (nobody) Send([]byte) bool        { return true }
func (nobody) Ending() <-chan struct{} { return nil }
func (nobody) Close(*handoff.Error)    {}
func (nobody) Seen() time.Time         { return time.Time{} }
func (nobody) Probe()                  {}

// legs are the two ends of a call, and the sockets beside the client.
//
// A leg may be replaced while the call goes on, under the call's lock: nobody keeps one without it. An event of a leg
// that was replaced is dropped ([Call.takeFrom]), its end ends nothing, and the loop then waits for the end of the
// new one.
type legs struct {
	*core
	model    modelLeg
	heirs    bool    // Set once: another session can take the place of the model's, and loses nothing
	client   leg     // nobody while the call waits for it
	performs bool    // Set once: the client's leg is a [performer], also after it was replaced
	witness  witness // the client's leg; nil: it does not know

	hold   time.Duration // Set once: how long the call waits for a client that vanished; 0: not at all
	left   time.Time     // when the client vanished, while the call waits for it
	opened bool          // the client said that it can be reached
	shown  string        // the session as the client saw it last, raw; "": it saw none yet

	tells  bool  // Set once: the client takes events of ours
	others []leg // sockets beside the client; replaced, never changed
	asker  leg   // the socket beside the client whose event is handled; nil: the client's, or none
}

// A modelLeg is the model's leg and what is known of its session alone: a leg to another session begins with a new one.
type modelLeg struct {
	leg
	host    string         // where the model is, for errors
	dialect dialect        // what of the protocol it speaks
	denied  *handoff.Error // why it begins no session; nil: it did not say, or began one
	stirred time.Time      // the newest event of a response
}

func (l *legs) init(k *core, client, model leg) {
	l.core, l.client, l.model = k, client, modelLeg{leg: model, dialect: newDialect()}
	_, l.performs = client.(performer)
	l.witness, _ = client.(witness)
}

// toModel sends the model an event.
func (l *legs) toModel(event []byte) {
	if !l.model.Send(event) && !l.heirs { // or else the loop finds its end
		l.end(l.modelGone("it does not keep up"))
	}
}

// modelGone returns why a call ends whose model has ended it, or begins no session.
func (l *legs) modelGone(detail string) *handoff.Error {
	if l.model.denied != nil {
		return l.model.denied
	}
	return handoff.Fault(handoff.CodeVoiceGone, "", detail)
}

// toClient sends an event to the client, and to the sockets beside it. One of those that does not keep up ends alone.
func (l *legs) toClient(event []byte) {
	for _, other := range l.others {
		if !other.Send(bytes.Clone(event)) { // each has its own
			l.part(other)
		}
	}
	l.toLeg(event)
}

// toLeg sends the client's leg an event; a client that does not keep up ends the call. The loop learns by itself of
// one that vanished.
func (l *legs) toLeg(event []byte) {
	if !l.client.Send(event) && !l.vanished() {
		l.end(l.clientGone(handoff.Fault(handoff.CodeSlowClient, "", "")))
	}
}

// clientGone returns why the client's leg ends; otherwise is for a leg that does not know.
func (l *legs) clientGone(otherwise *handoff.Error) *handoff.Error {
	if e, ok := l.client.(ender); ok {
		return e.Ended()
	}
	return otherwise
}

// reply answers the sender of the event that is handled, and nobody else: some clients end with any error that they
// get.
func (l *legs) reply(event []byte) {
	switch asker := l.asker; {
	case asker == nil:
		l.toLeg(event)
	case !asker.Send(event):
		l.part(asker)
	}
}

// refuse answers the sender of the event that is handled with an error.
func (l *legs) refuse(f events.Fault) {
	f.Kind = "invalid_request_error"
	l.reply(events.Error(l.ids.Next(), f))
}

// welcome lets a socket take part: it begins with the session as the client sees it.
func (l *legs) welcome(other leg) {
	l.others = append(slices.Clip(l.others), other)
	if l.shown != "" {
		other.Send(l.created())
	}
}

// created is the beginning of the session as the client sees it, for who comes later.
func (l *legs) created() []byte {
	return events.Encode(events.Object{
		"type": events.TypeSessionCreated, "event_id": l.ids.Next(), "session": json.RawMessage(l.shown),
	})
}

// part lets a socket beside the client go.
func (l *legs) part(other leg) {
	l.others = slices.DeleteFunc(slices.Clone(l.others), func(o leg) bool { return o == other })
}

// reachable reports whether the client can be reached: one that is connected some time after its call began says so.
func (l *legs) reachable() bool { return !l.performs || l.opened }

// away reports whether the call waits for its client, or for one that rejoins it to be reached.
func (l *legs) away() bool { return !l.left.IsZero() }

// vanished reports whether the client's leg, which ends, went in a way after which the call waits for it. One that
// hung up did not, and before its session began there is nothing to come back to; whether a browser's channel was
// open does not matter. A client that does not keep up and shows no sign any more has no network.
func (l *legs) vanished() bool {
	e, knows := l.client.(ender)
	if l.hold == 0 || !knows || l.shown == "" {
		return false
	}
	if why := e.Ended(); why != nil {
		return why.Code == handoff.CodeSlowClient && l.witness != nil && time.Since(l.witness.Seen()) >= writeLimit
	}
	return e.Vanished()
}
