package realtime

import (
	"bytes"
	"io"
	"sync"

	"switchboard/realtime/events"
)

const (
	// keptSounds bounds the buffers of a pool, maxSound the size of each: 500 ms of PCM16 at 24 kHz. Larger ones are
	// left to the collector.
	keptSounds = 512
	maxSound   = 40 << 10
)

// soundBuffers are for the sound events that sockets read, which are nearly all events.
var soundBuffers bufferPool

// A bufferPool keeps buffers for sound events. It is safe for concurrent use.
type bufferPool struct {
	mu   sync.Mutex
	free [][]byte // Guarded by mu
}

// isSound reports whether an event carries sound.
func isSound(event []byte) bool {
	kind := events.PeekType(event)
	return kind == events.TypeAppend || kind == events.TypeAudioDelta
}

// read reads an event to its end, or to an error. A sound event is in a buffer of the pool, for give to put back.
func (r *bufferPool) read(from io.Reader) ([]byte, error) {
	buffer := bytes.NewBuffer(r.take())
	_, err := buffer.ReadFrom(from)
	event := buffer.Bytes()
	if len(event) <= maxSound && isSound(event) {
		return event, err
	}
	defer r.put(event)
	return bytes.Clone(event), err
}

func (r *bufferPool) take() []byte {
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

// give puts back the buffer of an event that was written, if it is a sound event. The event must not be used any more.
func (r *bufferPool) give(event []byte) {
	if isSound(event) {
		r.put(event)
	}
}

func (r *bufferPool) put(room []byte) {
	if cap(room) > maxSound {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) < keptSounds {
		r.free = append(r.free, room[:0])
	}
}
