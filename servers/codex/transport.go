package codex

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// writeTimeout is how long one frame may take to leave. A peer that does not read for so long is lost.
const writeTimeout = 10 * time.Second

// A stream carries frames as lines, as on the standard streams of a child.
type stream struct {
	r *bufio.Reader // Owned by Read
	w writeDeadliner
}

// A writeDeadliner is a pipe whose writes can be bounded.
type writeDeadliner interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

func newStream(r io.Reader, w writeDeadliner) *stream {
	return &stream{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// Read returns the next line that is not empty, or a [*tooLongError] for one that was left out.
func (s *stream) Read() ([]byte, error) {
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

// Write sends one line.
func (s *stream) Write(frame []byte) error {
	if err := s.w.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.w.Write(append(frame, '\n'))
	return err
}
