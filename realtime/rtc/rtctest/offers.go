package rtctest

import (
	"strings"

	"switchboard/handoff"
)

// GoodOffer is an offer of telephone audio and a data channel, with no client behind it.
const GoodOffer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111 0 8\r\nc=IN IP4 0.0.0." +
	"0\r\na=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\na=setup:actpass\r\n" +
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " +
	"00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n" +
	"a=rtpmap:111 opus/48000/2\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\n" +
	"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 " +
	"0.0.0.0\r\na=mid:1\r\na=setup:actpass\r\na=sctp-port:5000\r\n" +
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"

// An Offer is an offer that must be accepted or refused.
type Offer struct {
	Name, SDP string
	Code      handoff.Code // of its refusal; "": it is accepted
	Reason    string       // part of the refusal's message
}

// Offers returns offers, good and bad.
func Offers() []Offer {
	return []Offer{
		{"good", GoodOffer, "", ""},
		{"bare newlines", strings.ReplaceAll(GoodOffer, "\r\n", "\n"), "", ""},
		{"PCMU under another number",
			strings.NewReplacer("111 0 8", "111 96", "rtpmap:0 PCMU", "rtpmap:96 pcmu").Replace(GoodOffer), "", ""},
		{"only G.722",
			strings.NewReplacer("111 0 8", "111 9", "rtpmap:0 PCMU/8000", "rtpmap:9 G722/8000").Replace(GoodOffer), "", ""},
		{"empty", "", handoff.CodeMalformed, "not SDP"},
		{"words", "hello", handoff.CodeMalformed, "not SDP"},
		{"JSON", `{"type":"offer","sdp":"v=0"}`, handoff.CodeMalformed, "not SDP"},
		{"only a version", "v=0\r\n", handoff.CodeMalformed, "no audio"},
		{"only data", "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", handoff.CodeMalformed, "no audio"},
		{"only video", "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=rtpmap:0 PCMU/8000\r\n", handoff.CodeMalformed,
			"no audio"},
		{"only Opus", strings.NewReplacer("111 0 8", "111", "a=rtpmap:0 PCMU/8000\r\n", "").Replace(GoodOffer),
			handoff.CodeMalformed, "G722 or PCMU"},
		{"port 0 is no format", "v=0\r\nm=audio 0 0 111\r\n", handoff.CodeMalformed, "that I can speak"},
		{"many media", GoodOffer + strings.Repeat("m=video 9 UDP/TLS/RTP/SAVPF 96\r\n", 7), handoff.CodeTooLarge,
			"the offer"},
		{"many candidates", GoodOffer + strings.Repeat("a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n", 65),
			handoff.CodeTooLarge, "the offer"},
		{"a long line", GoodOffer + "a=" + strings.Repeat("x", 4<<10) + "\r\n", handoff.CodeTooLarge, "a line"},
		{"huge", GoodOffer + strings.Repeat("a=x\r\n", 13<<10), handoff.CodeTooLarge, "the offer"},
	}
}
