package rtc

import (
	"sync"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/outbound"
)

// A run is the state of a leg that Run owns. Its loop waits for nothing but the next event.
type run struct {
	*Leg
	toCall  func(event []byte) // passes an event to the call; does nothing once the leg has ended
	readers sync.WaitGroup

	player     player
	stream     stream
	reorder    reorderBuffer
	events     *webrtc.DataChannel // nil until it is open
	held       [][]byte            // events for the client, until the channel is open
	heldBytes  int                 // bytes in held
	microphone *webrtc.TrackRemote // nil until the client sends sound
	state      webrtc.PeerConnectionState
	connected  bool // the connection has been up; it may be interrupted now
	ticker     *time.Ticker
	ticking    bool
	pauses     int // pieces of silence inserted since the last packet

	reached bool   // the client can be reached: its channel is open, or without one it is connected
	begun   bool   // the formats are known, and passOpening was done
	session []byte // session.update of the client's offer, until it is passed on; then nil

	counts legCounts // without those that the player and the reorder buffer count
}

func (r *run) loop() {
	r.ticker = time.NewTicker(frameTime)
	r.ticker.Stop()
	defer r.ticker.Stop()
	answered, late := r.answered, (<-chan time.Time)(nil)
	pause := time.NewTimer(pauseTime)
	pause.Stop() // until the first packet
	defer pause.Stop()
	var answering <-chan time.Time // set once the model's session has begun
	for {
		r.passOpening()
		r.setTicker()
		messages := r.messages
		if !r.player.formats.known {
			messages = nil // they may change the formats; those are known after formatLimit at the latest
		}
		select {
		case p := <-r.packets:
			r.packet(p)
			pause.Reset(pauseTime)
		case <-pause.C:
			if r.insertSilence() {
				pause.Reset(pauseTime)
			}
		case m := <-messages:
			r.message(m)
		case <-r.Ready():
			for event, ok := r.Next(); ok; event, ok = r.Next() {
				r.apply(r.player.fromModel(event))
			}
			if answering == nil && r.player.formats.sessionBegun {
				answering = time.After(r.formatLimit)
			}
		case <-r.ticker.C:
			r.play(time.Now())
		case <-answering:
			r.apply(r.player.formatted(r.player.formats.assume()))
		case <-r.stateChanged:
			r.readState()
		case c := <-r.channels:
			r.open(c)
		case t := <-r.tracks:
			r.listen(t)
		case <-answered:
			answered, late = nil, time.After(r.connectLimit)
		case <-late:
			if !r.connected {
				r.log.Info("webrtc client did not connect", zap.Duration("took", r.connectLimit))
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

// passOpening passes on, once the formats are known, what waited for that: the session of the client's offer, the
// report that the client can be reached, and sound.
func (r *run) passOpening() {
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

// reach notes that the client can be reached. The call is told once the formats are known, too, as only then the
// client's events are read, and it can set up its session.
func (r *run) reach() {
	r.reached = true
	if r.begun {
		r.pass(openedEvent())
	}
}

// readState reads the connection's state, as callbacks may arrive in any order.
func (r *run) readState() {
	state := r.peer.ConnectionState()
	if state != r.state {
		r.log.Debug("webrtc connection", zap.Stringer("state", state))
	}
	r.state = state
	r.connected = r.connected || state == webrtc.PeerConnectionStateConnected
	if !r.offer.channel && !r.reached && r.connected {
		r.reach()
	}
}

// gone reports whether the connection has ended for good.
func (r *run) gone() bool {
	return r.state == webrtc.PeerConnectionStateFailed || r.state == webrtc.PeerConnectionStateClosed ||
		(r.events != nil && r.events.ReadyState() >= webrtc.DataChannelStateClosing)
}

// open begins to use the data channel.
func (r *run) open(c *webrtc.DataChannel) {
	r.events = c
	c.OnBufferedAmountLow(r.noteSign) // the client has acknowledged what was sent
	for _, event := range r.held {
		r.deliver(event)
	}
	r.held, r.heldBytes = nil, 0
	r.reach()
}

// listen begins to read a track. A client has one microphone; further tracks are ignored.
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
				continue // another codec than was agreed on, or malformed: the next may be good
			}
			offerTo(r.Leg, r.packets, &p)
		}
	})
}

// packet handles a packet of the client's sound.
func (r *run) packet(p *rtp.Packet) {
	r.counts.received++
	r.pauses = 0
	r.noteSign()
	h := heard{p.SequenceNumber, p.Timestamp, p.Payload, false}
	if d := r.reorder.decoder; d != nil {
		h.opus = p.PayloadType == r.offer.opus
		h.timestamp = d.time(p.Timestamp, h.opus)
	}
	r.reorder.add(h)
	r.passSound(appendBytes)
}

// insertSilence adds silence for a client that sends nothing: a model needs sound to notice the end of a turn. It
// reports whether to continue.
func (r *run) insertSilence() bool {
	if !r.player.formats.known {
		return true // silence would push the waiting sound out of its buffer
	}
	r.pauses++
	r.reorder.pause()
	r.passSound(1)
	return r.pauses < maxPauses
}

// passSound passes on the client's sound, if there are at least that many ticks. Before the formats are known, the
// newest is kept.
func (r *run) passSound(least int) {
	if !r.player.formats.known {
		r.reorder.trim(maxEarlySound)
		return
	}
	if sound := r.reorder.take(least); sound != nil {
		r.pass(events.Append(r.player.formats.forModel(sound)))
	}
}

// message handles an event of the client. The sound before it is passed on first, as the event may be a commit.
func (r *run) message(event []byte) {
	r.noteSign()
	r.reorder.flush()
	r.passSound(1)
	r.apply(r.player.fromClient(event))
}

// pass gives the call events.
func (r *run) pass(events ...[]byte) {
	for _, event := range events {
		r.toCall(event)
	}
}

// apply carries out what follows from an event.
func (r *run) apply(t effects) {
	r.pass(t.up...)
	for _, event := range t.down {
		r.deliver(event)
	}
	if t.end != nil {
		r.log.Warn("cannot convert the format of the model's sound", zap.String("format", t.end.Subject))
		r.End(t.end)
	}
}

// deliver sends an event on the data channel, or holds it until the channel is open. A client that offered no channel
// gets no events.
func (r *run) deliver(event []byte) {
	switch {
	case !r.offer.channel:
		return
	case r.events == nil && len(r.held) < outbound.MaxEvents && r.heldBytes+len(event) <= maxBuffered:
		r.held, r.heldBytes = append(r.held, event), r.heldBytes+len(event)
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

// setTicker runs the ticker while there is sound to play and the client can hear it. Before the channel is open, pion
// may not send yet.
func (r *run) setTicker() {
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
		r.apply(events)
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

// farewell sends the rest and waits until the client has acknowledged it, the client has gone, or the leg's grace is
// over.
func (r *run) farewell() {
	if r.gone() {
		return
	}
	for event, ok := r.Next(); ok; event, ok = r.Next() {
		r.apply(r.player.fromModel(event))
	}
	limit := time.After(r.grace)
	r.awaitChannel(limit)
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
		case <-r.stateChanged:
			if r.readState(); r.gone() {
				return
			}
		case <-limit:
			return
		}
	}
}

// awaitChannel waits for the data channel of a connected client to open, if events are held for it.
func (r *run) awaitChannel(limit <-chan time.Time) {
	if r.readState(); r.events != nil || len(r.held) == 0 || r.state != webrtc.PeerConnectionStateConnected {
		return
	}
	select {
	case c := <-r.channels:
		r.open(c)
	case <-limit:
	}
}
