// Package transport has the ways to reach an agent server that kinds share: a WebSocket over TCP or over a socket of
// this machine, and the standard streams of a child process or an ssh. Each carries whole frames, as [servers.Wire]
// says. A new way that runs another program is best modelled on ssh.go.
//
// It must not know the content of a frame, nor any kind of server.
package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"switchboard/servers"
)

// writeTimeout bounds the write of one frame. A peer that does not read for so long counts as lost, unless it is waited
// for.
const writeTimeout = 10 * time.Second

// Lines carries frames as lines, as on the standard streams of a child.
type Lines struct {
	r     *bufio.Reader // Owned by Read
	w     WriteDeadliner
	waits bool // Set once: a peer that does not read is waited for until the wire is closed
}

// A WriteDeadliner is a writer with a deadline.
type WriteDeadliner interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// NewLines returns Lines that read frames from r and write them to w, which may be nil if nothing is written.
func NewLines(r io.Reader, w WriteDeadliner) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// Read returns the next line that is not empty, or a [*servers.LongFrame] for a frame that was skipped.
func (s *Lines) Read() ([]byte, error) {
	var line frameBuffer
	for {
		part, err := s.r.ReadSlice('\n')
		if err := line.add(part); err != nil {
			return nil, err
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		whole, err := line.frame()
		if err != nil {
			return nil, err
		}
		if whole = bytes.TrimSpace(whole); len(whole) > 0 {
			return whole, nil
		}
		line = frameBuffer{}
	}
}

// Write sends one line. It does not change the frame, which may also be sent to others.
func (s *Lines) Write(frame []byte) error {
	if !s.waits {
		if err := s.w.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
	}
	_, err := s.w.Write(append(slices.Clip(frame), '\n'))
	return err
}

// LinesOver returns a wire that carries frames as lines over a connection.
func LinesOver(conn net.Conn) servers.Wire {
	return struct {
		*Lines
		io.Closer
	}{NewLines(conn, conn), conn}
}

// A page of turns may be too large to be useful (21 MB for six pasted pictures). Such a frame is read to its end and
// dropped: the caller gets an error and may ask for less, and the rest of the connection goes on.

// maxLong bounds a frame that is skipped; a longer one ends the connection.
const maxLong = 256 << 20

// errEndless ends a connection with a frame above maxLong.
var errEndless = errors.New("frame longer than 256 MiB")

// frameBuffer collects the parts of a frame.
type frameBuffer struct {
	bytes []byte // the frame, or the beginning of a long one
	size  int    // of all parts, in bytes
}

// add adds the next part.
func (b *frameBuffer) add(part []byte) error {
	b.size += len(part)
	switch {
	case b.size > maxLong:
		return errEndless
	case b.size <= servers.MaxFrame:
		b.bytes = append(b.bytes, part...)
	case len(b.bytes) > servers.LongHead:
		b.bytes = bytes.Clone(b.bytes[:servers.LongHead]) // lets the garbage collector have the rest
	}
	return nil
}

// frame returns the whole frame, or a [*servers.LongFrame].
func (b *frameBuffer) frame() ([]byte, error) {
	if b.size > servers.MaxFrame {
		return nil, &servers.LongFrame{Head: b.bytes, Size: b.size, Cause: servers.ErrLongFrame}
	}
	return b.bytes, nil
}
