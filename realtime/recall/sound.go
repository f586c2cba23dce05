package recall

import (
	"bytes"
	"slices"
	"time"
)

const (
	// MaxSound bounds the caller's sound that is kept; the oldest goes first.
	MaxSound = 30 * time.Second
	// soundBytes bounds the events of a second of it: PCM16 at 24 kHz in base64. A line that stood still brings
	// seconds at once.
	soundBytes = 72 << 10
	// soundAtRest is for how many events there is still room when nothing is kept.
	soundAtRest = 64
	// soundSlack is how many events are forgotten at least before those that are kept are moved to their place.
	soundSlack = 16
)

// A Sound is what a model was given of the caller's sound and has made nothing of yet: appends, and the commits and
// clears among them, until the model confirms one. The zero value is empty.
type Sound struct {
	pieces []piece // oldest first, from gone on
	gone   int     // those before it are not kept any more
	size   int     // of all that are kept, in bytes
}

// A piece is one event.
type piece struct {
	text []byte
	at   int64 // in nanoseconds of Unix
	mark bool  // a commit or a clear
}

// Add keeps an append, and of those before it what came within the duration most, at most [MaxSound]. The event is the
// Sound's from here on. Those that it lets go for it are given to free.
func (s *Sound) Add(now time.Time, event []byte, most time.Duration, free func(event []byte)) {
	most = min(most, MaxSound)
	oldest, limit := now.Add(-most).UnixNano(), int(most.Milliseconds())*soundBytes/1000
	for _, p := range s.kept() {
		if p.at >= oldest && s.size <= limit {
			break
		}
		if s.size -= len(p.text); !p.mark {
			free(p.text)
		}
		s.pieces[s.gone] = piece{}
		s.gone++
	}
	if s.gone >= soundSlack && 4*s.gone >= len(s.pieces) {
		s.pieces, s.gone = slices.Delete(s.pieces, 0, s.gone), 0
	}
	s.push(now, event, false)
}

// Mark keeps a commit or a clear.
func (s *Sound) Mark(now time.Time, event []byte) { s.push(now, bytes.Clone(event), true) }

func (s *Sound) kept() []piece { return s.pieces[s.gone:] }

func (s *Sound) push(now time.Time, event []byte, mark bool) {
	s.size += len(event)
	s.pieces = append(s.pieces, piece{event, now.UnixNano(), mark})
}

// Taken takes the model's word that it has made an item of the sound, or thrown it away: that is all up to the first
// commit or clear, or all where it detects turns itself.
func (s *Sound) Taken() {
	for i, p := range s.kept() {
		if s.size -= len(p.text); p.mark {
			s.pieces, s.gone = slices.Delete(s.pieces, 0, s.gone+i+1), 0
			return
		}
	}
	clear(s.pieces)
	if s.pieces, s.gone = s.pieces[:0], 0; cap(s.pieces) > soundAtRest {
		s.pieces = nil
	}
}

// Since returns when the oldest that is kept came; zero: nothing is.
func (s *Sound) Since() time.Time {
	if len(s.kept()) == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.kept()[0].at)
}

// Events returns what is kept, each event a copy, and when it came.
func (s *Sound) Events() (all [][]byte, at []time.Time) {
	for _, p := range s.kept() {
		all, at = append(all, bytes.Clone(p.text)), append(at, time.Unix(0, p.at))
	}
	return all, at
}
