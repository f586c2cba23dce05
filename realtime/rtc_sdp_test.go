package realtime

import (
	"strings"
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
)

const goodOffer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111 0 8\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\na=setup:actpass\r\n" +
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n" +
	"a=rtpmap:111 opus/48000/2\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n" +
	"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=setup:actpass\r\na=sctp-port:5000\r\n" +
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"

// offers that the gate must judge, with the code and a word of the reason.
var offers = []struct {
	name, sdp string
	code      handoff.Code
	reason    string
}{
	{"good", goodOffer, "", ""},
	{"bare newlines", strings.ReplaceAll(goodOffer, "\r\n", "\n"), "", ""},
	{"PCMU under another number", strings.NewReplacer("111 0 8", "111 96", "rtpmap:0 PCMU", "rtpmap:96 pcmu").Replace(goodOffer), "", ""},
	{"empty", "", handoff.CodeMalformed, "not SDP"},
	{"words", "hello", handoff.CodeMalformed, "not SDP"},
	{"JSON", `{"type":"offer","sdp":"v=0"}`, handoff.CodeMalformed, "not SDP"},
	{"only a version", "v=0\r\n", handoff.CodeMalformed, "no audio"},
	{"only data", "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", handoff.CodeMalformed, "no audio"},
	{"only video", "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=rtpmap:0 PCMU/8000\r\n", handoff.CodeMalformed, "no audio"},
	{"only Opus", strings.NewReplacer("111 0 8", "111", "a=rtpmap:0 PCMU/8000\r\n", "").Replace(goodOffer), handoff.CodeMalformed, "that I can speak"},
	{"port 0 is no format", "v=0\r\nm=audio 0 0 111\r\n", handoff.CodeMalformed, "that I can speak"},
	{"many media", goodOffer + strings.Repeat("m=video 9 UDP/TLS/RTP/SAVPF 96\r\n", 7), handoff.CodeTooLarge, "the offer"},
	{"many candidates", goodOffer + strings.Repeat("a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n", 65), handoff.CodeTooLarge, "the offer"},
	{"a long line", goodOffer + "a=" + strings.Repeat("x", maxSDPLine) + "\r\n", handoff.CodeTooLarge, "a line"},
	{"huge", goodOffer + strings.Repeat("a=x\r\n", maxSDP/5), handoff.CodeTooLarge, "the offer"},
}

func TestOffers(t *testing.T) {
	for _, tc := range offers {
		channel, fault := checkOffer(tc.sdp)
		switch {
		case tc.code == "" && (fault != nil || !channel):
			t.Errorf("%s: %v, channel %t", tc.name, fault, channel)
		case tc.code != "" && (fault == nil || fault.Code != tc.code || !strings.Contains(fault.Subject, tc.reason)):
			t.Errorf("%s: %v", tc.name, fault)
		}
	}
}

// FuzzOffer holds that no offer makes the gate or what is behind it panic, and that its errors can be told.
func FuzzOffer(f *testing.F) {
	for _, tc := range offers {
		f.Add(tc.sdp)
	}
	m, err := newMedia(MediaConfig{}, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	if err := m.start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(m.Close)
	f.Fuzz(func(t *testing.T, sdp string) {
		channel, fault := checkOffer(sdp)
		if fault == nil {
			var l *rtcLeg
			if l, fault = m.newRTCLeg(sdp, channel, zap.NewNop()); fault == nil {
				_, fault = l.answer(t.Context())
				l.abandon()
			}
		}
		if fault != nil && fault.Code != handoff.CodeMalformed && fault.Code != handoff.CodeTooLarge {
			t.Errorf("%v", fault)
		}
	})
}
