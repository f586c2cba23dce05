package recall

import "time"

const (
	// maxSound and maxSoundBytes bound the caller's sound that is kept; the oldest goes first.
	maxSound      = 30 * time.Second
	maxSoundBytes = 2 << 20
	// idleSound and idleSoundBytes bound what is kept while nobody speaks: a sentence is heard as one some time after
	// it began. PCM16 at 24 kHz is 64 KiB a second in events.
	idleSound      = time.Second
	idleSoundBytes = 128 << 10
)

// A Sound is what a model was given of the caller's sound and has made nothing of yet: appends, and the commits and
// clears among them, until the model confirms one. The zero value is empty.
type Sound struct {
	text   []byte  // the events, one behind the other
	pieces []piece // oldest first, from first on
	first  int     // those before it are forgotten
	from   int     // where the text of the first begins
}

// A piece is one event.
type piece struct {
	size int
	at   int64 // in nanoseconds of Unix: a time holds a pointer
	mark bool  // a commit or a clear
}

// Add keeps an append. speaks: the caller does, or nobody detects whether they do.
func (s *Sound) Add(now time.Time, event []byte, speaks bool) {
	most, bytes := idleSound, idleSoundBytes
	if speaks {
		most, bytes = maxSound, maxSoundBytes
	}
	at := now.UnixNano()
	s.push(at, event, false)
	for s.first < len(s.pieces)-1 {
		if oldest := s.pieces[s.first]; time.Duration(at-oldest.at) <= most && len(s.text)-s.from <= bytes {
			break
		}
		s.shift()
	}
}

// Mark keeps a commit or a clear.
func (s *Sound) Mark(now time.Time, event []byte) { s.push(now.UnixNano(), event, true) }

func (s *Sound) push(at int64, event []byte, mark bool) {
	if s.from > 4096 && 3*s.from >= 2*len(s.text) {
		s.text = append(s.text[:0], s.text[s.from:]...)
		s.pieces = append(s.pieces[:0], s.pieces[s.first:]...)
		s.first, s.from = 0, 0
	}
	s.text, s.pieces = append(s.text, event...), append(s.pieces, piece{len(event), at, mark})
}

func (s *Sound) shift() {
	s.from += s.pieces[s.first].size
	s.first++
}

// Taken takes the model's word that it has made an item of the sound, or thrown it away: that is all up to the first
// commit or clear, or all where it detects turns itself.
func (s *Sound) Taken() {
	for s.first < len(s.pieces) {
		mark := s.pieces[s.first].mark
		if s.shift(); mark {
			return
		}
	}
	*s = Sound{text: s.text[:0], pieces: s.pieces[:0]}
}

// Since returns when the oldest that is kept came; zero: nothing is.
func (s *Sound) Since() time.Time {
	if s.first == len(s.pieces) {
		return time.Time{}
	}
	return time.Unix(0, s.pieces[s.first].at)
}

// Events returns what is kept, each event a copy, and when it came.
func (s *Sound) Events() (all [][]byte, at []time.Time) {
	from := s.from
	for _, p := range s.pieces[s.first:] {
		all, at = append(all, append([]byte(nil), s.text[from:from+p.size]...)), append(at, time.Unix(0, p.at))
		from += p.size
	}
	return all, at
}
