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

// mcpPipe gives a program on this machine a connection on which it speaks MCP line by line, as over standard input and
// output.
func mcpPipe(serve func(context.Context, io.ReadWriteCloser, handoff.Grant) error) handler {
	return func(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
		if !inside(r) {
			return handoff.Fault(handoff.CodeForbidden, "a pipe from elsewhere", "use /mcp")
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Time{}) // it lasts
		const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcp\r\n\r\n"
		if _, err := io.WriteString(conn, switched); err != nil {
			return conn.Close()
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // which ends the reading
		_ = serve(ctx, piped{conn, buffered.Reader}, g)             // the program sees the end
		return nil
	}
}

// piped is a connection with what was read of it before.
type piped struct {
	net.Conn
	first *bufio.Reader
}

// Read reads what came first.
func (p piped) Read(b []byte) (int, error) { return p.first.Read(b) }
