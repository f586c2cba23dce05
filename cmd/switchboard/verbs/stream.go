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
	silentFor  = 45 * time.Second // a connection without a heartbeat for so long is dead; one comes every 15 s
	againAfter = time.Second      // between two attempts to connect
	awayFor    = 2 * time.Minute  // how long to try while the service does not answer
	maxEvent   = 8 << 20          // bytes of one line
)

// events yields the data of a stream's events. When the connection drops, it calls away with the reason, once for each
// drop, and connects again from the last event on. It ends when the service says that there are no more events, with an
// error of the service, or when the service could not be reached for awayFor.
func (c *Client) events(ctx context.Context, path string, away func(error)) iter.Seq2[[]byte, error] {
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

// errLeft says that the receiver of the events wants no more.
var errLeft = errors.New("left")

// stream reads one connection of a stream, and calls alive for each line, including heartbeats. It keeps last at the id
// of the last event. It returns nil if the service has no more events.
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

// readEvents reads Server-Sent Events, and calls tell with the data of each. Its error is never nil, because the end of
// the connection does not mean the end of the events.
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
