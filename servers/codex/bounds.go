package codex

import (
	"errors"
	"regexp"
	"strconv"
	"sync/atomic"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/turns"
)

// Whatever a server sends, what is kept of it has a bound in bytes. A frame that is worth less than its place is
// left out and counted; one that answers us fails that request; for one that tells of a turn, the turn is read.
const (
	// maxValues bounds what a frame may hold apart: decoded, a value of three bytes may take hundreds.
	maxValues = 1 << 18
	// maxHeld bounds the answers that were taken off the connection and are not yet decoded, in bytes.
	maxHeld = 4 * servers.MaxFrame
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

var (
	errTooDeep = errors.New("answer nests deeper than 128")
	errHeld    = errors.New("too much waits to be read")
)

// unfit says why a frame must not be decoded, or nil.
func unfit(frame []byte) error {
	switch {
	case handoff.TooDeep(frame):
		return errTooDeep
	case values(frame) > maxValues:
		return servers.ErrLongFrame
	}
	return nil
}

// values counts what stands apart in JSON: elements, members and what holds them.
func values(frame []byte) int {
	n := 0
	for i := 0; i < len(frame); i++ {
		switch frame[i] {
		case '{', '[', ',':
			n++
		case '"':
			for i++; i < len(frame) && frame[i] != '"'; i++ {
				if frame[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

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

// answers matches the head of a response.
var answers = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]+)\s*,\s*"result"`)

// answered returns the id of the request that a frame with this head answers.
func answered(head []byte) (id int64, ok bool) {
	found := answers.FindSubmatch(head)
	if found == nil {
		return 0, false
	}
	id, err := strconv.ParseInt(string(found[1]), 10, 64)
	return id, err == nil
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
