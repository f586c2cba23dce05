package rtc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// MaxSDP bounds an offer, in bytes.
const MaxSDP = 64 << 10

// Other limits of an offer, checked before it is parsed: parsing takes longer the larger it is.
const (
	maxMedia      = 8
	maxCandidates = 64
	maxSDPLine    = 4 << 10
)

// An Offer is what a client posts to begin a call.
type Offer struct {
	SDP     string // at most [MaxSDP] bytes
	Session []byte // the session.update for the session that came with it, or nil

	line    line // the best line that it offers
	opus    byte // the payload type of Opus, if it is offered beside the wide line; 0: it is not
	channel bool // a data channel is offered
	fits    int  // size of the largest message that the client takes, in bytes
}

// Check checks that an offer has a line that we support, and reads what else the leg needs. Errors have code
// [handoff.CodeMalformed] or [handoff.CodeTooLarge].
func (o *Offer) Check() (fault *handoff.Error) {
	if o.line, o.channel, fault = checkOffer(o.SDP); fault == nil {
		o.fits = maxMessageOf(o.SDP)
		if o.line == wide {
			o.opus = opusOf(o.SDP)
		}
	}
	return fault
}

// checkOffer returns the best line that is offered, and whether a data channel is.
func checkOffer(sdp string) (best line, channel bool, fault *handoff.Error) {
	if len(sdp) > MaxSDP {
		return narrow, false, handoff.Fault(handoff.CodeTooLarge, "the offer", fmt.Sprintf("at most %d bytes", MaxSDP))
	}
	if !strings.HasPrefix(sdp, "v=0\r\n") && !strings.HasPrefix(sdp, "v=0\n") {
		return narrow, false, handoff.Fault(handoff.CodeMalformed, "the offer is not SDP", "it does not begin with v=0")
	}
	media, candidates := 0, 0
	audio, inAudio, speaks := false, false, [2]bool{}
	for text := range strings.Lines(sdp) {
		text = strings.TrimRight(text, "\r\n")
		switch {
		case len(text) > maxSDPLine:
			return narrow, false,
				handoff.Fault(handoff.CodeTooLarge, "a line of the offer", fmt.Sprintf("at most %d bytes", maxSDPLine))
		case strings.HasPrefix(text, "m="):
			media++
			inAudio = strings.HasPrefix(text, "m=audio ")
			audio = audio || inAudio
			channel = channel || strings.HasPrefix(text, "m=application ")
			for l := range speaks {
				speaks[l] = speaks[l] || inAudio && hasType(text, payloads[l])
			}
		case strings.HasPrefix(text, "a=rtpmap:"):
			for l := range speaks {
				speaks[l] = speaks[l] || inAudio && strings.HasSuffix(strings.ToUpper(text), encodings[l])
			}
		case strings.HasPrefix(text, "a=candidate:"):
			candidates++
		}
	}
	switch {
	case media > maxMedia:
		return narrow, false,
			handoff.Fault(handoff.CodeTooLarge, "the offer", fmt.Sprintf("%d media, at most %d", media, maxMedia))
	case candidates > maxCandidates:
		return narrow, false, handoff.Fault(handoff.CodeTooLarge, "the offer",
			fmt.Sprintf("%d candidates, at most %d", candidates, maxCandidates))
	case !audio:
		return narrow, false, handoff.Fault(handoff.CodeMalformed, "the offer has no audio", "there is no m=audio line")
	case speaks[wide]:
		return wide, channel, nil
	case speaks[narrow]:
		return narrow, channel, nil
	}
	return narrow, false, handoff.Fault(handoff.CodeMalformed,
		"the offer has no audio that I can speak: it needs G722 or PCMU (G.711 µ-law)", "")
}

// How an offer names the lines: by the payload type of RFC 3551, or in a=rtpmap.
var (
	payloads  = [2]string{narrow: "0", wide: "9"}
	encodings = [2]string{narrow: " PCMU/8000", wide: " G722/8000"}
)

// opusType matches the payload type of Opus (RFC 7587, section 7).
var opusType = regexp.MustCompile(`(?im)^a=rtpmap:([0-9]{1,3}) opus/48000/2\r?$`)

// opusOf returns the dynamic payload type of Opus in an offer; 0: it has none.
func opusOf(sdp string) byte {
	found := opusType.FindStringSubmatch(sdp)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseUint(found[1], 10, 7)
	if err != nil || n < 96 {
		return 0
	}
	return byte(n)
}

// hasType reports whether an m= line lists a payload type.
func hasType(media, payload string) bool {
	fields := strings.Fields(media)
	return len(fields) > 3 && slices.Contains(fields[3:], payload)
}

// Largest messages of a client (RFC 8841, section 6): 64 KiB if it does not say; 0 means any size.
const (
	standardMessage = 64 << 10
	largestMessage  = 256 << 10
)

// maxMessageOf returns the size of the largest message for a client, in bytes: what its offer says, but at most
// largestMessage, which all browsers take.
func maxMessageOf(sdp string) int {
	for line := range strings.Lines(sdp) {
		if size, ok := strings.CutPrefix(strings.TrimSpace(line), "a=max-message-size:"); ok {
			n, err := strconv.ParseUint(size, 10, 63)
			if err != nil {
				return standardMessage
			}
			if n == 0 || n > largestMessage {
				return largestMessage
			}
			return max(int(n), smallestMessage)
		}
	}
	return standardMessage
}

// smallestMessage is large enough for any event without its texts. A client that takes less gets no events.
const smallestMessage = 1 << 10
