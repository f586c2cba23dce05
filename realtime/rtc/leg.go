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
	// packetQueue bounds packets of the client that run has not taken yet. When full their reader waits: pion
	// drops packets beyond its own buffer. Of its messages only one waits, so SCTP slows them down.
	packetQueue = 64
	// maxPacket is room for any packet of sound: a datagram is no larger where pion reads it.
	maxPacket = 1500
	// maxBuffered bounds what the data channel has not delivered, and what waits for it to open. When full the
	// leg ends, as a socket does.
	maxBuffered = 16 << 20
	// peerGrace bounds the end of pion's goroutines.
	peerGrace = 5 * time.Second
)

// A Leg is a browser on WebRTC, presented to its call as a client that sends and hears its sound in events.
type Leg struct {
	*outbound.Queue                             // Set once: events for the client
	peer            *webrtc.PeerConnection      // Set once
	track           *webrtc.TrackLocalStaticRTP // Set once: what the client hears
	log             *zap.Logger                 // Set once
	counts          *mediaCounts                // Set once: of all legs
	connect         time.Duration               // Set once: how long connecting may take, from the answer on
	formatLimit     time.Duration               // Set once: how long the model may take to answer our formats
	grace           time.Duration               // Set once: how long a leg that ends still may take to deliver the rest
	offer           Offer                       // Set once

	restarting chan struct{} // full while offer and answer are exchanged: one exchange at a time

	told chan struct{} // closed when the client has the answer
	born time.Time     // Set once
	seen atomic.Int64  // after born: when the client last showed that it is there; 0: it shows nothing
	done chan struct{} // closed when Run has ended

	// Filled by pion's callbacks, taken by run.
	admitted atomic.Bool              // a data channel for events
	changed  chan struct{}            // the connection's state may be another
	channels chan *webrtc.DataChannel // takes the one that is admitted
	tracks   chan *webrtc.TrackRemote
	messages chan []byte
	packets  chan *rtp.Packet
}

// NewLeg makes a leg of an offer that was checked. Whoever has it calls Answer, Run and Answered, or Abandon. Errors
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
		peer: peer, log: log, counts: &m.counts, connect: m.config.Connect, formatLimit: formatLimit, offer: offer,
		grace: outbound.CloseGrace,
		Queue: outbound.New(outbound.MaxBytes, nil), born: time.Now(), told: make(chan struct{}), done: make(chan struct{}),
		changed: make(chan struct{}, 1), channels: make(chan *webrtc.DataChannel, 1), tracks: make(chan *webrtc.TrackRemote),
		messages: make(chan []byte), packets: make(chan *rtp.Packet, packetQueue), restarting: make(chan struct{}, 1),
	}
	if fault := l.accept(offer.SDP); fault != nil {
		l.Abandon()
		return nil, fault
	}
	return l, nil
}

// accept takes the offer. Nothing travels before answer.
func (l *Leg) accept(offer string) *handoff.Error {
	track, err := webrtc.NewTrackLocalStaticRTP(l.offer.line.codec().RTPCodecCapability, "audio", "realtime")
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	l.track = track
	l.peer.OnConnectionStateChange(func(webrtc.PeerConnectionState) { l.change() })
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

// admit takes the data channel for events, and closes any other. Its callbacks must be set before pion
// lets it open, which is when this returns.
func (l *Leg) admit(c *webrtc.DataChannel) {
	if c.Label() != channelLabel || !l.admitted.CompareAndSwap(false, true) {
		c.OnOpen(func() {
			l.log.Debug("webrtc channel refused")
			_ = c.Close() // it may be gone already
		})
		return
	}
	c.OnOpen(func() { l.channels <- c }) // once, so there is room; also for a leg that ends, to say why
	c.OnMessage(func(m webrtc.DataChannelMessage) { offerTo(l, l.messages, m.Data) })
	c.OnClose(l.change)
}

// change makes run look at the connection.
func (l *Leg) change() {
	select {
	case l.changed <- struct{}{}:
	default: // it will look
	}
}

// offerTo hands run what a callback brings, unless the leg ends.
func offerTo[T any](l *Leg, to chan<- T, v T) {
	select {
	case to <- v:
	case <-l.Ending():
	}
}

// Restart takes another offer of the same client, whose network has changed: sound and events go on over the new way,
// and nothing of the leg begins anew. It returns the answer. Where the leg has gone, or the offer is another client's,
// an error has code [handoff.CodeMalformed].
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

// Answer returns the answer with all addresses of ours.
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

// Answered says that the client has the answer: from now on it must connect in time. It is called once.
func (l *Leg) Answered() { close(l.told) }

// Abandon ends a leg whose Run was never called.
func (l *Leg) Abandon() {
	l.End(nil)
	l.closePeer(func() {})
}

// Seen returns when anything of the client came, or it took something that only it can have taken. A client that
// sends neither sound nor events shows nothing of itself while it is connected.
func (l *Leg) Seen() time.Time {
	if after := l.seen.Load(); after > 0 {
		return l.born.Add(time.Duration(after))
	}
	return time.Now()
}

// Probe need not ask the client for a sign: the end of a sound is told to it, and it acknowledges that.
func (l *Leg) Probe() {}

func (l *Leg) sign() { l.seen.Store(int64(time.Since(l.born))) }

// Vanished reports that the client did not say that it hangs up: a page that is loaded anew closes the connection, too.
func (l *Leg) Vanished() bool { return true }

// Performs marks a leg that plays the model's voice itself, and reports what was heard of it.
func (l *Leg) Performs() {}

// Close ends the leg with a reason (nil: a normal end) and returns when Run has. Events sent before are still
// delivered, for [outbound.CloseGrace] at most, or peerFarewell of a [Peer]. Run must have been called.
func (l *Leg) Close(reason *handoff.Error) {
	l.End(reason)
	<-l.done
}

// Run carries sound and events until the client has gone or Close was called, and returns when its goroutines
// have ended. It gives take the events of the client in order, its sound among them; take must not wait.
func (l *Leg) Run(take func(event []byte)) {
	defer close(l.done)
	r := run{Leg: l, take: take, player: newPlayer(l.offer.line), reorder: reorderBuffer{line: l.offer.line},
		session: l.offer.Session}
	if l.offer.opus != 0 {
		r.player.formats.opus, r.reorder.decoder = true, newDecoder()
	}
	r.player.formats.asked = r.player.ids.Next()
	r.pass(formatsEvent(r.player.formats.asked, l.offer.line))
	r.loop()
	r.take = func([]byte) {} // nobody hears the rest
	l.End(nil)
	r.farewell()
	l.closePeer(r.readers.Wait)
	n := r.counts
	n.late, n.lost, n.unheard = r.reorder.late, r.reorder.lost, r.player.dropped
	l.counts.add(n)
	var why handoff.Code
	if reason := l.Ended(); reason != nil {
		why = reason.Code
	}
	l.log.Debug("webrtc leg ended", zap.String("code", string(why)), zap.Int("packets", n.heard),
		zap.Int("late", n.late), zap.Int("lost", n.lost), zap.Int("frames", n.played),
		zap.Int("unheard_bytes", n.unheard), zap.Int("shortened", n.shortened), zap.Int("undelivered", n.undelivered))
}

// closePeer ends pion's goroutines and then calls wait, all for peerGrace at most: where pion hangs it is
// left behind. It must not be called from a callback.
func (l *Leg) closePeer(wait func()) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = l.peer.GracefulClose() // it tells of parts that were closed before
		wait()
	}()
	limit := time.NewTimer(peerGrace)
	defer limit.Stop()
	select {
	case <-closed:
	case <-limit.C:
		l.log.Error("webrtc connection cannot be closed")
	}
}
