package host

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// serveOne serves one WebSocket on a connection.
func serveOne(conn net.Conn, serve func(*websocket.Conn)) {
	l := &oneConn{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- conn
	upgrader := websocket.Upgrader{ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10}
	server := &http.Server{ReadHeaderTimeout: startWithin, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			defer l.end()
			service, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return // Upgrade has answered
			}
			defer func() { _ = service.Close() }()
			serve(service)
		})}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			l.end()
		}
	}
	_ = server.Serve(l) // until the one connection has ended
}

// oneConn is a listener that gives one connection, and then waits for its end.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *oneConn) end() { l.once.Do(func() { close(l.done) }) }

// Accept implements [net.Listener].
func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *oneConn) Close() error { l.end(); return nil }

// Addr implements [net.Listener].
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "line", Net: "unix"} }

// handshake opens a WebSocket on a connection to an app-server.
func handshake(conn net.Conn) (*websocket.Conn, error) {
	dialer := websocket.Dialer{
		HandshakeTimeout: startWithin, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
		NetDial: func(string, string) (net.Conn, error) { return conn, nil },
	}
	agent, _, err := dialer.Dial("ws://localhost/", nil)
	return agent, err
}

// writeWithin bounds the writing of one message.
const writeWithin = 30 * time.Second

// writeMessage writes a text message: data, and then the rest.
func writeMessage(to *websocket.Conn, data []byte, rest io.Reader) error {
	if err := to.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	w, err := to.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if _, err := io.Copy(w, rest); err != nil {
		return err
	}
	return w.Close()
}
