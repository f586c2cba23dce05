package codex

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// A server tells a thread's pictures and outputs whole, so that a page of turns may be larger than anything
// that is worth reading (21 MB for six pasted pictures). Such a frame is read to its end and thrown away:
// whoever asked for it hears so and may ask for less, and everything else on the connection goes on.

const (
	longHead = 256       // what is kept of a frame that is too long, in bytes: enough to see whom it answers
	maxLong  = 256 << 20 // a frame that is longer ends the connection
)

var (
	errEndless       = errors.New("frame longer than 256 MiB")
	errAnswerTooLong = errors.New("answer longer than 16 MiB")
)

// A tooLongError is a frame that was thrown away, but for its head.
type tooLongError struct {
	head  []byte
	size  int
	cause error // what its request is told
}

func (e *tooLongError) Error() string { return fmt.Sprintf("frame of %d bytes", e.size) }

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
	case g.size <= maxFrame:
		g.bytes = append(g.bytes, part...)
	case len(g.bytes) > longHead:
		g.bytes = bytes.Clone(g.bytes[:longHead]) // the rest is let go
	}
	return nil
}

// frame returns what was gathered, or a [*tooLongError].
func (g *gathered) frame() ([]byte, error) {
	if g.size > maxFrame {
		return nil, &tooLongError{g.bytes, g.size, errAnswerTooLong}
	}
	return g.bytes, nil
}

// answers matches the head of a response.
var answers = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]+)\s*,\s*"result"`)

// request returns the id of the request that a frame answers.
func (e *tooLongError) request() (id int64, ok bool) {
	found := answers.FindSubmatch(e.head)
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
		if limit <= 1 || !errors.Is(err, errAnswerTooLong) {
			return err
		}
		limit = max(limit/7, 1)
	}
}
