package rtc

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// peerFarewell bounds how long a [Peer] that ends may take to deliver the rest. It is long because nobody waits for the
// end of a peer, and a page needs the last event, which says why the session ended, to continue in another call.
const peerFarewell = 10 * time.Second

// A Peer is a browser on WebRTC for a server that makes the voice itself, such as the simulator: a [Leg] that gives and
// takes only events of the Realtime API, as a WebSocket would. The private events between a leg and a call are
// converted here.
type Peer struct {
	leg             voiceLeg // Set once
	formatsAnswered bool     // Owned by the caller of Send: the server has answered the leg's update of the formats
}

// A voiceLeg is a client whose sound is played here: a [Leg] or a [Booth].
type voiceLeg interface {
	Run(take func(event []byte))
	Send(event []byte) bool
	Close(reason *handoff.Error)
}

// NewBoothPeer returns a Peer for a client in the same process.
func NewBoothPeer(b *Booth) *Peer { return &Peer{leg: b} }

// NewPeer answers an offer. The owner of the peer must call Run. Errors have code [handoff.CodeMalformed],
// [handoff.CodeTooLarge] or [handoff.CodeInternal].
func (m *Engine) NewPeer(ctx context.Context, sdp string) (answer string, p *Peer, fault *handoff.Error) {
	offer := Offer{SDP: sdp}
	if fault = offer.Check(); fault != nil {
		return "", nil, fault
	}
	leg, fault := m.NewLeg(offer, m.log)
	if fault != nil {
		return "", nil, fault
	}
	if answer, fault = leg.Answer(ctx); fault != nil {
		leg.Abandon()
		return "", nil, fault
	}
	leg.grace = peerFarewell
	leg.Answered() // the caller sends the answer at once
	return answer, &Peer{leg: leg}, nil
}

// Run carries sound and events until the browser has gone or Close was called, and returns when its goroutines have
// ended. It passes the events of the browser to take, in order, its sound among them. The first one comes at once and
// sets the audio formats. It also passes output_audio_buffer.stopped or cleared when the sound of a response is over,
// for the server to pass on to other sockets in the call.
func (p *Peer) Run(take func(event []byte)) {
	p.leg.Run(func(event []byte) {
		switch events.PeekType(event) {
		case events.TypeFormats:
			take(events.Set(event, "type", events.Quote(events.TypeSessionUpdate)))
		case events.TypeOpened:
		case events.TypePlayed:
			kind := events.TypeOutputStopped
			if gjson.GetBytes(event, "cut").Bool() {
				kind = events.TypeOutputCleared
			}
			response := gjson.GetBytes(event, "response_id").String()
			take(events.Encode(events.Object{"type": kind, "response_id": response}))
		default:
			take(event)
		}
	})
}

// Send enqueues an event for the browser, and sound to be played; false: the browser is too slow. It must not be called
// concurrently.
func (p *Peer) Send(event []byte) bool {
	switch events.PeekType(event) {
	case events.TypeSessionCreated:
		p.leg.Send(events.Set(event, "type", events.Quote(events.TypeMade)))
	case events.TypeSessionUpdated:
		p.leg.Send(events.Set(event, "type", events.Quote(events.TypeChanged)))
		if !p.formatsAnswered { // the first one answers the leg's own update
			p.formatsAnswered = true
			return true
		}
	}
	return p.leg.Send(event)
}

// Close ends the connection and returns when Run has, which must have been called. What was sent before is still
// delivered, within peerFarewell.
func (p *Peer) Close() { p.leg.Close(nil) }
