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

// Other limits of an offer, held before it is parsed: a parser's time grows with it.
const (
	maxMedia      = 8
	maxCandidates = 64
	maxSDPLine    = 4 << 10
)

// An Offer is what a client posts to begin a call.
type Offer struct {
	SDP     string // at most [MaxSDP] bytes
	Session []byte // a session.update that it came with, or nil

	line    line // the best of ours that it can speak
	opus    byte // the payload type of its Opus, which it speaks beside the wide line; 0: it does not
	channel bool // a data channel is offered
	fits    int  // bytes of the largest message that the client takes
}

// Check refuses what is not an offer of sound that we can speak. Errors have code [handoff.CodeMalformed] or
// [handoff.CodeTooLarge].
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

// The lines in an offer: by the payload type that RFC 3551 gives them, and as a=rtpmap names them.
var (
	payloads  = [2]string{narrow: "0", wide: "9"}
	encodings = [2]string{narrow: " PCMU/8000", wide: " G722/8000"}
)

// opusType matches the payload type of Opus (RFC 7587, section 7).
var opusType = regexp.MustCompile(`(?im)^a=rtpmap:([0-9]{1,3}) opus/48000/2\r?$`)

// opusOf returns the payload type of Opus in an offer, one of the dynamic ones; 0: it has none.
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

// What a client takes in one message (RFC 8841, section 6): without a word of it 64 KiB, and 0 is any size.
const (
	standardMessage = 64 << 10
	largestMessage  = 256 << 10
)

// maxMessageOf returns the bytes of the largest message for a client: what its offer says, at most
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

// smallestMessage is room for any event without its words. A client that takes less gets none.
const smallestMessage = 1 << 10
