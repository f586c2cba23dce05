package recall

import (
	"bytes"
	"slices"
	"time"
)

const (
	// MaxSound bounds the length of the sound that is kept; the oldest goes first.
	MaxSound = 30 * time.Second
	// soundBytes bounds the bytes that are kept for each second: PCM16 at 24 kHz in base64. It is needed because a
	// network that was stuck delivers seconds of sound at once.
	soundBytes = 72 << 10
	// soundAtRest bounds the capacity that is kept when no events are.
	soundAtRest = 64
	// soundSlack is the least number of forgotten events before the kept ones are moved to the front.
	soundSlack = 16
)

// A Sound is the caller's sound that was sent to the model and is in no item yet: appends, and the commits and clears
// among them that the model has not confirmed. The zero value is empty.
type Sound struct {
	pieces []piece // oldest first; kept from first on
	first  int     // index of the first piece that is kept
	size   int     // of the kept pieces, in bytes
}

// A piece is one event.
type piece struct {
	text []byte
	at   int64 // when it came, in Unix nanoseconds
	mark bool  // a commit or a clear
}

// Add keeps an append, and drops those that came longer than most (but at most [MaxSound]) before it. Dropped
// appends are given to free. The Sound owns event from here on.
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
		s.pieces[s.first] = piece{}
		s.first++
	}
	if s.first >= soundSlack && 4*s.first >= len(s.pieces) {
		s.pieces, s.first = slices.Delete(s.pieces, 0, s.first), 0
	}
	s.push(now, event, false)
}

// Mark keeps a commit or a clear.
func (s *Sound) Mark(now time.Time, event []byte) { s.push(now, bytes.Clone(event), true) }

func (s *Sound) kept() []piece { return s.pieces[s.first:] }

func (s *Sound) push(now time.Time, event []byte, mark bool) {
	s.size += len(event)
	s.pieces = append(s.pieces, piece{event, now.UnixNano(), mark})
}

// Taken notes that the model has made an item of the sound, or cleared it. It drops all up to the first commit or
// clear, or all if there is none, as the model detects turns itself.
func (s *Sound) Taken() {
	for i, p := range s.kept() {
		if s.size -= len(p.text); p.mark {
			s.pieces, s.first = slices.Delete(s.pieces, 0, s.first+i+1), 0
			return
		}
	}
	clear(s.pieces)
	if s.pieces, s.first = s.pieces[:0], 0; cap(s.pieces) > soundAtRest {
		s.pieces = nil
	}
}

// Since returns when the oldest kept event came; zero: none is kept.
func (s *Sound) Since() time.Time {
	if len(s.kept()) == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.kept()[0].at)
}

// Events returns copies of the kept events, and when each came.
func (s *Sound) Events() (all [][]byte, at []time.Time) {
	for _, p := range s.kept() {
		all, at = append(all, bytes.Clone(p.text)), append(at, time.Unix(0, p.at))
	}
	return all, at
}
