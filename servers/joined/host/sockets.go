package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/transport"
)

const (
	writeWithin = 30 * time.Second // for one message
	bufferBytes = 32 << 10
	maxRequest  = 64 << 10 // bytes of the request that opens a WebSocket
)

// A socket is a WebSocket as a wire.
type socket struct{ *websocket.Conn }

// accept returns the service's end of a gate as a wire.
func (g *gate) accept(conn net.Conn) (servers.Wire, error) {
	if !g.setting.listens() {
		return transport.LinesOver(conn), nil
	}
	s, err := upgrade(conn)
	if err != nil {
		return nil, err
	}
	s.SetReadLimit(servers.MaxFrame + 64<<10)
	return s, nil
}

// upgrade has the other end open a WebSocket on a connection.
func upgrade(conn net.Conn) (*socket, error) {
	in := bufio.NewReader(io.LimitReader(conn, maxRequest))
	w := &hijacked{bufio.NewReadWriter(in, bufio.NewWriter(conn)), conn, http.Header{}}
	if err := conn.SetDeadline(time.Now().Add(startWithin)); err != nil {
		return nil, err
	}
	r, err := http.ReadRequest(w.Reader)
	if err != nil {
		return nil, err
	}
	up := websocket.Upgrader{ReadBufferSize: bufferBytes, WriteBufferSize: bufferBytes}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	return &socket{ws}, nil // it has removed the deadline
}

// hijacked is the answer to the one request of a connection.
type hijacked struct {
	*bufio.ReadWriter
	conn   net.Conn
	header http.Header
}

// Header implements [http.ResponseWriter].
func (h *hijacked) Header() http.Header { return h.header }

// WriteHeader implements [http.ResponseWriter].
func (h *hijacked) WriteHeader(int) {}

// Hijack implements [http.Hijacker].
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, h.ReadWriter, nil }

// open opens a WebSocket on a connection to an app-server.
func open(ctx context.Context, conn net.Conn) (*socket, error) {
	dialer := websocket.Dialer{
		HandshakeTimeout: startWithin, ReadBufferSize: bufferBytes, WriteBufferSize: bufferBytes,
		NetDial: func(string, string) (net.Conn, error) { return conn, nil },
	}
	ws, _, err := dialer.DialContext(ctx, "ws://localhost/", nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &socket{ws}, nil
}

// Read implements [servers.Wire].
func (s *socket) Read() ([]byte, error) {
	for {
		kind, r, err := s.NextReader()
		if err != nil {
			return nil, err
		}
		if kind != websocket.TextMessage {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, servers.MaxFrame+1))
		if err == nil && len(data) > servers.MaxFrame {
			err = &servers.LongFrame{Head: data[:servers.LongHead], Size: len(data), Cause: servers.ErrLongFrame}
		}
		return data, err
	}
}

// Write implements [servers.Wire].
func (s *socket) Write(frame []byte) error {
	if err := s.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	return s.WriteMessage(websocket.TextMessage, frame)
}

// call sends a request to an app-server and returns its result. It skips other messages of the app-server.
func (s *socket) call(id json.RawMessage, request []byte) (json.RawMessage, error) {
	err := s.Write(request)
	for err == nil {
		var data []byte
		if data, err = s.Read(); err != nil {
			break
		}
		var answer struct{ ID, Result, Error json.RawMessage }
		switch {
		case json.Unmarshal(data, &answer) != nil || string(answer.ID) != string(id):
		case answer.Result == nil:
			return nil, fmt.Errorf("%s", handoff.Clip(string(answer.Error), 300))
		default:
			return answer.Result, nil
		}
	}
	return nil, err
}
