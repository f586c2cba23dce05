package rtc

import (
	"cmp"
	"slices"
	"time"
)

const (
	frameTime  = 20 * time.Millisecond
	frameTicks = frameBytes // of the RTP clock: 8 kHz
	// maxBurst bounds the frames that are sent at once after a delay of ours; what is beyond it is moved
	// to later, for a browser would drop it.
	maxBurst = 5
)

// A stream paces and numbers the frames to the browser. It is pure. Between stretches of sound it sends
// nothing; the clock of the numbers goes on.
type stream struct {
	origin    time.Time // of the RTP clock
	begun     time.Time // when the first frame of this stretch was due; zero between stretches
	sent      int       // frames of this stretch
	sequence  uint16    // of the next packet
	timestamp uint32    // of the next packet
}

// A stamp is what a packet's header needs.
type stamp struct {
	sequence  uint16
	timestamp uint32
	marker    bool // the first packet after silence
}

// due returns how many frames may be sent now. It begins a stretch if none runs.
func (s *stream) due(now time.Time) int {
	if s.begun.IsZero() {
		s.begun, s.sent = now, 0
		if s.origin.IsZero() {
			s.origin = now
		}
		at := uint32(now.Sub(s.origin)/frameTime) * frameTicks // it wraps after 149 hours, as it should
		if int32(at-s.timestamp) > 0 {
			s.timestamp = at
		}
	}
	n := int(now.Sub(s.begun)/frameTime) + 1 - s.sent
	if late := n - maxBurst; late > 0 {
		s.begun = s.begun.Add(time.Duration(late) * frameTime)
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
func (s *stream) rest() { s.begun = time.Time{} }

const (
	// appendBytes is the sound in one append: 40 ms, so that half as many events travel as packets come.
	appendBytes = 2 * frameBytes
	// maxGap bounds the silence that stands for what was not sent or was lost, in bytes: 600 ms. That is more than a
	// model waits for the end of a sentence (500 ms), so a longer pause parts two of them, and than a client that sends
	// no silence is quiet at once (400 ms: RFC 6716, section 2.1.9).
	maxGap = 600 * bytesPerMS
	// pauseTime is how long nothing came when a client is taken to have stopped sending, and as much silence is sent
	// for it: longer than the pauses of one that sends none. maxPauses of them, nine seconds, end a turn for any
	// detection of a model: the most patient waits for eight (semantic_vad of low eagerness).
	pauseTime = maxGap / bytesPerMS * time.Millisecond
	maxPauses = 15
	// maxLate is how far behind a packet is late, and how far ahead others are missed; farther away, the browser
	// began to count anew.
	maxLate = 64
	// minWait and maxWait bound how much later sound may come before a packet that is missed, until it is given up:
	// 20 to 200 ms, in ticks. firstWait is how much at first. Every calmAfter packets that came in order it is stepDown
	// less.
	minWait, firstWait, maxWait = 20 * bytesPerMS, 60 * bytesPerMS, 200 * bytesPerMS
	calmAfter                   = 50
	stepDown                    = 5 * bytesPerMS
	// fadeBytes is how long lost sound is replaced by what was heard before it, ever softer: 60 ms.
	fadeBytes = 60 * bytesPerMS
	// maxEarlySound bounds the sound that waits for the model's formats, in bytes. The oldest is dropped.
	maxEarlySound = 3000 * bytesPerMS
)

// A waitingTime is how long the buffer waits for a packet that is missed. It is pure, and follows the network: a packet
// that comes too late, or just in time, makes it as long as that took and a packet more; while all come in order it
// shrinks.
type waitingTime struct {
	ticks int      // 0: firstWait
	calm  int      // packets in order since it was changed
	given []uint16 // packets that were given up, the newest, to tell those that come late from those that come twice
}

// now returns it in ticks.
func (w *waitingTime) now() int { return cmp.Or(w.ticks, firstWait) }

// inOrder notes that a packet came when it was expected.
func (w *waitingTime) inOrder() {
	if w.calm++; w.calm >= calmAfter {
		w.calm, w.ticks = 0, max(minWait, w.now()-stepDown)
	}
}

// behind notes that a packet came so many ticks behind others.
func (w *waitingTime) behind(ticks int) {
	w.calm, w.ticks = 0, max(w.now(), min(maxWait, ticks+frameTicks))
}

// giveUp notes packets that are not waited for any more.
func (w *waitingTime) giveUp(from, to uint16) {
	for n := from; n != to; n++ {
		w.given = append(w.given, n)
	}
	w.given = w.given[max(0, len(w.given)-maxLate):]
}

// wasGivenUp reports whether a packet is one of those, once.
func (w *waitingTime) wasGivenUp(sequence uint16) bool {
	i := slices.Index(w.given, sequence)
	if i >= 0 {
		w.given = slices.Delete(w.given, i, i+1)
	}
	return i >= 0
}

// A reorderBuffer is the jitter buffer for the browser's packets: it puts them in order. It is pure. When packets come
// does not matter, since the model's clock is the sound itself; so nothing is held back but what comes before a packet
// that is missed. What is lost is concealed with the sound before it, fading, and a pause is silence.
type reorderBuffer struct {
	line      line     // Set once
	decoder   *decoder // Set once: turns packets into PCM as they are taken; nil: their bytes are sound of the line
	begun     bool
	sequence  uint16  // expected next
	timestamp uint32  // expected next
	waiting   []heard // came before what is expected, in order
	wait      waitingTime
	audio     []byte // not yet taken
	newest    []byte // the sound of the last packet in order
	late      int    // packets dropped
	lost      int    // packets concealed
}

// heard is the sound of one packet.
type heard struct {
	sequence  uint16
	timestamp uint32
	audio     []byte
	opus      bool
}

// add takes the sound of a packet.
func (h *reorderBuffer) add(p heard) {
	ahead := int16(p.sequence - h.sequence)
	switch {
	case h.begun && ahead < 0 && ahead > -maxLate:
		if h.late++; h.wait.wasGivenUp(p.sequence) {
			h.wait.behind(h.span(p.timestamp))
		}
		return
	case !h.begun || ahead == 0:
		if len(h.waiting) > 0 {
			h.wait.behind(h.span(p.timestamp))
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
	default: // counted anew
		h.flush()
		h.timestamp = p.timestamp
		h.accept(p)
	}
	for len(h.waiting) > 0 && h.waiting[0].sequence == h.sequence {
		h.giveUp()
	}
}

// span is how much later than a timestamp the newest sound is that came, in ticks.
func (h *reorderBuffer) span(timestamp uint32) int {
	newest := h.timestamp - frameTicks
	if n := len(h.waiting); n > 0 {
		newest = h.waiting[n-1].timestamp
	}
	return int(int32(newest - timestamp))
}

// giveUp takes the first of those that wait, whatever is missing before it.
func (h *reorderBuffer) giveUp() {
	p := h.waiting[0]
	h.waiting = h.waiting[1:]
	h.accept(p)
}

// flush takes what waits: nothing more is waited for.
func (h *reorderBuffer) flush() {
	for len(h.waiting) > 0 {
		h.giveUp()
	}
}

// rest takes a pause as the next. Of the silence before a packet that comes later it is not missing any more.
func (h *reorderBuffer) rest() {
	h.flush()
	h.fill(maxGap, false)
	h.timestamp += maxGap
}

// accept takes a packet as the next.
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

// fill stands for n ticks of sound that did not come.
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

// tick is how many bytes of sound a tick is.
func (h *reorderBuffer) tick() int {
	if h.decoder != nil {
		return tickBytes
	}
	return 1
}

// take returns the sound so far, or nil when it is less than least ticks.
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
