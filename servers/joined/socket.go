package joined

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"
)

// Times of a line.
const (
	handshakeTimeout = 10 * time.Second // from the WebSocket to the welcome
	writeTimeout     = 10 * time.Second // for a write: a peer that does not read is lost
	beat             = 10 * time.Second // how often each end pings the other, and how long it waits for the answer
	openTimeout      = 10 * time.Second // for a connection to an agent through a line
)

const (
	maxMessage = 64 << 10 // bytes of a WebSocket message; a record of TLS has 16 KiB
	maxFrame   = 64 << 10 // bytes of a frame
	maxStreams = 64       // that a machine serves at a time; and as many may wait to be accepted
	window     = 1 << 20  // bytes of a stream that may be unread
)

// A socket is a WebSocket as a stream of bytes.
type socket struct {
	*websocket.Conn
	rest io.Reader // Owned by Read: of the message that is being read; nil: none
}

func newSocket(conn *websocket.Conn) *socket {
	conn.SetReadLimit(maxMessage)
	return &socket{Conn: conn}
}

// Read implements [net.Conn].
func (s *socket) Read(p []byte) (int, error) {
	for {
		if s.rest == nil {
			kind, r, err := s.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("a message that is no part of a line")
			}
			s.rest = r
		}
		n, err := s.rest.Read(p)
		if errors.Is(err, io.EOF) {
			s.rest, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write implements [net.Conn]. Calls must not overlap; those of TLS do not.
func (s *socket) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		part := p[sent:min(sent+maxMessage, len(p))]
		if err := s.WriteMessage(websocket.BinaryMessage, part); err != nil {
			return sent, err
		}
		sent += len(part)
	}
	return len(p), nil
}

// SetDeadline implements [net.Conn].
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// writeFrame writes a frame: the length in four bytes, then a value in JSON.
func writeFrame(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(data) > maxFrame {
		return fmt.Errorf("a frame of %d bytes", len(data))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

// readFrame reads one frame, and no byte after it.
func readFrame(r io.Reader, into any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes", n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// yamuxConfig returns the settings of a line's streams.
func yamuxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog, c.MaxStreamWindowSize = maxStreams, window
	c.KeepAliveInterval, c.ConnectionWriteTimeout = beat, writeTimeout
	c.StreamOpenTimeout, c.StreamCloseTimeout = openTimeout, writeTimeout
	c.LogOutput = io.Discard // errors that matter are logged by the caller
	return c
}

// A stream is a connection inside a line.
type stream struct{ *yamux.Stream }

// Close implements [net.Conn]. It ends reads and writes here, also if the other end does not answer.
func (s stream) Close() error {
	return errors.Join(s.Stream.Close(), s.SetDeadline(time.Unix(1, 0)))
}

var _ net.Conn = (*socket)(nil)
