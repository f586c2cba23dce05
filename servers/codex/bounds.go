package codex

import (
	"errors"
	"sync/atomic"

	"switchboard/servers"
	"switchboard/servers/turns"
)

// Bounds of a connection. A frame of the server that is beyond a bound is left out and counted. If it is a response,
// its request fails; if a turn may have been its subject, the turn is read from the thread.
const (
	// maxInFlight is how many requests may wait for their response. The server refuses more than about 150. One more
	// than maxInFlight fails at once as overloaded: waiting here would hide the delay.
	maxInFlight = 64
	// maxQueued is how many frames may wait for the writer: all requests, and as many answers to questions. One more
	// fails as overloaded.
	maxQueued = 2 * maxInFlight
	// maxQueuedBytes bounds the frames that wait for the writer, in bytes. More fail as overloaded.
	maxQueuedBytes = 2 * servers.MaxFrame
	// maxID bounds the ids of threads, turns, items and requests, in bytes. A frame with a longer one is left out.
	maxID = 512
	// maxText bounds the text of one item, in bytes. A prompt may be as long.
	maxText = 1 << 20
	// maxPaths bounds the paths of one edit, in bytes all together. If there are more, no path is known, and the edit
	// cannot be approved by voice.
	maxPaths = 256 << 10
	// maxQuestion bounds a request to a person, in bytes. A longer one is shown, but can be answered only on its
	// machine.
	maxQuestion = 256 << 10
)

// fit reports whether the ids of a notification or request are within maxID.
func (n *note) fit() bool {
	return len(n.ThreadID) <= maxID && len(n.TurnID) <= maxID && len(n.ItemID) <= maxID &&
		(n.Turn == nil || len(n.Turn.ID) <= maxID) && (n.Item == nil || n.Item.fit())
}

func (w *wireItem) fit() bool {
	if len(w.ID) > maxID || len(w.client()) > maxID || len(w.AgentThread) > maxID || len(w.AgentPath) > maxID {
		return false
	}
	for _, id := range w.Receivers {
		if len(id) > maxID {
			return false
		}
	}
	return true
}

// tally are the counters of a connection's threads.
type tally struct {
	turns.Tally
	forgotten       atomic.Uint64 // turns forgotten to make room
	unasked         atomic.Uint64 // questions that were left out, because they were too long or too many
	resubscriptions atomic.Uint64 // resubscriptions that were left out, because too many waited
}

// withFewer calls ask with limit, and again with a smaller one as long as the answer is too long.
func withFewer(limit int, ask func(limit int) error) error {
	for {
		err := ask(limit)
		if limit <= 1 || !errors.Is(err, servers.ErrLongFrame) {
			return err
		}
		limit = max(limit/7, 1)
	}
}
