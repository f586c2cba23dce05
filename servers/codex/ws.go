package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// deadAfter is how long a WebSocket may be silent. The server answers pings but sends none, and a
// half-open connection swallows writes for minutes.
const deadAfter = 25 * time.Second

// socket is a WebSocket. It has one reader and one writer.
type socket struct {
	conn *websocket.Conn
	part []byte // Owned by Read
}

// dialWebSocket connects. No Origin header is sent: the server refuses every request that has one.
func dialWebSocket(ctx context.Context, cfg Config) (transport, error) {
	var dialer net.Dialer
	if cfg.Unix == "" {
		return dialWebSocketOver(ctx, cfg, dialer.DialContext)
	}
	cfg.URL = "ws://localhost/" // names nothing: the socket alone decides who answers
	return dialWebSocketOver(ctx, cfg, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", cfg.Unix)
	})
}

func dialWebSocketOver(ctx context.Context, cfg Config, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (transport, error) {
	header := http.Header{}
	if cfg.Token != nil {
		token, err := cfg.Token()
		if err != nil {
			return nil, handoff.Fault(handoff.CodeUnreachable, cfg.Name, "read token: "+err.Error())
		}
		header.Set("Authorization", "Bearer "+token)
	}
	var handshake *handoff.Handshake
	dialer := websocket.Dialer{
		HandshakeTimeout: handshakeTimeout,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			handshake = &handoff.Handshake{Conn: quickAck(conn)}
			return handshake, nil
		},
	}
	conn, resp, err := dialer.DialContext(ctx, cfg.URL, header)
	if err != nil {
		return nil, dialFault(cfg, resp, err)
	}
	handshake.Done()
	s := &socket{conn, make([]byte, 32<<10)}
	conn.SetPongHandler(func(string) error { return s.alive() })
	return s, s.alive()
}

// dialFault tells a server that refuses us from one that does not answer.
func dialFault(cfg Config, resp *http.Response, err error) *handoff.Error {
	if resp == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		return handoff.Fault(handoff.CodeUnreachable, cfg.Name, err.Error())
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxDetail))
	detail := fmt.Sprintf("HTTP %d %s", resp.StatusCode, body)
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return handoff.Fault(handoff.CodeTokenRefused, cfg.Name, detail)
	}
	return handoff.Fault(handoff.CodeUnreachable, cfg.Name, detail)
}

// alive notes a sign of life.
func (s *socket) alive() error { return s.conn.SetReadDeadline(time.Now().Add(deadAfter)) }

// Read returns the next text frame, or a [*tooLongError] for one that was left out.
func (s *socket) Read() ([]byte, error) {
	for {
		kind, r, err := s.conn.NextReader()
		if err != nil {
			return nil, err
		}
		frame, err := s.gather(r)
		if err != nil || kind == websocket.TextMessage {
			return frame, err
		}
	}
}

// gather reads a frame. Each part of it is a sign of life.
func (s *socket) gather(r io.Reader) ([]byte, error) {
	var frame gathered
	for {
		n, err := r.Read(s.part)
		if n > 0 || errors.Is(err, io.EOF) {
			if err := errors.Join(frame.add(s.part[:n]), s.alive()); err != nil {
				return nil, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return frame.frame()
		case err != nil:
			return nil, err
		}
	}
}

// Write sends one text frame.
func (s *socket) Write(frame []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.conn.WriteMessage(websocket.TextMessage, frame)
}

// Ping asks for a sign of life.
func (s *socket) Ping() error {
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
}

// Close says goodbye, if that takes no time, and closes.
func (s *socket) Close() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
	return s.conn.Close()
}
