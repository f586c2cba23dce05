package realtime

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A leg is one side of a call, the client's or the model's, over any transport: it reads and writes Realtime events as
// raw JSON. A leg that carries audio in another way (WebRTC) converts it: the sound that it receives becomes
// input_audio_buffer.append, and output audio deltas become sound. It also sends what its client cannot send
// (conversation.item.truncate after a barge-in). Otherwise the call cannot tell legs apart.
type leg interface {
	// Send enqueues an event for the far end. It never blocks, and may keep the slice; the caller must not use the
	// slice of a sound event any more. False means that the leg is ending: the far end is too slow, unless the leg is
	// an [ender] and says otherwise. If the leg is a [flusher], the event may wait for Flush.
	Send(event []byte) bool
	// Ending is closed when the leg begins to end. If the far end has gone, all its events were handled before.
	Ending() <-chan struct{}
	// Close ends the leg with a reason (nil: a normal end) and returns when its goroutines have ended.
	Close(reason *handoff.Error)
}

// A connection is a leg that is not running yet. Its owner must call Run or Abandon, once.
type connection interface {
	leg
	// Run carries the leg until the far end has gone or Close was called, and returns when its goroutines have ended.
	// It passes the events of the far end to take in order, one at a time, in the goroutine that read them: passing
	// them to another goroutine would cost more than all else. take must not wait, and owns the slice.
	Run(take func(event []byte))
	// Abandon closes the connection without a goodbye.
	Abandon()
}

// A flusher is a leg that writes its queue when Flush is called: the goroutine that handled an event writes the result
// itself, after it has released the call's lock.
type flusher interface {
	// Flush writes the queue, as far as the far end takes it at once; the rest is written later. It never waits.
	Flush()
}

// An ender is a leg that knows why it ends.
type ender interface {
	// Ended returns the reason, nil when the far end went away or nothing has ended yet.
	Ended() *handoff.Error
	// Vanished reports, once the leg ends, whether the far end went without hanging up.
	Vanished() bool
}

// A witness is a leg that knows when its far end last showed that it is there.
type witness interface {
	leg
	// Seen returns when anything came from the far end last, or the far end confirmed that something arrived.
	Seen() time.Time
	// Probe asks the far end for a sign of life, and returns at once. If the leg is a [flusher], the question waits for
	// Flush.
	Probe()
}

// A performer is a leg that plays the model's voice itself and knows how much of it was heard. Among the events that it
// receives from its client, which cannot send these itself, it reports switchboard.formats once, with the audio formats
// that it carries; switchboard.opened once its client can be reached; and switchboard.played for every response, once
// no more of the response will be heard. What the clients of other legs hear is estimated.
type performer interface {
	leg
	Performs()
}

// nobody is the leg of a client or model that is away: what it is sent is lost.
type nobody struct{}

func (nobody) Send([]byte) bool        { return true }
func (nobody) Ending() <-chan struct{} { return nil }
func (nobody) Close(*handoff.Error)    {}
func (nobody) Seen() time.Time         { return time.Time{} }
func (nobody) Probe()                  {}

// legs are the two ends of a call, and the sockets beside the client.
//
// A leg may be replaced while the call goes on, under the call's lock, so no reference to it is kept elsewhere. Events
// of a replaced leg are dropped ([Call.takeFrom]), its end does not end the call, and the loop then waits for the end
// of the new leg.
type legs struct {
	*core
	model    modelLeg
	canRenew bool    // Set once: the model's session can be replaced by another without a loss
	client   leg     // nobody{} while the call waits for its client
	performs bool    // Set once: the client's leg is a [performer], also after it was replaced
	witness  witness // the client's leg; nil: it is no [witness]

	hold         time.Duration // Set once: how long the call waits for a client that vanished; 0: it ends at once
	vanishedAt   time.Time     // when the client vanished, while the call waits for it
	opened       bool          // the client reported that it can be reached
	shownSession string        // the session as the client saw it last, raw JSON; "": not yet

	takesOurs bool  // Set once: the client asked for events of ours (?events=handoff)
	others    []leg // sockets beside the client; replaced, never changed
	sender    leg   // the socket beside the client whose event is being handled; nil: none
}

// A modelLeg is the model's leg and the state of its session. A leg to another session gets a new one.
type modelLeg struct {
	leg
	host    string         // where the model is, for errors
	dialect dialect        // how its events differ from OpenAI's
	denied  *handoff.Error // why it refuses a session; nil: it did not say, or has one
	stirred time.Time      // when the newest event of a response came
}

func (l *legs) init(k *core, client, model leg) {
	l.core, l.client, l.model = k, client, modelLeg{leg: model, dialect: newDialect()}
	_, l.performs = client.(performer)
	l.witness, _ = client.(witness)
}

// toModel sends the model an event.
func (l *legs) toModel(event []byte) {
	if !l.model.Send(event) && !l.canRenew { // with canRenew the loop finds the end of the leg
		l.end(l.modelGone("it does not keep up"))
	}
}

// modelGone returns why the call ends when the model has ended its session or begins none: the model's own reason, if
// it gave one.
func (l *legs) modelGone(detail string) *handoff.Error {
	if l.model.denied != nil {
		return l.model.denied
	}
	return handoff.Fault(handoff.CodeVoiceGone, "", detail)
}

// toClient sends an event to the client and to the sockets beside it. A socket beside the client that does not keep up
// is dropped.
func (l *legs) toClient(event []byte) {
	for _, other := range l.others {
		if !other.Send(bytes.Clone(event)) { // a leg may keep the slice
			l.part(other)
		}
	}
	l.toLeg(event)
}

// toLeg sends an event to the client's leg. A client that does not keep up ends the call; one that vanished does not,
// and the loop notices it.
func (l *legs) toLeg(event []byte) {
	if !l.client.Send(event) && !l.vanished() {
		l.end(l.clientGone(handoff.Fault(handoff.CodeSlowClient, "", "")))
	}
}

// clientGone returns why the client's leg ends; otherwise is the answer for a leg that does not know.
func (l *legs) clientGone(otherwise *handoff.Error) *handoff.Error {
	if e, ok := l.client.(ender); ok {
		return e.Ended()
	}
	return otherwise
}

// reply answers only the sender of the event that is being handled: some clients end with any error that they get.
func (l *legs) reply(event []byte) {
	switch sender := l.sender; {
	case sender == nil:
		l.toLeg(event)
	case !sender.Send(event):
		l.part(sender)
	}
}

// refuse answers the sender of the event that is being handled with an error.
func (l *legs) refuse(f events.Fault) {
	f.Kind = "invalid_request_error"
	l.reply(events.Error(l.ids.Next(), f))
}

// welcome adds a socket beside the client. It first gets the session as the client sees it.
func (l *legs) welcome(other leg) {
	l.others = append(slices.Clip(l.others), other)
	if l.shownSession != "" {
		other.Send(l.created())
	}
}

// created returns a session.created with the session as the client sees it, for a leg that comes later.
func (l *legs) created() []byte {
	return events.Encode(events.Object{
		"type": events.TypeSessionCreated, "event_id": l.ids.Next(), "session": json.RawMessage(l.shownSession),
	})
}

// part removes a socket beside the client.
func (l *legs) part(other leg) {
	l.others = slices.DeleteFunc(slices.Clone(l.others), func(o leg) bool { return o == other })
}

// reachable reports whether the client can be reached. A browser connects some time after its call began, and then
// reports it.
func (l *legs) reachable() bool { return !l.performs || l.opened }

// away reports whether the call waits for its client to come back, or to be reachable again.
func (l *legs) away() bool { return !l.vanishedAt.IsZero() }

// vanished reports, of a client's leg that ends, whether the call waits for the client to come back. It does not if the
// client hung up, or if its session has not begun, as there is nothing to come back to. A client that does not keep up
// counts as vanished if it also shows no sign of life: then it has lost its network.
func (l *legs) vanished() bool {
	e, knows := l.client.(ender)
	if l.hold == 0 || !knows || l.shownSession == "" {
		return false
	}
	if why := e.Ended(); why != nil {
		return why.Code == handoff.CodeSlowClient && l.witness != nil && time.Since(l.witness.Seen()) >= writeLimit
	}
	return e.Vanished()
}
