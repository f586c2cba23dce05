package realtime

import (
	"bytes"
	"io"
	"sync"

	"switchboard/realtime/events"
)

const (
	// keptSounds bounds the buffers that wait for a sound, maxSound the size of each: 500 ms of PCM16 at 24 kHz. Others
	// are left to the collector.
	keptSounds = 512
	maxSound   = 40 << 10
)

// sounds lends sockets the room for events of sound, which are nearly all there are. recalled lends that for the sound
// of callers that is kept for another session. Both are safe by themselves.
var sounds, recalled soundRoom

// A soundRoom keeps buffers between their events.
type soundRoom struct {
	mu   sync.Mutex
	free [][]byte // Guarded by mu
}

// isSound reports whether an event is one of sound.
func isSound(event []byte) bool {
	kind := events.PeekType(event)
	return kind == events.TypeAppend || kind == events.TypeAudioDelta
}

// read reads an event to its end, or to an error. One of sound is in room that give takes back.
func (r *soundRoom) read(from io.Reader) ([]byte, error) {
	buffer := bytes.NewBuffer(r.take())
	_, err := buffer.ReadFrom(from)
	event := buffer.Bytes()
	if len(event) <= maxSound && isSound(event) {
		return event, err
	}
	defer r.put(event)
	return bytes.Clone(event), err
}

// clone copies an event into room that put takes back, but not into far more than it needs: the copy may stay.
func (r *soundRoom) clone(event []byte) []byte {
	room := r.take()
	if cap(room) > 2*len(event) {
		r.put(room)
		room = nil
	}
	return append(room, event...)
}

func (r *soundRoom) take() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return nil
	}
	buffer := r.free[n-1]
	r.free = r.free[:n-1]
	return buffer
}

// give takes back the room of an event of sound that was written: nobody may look at it any more.
func (r *soundRoom) give(event []byte) {
	if isSound(event) {
		r.put(event)
	}
}

func (r *soundRoom) put(room []byte) {
	if cap(room) > maxSound {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) < keptSounds {
		r.free = append(r.free, room[:0])
	}
}
