package realtime

import "switchboard/handoff"

// A leg is the client's side of a call, whatever carries it: it reads and writes Realtime events as raw
// JSON. A leg that carries audio in another way (WebRTC) turns it into events on this side: what it hears
// becomes input_audio_buffer.append, output audio deltas become sound, and what its client cannot send
// (conversation.item.truncate after a barge-in) it sends itself. The call cannot tell legs apart.
type leg interface {
	// Received yields events of the client in order. It is closed when the client has gone; each slice
	// belongs to the receiver.
	Received() <-chan []byte
	// Send enqueues an event for the client; it never blocks and may keep the slice. False means that
	// the client is too slow and the leg is ending.
	Send(event []byte) bool
	// Close ends the leg with a reason (nil: a normal end) and returns when its goroutines have ended.
	Close(reason *handoff.Error)
}
