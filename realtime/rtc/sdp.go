package rtc

import (
	"fmt"
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

	channel bool // a data channel is offered
	fits    int  // bytes of the largest message that the client takes
}

// Check refuses what is not an offer of telephone audio. Errors have code [handoff.CodeMalformed] or
// [handoff.CodeTooLarge].
func (o *Offer) Check() (fault *handoff.Error) {
	if o.channel, fault = checkOffer(o.SDP); fault == nil {
		o.fits = maxMessageOf(o.SDP)
	}
	return fault
}

// checkOffer returns whether a data channel is offered.
func checkOffer(sdp string) (channel bool, fault *handoff.Error) {
	if len(sdp) > MaxSDP {
		return false, handoff.Fault(handoff.CodeTooLarge, "the offer", fmt.Sprintf("at most %d bytes", MaxSDP))
	}
	if !strings.HasPrefix(sdp, "v=0\r\n") && !strings.HasPrefix(sdp, "v=0\n") {
		return false, handoff.Fault(handoff.CodeMalformed, "the offer is not SDP", "it does not begin with v=0")
	}
	media, candidates := 0, 0
	audio, speaks, inAudio := false, false, false
	for line := range strings.Lines(sdp) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case len(line) > maxSDPLine:
			return false, handoff.Fault(handoff.CodeTooLarge, "a line of the offer", fmt.Sprintf("at most %d bytes", maxSDPLine))
		case strings.HasPrefix(line, "m="):
			media++
			inAudio = strings.HasPrefix(line, "m=audio ")
			audio = audio || inAudio
			channel = channel || strings.HasPrefix(line, "m=application ")
			speaks = speaks || inAudio && hasPCMU(line)
		case strings.HasPrefix(line, "a=rtpmap:"):
			speaks = speaks || inAudio && strings.HasSuffix(strings.ToUpper(line), " PCMU/8000")
		case strings.HasPrefix(line, "a=candidate:"):
			candidates++
		}
	}
	switch {
	case media > maxMedia:
		return false, handoff.Fault(handoff.CodeTooLarge, "the offer", fmt.Sprintf("%d media, at most %d", media, maxMedia))
	case candidates > maxCandidates:
		return false, handoff.Fault(handoff.CodeTooLarge, "the offer", fmt.Sprintf("%d candidates, at most %d", candidates, maxCandidates))
	case !audio:
		return false, handoff.Fault(handoff.CodeMalformed, "the offer has no audio", "there is no m=audio line")
	case !speaks:
		return false, handoff.Fault(handoff.CodeMalformed, "the offer has no audio that I can speak", "PCMU (G.711 µ-law) is needed")
	}
	return channel, nil
}

// hasPCMU tells whether an m=audio line lists payload type 0, which is PCMU (RFC 3551).
func hasPCMU(line string) bool {
	fields := strings.Fields(line)
	for i, f := range fields {
		if i >= 3 && f == "0" {
			return true
		}
	}
	return false
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
