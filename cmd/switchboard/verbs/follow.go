package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Times of a stream.
const (
	silentFor  = 45 * time.Second // after so long without a heartbeat, which comes every 15 s, the connection is dead
	againAfter = time.Second      // between two connections
	awayFor    = 2 * time.Minute  // how long a service that does not answer is tried
	maxEvent   = 8 << 20          // bytes of one line
)

// follow yields the data of a stream's events. When the connection drops it comes back with the id of the last one,
// and away is told why, once for each drop. It ends where the service says that no more comes, with an error of the
// service, or when that could not be reached for awayFor.
func (c *Client) follow(ctx context.Context, path string, away func(error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		last, lost := "", time.Time{}
		for {
			err := c.stream(ctx, path, &last, func() { lost = time.Time{} }, func(data []byte) bool { return yield(data, nil) })
			if errors.Is(err, errLeft) || err == nil {
				return
			}
			fault, answered := errors.AsType[*Fault](err)
			if ctx.Err() != nil || answered && fault.Status < http.StatusInternalServerError {
				yield(nil, err)
				return
			}
			if lost.IsZero() {
				lost = time.Now()
				away(err)
			}
			if time.Since(lost) > awayFor {
				yield(nil, err)
				return
			}
			select {
			case <-time.After(againAfter):
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// errLeft means that whoever was told wants no more.
var errLeft = errors.New("left")

// stream reads one connection of a stream, and calls alive for each line, a heartbeat's too. nil means that the service
// has no more; last is kept up to date.
func (c *Client) stream(ctx context.Context, path string, last *string, alive func(), tell func([]byte) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(silentFor, func() { cancel(errors.New("nothing was heard of it")) })
	defer silence.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-ID", *last)
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	err = readEvents(resp.Body, last, func() { silence.Reset(silentFor); alive() }, tell)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errLeft) {
		return cause
	}
	return err
}

// readEvents reads Server-Sent Events, and tells the data of each. Its error is never nil: a stream ends in the middle
// of things.
func readEvents(from io.Reader, last *string, alive func(), tell func([]byte) bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	var data []byte
	id := *last
	for lines.Scan() {
		alive()
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data = append(data, value...)
		case lines.Text() == "":
			*last = id
			if len(data) > 0 && !tell(data) {
				return errLeft
			}
			data = nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the connection was lost: %w", err)
	}
	return errors.New("the connection was closed")
}
