package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"switchboard/handoff"
)

// mcpPipe returns a handler that gives a program on this machine a connection for MCP, with one message in each line,
// as over standard input and output.
func mcpPipe(serve func(context.Context, io.ReadWriteCloser, handoff.Grant) error) handler {
	return func(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
		if !inside(r) {
			return handoff.Fault(handoff.CodeForbidden, "a pipe from elsewhere", "use /mcp")
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Time{}) // the connection lasts
		const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcp\r\n\r\n"
		if _, err := io.WriteString(conn, switched); err != nil {
			return conn.Close()
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // closing ends the reads
		_ = serve(ctx, bufferedConn{conn, buffered.Reader}, g)      // the program sees the end of the connection
		return nil
	}
}

// A bufferedConn is a connection of which some bytes were read into a buffer before.
type bufferedConn struct {
	net.Conn
	first *bufio.Reader
}

// Read reads the buffered bytes first.
func (c bufferedConn) Read(b []byte) (int, error) { return c.first.Read(b) }
