package rtc

import (
	"sync"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/outbound"
)

// A run is what Run owns of a leg. Its loop never waits for anything but the next event.
type run struct {
	*Leg
	take    func(event []byte) // Set once, until the leg ends: gives the call an event
	readers sync.WaitGroup

	player     player
	stream     stream
	reorder    reorderBuffer
	events     *webrtc.DataChannel // nil until it is open
	held       [][]byte            // for the client, while there is no channel yet
	heldNow    int                 // bytes in it
	microphone *webrtc.TrackRemote // nil until the client sends sound
	state      webrtc.PeerConnectionState
	ticker     *time.Ticker
	ticking    bool
	pauses     int // of silence since the last packet

	reached bool   // the client can be: its channel is open, or without one it is connected
	begun   bool   // the formats are known
	session []byte // of the client's offer, until then; or nil

	counts legCounts // but those of the player and of what was heard
}

func (r *run) loop() {
	r.ticker = time.NewTicker(frameTime)
	r.ticker.Stop()
	defer r.ticker.Stop()
	told, late := r.told, (<-chan time.Time)(nil)
	pause := time.NewTimer(pauseTime)
	pause.Stop() // until the first packet
	defer pause.Stop()
	var answering <-chan time.Time // from the beginning of the model's session, which may take its time
	for {
		r.begin()
		r.pace()
		messages := r.messages
		if !r.player.formats.known {
			messages = nil // they may set formats; nobody waits long
		}
		select {
		case p := <-r.packets:
			r.packet(p)
			pause.Reset(pauseTime)
		case <-pause.C:
			if r.rest() {
				pause.Reset(pauseTime)
			}
		case m := <-messages:
			r.message(m)
		case <-r.Ready():
			for event, ok := r.Next(); ok; event, ok = r.Next() {
				r.tell(r.player.fromModel(event))
			}
			if answering == nil && r.player.formats.begun {
				answering = time.After(r.formatLimit)
			}
		case <-r.ticker.C:
			r.play(time.Now())
		case <-answering:
			r.tell(r.player.formatted(r.player.formats.assume()))
		case <-r.changed:
			r.look()
		case c := <-r.channels:
			r.open(c)
		case t := <-r.tracks:
			r.listen(t)
		case <-told:
			told, late = nil, time.After(r.connect)
		case <-late:
			if r.state != webrtc.PeerConnectionStateConnected {
				r.log.Info("webrtc client did not connect", zap.Duration("took", r.connect))
				return
			}
		case <-r.Ending():
			return
		}
		if r.gone() {
			return
		}
	}
}

// begin passes on, once it is known which formats are spoken, the session of the client's offer, that it can be reached
// and the sound that waited for that.
func (r *run) begin() {
	if r.begun || !r.player.formats.known {
		return
	}
	r.begun = true
	if r.session != nil {
		r.pass(r.player.openingEvent(r.session))
		r.session = nil
	}
	if r.reached {
		r.pass(openedEvent())
	}
	r.passSound(appendBytes)
}

// reach notes that the client can be reached. The call hears of it once the client is listened to, too: from then on
// the client has its time to set its session up.
func (r *run) reach() {
	r.reached = true
	if r.begun {
		r.pass(openedEvent())
	}
}

// look reads the connection's state; callbacks come in no order.
func (r *run) look() {
	state := r.peer.ConnectionState()
	if state != r.state {
		r.log.Debug("webrtc connection", zap.Stringer("state", state))
	}
	r.state = state
	if !r.offer.channel && !r.reached && state == webrtc.PeerConnectionStateConnected {
		r.reach()
	}
}

// gone reports that the client will not come back.
func (r *run) gone() bool {
	return r.state == webrtc.PeerConnectionStateFailed || r.state == webrtc.PeerConnectionStateClosed ||
		(r.events != nil && r.events.ReadyState() >= webrtc.DataChannelStateClosing)
}

// open begins to use the data channel.
func (r *run) open(c *webrtc.DataChannel) {
	r.events = c
	c.OnBufferedAmountLow(r.sign) // the client has taken what was sent
	for _, event := range r.held {
		r.deliver(event)
	}
	r.held, r.heldNow = nil, 0
	r.reach()
}

// listen reads a track. A client has one microphone; others are not heard.
func (r *run) listen(t *webrtc.TrackRemote) {
	if r.microphone != nil {
		return
	}
	r.microphone = t
	r.readers.Go(func() {
		for {
			buffer := make([]byte, maxPacket)
			n, _, err := t.Read(buffer)
			if n == 0 && err != nil {
				return // the connection is closed
			}
			var p rtp.Packet
			if err != nil || p.Unmarshal(buffer[:n]) != nil {
				continue // of another codec than was agreed on, or broken: the next may be good
			}
			offerTo(r.Leg, r.packets, &p)
		}
	})
}

// packet takes one of the client's sound.
func (r *run) packet(p *rtp.Packet) {
	r.counts.heard++
	r.pauses = 0
	r.sign()
	h := heard{p.SequenceNumber, p.Timestamp, p.Payload, false}
	if d := r.reorder.decoder; d != nil {
		h.opus = p.PayloadType == r.offer.opus
		h.timestamp = d.time(p.Timestamp, h.opus)
	}
	r.reorder.add(h)
	r.passSound(appendBytes)
}

// rest lets silence stand for a client that sends nothing: a model ends a turn by the sound that it has. It reports
// whether that goes on.
func (r *run) rest() bool {
	if !r.player.formats.known {
		return true // what was said waits, and silence would push it out
	}
	r.pauses++
	r.reorder.rest()
	r.passSound(1)
	return r.pauses < maxPauses
}

// passSound passes on what was heard, if it is that much. Before the formats are known the newest is kept.
func (r *run) passSound(least int) {
	if !r.player.formats.known {
		r.reorder.trim(maxEarlySound)
		return
	}
	if sound := r.reorder.take(least); sound != nil {
		r.pass(appendEvent(r.player.formats.say(sound)))
	}
}

// message takes an event of the client. What was heard before it comes before it: it may be a commit.
func (r *run) message(event []byte) {
	r.sign()
	r.reorder.flush()
	r.passSound(1)
	r.tell(r.player.fromClient(event))
}

// pass gives the call events.
func (r *run) pass(events ...[]byte) {
	for _, event := range events {
		r.take(event)
	}
}

// tell passes on what follows from an event.
func (r *run) tell(t effects) {
	r.pass(t.up...)
	for _, event := range t.down {
		r.deliver(event)
	}
	if t.end != nil {
		r.log.Warn("the sound of the voice model cannot be had", zap.String("format", t.end.Subject))
		r.End(t.end)
	}
}

// deliver puts an event on the data channel, or holds it until there is one. A client that offered none
// gets no events.
func (r *run) deliver(event []byte) {
	switch {
	case !r.offer.channel:
		return
	case r.events == nil && len(r.held) < outbound.MaxEvents && r.heldNow+len(event) <= maxBuffered:
		r.held, r.heldNow = append(r.held, event), r.heldNow+len(event)
		return
	case r.events == nil || r.events.BufferedAmount() > maxBuffered:
		r.End(handoff.Fault(handoff.CodeSlowClient, "", "data channel"))
		return
	}
	messages := fit(event, r.offer.fits)
	if len(messages) != 1 || len(messages[0]) != len(event) {
		r.counts.shortened++
	}
	if len(messages) == 0 {
		r.counts.undelivered++
		r.log.Warn("event not delivered", zap.Int("bytes", len(event)))
	}
	for _, m := range messages {
		if err := r.events.SendText(string(m)); err != nil {
			r.counts.undelivered++
			r.log.Warn("event not delivered", zap.Int("bytes", len(m)), zap.Error(err))
		}
	}
}

// pace lets the ticker run while there is sound to play and somebody to hear it. Before the channel is
// open, pion may not send yet.
func (r *run) pace() {
	able := r.state == webrtc.PeerConnectionStateConnected && (r.events != nil || !r.offer.channel) && !r.player.idle()
	if able == r.ticking {
		return
	}
	r.ticking = able
	if !able {
		r.ticker.Stop()
		r.stream.rest()
		return
	}
	r.ticker.Reset(frameTime)
	r.play(time.Now())
}

// play sends the frames that are due.
func (r *run) play(now time.Time) {
	for range r.stream.due(now) {
		frame, events := r.player.next()
		r.tell(events)
		if frame == nil {
			r.stream.rest()
			return
		}
		s := r.stream.take()
		r.counts.played++
		packet := rtp.Packet{
			Header:  rtp.Header{Version: 2, Marker: s.marker, SequenceNumber: s.sequence, Timestamp: s.timestamp},
			Payload: frame,
		}
		if err := r.track.WriteRTP(&packet); err != nil {
			r.counts.unsent++
			r.log.Debug("frame not sent", zap.Error(err))
		}
	}
}

// farewell waits until the client has what was sent, for as long as the leg's grace, or has gone.
func (r *run) farewell() {
	if r.gone() {
		return
	}
	for event, ok := r.Next(); ok; event, ok = r.Next() {
		r.tell(r.player.fromModel(event))
	}
	limit := time.NewTimer(r.grace)
	defer limit.Stop()
	r.await(limit.C)
	if r.events == nil || r.Behind() {
		return
	}
	low := make(chan struct{}, 1)
	r.events.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	for r.events.BufferedAmount() > 0 {
		select {
		case <-low:
		case <-r.changed:
			if r.look(); r.gone() {
				return
			}
		case <-limit.C:
			return
		}
	}
}

// await lets the channel of a client that is connected open, if something is held for it.
func (r *run) await(limit <-chan time.Time) {
	if r.look(); r.events != nil || len(r.held) == 0 || r.state != webrtc.PeerConnectionStateConnected {
		return
	}
	select {
	case c := <-r.channels:
		r.open(c)
	case <-limit:
	}
}
