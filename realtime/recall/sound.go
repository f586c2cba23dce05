package recall

import (
	"slices"
	"time"
)

const (
	// MaxSound bounds the caller's sound that is kept; the oldest goes first.
	MaxSound = 30 * time.Second
	// soundBytes bounds the events of a second of it: PCM16 at 24 kHz in base64. A line that stood still brings
	// seconds at once.
	soundBytes = 72 << 10
	// soundStep is what the memory for sound grows by, in bytes, up to soundAtRest; from there on it doubles. What is
	// larger is given back when nothing is kept.
	soundStep   = 8 << 10
	soundAtRest = 64 << 10
)

// A Sound is what a model was given of the caller's sound and has made nothing of yet: appends, and the commits and
// clears among them, until the model confirms one. The zero value is empty.
type Sound struct {
	ring   []byte  // the text of the events, one behind the other
	from   int     // where that of the oldest begins
	size   int     // of all, in bytes
	pieces []piece // oldest first
}

// A piece is one event.
type piece struct {
	at   int64 // in nanoseconds of Unix: a time holds a pointer
	size int32
	mark bool // a commit or a clear
}

// Add keeps an append, and of those before it what came within the duration most, at most [MaxSound].
func (s *Sound) Add(now time.Time, event []byte, most time.Duration) {
	most = min(most, MaxSound)
	oldest, bytes, forgotten := now.Add(-most).UnixNano(), int(most.Milliseconds())*soundBytes/1000, 0
	for _, p := range s.pieces {
		if p.at >= oldest && s.size <= bytes {
			break
		}
		s.skip(p)
		forgotten++
	}
	s.pieces = slices.Delete(s.pieces, 0, forgotten)
	s.push(now, event, false)
}

// Mark keeps a commit or a clear.
func (s *Sound) Mark(now time.Time, event []byte) { s.push(now, event, true) }

func (s *Sound) push(now time.Time, event []byte, mark bool) {
	if need := s.size + len(event); need > len(s.ring) {
		steps := (need + soundStep - 1) / soundStep * soundStep
		if need > soundAtRest {
			steps = max(steps, 2*len(s.ring))
		}
		bigger := make([]byte, steps)
		s.copyOut(bigger, s.from, s.size)
		s.ring, s.from = bigger, 0
	}
	if len(event) > 0 {
		end := (s.from + s.size) % len(s.ring)
		copy(s.ring, event[copy(s.ring[end:], event):])
	}
	s.size += len(event)
	s.pieces = append(s.pieces, piece{now.UnixNano(), int32(len(event)), mark})
}

// copyOut copies size bytes of the ring.
func (s *Sound) copyOut(to []byte, from, size int) {
	if size > 0 {
		n := copy(to[:size], s.ring[from:])
		copy(to[n:size], s.ring)
	}
}

// skip takes the oldest piece's text out of the ring.
func (s *Sound) skip(p piece) {
	s.size -= int(p.size)
	if s.from += int(p.size); s.from >= len(s.ring) {
		s.from -= len(s.ring)
	}
}

// Taken takes the model's word that it has made an item of the sound, or thrown it away: that is all up to the first
// commit or clear, or all where it detects turns itself.
func (s *Sound) Taken() {
	for i, p := range s.pieces {
		if s.skip(p); p.mark {
			s.pieces = slices.Delete(s.pieces, 0, i+1)
			return
		}
	}
	if s.pieces = s.pieces[:0]; len(s.ring) > soundAtRest {
		*s = Sound{}
	}
}

// Since returns when the oldest that is kept came; zero: nothing is.
func (s *Sound) Since() time.Time {
	if len(s.pieces) == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.pieces[0].at)
}

// Events returns what is kept, each event a copy, and when it came.
func (s *Sound) Events() (all [][]byte, at []time.Time) {
	from := s.from
	for _, p := range s.pieces {
		event := make([]byte, p.size)
		s.copyOut(event, from, len(event))
		all, at = append(all, event), append(at, time.Unix(0, p.at))
		if from += len(event); from >= len(s.ring) {
			from -= len(s.ring)
		}
	}
	return all, at
}
