package codex

import (
	"errors"
	"sync/atomic"

	"switchboard/servers"
	"switchboard/servers/turns"
)

// Whatever a server sends, what is kept of it has a bound in bytes. A frame that is worth less than its place is
// left out and counted; one that answers us fails that request; for one that tells of a turn, the turn is read.
const (
	// maxInFlight is how many requests may wait for their response. The server refuses beyond about 150; when ours are
	// used up a request fails at once as overloaded, because waiting here would hide the delay.
	maxInFlight = 64
	// maxQueued is how many frames may wait for the writer: all requests, and as many answers to questions. When it is
	// full a frame fails as overloaded.
	maxQueued = 2 * maxInFlight
	// maxQueuedBytes bounds the frames that wait for the writer. More fail as overloaded.
	maxQueuedBytes = 2 * servers.MaxFrame
	// maxID bounds the ids of threads, turns, items and requests. What has a longer one is left out.
	maxID = 512
	// maxText bounds the words of one item. A prompt may be as long.
	maxText = 1 << 20
	// maxPaths bounds the paths of one edit, all together. Of more, none is known, which no voice may approve.
	maxPaths = 256 << 10
	// maxQuestion bounds a request to a person. A longer one is shown, but can be answered on its machine alone.
	maxQuestion = 256 << 10
)

// fit reports whether the ids of a notification or request can be kept.
func (n *note) fit() bool {
	return len(n.ThreadID) <= maxID && len(n.TurnID) <= maxID && len(n.ItemID) <= maxID &&
		(n.Turn == nil || len(n.Turn.ID) <= maxID) && (n.Item == nil || n.Item.fit())
}

func (w *wireItem) fit() bool {
	if len(w.ID) > maxID || len(w.client()) > maxID {
		return false
	}
	for _, id := range w.Receivers {
		if len(id) > maxID {
			return false
		}
	}
	return true
}

// tally counts what the threads of a connection leave out and hold.
type tally struct {
	turns.Tally
	forgotten       atomic.Uint64 // turns forgotten to make room
	unasked         atomic.Uint64 // questions that were too long to be asked, or too many
	resubscriptions atomic.Uint64 // resubscriptions that found too many waiting
}

// less asks for limit things, and for fewer as long as the answer is too long.
func less(limit int, ask func(limit int) error) error {
	for {
		err := ask(limit)
		if limit <= 1 || !errors.Is(err, servers.ErrLongFrame) {
			return err
		}
		limit = max(limit/7, 1)
	}
}
