package rtc

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// peerFarewell bounds what a [Peer] that ends still may take to deliver the rest. Nobody waits for its end, and without
// the last event, which says why the session ended, a page does not go on in another call.
const peerFarewell = 10 * time.Second

// A Peer is a browser on WebRTC as the server that makes its voice sees it: a [Leg] that gives and takes events of the
// Realtime API alone, as a WebSocket would. What a leg and a call say to each other stays in here.
type Peer struct {
	leg     carried // Set once
	settled bool    // Owned by the sender: the server has answered the formats that the leg asked for
}

// carried is a client whose voice is played here: a [Leg], or a [Booth].
type carried interface {
	Run(take func(event []byte))
	Send(event []byte) bool
	Close(reason *handoff.Error)
}

// NewBoothPeer returns a client in the same process as the server that makes its voice sees it.
func NewBoothPeer(b *Booth) *Peer { return &Peer{leg: b} }

// NewPeer answers an offer. Whoever has the peer calls Run. Errors have code [handoff.CodeMalformed],
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
	leg.Answered() // it is, in a moment
	return answer, &Peer{leg: leg}, nil
}

// Run carries sound and events until the browser has gone or Close was called, and returns when its goroutines have
// ended. It gives take the events of the browser in order, its sound among them. The first sets the formats of the
// sound, and comes at once. Beside these it gives output_audio_buffer.stopped or cleared when the sound of a response
// is over, as the server tells them to whoever else is in the call.
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

// Send enqueues an event for the browser; false: it is too slow. Sound is played. One goroutine may call it.
func (p *Peer) Send(event []byte) bool {
	switch events.PeekType(event) {
	case events.TypeSessionCreated:
		p.leg.Send(events.Set(event, "type", events.Quote(events.TypeMade)))
	case events.TypeSessionUpdated:
		p.leg.Send(events.Set(event, "type", events.Quote(events.TypeChanged)))
		if !p.settled { // nobody else has asked for anything yet
			p.settled = true
			return true
		}
	}
	return p.leg.Send(event)
}

// Close ends the call of the browser; what was sent before is still delivered, for peerFarewell at most. It returns
// when Run has, which must have been called.
func (p *Peer) Close() { p.leg.Close(nil) }
