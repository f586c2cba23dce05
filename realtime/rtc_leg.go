package realtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// channelLabel names the data channel that carries events (OpenAI's WebRTC guide).
	channelLabel = "oai-events"
	// packetQueue bounds packets of the client that run has not taken yet. When full their reader waits: pion
	// drops packets beyond its own buffer. Of its messages only one waits, so SCTP slows them down.
	packetQueue = 64
	// upstreamQueue and upstreamBytes bound events that the call has not taken yet. When full nothing more is
	// taken from the client; the call never waits, so this is short.
	upstreamQueue = 64
	upstreamBytes = 2 * maxMessage
	// maxBuffered bounds what the data channel has not delivered, and what waits for it to open. When full the
	// leg ends, as a socket does.
	maxBuffered = 16 << 20
	// peerGrace bounds the end of pion's goroutines.
	peerGrace = 5 * time.Second
)

// An rtcLeg is a browser on WebRTC, presented as a client that sends and hears µ-law in events. It is a
// [leg].
type rtcLeg struct {
	peer    *webrtc.PeerConnection      // Set once
	track   *webrtc.TrackLocalStaticRTP // Set once: what the client hears
	log     *zap.Logger                 // Set once
	counts  *mediaCounts                // Set once: of all legs
	connect time.Duration               // Set once: how long connecting may take
	settle  time.Duration               // Set once: how long the model may take to say what it does with our formats
	channel bool                        // Set once: the client offered a data channel
	fits    int                         // Set once: bytes of the largest message that the client takes

	received chan []byte   // closed by run
	queue    chan []byte   // never closed
	queued   atomic.Int64  // bytes in queue
	born     time.Time     // Set once
	seen     atomic.Int64  // after born: when the client last showed that it is there; 0: it shows nothing
	closing  chan struct{} // closed by end
	done     chan struct{} // closed when run has ended
	once     sync.Once     // guards end
	reason   *handoff.Error

	// Filled by pion's callbacks, taken by run.
	admitted atomic.Bool              // a data channel for events
	changed  chan struct{}            // the connection's state may be another
	channels chan *webrtc.DataChannel // takes the one that is admitted
	tracks   chan *webrtc.TrackRemote
	messages chan []byte
	packets  chan *rtp.Packet
}

// newRTCLeg makes a leg of an offer that checkOffer let pass. Whoever has it calls answer and then run, or
// abandon.
func (m *media) newRTCLeg(offer string, channel bool, log *zap.Logger) (*rtcLeg, *handoff.Error) {
	peer, err := m.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, handoff.Fault(handoff.CodeInternal, "", err.Error())
	}
	l := &rtcLeg{
		peer: peer, log: log, counts: &m.counts, connect: m.config.Connect, settle: formatLimit, channel: channel, fits: maxMessageOf(offer),
		received: make(chan []byte), queue: make(chan []byte, sendQueue), born: time.Now(),
		closing: make(chan struct{}), done: make(chan struct{}),
		changed: make(chan struct{}, 1), channels: make(chan *webrtc.DataChannel, 1), tracks: make(chan *webrtc.TrackRemote),
		messages: make(chan []byte), packets: make(chan *rtp.Packet, packetQueue),
	}
	if fault := l.accept(offer); fault != nil {
		l.abandon()
		return nil, fault
	}
	return l, nil
}

// accept takes the offer. Nothing travels before answer.
func (l *rtcLeg) accept(offer string) *handoff.Error {
	capability := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000, Channels: 1}
	track, err := webrtc.NewTrackLocalStaticRTP(capability, "audio", "realtime")
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
func (l *rtcLeg) admit(c *webrtc.DataChannel) {
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
func (l *rtcLeg) change() {
	select {
	case l.changed <- struct{}{}:
	default: // it will look
	}
}

// offerTo hands run what a callback brings, unless the leg ends.
func offerTo[T any](l *rtcLeg, to chan<- T, v T) {
	select {
	case to <- v:
	case <-l.closing:
	}
}

// answer returns the answer with all addresses of ours.
func (l *rtcLeg) answer(ctx context.Context) (string, *handoff.Error) {
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

// abandon ends a leg whose run was never called.
func (l *rtcLeg) abandon() {
	l.end(nil)
	l.closePeer(func() {})
}

// Received implements [leg].
func (l *rtcLeg) Received() <-chan []byte { return l.received }

// Send implements [leg].
func (l *rtcLeg) Send(event []byte) bool {
	select {
	case <-l.closing:
		return false
	default:
	}
	if l.queued.Add(int64(len(event))) > sendBytes {
		l.end(handoff.Fault(handoff.CodeSlowClient, "", "bytes"))
		return false
	}
	select {
	case l.queue <- event:
		return true
	default:
		l.end(handoff.Fault(handoff.CodeSlowClient, "", "events"))
		return false
	}
}

// Seen implements [witness]. A client that sends neither sound nor events shows nothing of itself while it
// is connected.
func (l *rtcLeg) Seen() time.Time {
	if after := l.seen.Load(); after > 0 {
		return l.born.Add(time.Duration(after))
	}
	return time.Now()
}

// Probe implements [witness]. The end of a sound is told to the client, and it acknowledges that.
func (l *rtcLeg) Probe() {}

func (l *rtcLeg) sign() { l.seen.Store(int64(time.Since(l.born))) }

// performs implements [performer].
func (l *rtcLeg) performs() {}

// Ended implements [ender].
func (l *rtcLeg) Ended() *handoff.Error {
	select {
	case <-l.closing:
		return l.reason
	default:
		return nil
	}
}

// Close implements [leg]. Events sent before are still delivered, for closeGrace at most. Run must have
// been called.
func (l *rtcLeg) Close(reason *handoff.Error) {
	l.end(reason)
	<-l.done
}

// end begins the end of the leg; the first reason counts.
func (l *rtcLeg) end(reason *handoff.Error) {
	l.once.Do(func() {
		l.reason = reason
		close(l.closing)
	})
}

// run carries sound and events until the client has gone or Close was called. session is a session.update
// that the client gave with its offer, or nil.
func (l *rtcLeg) run(session []byte) {
	defer close(l.done)
	r := rtcRun{rtcLeg: l, player: newPlayer(), session: session}
	r.player.formats.asked = r.player.ids.Next()
	r.pass(formatsEvent(r.player.formats.asked))
	r.loop()
	l.end(nil)
	close(l.received)
	r.farewell()
	l.closePeer(r.readers.Wait)
	n := r.counts
	n.late, n.lost, n.unheard = r.hearing.late, r.hearing.lost, r.player.dropped
	l.counts.add(n)
	l.log.Debug("webrtc leg ended", zap.String("code", code(l.reason)), zap.Int("packets", n.heard), zap.Int("late", n.late), zap.Int("lost", n.lost),
		zap.Int("frames", n.played), zap.Int("unheard_bytes", n.unheard), zap.Int("shortened", n.shortened), zap.Int("undelivered", n.undelivered))
}

// closePeer ends pion's goroutines and then calls wait, all for peerGrace at most: where pion hangs it is
// left behind. It must not be called from a callback.
func (l *rtcLeg) closePeer(wait func()) {
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
