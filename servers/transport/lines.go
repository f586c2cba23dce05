// Package transport has the ways to reach agent servers that kinds share: a WebSocket over TCP or a socket of this
// machine, and the standard streams of a child process or of an ssh. Each carries whole frames, as [servers.Wire] says.
// A way through another program is best modelled on ssh.go.
//
// It must not know what is in a frame, nor any kind of server.
package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"switchboard/servers"
)

// writeTimeout is how long one frame may take to leave. A peer that does not read for so long is lost.
const writeTimeout = 10 * time.Second

// Lines carry frames as lines, as on the standard streams of a child.
type Lines struct {
	r *bufio.Reader // Owned by Read
	w WriteDeadliner
}

// A WriteDeadliner is a pipe whose writes can be bounded.
type WriteDeadliner interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// NewLines reads frames from r and writes them to w, which may be nil where nothing is written.
func NewLines(r io.Reader, w WriteDeadliner) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// Read returns the next line that is not empty, or a [*servers.LongFrame] for one that was left out.
func (s *Lines) Read() ([]byte, error) {
	var line gathered
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
		line = gathered{}
	}
}

// Write sends one line. The frame stays as it is: it may be on its way to others, too.
func (s *Lines) Write(frame []byte) error {
	if err := s.w.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.w.Write(append(slices.Clip(frame), '\n'))
	return err
}

// LinesOver carries frames as lines over a connection.
func LinesOver(conn interface {
	io.ReadCloser
	WriteDeadliner
}) servers.Wire {
	return struct {
		*Lines
		io.Closer
	}{NewLines(conn, conn), conn}
}

// A server tells a thread's pictures and outputs whole, so that a page of turns may be larger than anything
// that is worth reading (21 MB for six pasted pictures). Such a frame is read to its end and thrown away:
// whoever asked for it hears so and may ask for less, and everything else on the connection goes on.

// maxLong bounds a frame that is left out; a longer one ends the connection.
const maxLong = 256 << 20

var errEndless = errors.New("frame longer than 256 MiB")

// gathered is a frame that comes in parts.
type gathered struct {
	bytes []byte
	size  int
}

// add takes the next part.
func (g *gathered) add(part []byte) error {
	g.size += len(part)
	switch {
	case g.size > maxLong:
		return errEndless
	case g.size <= servers.MaxFrame:
		g.bytes = append(g.bytes, part...)
	case len(g.bytes) > servers.LongHead:
		g.bytes = bytes.Clone(g.bytes[:servers.LongHead]) // the rest is let go
	}
	return nil
}

// frame returns what was gathered, or a [*servers.LongFrame].
func (g *gathered) frame() ([]byte, error) {
	if g.size > servers.MaxFrame {
		return nil, &servers.LongFrame{Head: g.bytes, Size: g.size, Cause: servers.ErrLongFrame}
	}
	return g.bytes, nil
}
