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
	shakeTimeout = 10 * time.Second // from the WebSocket to the welcome
	writeTimeout = 10 * time.Second // an end that does not read for so long is lost
	beat         = 10 * time.Second // how often each end asks whether the other is there, and waits at most that long
	openTimeout  = 10 * time.Second // for an agent to be reached through a line
)

const (
	maxMessage = 64 << 10 // bytes of a WebSocket message; a record of TLS has 16 KiB
	maxFrame   = 64 << 10 // bytes of a hello and the like
	maxStreams = 64       // that wait to be accepted, and that a machine serves at a time
	window     = 1 << 20  // bytes of a stream that its reader has not taken
)

// A socket is a WebSocket as a stream of bytes.
type socket struct {
	*websocket.Conn
	rest io.Reader // Owned by Read: of the message under way; nil: none
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

// Write implements [net.Conn]. TLS writes one record after another.
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

// writeFrame writes a value in JSON behind its length.
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

// readFrame reads a value in JSON behind its length, and nothing after it.
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

// multiplexed are the settings of the streams of a line.
func multiplexed() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog, c.MaxStreamWindowSize = maxStreams, window
	c.KeepAliveInterval, c.ConnectionWriteTimeout = beat, writeTimeout
	c.StreamOpenTimeout, c.StreamCloseTimeout = openTimeout, writeTimeout
	c.LogOutput = io.Discard // what matters is told by whoever has the line
	return c
}

// A stream is one of many on a line.
type stream struct{ *yamux.Stream }

// Close implements [net.Conn]. It ends reading and writing here, whether or not the other end is there.
func (s stream) Close() error {
	return errors.Join(s.Stream.Close(), s.SetDeadline(time.Unix(1, 0)))
}

var _ net.Conn = (*socket)(nil)
