package rtc

import (
	"cmp"
	"slices"
	"time"
)

const (
	frameTime  = 20 * time.Millisecond
	frameTicks = frameBytes // of the RTP clock: 8 kHz
	// maxBurst bounds the frames that are sent at once after a delay of ours; further ones are sent later, as a browser
	// would drop them.
	maxBurst = 5
)

// A stream decides when frames are sent to the browser, and numbers them. It is pure. Between stretches of sound
// nothing is sent, but the RTP clock goes on.
type stream struct {
	origin       time.Time // of the RTP clock
	stretchBegan time.Time // when the first frame of this stretch was due; zero between stretches
	sent         int       // frames sent in this stretch
	sequence     uint16    // of the next packet
	timestamp    uint32    // of the next packet
}

// A stamp is the varying part of a packet's header.
type stamp struct {
	sequence  uint16
	timestamp uint32
	marker    bool // the first packet after silence
}

// due returns how many frames may be sent now. It begins a stretch if there is none.
func (s *stream) due(now time.Time) int {
	if s.stretchBegan.IsZero() {
		s.stretchBegan, s.sent = now, 0
		if s.origin.IsZero() {
			s.origin = now
		}
		at := uint32(now.Sub(s.origin)/frameTime) * frameTicks // it wraps after 149 hours, as it should
		if int32(at-s.timestamp) > 0 {
			s.timestamp = at
		}
	}
	n := int(now.Sub(s.stretchBegan)/frameTime) + 1 - s.sent
	if late := n - maxBurst; late > 0 {
		s.stretchBegan = s.stretchBegan.Add(time.Duration(late) * frameTime)
		n = maxBurst
	}
	return n
}

// take numbers the next frame of the stretch.
func (s *stream) take() stamp {
	st := stamp{sequence: s.sequence, timestamp: s.timestamp, marker: s.sent == 0}
	s.sequence++
	s.timestamp += frameTicks
	s.sent++
	return st
}

// rest ends the stretch.
func (s *stream) rest() { s.stretchBegan = time.Time{} }

const (
	// appendBytes is the sound in one append: 40 ms, so that there are half as many events as packets.
	appendBytes = 2 * frameBytes
	// maxGap bounds the silence inserted for sound that was not sent or was lost, in bytes: 600 ms. That is longer than
	// the silence by which a model notices the end of a sentence (500 ms), so a longer pause separates two sentences.
	// It is also longer than a client that leaves silence out pauses between packets (400 ms: RFC 6716, section 2.1.9).
	maxGap = 600 * bytesPerMS
	// pauseTime is after how long without packets a client counts as having stopped sending; then as much silence is
	// inserted. It is longer than the pauses of a client that leaves silence out. maxPauses of them, nine seconds, end
	// a turn with any detection of a model: the most patient waits eight seconds (semantic_vad of low eagerness).
	pauseTime = maxGap / bytesPerMS * time.Millisecond
	maxPauses = 15
	// maxLate is how far a packet's number may be behind (then it is late) or ahead (then others are missing). If it is
	// farther away, the browser has begun new numbers.
	maxLate = 64
	// minWait and maxWait bound how much later sound may have come before a missing packet is given up: 20 to 200 ms,
	// in ticks. firstWait is the first value. After every calmAfter packets in order, it is reduced by stepDown.
	minWait, firstWait, maxWait = 20 * bytesPerMS, 60 * bytesPerMS, 200 * bytesPerMS
	calmAfter                   = 50
	stepDown                    = 5 * bytesPerMS
	// fadeBytes is for how long lost sound is replaced by the sound before it, fading out: 60 ms.
	fadeBytes = 60 * bytesPerMS
	// maxEarlySound bounds the sound that waits for the model's formats, in bytes. The oldest is dropped.
	maxEarlySound = 3000 * bytesPerMS
)

// A waitingTime is how long the buffer waits for a missing packet. It adapts to the network: after a packet that was
// late, or just in time, it is as long as that delay and one packet more; while packets come in order it shrinks. It is
// pure.
type waitingTime struct {
	ticks   int      // 0: firstWait
	calm    int      // packets in order since ticks was changed
	givenUp []uint16 // newest packets given up: tells late ones from duplicates
}

// now returns the waiting time in ticks.
func (w *waitingTime) now() int { return cmp.Or(w.ticks, firstWait) }

// inOrder notes that a packet came when it was expected.
func (w *waitingTime) inOrder() {
	if w.calm++; w.calm >= calmAfter {
		w.calm, w.ticks = 0, max(minWait, w.now()-stepDown)
	}
}

// cameLate notes that a packet came so many ticks after later ones.
func (w *waitingTime) cameLate(ticks int) {
	w.calm, w.ticks = 0, max(w.now(), min(maxWait, ticks+frameTicks))
}

// giveUp notes that the packets from up to (without) to are not waited for any more.
func (w *waitingTime) giveUp(from, to uint16) {
	for n := from; n != to; n++ {
		w.givenUp = append(w.givenUp, n)
	}
	w.givenUp = w.givenUp[max(0, len(w.givenUp)-maxLate):]
}

// wasGivenUp reports whether a packet was given up, and forgets that.
func (w *waitingTime) wasGivenUp(sequence uint16) bool {
	i := slices.Index(w.givenUp, sequence)
	if i >= 0 {
		w.givenUp = slices.Delete(w.givenUp, i, i+1)
	}
	return i >= 0
}

// A reorderBuffer is the jitter buffer for the browser's packets: it puts them in order. It is pure. The time at which
// packets come does not matter, since the model's clock is the amount of sound; so only packets after a missing one are
// held back. Lost sound is concealed with the sound before it, fading out, and a pause becomes silence.
type reorderBuffer struct {
	line      line     // Set once
	decoder   *decoder // Set once: decodes packets to PCM; nil: their bytes are the line's sound
	begun     bool
	sequence  uint16  // expected next
	timestamp uint32  // expected next
	waiting   []heard // packets after a missing one, in order
	wait      waitingTime
	audio     []byte // in order, not taken yet
	newest    []byte // the sound of the last packet in order
	late      int    // packets dropped
	lost      int    // packets concealed
}

// heard is a packet of the client's sound.
type heard struct {
	sequence  uint16
	timestamp uint32
	audio     []byte
	opus      bool
}

// add adds a packet.
func (h *reorderBuffer) add(p heard) {
	ahead := int16(p.sequence - h.sequence)
	switch {
	case h.begun && ahead < 0 && ahead > -maxLate:
		if h.late++; h.wait.wasGivenUp(p.sequence) {
			h.wait.cameLate(h.span(p.timestamp))
		}
		return
	case !h.begun || ahead == 0:
		if len(h.waiting) > 0 {
			h.wait.cameLate(h.span(p.timestamp))
		} else {
			h.wait.inOrder()
		}
		h.accept(p)
	case ahead > 0 && ahead < maxLate:
		order := func(a, b heard) int { return int(int16(a.sequence - b.sequence)) }
		at, twice := slices.BinarySearchFunc(h.waiting, p, order)
		if twice {
			h.late++
			return
		}
		h.waiting = slices.Insert(h.waiting, at, p)
		for len(h.waiting) > 0 && h.span(h.timestamp) >= h.wait.now() {
			h.giveUp()
		}
	default: // the browser has begun new numbers
		h.flush()
		h.timestamp = p.timestamp
		h.accept(p)
	}
	for len(h.waiting) > 0 && h.waiting[0].sequence == h.sequence {
		h.giveUp()
	}
}

// span returns how much later than a timestamp the newest sound is, in ticks.
func (h *reorderBuffer) span(timestamp uint32) int {
	newest := h.timestamp - frameTicks
	if n := len(h.waiting); n > 0 {
		newest = h.waiting[n-1].timestamp
	}
	return int(int32(newest - timestamp))
}

// giveUp accepts the first waiting packet, and gives up the missing ones before it.
func (h *reorderBuffer) giveUp() {
	p := h.waiting[0]
	h.waiting = h.waiting[1:]
	h.accept(p)
}

// flush accepts all waiting packets.
func (h *reorderBuffer) flush() {
	for len(h.waiting) > 0 {
		h.giveUp()
	}
}

// pause adds maxGap of silence. It also moves the expected timestamp on, so that the silence is not added again before
// the next packet.
func (h *reorderBuffer) pause() {
	h.flush()
	h.fill(maxGap, false)
	h.timestamp += maxGap
}

// accept adds the sound of a packet as the next in order, after what stands for a gap before it.
func (h *reorderBuffer) accept(p heard) {
	if gap := int32(p.timestamp - h.timestamp); h.begun && gap > 0 {
		missed := int(p.sequence - h.sequence)
		h.lost += missed
		h.wait.giveUp(h.sequence, p.sequence)
		h.fill(int(min(gap, maxGap)), missed > 0)
	}
	sound, ticks := p.audio, len(p.audio)
	if h.decoder != nil {
		sound = h.decoder.decode(p.audio, p.opus)
		ticks = len(sound) / tickBytes
	}
	h.begun, h.sequence, h.timestamp = true, p.sequence+1, p.timestamp+uint32(ticks)
	h.audio = append(h.audio, sound...)
	h.newest = append(h.newest[:0], sound...)
}

// fill adds n ticks in place of sound that did not come: silence, or first the newest sound, fading out (conceal).
func (h *reorderBuffer) fill(n int, conceal bool) {
	if h.decoder != nil {
		newest := h.newest
		if !conceal {
			newest = nil
		}
		h.audio = fillPCM(h.audio, n, newest)
		return
	}
	var quiet [frameBytes]byte
	h.line.silence(quiet[:])
	for i := range n {
		b := quiet[i%len(quiet)]
		if conceal && i < fadeBytes && len(h.newest) > 0 {
			b = h.line.conceal(h.newest[i%len(h.newest)], i)
		}
		h.audio = append(h.audio, b)
	}
}

// tick returns how many bytes of audio a tick has.
func (h *reorderBuffer) tick() int {
	if h.decoder != nil {
		return tickBytes
	}
	return 1
}

// take returns and removes the sound so far, or nil if it is less than least ticks.
func (h *reorderBuffer) take(least int) []byte {
	if len(h.audio) < least*h.tick() || len(h.audio) == 0 {
		return nil
	}
	sound := h.audio
	h.audio = nil
	return sound
}

// trim drops the oldest sound beyond a length in ticks.
func (h *reorderBuffer) trim(most int) {
	if n := len(h.audio) - most*h.tick(); n > 0 {
		h.audio = append(h.audio[:0], h.audio[n:]...)
	}
}
