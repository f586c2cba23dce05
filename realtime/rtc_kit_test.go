package realtime

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
)

// impatient is a media configuration whose clients are given up on soon.
var impatient = MediaConfig{Connect: 5 * time.Second, Disconnected: 300 * time.Millisecond, Failed: 300 * time.Millisecond}

// A browser is a WebRTC client as a page makes it: no ICE servers, one microphone, one data channel.
type browser struct {
	t        *testing.T
	peer     *webrtc.PeerConnection
	channel  *webrtc.DataChannel
	mic      *webrtc.TrackLocalStaticRTP
	conn     net.PacketConn // under everything; closing it is pulling the plug
	open     chan struct{}  // the data channel is open
	over     chan struct{}  // the data channel is closed
	messages chan []byte
	packets  chan *rtp.Packet
}

// newBrowser makes one; label "" offers no data channel. Its end is part of the test's.
func newBrowser(t *testing.T, label string) *browser {
	t.Helper()
	b := &browser{t: t, open: make(chan struct{}), over: make(chan struct{}), messages: make(chan []byte, 4096), packets: make(chan *rtp.Packet, 4096)}
	var err error
	b.conn, err = net.ListenPacket("udp", "127.0.0.1:0")
	b.must(err)
	settings := webrtc.SettingEngine{LoggerFactory: pionLogs{zap.NewNop()}}
	mux := webrtc.NewICEUDPMux(settings.LoggerFactory.NewLogger("ice"), b.conn)
	settings.SetICEUDPMux(mux)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICETimeouts(time.Second, time.Second, 100*time.Millisecond)
	var engine webrtc.MediaEngine
	b.must(engine.RegisterDefaultCodecs())
	api := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(&engine), webrtc.WithInterceptorRegistry(&interceptor.Registry{}))
	b.peer, err = api.NewPeerConnection(webrtc.Configuration{})
	b.must(err)
	t.Cleanup(func() {
		_ = b.peer.GracefulClose()
		_ = mux.Close()
	})
	b.mic, err = webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000}, "mic", "stream")
	b.must(err)
	_, err = b.peer.AddTrack(b.mic)
	b.must(err)
	b.peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			p, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			b.packets <- p
		}
	})
	if label != "" {
		b.channel, err = b.peer.CreateDataChannel(label, nil)
		b.must(err)
		b.channel.OnOpen(func() { close(b.open) })
		b.channel.OnClose(sync.OnceFunc(func() { close(b.over) }))
		b.channel.OnMessage(func(m webrtc.DataChannelMessage) { b.messages <- m.Data })
	}
	return b
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// offer returns an offer as browsers post it: without candidates, and with small messages.
func (b *browser) offer() string {
	b.t.Helper()
	offer, err := b.peer.CreateOffer(nil)
	b.must(err)
	b.must(b.peer.SetLocalDescription(offer))
	return strings.Replace(offer.SDP, "a=max-message-size:1073741823", "a=max-message-size:262144", 1)
}

func (b *browser) accept(answer string) {
	b.t.Helper()
	b.must(b.peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}))
}

// speak sends packets of sound, each of one byte value.
func (b *browser) speak(first byte, packets int) {
	b.t.Helper()
	for i := range packets {
		payload := make([]byte, frameBytes)
		for j := range payload {
			payload[j] = first + byte(i)
		}
		b.must(b.mic.WriteRTP(&rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: uint16(i), Timestamp: uint32(i * frameBytes)},
			Payload: payload,
		}))
	}
}

// take waits for something that must come.
func take[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("the end came before %s", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// gone waits for a channel to be closed, whatever comes before.
func gone[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case _, ok := <-c:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatalf("%s did not end", what)
		}
	}
}

// event waits for an event of a type, over others.
func event(t *testing.T, from <-chan []byte, kind string) gjson.Result {
	t.Helper()
	for {
		if r := gjson.ParseBytes(take(t, from, kind)); r.Get("type").String() == kind {
			return r
		}
	}
}

// lone is a leg without a call, and its browser.
type lone struct {
	*browser
	leg *rtcLeg
}

// newLone connects a browser to a leg, unless dark: then the answer does not reach it.
func newLone(t *testing.T, config MediaConfig, label string, dark bool) lone {
	t.Helper()
	noLeaks(t)
	m, err := newMedia(config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	b := newBrowser(t, label)
	offer := b.offer()
	channel, fault := checkOffer(offer)
	if fault != nil || channel != (label != "") {
		t.Fatalf("%v, channel %t", fault, channel)
	}
	leg, fault := m.newRTCLeg(offer, channel, zap.NewNop())
	if fault != nil {
		t.Fatal(fault)
	}
	leg.settle = 0 // there is no model to say anything
	answer, fault := leg.answer(context.Background())
	if fault != nil {
		t.Fatal(fault)
	}
	go leg.run(nil)
	t.Cleanup(func() { leg.Close(nil) })
	if !dark {
		b.accept(answer)
	}
	return lone{b, leg}
}
