package realtime

import (
	"time"

	"switchboard/handoff"
)

// A leg is one side of a call, the client's or the model's, whatever carries it: it reads and writes Realtime
// events as raw JSON. A leg that carries audio in another way (WebRTC) turns it into events on this side: what
// it hears becomes input_audio_buffer.append, output audio deltas become sound, and what its client cannot send
// (conversation.item.truncate after a barge-in) it sends itself. Beside that the call cannot tell legs apart.
type leg interface {
	// Send enqueues an event for the far end; it never blocks and may keep the slice, which nobody else looks at any
	// more if it is one of sound. False means that the leg is ending: the far end is too slow, unless the leg is an
	// [ender] and says otherwise. Where the leg is a [flusher], the event may wait for that.
	Send(event []byte) bool
	// Ending is closed when the leg begins to end. If its far end has gone, all that came of it was taken before.
	Ending() <-chan struct{}
	// Close ends the leg with a reason (nil: a normal end) and returns when its goroutines have ended.
	Close(reason *handoff.Error)
}

// A connection is a leg that somebody has to run. Whoever has one calls Run or Abandon, once.
type connection interface {
	leg
	// Run carries the leg until the far end has gone or Close was called, and returns when its goroutines have
	// ended. It gives take the events of the far end in order, one at a time, in the goroutine that read them: to
	// hand them to another would cost more than all else. take must not wait, and has the slice for itself.
	Run(take func(event []byte))
	// Abandon lets go of the far end without a word.
	Abandon()
}

// A flusher is a leg that writes what it was sent when it is told to: whoever decided about an event writes what came
// of that itself, and after it has let go of the call.
type flusher interface {
	// Flush writes what waits, as far as the far end takes it at once; the rest is written later. It never waits.
	Flush()
}

// An ender is a leg that knows why it ends.
type ender interface {
	// Ended returns the reason, nil when the far end went away or nothing has ended yet.
	Ended() *handoff.Error
	// Vanished tells, once it ends, that its far end went without a word that it hangs up.
	Vanished() bool
}

// A witness is a leg that knows when its far end last showed that it is there.
type witness interface {
	leg
	// Seen returns when anything of the far end came, or it took something that only it can have taken.
	Seen() time.Time
	// Probe asks the far end for a sign, and returns at once. Where the leg is a [flusher], that waits for Flush.
	Probe()
}

// A performer is a leg that plays the model's voice itself and knows what was heard of it. It sets the sound that it
// carries with one switchboard.formats, and says switchboard.opened once its client can be reached. For every
// response it reports one event of type switchboard.played among those received, once nothing more of it will be
// heard; its client cannot send them. What other clients hear is estimated.
type performer interface {
	leg
	Performs()
}
