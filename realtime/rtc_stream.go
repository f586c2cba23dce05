package realtime

import "time"

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
	// maxGap bounds the silence that stands for lost packets, in bytes: 200 ms. A longer gap is a pause.
	maxGap = 200 * bytesPerMS
	// maxLate is how far behind a packet is late; farther behind, the browser began to count anew.
	maxLate = 64
)

// A hearing puts the browser's packets in order. It is pure. There is no jitter buffer: the model's clock
// is the sound itself, so lost packets become silence and late ones are dropped.
type hearing struct {
	begun     bool
	sequence  uint16 // expected next
	timestamp uint32 // expected next
	audio     []byte // not yet taken
	late      int    // packets dropped
}

// add takes the sound of a packet.
func (h *hearing) add(sequence uint16, timestamp uint32, audio []byte) {
	ahead := int16(sequence - h.sequence)
	if h.begun && ahead < 0 && ahead > -maxLate {
		h.late++
		return
	}
	if gap := int32(timestamp - h.timestamp); h.begun && ahead >= 0 && gap > 0 {
		for range min(gap, maxGap) {
			h.audio = append(h.audio, silentByte)
		}
	}
	h.begun, h.sequence, h.timestamp = true, sequence+1, timestamp+uint32(len(audio))
	h.audio = append(h.audio, audio...)
}

// take returns the sound so far as one append event, or nil when it is less than least bytes.
func (h *hearing) take(least int) []byte {
	if len(h.audio) < least || len(h.audio) == 0 {
		return nil
	}
	event := appendEvent(h.audio)
	h.audio = h.audio[:0]
	return event
}
