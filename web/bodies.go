package web

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"switchboard/handoff"
)

// Bounds of the request bodies that are in memory at one time, in bytes. Each body counts twice, because what is parsed
// from it is in memory, too.
const (
	maxBodies = 64 << 20
	// smallBody is the size up to which bodies do not count: the number of connections bounds their memory.
	smallBody = 64 << 10
)

// bodyWait is how long a request waits for room for its body. Nothing of the body is read meanwhile.
const bodyWait = 5 * time.Second

// Rates reports whether a caller may give work now, and does not count that as work. The error has code
// [handoff.CodeLimited].
type Rates interface {
	MayGive(g handoff.Grant) error
}

// giving has the routes that give work. Set once.
var giving = map[string]bool{
	"POST /fleet/handoffs": true, "POST /fleet/handoffs/{id}/steer": true, "POST /v1/responses": true,
}

// bodies bounds the memory of request bodies. It is safe for concurrent use.
type bodies struct {
	room    *semaphore.Weighted // Set once
	held    atomic.Int64        // bytes
	refused atomic.Uint64
}

func newBodies() *bodies { return &bodies{room: semaphore.NewWeighted(maxBodies)} }

// A room is the part of the bound that one request has taken. Owned by its handler.
type room struct {
	of   *bodies // Set once
	size int64   // bytes
}

// take waits for room for the body of a request. A body of unknown length takes room for most bytes, the bound of its
// route, until it has been read. The error has code [handoff.CodeOverloaded].
func (b *bodies) take(r *http.Request, most int64) (*room, error) {
	size := most
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	size = counted(size)
	if size > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), bodyWait)
		defer cancel()
		if b.room.Acquire(ctx, size) != nil {
			b.refused.Add(1)
			e := handoff.Fault(handoff.CodeOverloaded, "Switchboard", "no room for the body")
			e.Retry = bodyWait
			return nil, e
		}
		b.held.Add(size)
	}
	return &room{b, size}, nil
}

// counted returns how much room a body of so many bytes takes.
func counted(size int64) int64 {
	if size <= smallBody {
		return 0
	}
	return 2 * size
}

// fit releases the room that a body of so many bytes does not need.
func (m *room) fit(size int64) {
	if spare := m.size - counted(size); spare > 0 {
		m.size -= spare
		m.of.held.Add(-spare)
		m.of.room.Release(spare)
	}
}

// leave releases all room.
func (m *room) leave() { m.fit(0) }

// A heldBody is a request body in memory.
type heldBody struct{ rest []byte }

// Read implements [io.Reader].
func (b *heldBody) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements [io.Closer].
func (b *heldBody) Close() error { return nil }

// Take returns the rest of the body, and keeps no reference to it. Its room stays taken until the request is answered.
func (b *heldBody) Take() []byte {
	rest := b.rest
	b.rest = nil
	return rest
}
