// Package rtctest is a browser for tests: a WebRTC client as a page makes it, without a page; and a listener without a
// network.
//
// It must not know the leg that it talks to.
package rtctest

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// Label names the data channel that carries events.
const Label = "oai-events"

// FrameBytes is the sound in one packet of a browser: 20 ms of µ-law or G.722.
const FrameBytes = 160

// A Browser is a WebRTC client: no ICE servers, one microphone, one data channel.
type Browser struct {
	Messages chan []byte      // events that came on the data channel
	Packets  chan *rtp.Packet // packets of sound that came
	Open     chan struct{}    // closed when the data channel is open
	Over     chan struct{}    // closed when it is closed

	t       testing.TB
	peer    *webrtc.PeerConnection
	channel *webrtc.DataChannel
	mic     *webrtc.TrackLocalStaticRTP
	conn    *lossy // below the connection
	stray   byte   // payload type of the packets that it sends, in place of the agreed one; 0: the agreed one
}

// New makes a browser that speaks µ-law and not G.722; label "" offers no data channel. It ends with the test.
func New(t testing.TB, label string) *Browser {
	t.Helper()
	return newBrowser(t, label, webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000}, PayloadType: 0,
	})
}

// NewWide makes a browser that speaks G.722 and not µ-law.
func NewWide(t testing.TB, label string) *Browser {
	t.Helper()
	return newBrowser(t, label, g722)
}

// NewOpus makes a browser that speaks Opus and hears G.722, as browsers like it best.
func NewOpus(t testing.TB, label string) *Browser {
	t.Helper()
	b := newBrowser(t, label, g722)
	mic, err := webrtc.NewTrackLocalStaticRTP(opus.RTPCodecCapability, "mic", "stream")
	b.must(err)
	b.must(b.peer.GetSenders()[0].ReplaceTrack(mic))
	b.mic = mic
	return b
}

var (
	g722 = webrtc.RTPCodecParameters{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeG722,
		ClockRate: 8000}, PayloadType: 9}
	opus = webrtc.RTPCodecParameters{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus,
		ClockRate: 48000, Channels: 2}, PayloadType: 111}
)

func newBrowser(t testing.TB, label string, codec webrtc.RTPCodecParameters) *Browser {
	t.Helper()
	b := &Browser{t: t, Open: make(chan struct{}), Over: make(chan struct{}), Messages: make(chan []byte, 4096),
		Packets: make(chan *rtp.Packet, 4096)}
	b.connect(codec)
	_, err := b.peer.AddTrack(b.mic)
	b.must(err)
	b.peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			p, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			b.Packets <- p
		}
	})
	if label != "" {
		b.channel, err = b.peer.CreateDataChannel(label, nil)
		b.must(err)
		b.channel.OnOpen(func() { close(b.Open) })
		b.channel.OnClose(sync.OnceFunc(func() { close(b.Over) }))
		b.channel.OnMessage(func(m webrtc.DataChannelMessage) { b.Messages <- m.Data })
	}
	return b
}

func (b *Browser) connect(codec webrtc.RTPCodecParameters) {
	b.t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	b.must(err)
	b.conn = &lossy{PacketConn: conn}
	logs := &logging.DefaultLoggerFactory{Writer: new(bytes.Buffer), DefaultLogLevel: logging.LogLevelDisabled}
	settings := webrtc.SettingEngine{LoggerFactory: logs}
	mux := webrtc.NewICEUDPMux(logs.NewLogger("ice"), b.conn)
	settings.SetICEUDPMux(mux)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICETimeouts(Patience, Patience, 100*time.Millisecond)
	var engine webrtc.MediaEngine
	b.must(engine.RegisterCodec(codec, webrtc.RTPCodecTypeAudio))
	b.must(engine.RegisterCodec(opus, webrtc.RTPCodecTypeAudio)) // browsers offer it, too
	var under interceptor.Registry
	under.Add(strays{b: b})
	api := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(&engine),
		webrtc.WithInterceptorRegistry(&under))
	b.peer, err = api.NewPeerConnection(webrtc.Configuration{})
	b.must(err)
	b.t.Cleanup(func() {
		_ = b.peer.GracefulClose()
		_ = mux.Close()
	})
	b.mic, err = webrtc.NewTrackLocalStaticRTP(codec.RTPCodecCapability, "mic", "stream")
	b.must(err)
}

func (b *Browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// Offer returns an offer as browsers post it: without candidates, and with small messages.
func (b *Browser) Offer() string {
	b.t.Helper()
	offer, err := b.peer.CreateOffer(nil)
	b.must(err)
	b.must(b.peer.SetLocalDescription(offer))
	return strings.Replace(offer.SDP, "a=max-message-size:1073741823", "a=max-message-size:262144", 1)
}

// Reoffer returns an offer that restarts ICE, as a browser makes it whose network has changed.
func (b *Browser) Reoffer() string {
	b.t.Helper()
	offer, err := b.peer.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
	b.must(err)
	b.must(b.peer.SetLocalDescription(offer))
	return offer.SDP
}

// Report waits for a receiver report, and returns how many packets it says were lost.
func (b *Browser) Report() uint32 {
	b.t.Helper()
	sender := b.peer.GetSenders()[0]
	b.must(sender.SetReadDeadline(time.Now().Add(Patience)))
	for {
		packets, _, err := sender.ReadRTCP()
		b.must(err)
		for _, p := range packets {
			if r, ok := p.(*rtcp.ReceiverReport); ok && len(r.Reports) > 0 {
				return r.Reports[0].TotalLost
			}
		}
	}
}

// Accept takes the answer, and connects.
func (b *Browser) Accept(answer string) {
	b.t.Helper()
	b.must(b.peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}))
}

// Speak sends packets of sound. All bytes of a packet are the same: first, and one more with each packet.
func (b *Browser) Speak(first byte, packets int) {
	b.t.Helper()
	for i := range packets {
		b.must(b.mic.WriteRTP(&rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: uint16(i), Timestamp: uint32(i * FrameBytes)},
			Payload: bytes.Repeat([]byte{first + byte(i)}, FrameBytes),
		}))
	}
}

// Say sends sound in packets of one frame.
func (b *Browser) Say(sound []byte) {
	b.t.Helper()
	for i := 0; (i+1)*FrameBytes <= len(sound); i++ {
		b.must(b.mic.WriteRTP(&rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: uint16(i), Timestamp: uint32(i * FrameBytes)},
			Payload: sound[i*FrameBytes : (i+1)*FrameBytes],
		}))
	}
}

// SayOpus sends packets of Opus, of 20 ms each; nil packets are not sent, as if lost.
func (b *Browser) SayOpus(packets [][]byte) {
	b.t.Helper()
	for i, p := range packets {
		if p == nil {
			continue
		}
		b.must(b.mic.WriteRTP(&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: uint16(i),
			Timestamp: uint32(i * 960)}, Payload: p}))
	}
}

// SayStray sends a packet of a payload type that was not agreed on.
func (b *Browser) SayStray(sequence uint16, payloadType byte) {
	b.t.Helper()
	b.stray = payloadType
	b.must(b.mic.WriteRTP(&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: sequence}, Payload: []byte{1}}))
	b.stray = 0
}

// strays overrides the payload type of packets.
type strays struct {
	interceptor.NoOp
	b *Browser
}

// NewInterceptor implements [interceptor.Factory].
func (s strays) NewInterceptor(string) (interceptor.Interceptor, error) { return &s, nil }

// BindLocalStream implements [interceptor.Interceptor].
func (s *strays) BindLocalStream(_ *interceptor.StreamInfo, next interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if s.b.stray != 0 {
			h.PayloadType = s.b.stray
		}
		return next.Write(h, payload, a)
	})
}

// Send puts an event on the data channel, which must be open.
func (b *Browser) Send(event string) {
	b.t.Helper()
	b.must(b.channel.SendText(event))
}

// Knock opens another data channel, sends an event on it, and returns a channel that is closed when the data channel
// is.
func (b *Browser) Knock(label, event string) <-chan struct{} {
	b.t.Helper()
	other, err := b.peer.CreateDataChannel(label, nil)
	b.must(err)
	closed := make(chan struct{})
	other.OnOpen(func() { _ = other.SendText(event) })
	other.OnClose(func() { close(closed) })
	return closed
}

// HangUp ends the connection as a page does that is closed.
func (b *Browser) HangUp() { b.must(b.peer.GracefulClose()) }

// CloseChannel closes the data channel alone.
func (b *Browser) CloseChannel() { b.must(b.channel.Close()) }

// Unplug takes the network away without a goodbye.
func (b *Browser) Unplug() { b.must(b.conn.Close()) }

// Loses begins or ends a time in which the network loses all packets of DTLS: events of both sides, and the news that a
// connection is closed. ICE still works, so both sides still see each other.
func (b *Browser) Loses(on bool) { b.conn.loses.Store(on) }

// A lossy connection loses the packets of DTLS (RFC 7983: their first byte is from 20 to 63) while loses is set.
type lossy struct {
	net.PacketConn // Set once
	loses          atomic.Bool
}

func (l *lossy) lost(packet []byte) bool {
	return l.loses.Load() && len(packet) > 0 && packet[0] >= 20 && packet[0] <= 63
}

func (l *lossy) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	for {
		if n, from, err = l.PacketConn.ReadFrom(p); err != nil || !l.lost(p[:n]) {
			return n, from, err
		}
	}
}

func (l *lossy) WriteTo(p []byte, to net.Addr) (int, error) {
	if l.lost(p) {
		return len(p), nil
	}
	return l.PacketConn.WriteTo(p, to)
}
