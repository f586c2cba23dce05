package rtc

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/outbound"
)

const (
	// channelLabel names the data channel that carries events (OpenAI's WebRTC guide).
	channelLabel = "oai-events"
	// packetQueue bounds the client's packets that run has not taken yet. When it is full the reader waits, and pion
	// drops packets beyond its own buffer. Messages have no queue: SCTP slows the client down.
	packetQueue = 64
	// maxPacket is the size of the largest packet of sound, in bytes: pion reads no larger datagram.
	maxPacket = 1500
	// maxBuffered bounds, in bytes, the events that the data channel has not delivered, and those that wait for it to
	// open. When it is full the leg ends, as a socket does.
	maxBuffered = 16 << 20
	// peerGrace bounds the end of pion's goroutines.
	peerGrace = 5 * time.Second
)

// A Leg is a browser on WebRTC. To its call it is a client that sends and receives sound as events.
type Leg struct {
	*outbound.Queue                             // Set once: events for the client
	peer            *webrtc.PeerConnection      // Set once
	track           *webrtc.TrackLocalStaticRTP // Set once: carries the sound to the client
	log             *zap.Logger                 // Set once
	counts          *mediaCounts                // Set once: of all legs
	connectLimit    time.Duration               // Set once: how long connecting may take, from Answered on
	formatLimit     time.Duration               // Set once: how long the model may take to answer our formats
	grace           time.Duration               // Set once: how long a leg that ends may take to deliver the rest
	offer           Offer                       // Set once

	restarting chan struct{} // capacity 1: holds a token during a Restart, so that there is one at a time

	answered  chan struct{} // closed by Answered
	createdAt time.Time     // Set once
	seen      atomic.Int64  // when the client showed a sign of life last: ns since createdAt; 0: never
	done      chan struct{} // closed when Run has ended

	// Filled by pion's callbacks, taken by run.
	admitted     atomic.Bool              // there is a data channel for events
	stateChanged chan struct{}            // holds a token when the connection's state may have changed
	channels     chan *webrtc.DataChannel // takes the data channel once it is open
	tracks       chan *webrtc.TrackRemote
	messages     chan []byte
	packets      chan *rtp.Packet
}

// NewLeg makes a leg of an offer that was checked. Its owner must call Answer, Run and Answered, or Abandon. Errors
// have code [handoff.CodeMalformed] or [handoff.CodeInternal].
func (m *Engine) NewLeg(offer Offer, log *zap.Logger) (*Leg, *handoff.Error) {
	api := m.apis[offer.line]
	if offer.opus != 0 {
		api = m.withOpus
	}
	peer, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	l := &Leg{
		peer: peer, log: log, counts: &m.counts, connectLimit: m.config.Connect, formatLimit: formatLimit, offer: offer,
		grace: outbound.CloseGrace,
		Queue: outbound.New(nil), createdAt: time.Now(),
		answered: make(chan struct{}), done: make(chan struct{}), stateChanged: make(chan struct{}, 1),
		channels: make(chan *webrtc.DataChannel, 1), tracks: make(chan *webrtc.TrackRemote),
		messages: make(chan []byte), packets: make(chan *rtp.Packet, packetQueue), restarting: make(chan struct{}, 1),
	}
	if fault := l.accept(offer.SDP); fault != nil {
		l.Abandon()
		return nil, fault
	}
	return l, nil
}

// accept sets the callbacks and the remote description. Nothing is sent before Answer.
func (l *Leg) accept(offer string) *handoff.Error {
	track, err := webrtc.NewTrackLocalStaticRTP(l.offer.line.codec().RTPCodecCapability, "audio", "realtime")
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	l.track = track
	l.peer.OnConnectionStateChange(func(webrtc.PeerConnectionState) { l.signalChange() })
	l.peer.OnDataChannel(l.admit)
	l.peer.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { offerTo(l, l.tracks, t) })
	if _, err = l.peer.AddTrack(track); err != nil {
		return handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	if err = l.peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the offer cannot be answered", err.Error())
	}
	return nil
}

// admit takes the data channel for events, and closes any other. It sets the channel's callbacks, which pion may call
// as soon as this returns.
func (l *Leg) admit(c *webrtc.DataChannel) {
	if c.Label() != channelLabel || !l.admitted.CompareAndSwap(false, true) {
		c.OnOpen(func() {
			l.log.Debug("webrtc channel refused")
			_ = c.Close() // it may be gone already
		})
		return
	}
	c.OnOpen(func() { l.channels <- c }) // does not block: there is one channel, and room for it
	c.OnMessage(func(m webrtc.DataChannelMessage) { offerTo(l, l.messages, m.Data) })
	c.OnClose(l.signalChange)
}

// signalChange makes run read the connection's state.
func (l *Leg) signalChange() {
	select {
	case l.stateChanged <- struct{}{}:
	default: // a token is there
	}
}

// offerTo passes a value from a callback to run. It waits for run, or for the end of the leg.
func offerTo[T any](l *Leg, to chan<- T, v T) {
	select {
	case to <- v:
	case <-l.Ending():
	}
}

// Restart takes another offer of the same client, whose network has changed, and returns the answer: sound and events
// continue over the new network path, and nothing else of the leg changes. The error has code [handoff.CodeMalformed]
// if the leg has ended or the offer is another client's.
func (l *Leg) Restart(ctx context.Context, offer string) (string, *handoff.Error) {
	select {
	case l.restarting <- struct{}{}:
		defer func() { <-l.restarting }()
	case <-ctx.Done():
		return "", handoff.Fault(handoff.CodeInternal, "", "the offer before this one was not answered in time")
	}
	err := l.peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer})
	if err != nil {
		return "", handoff.Fault(handoff.CodeMalformed, "the offer cannot be answered", err.Error())
	}
	return l.Answer(ctx)
}

// Answer returns the SDP answer, with all our addresses.
func (l *Leg) Answer(ctx context.Context) (string, *handoff.Error) {
	answer, err := l.peer.CreateAnswer(nil)
	if err != nil {
		return "", handoff.Fault(handoff.CodeMalformed, "the offer cannot be answered", err.Error())
	}
	gathered := webrtc.GatheringCompletePromise(l.peer)
	if err := l.peer.SetLocalDescription(answer); err != nil {
		return "", handoff.Fault(handoff.CodeMalformed, "the offer cannot be answered", err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, peerGrace)
	defer cancel()
	select {
	case <-gathered:
		return l.peer.LocalDescription().SDP, nil
	case <-ctx.Done():
		return "", handoff.Fault(handoff.CodeInternal, "", "addresses were not gathered in time")
	}
}

// Answered notes that the client was sent the answer: from now on the client must connect in time. It must be called
// once.
func (l *Leg) Answered() { close(l.answered) }

// Abandon ends a leg whose Run was never called.
func (l *Leg) Abandon() {
	l.End(nil)
	l.closePeer(func() {})
}

// Seen returns when anything came from the client last, or the client acknowledged an event. Before the first of these
// it returns now: a client that sends neither sound nor events shows no sign of life while it is connected.
func (l *Leg) Seen() time.Time {
	if after := l.seen.Load(); after > 0 {
		return l.createdAt.Add(time.Duration(after))
	}
	return time.Now()
}

// Probe does nothing: at the end of a sound the client is sent an event, and acknowledges it.
func (l *Leg) Probe() {}

func (l *Leg) noteSign() { l.seen.Store(int64(time.Since(l.createdAt))) }

// Vanished reports true: the end of the connection is no sign of hanging up, as a page that is reloaded closes it, too.
func (l *Leg) Vanished() bool { return true }

// Performs marks the leg as one that plays the model's voice itself, and reports how much of it was heard.
func (l *Leg) Performs() {}

// Close ends the leg with a reason (nil: a normal end) and returns when Run has. Events sent before are still
// delivered, for [outbound.CloseGrace] at most, or peerFarewell of a [Peer]. Run must have been called.
func (l *Leg) Close(reason *handoff.Error) {
	l.End(reason)
	<-l.done
}

// Run carries sound and events until the client has gone or Close was called, and returns when its goroutines have
// ended. It passes the events of the client to take, in order, its sound among them; take must not wait.
func (l *Leg) Run(take func(event []byte)) {
	defer close(l.done)
	r := run{Leg: l, toCall: take, player: newPlayer(l.offer.line), reorder: reorderBuffer{line: l.offer.line},
		session: l.offer.Session}
	if l.offer.opus != 0 {
		r.player.formats.opus, r.reorder.decoder = true, newDecoder()
	}
	r.player.formats.updateID = r.player.ids.Next()
	r.pass(formatsEvent(r.player.formats.updateID, l.offer.line))
	r.loop()
	r.toCall = func([]byte) {} // the call takes no more events
	l.End(nil)
	r.farewell()
	l.closePeer(r.readers.Wait)
	n := r.counts
	n.late, n.lost, n.droppedBytes = r.reorder.late, r.reorder.lost, r.player.dropped
	l.counts.add(n)
	var why handoff.Code
	if reason := l.Ended(); reason != nil {
		why = reason.Code
	}
	l.log.Debug("webrtc leg ended", zap.String("code", string(why)), zap.Int("packets", n.received),
		zap.Int("late", n.late), zap.Int("lost", n.lost), zap.Int("frames", n.played),
		zap.Int("unheard_bytes", n.droppedBytes), zap.Int("shortened", n.shortened),
		zap.Int("undelivered", n.undelivered))
}

// closePeer ends pion's goroutines and then calls wait. If that takes longer than peerGrace, it returns and leaves them
// behind. It must not be called from a callback of pion.
func (l *Leg) closePeer(wait func()) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = l.peer.GracefulClose() // its error is about parts that were closed already
		wait()
	}()
	select {
	case <-closed:
	case <-time.After(peerGrace):
		l.log.Error("webrtc connection cannot be closed")
	}
}
