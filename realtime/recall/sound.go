package recall

import (
	"bytes"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"switchboard/realtime/events"
)

const (
	// MaxSound bounds the length of the sound that is kept; the oldest goes first.
	MaxSound = 30 * time.Second
	// soundBytes bounds the bytes that are kept for each second: PCM16 at 24 kHz, and a room at most. It is needed
	// because a network that was stuck delivers seconds of sound at once.
	soundBytes = 52 << 10
	// roomBytes is the size of a room for sound. It is a multiple of 3, so that base64 is decoded in whole quanta.
	roomBytes = 2046
	// piecesAtRest is how many pieces there are at most while nobody speaks; room for many more is freed.
	piecesAtRest = 32
)

// rooms holds the rooms that are free, of all calls. Safe by itself.
var rooms = sync.Pool{New: func() any { return new([roomBytes]byte) }}

// A Sound is the caller's sound that was sent to the model and is in no item yet, and the commits and clears among it
// that the model has not confirmed. The sound is kept decoded, since most calls hold some of it all the time. The zero
// value is empty.
type Sound struct {
	pieces []piece // oldest first
	size   int     // bytes of sound
}

// A piece is a room with sound, or a commit or clear.
type piece struct {
	bytes        []byte
	since, until int64 // when the oldest and the newest of it came, in Unix nanoseconds
	mark         bool  // a commit or a clear
}

// Add keeps the sound of an append, as it is in base64. Before, it drops what came longer than most (but at most
// [MaxSound]) ago. Sound that is not base64 is not kept, as the model refuses it.
func (s *Sound) Add(now time.Time, sound []byte, most time.Duration) {
	most = min(most, MaxSound)
	oldest, limit := now.Add(-most).UnixNano(), int(most.Milliseconds())*soundBytes/1000
	n, size := 0, s.size
	for ; n < len(s.pieces) && (s.pieces[n].until < oldest || size > limit); n++ {
		size -= s.pieces[n].sound()
	}
	s.drop(n)
	for len(sound) > 0 {
		last := s.last(now.UnixNano())
		used := len(last.bytes)
		fits := min(len(sound), (roomBytes-used)/3*4)
		n, err := base64.StdEncoding.Decode(last.bytes[used:roomBytes], sound[:fits])
		if err != nil {
			return
		}
		last.bytes, last.until = last.bytes[:used+n], now.UnixNano()
		sound, s.size = sound[fits:], s.size+n
	}
}

// last returns the piece that the next sound goes into.
func (s *Sound) last(now int64) *piece {
	n := len(s.pieces)
	if n == 0 || s.pieces[n-1].mark || len(s.pieces[n-1].bytes) > roomBytes-3 {
		room := rooms.Get().(*[roomBytes]byte)
		s.pieces, n = append(s.pieces, piece{bytes: room[:0], since: now, until: now}), n+1
	}
	return &s.pieces[n-1]
}

// sound returns the bytes of sound in a piece.
func (p *piece) sound() int {
	if p.mark {
		return 0
	}
	return len(p.bytes)
}

// drop drops the oldest pieces.
func (s *Sound) drop(n int) {
	for i := range s.pieces[:n] {
		p := &s.pieces[i]
		if s.size -= p.sound(); !p.mark {
			rooms.Put((*[roomBytes]byte)(p.bytes[:roomBytes]))
		}
	}
	s.pieces = slices.Delete(s.pieces, 0, n)
	if len(s.pieces) <= piecesAtRest && cap(s.pieces) > 2*piecesAtRest {
		s.pieces = slices.Clone(s.pieces)
	}
}

// Mark keeps a commit or a clear.
func (s *Sound) Mark(now time.Time, event []byte) {
	s.pieces = append(s.pieces, piece{bytes.Clone(event), now.UnixNano(), now.UnixNano(), true})
}

// Taken notes that the model has made an item of the sound, or cleared it. It drops all up to the first commit or
// clear, or all if there is none, as the model detects turns itself.
func (s *Sound) Taken() {
	n := slices.IndexFunc(s.pieces, func(p piece) bool { return p.mark }) + 1
	if n == 0 {
		n = len(s.pieces)
	}
	s.drop(n)
}

// Since returns when the oldest of it came; zero: none is kept.
func (s *Sound) Since() time.Time {
	if len(s.pieces) == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.pieces[0].since)
}

// Bytes returns how many bytes of sound are kept.
func (s *Sound) Bytes() int { return s.size }

// Events returns the events that give the sound to a model.
func (s *Sound) Events() (all [][]byte) {
	for _, p := range s.pieces {
		switch {
		case p.mark:
			all = append(all, bytes.Clone(p.bytes))
		case len(p.bytes) > 0:
			all = append(all, events.Append(p.bytes))
		}
	}
	return all
}
