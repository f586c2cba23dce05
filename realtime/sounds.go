package realtime

import (
	"bytes"
	"io"
	"sync"

	"switchboard/realtime/events"
)

// maxSound bounds the buffers that are used again, in bytes: 500 ms of PCM16 at 24 kHz. Larger ones are left to the
// collector.
const maxSound = 40 << 10

// sounds holds buffers for the sound events that sockets read, which are nearly all events. Safe by itself.
var sounds = sync.Pool{New: func() any { return new(make([]byte, 0, readBuffer)) }}

// isSound reports whether an event carries sound.
func isSound(event []byte) bool {
	kind := events.PeekType(event)
	return kind == events.TypeAppend || kind == events.TypeAudioDelta
}

// readEvent reads an event to its end, or to an error. The buffer of a sound event is lent, until giveBack.
func readEvent(from io.Reader) ([]byte, error) {
	buffer := bytes.NewBuffer(*sounds.Get().(*[]byte))
	_, err := buffer.ReadFrom(from)
	event := buffer.Bytes()
	if isSound(event) {
		return event, err
	}
	defer keepRoom(event)
	return bytes.Clone(event), err
}

// giveBack takes back the buffer of an event that was written, if it is a sound event. The event must not be used any
// more.
func giveBack(event []byte) {
	if isSound(event) {
		keepRoom(event)
	}
}

func keepRoom(event []byte) {
	if room := event[:0]; cap(room) <= maxSound {
		sounds.Put(&room)
	}
}
