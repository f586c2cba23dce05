package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/servers"
)

// handshakeTimeout bounds the handshake of a WebSocket.
const handshakeTimeout = 10 * time.Second

// maxDetail bounds what an error quotes, in bytes.
const maxDetail = 300

// deadAfter is how long a WebSocket may be silent. An app-server answers pings but sends none, and a half-open
// connection accepts writes for minutes.
const deadAfter = 25 * time.Second

// socket is the wire over a WebSocket.
type socket struct {
	conn *websocket.Conn // Set once
	tcp  *net.TCPConn    // Set once: below conn; nil: there is none
	part []byte          // buffer for reads. Owned by Read
}

// A WebSocket reaches an agent server by its URL.
type WebSocket struct {
	URL            string `yaml:"url"`
	TokenFile      string `yaml:"token_file"`
	TokenEnv       string `yaml:"token_env"`
	AllowPlaintext bool   `yaml:"allow_plaintext"`

	Token func() (string, error) // returns the bearer token, at every dial; nil for none
}

// ByURL returns the transport of a server with a url.
func ByURL() servers.Transport {
	return servers.Transport{
		Row: "url", New: func() servers.Way { return new(WebSocket) },
		Takes: func(address string) (string, bool) {
			return address, strings.HasPrefix(address, "ws://") || strings.HasPrefix(address, "wss://")
		},
	}
}

func (w *WebSocket) address() servers.Address {
	return servers.Address{
		Row: "url", URL: w.URL, Plain: "ws", What: "the address of an app-server, such as ws://127.0.0.1:4500",
		Secret: "token", Allowed: w.AllowPlaintext,
	}
}

// Check implements [servers.Way].
func (w *WebSocket) Check(to servers.Report, files servers.Files) {
	if w.URL != "" { // an empty one was reported
		w.address().Check(to)
	}
	w.Token = files.Credential("token", w.TokenFile, w.TokenEnv).Read
}

// Describe implements [servers.Way].
func (w *WebSocket) Describe(s *servers.Spec) {
	w.address().Describe(s)
	s.Remote, s.Credential = true, servers.Credential{Name: "token", Read: w.Token}
}

// Open implements [servers.Way].
func (w *WebSocket) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	header := http.Header{}
	if w.Token != nil {
		token, err := w.Token()
		if err != nil {
			return nil, &handoff.Error{
				Code: handoff.CodeUnreachable, Subject: end.Server, Detail: "read token: " + err.Error(),
				Reason: handoff.ReasonTokenUnread,
			}
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return OverSocket(ctx, end.Server, w.URL, header, new(net.Dialer).DialContext)
}

// A Unix reaches an agent server by a Unix socket on this machine, which carries a WebSocket too.
type Unix struct {
	Path string `yaml:"unix"`
}

// ByUnix returns the transport of a server with a Unix socket on this machine.
func ByUnix() servers.Transport {
	return servers.Transport{
		Row: "unix", New: func() servers.Way { return new(Unix) },
		Takes: func(address string) (string, bool) {
			path, ok := strings.CutPrefix(address, "unix:")
			return strings.TrimPrefix(path, "//"), ok
		},
	}
}

// Check implements [servers.Way].
func (u *Unix) Check(_ servers.Report, files servers.Files) {
	if u.Path != "" {
		u.Path = files.Path(u.Path)
	}
}

// Describe implements [servers.Way].
func (u *Unix) Describe(s *servers.Spec) { s.About.Address = "unix:" + u.Path }

// Open implements [servers.Way]. The URL is a placeholder: the socket decides which server answers.
func (u *Unix) Open(ctx context.Context, end servers.End) (servers.Wire, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", u.Path)
	}
	return OverSocket(ctx, end.Server, "ws://localhost/", nil, dial)
}

// OverSocket opens a WebSocket to address over a connection from dial. server is the name in errors. It sends no
// Origin header, since an app-server refuses requests with one.
func OverSocket(
	ctx context.Context, server, address string, header http.Header,
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) (servers.Wire, error) {
	var handshake *handoff.Handshake
	var tcp *net.TCPConn
	dialer := websocket.Dialer{
		HandshakeTimeout: handshakeTimeout,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			tcp = below(conn)
			handshake = &handoff.Handshake{Conn: quickAck(conn)}
			return handshake, nil
		},
	}
	conn, resp, err := dialer.DialContext(ctx, address, header)
	if err != nil {
		return nil, dialFault(server, resp, err)
	}
	handshake.Done()
	s := &socket{conn, tcp, make([]byte, 32<<10)}
	conn.SetPongHandler(func(string) error { return s.alive() })
	return s, s.alive()
}

// below returns the TCP connection that a connection is, or goes over; nil: there is none.
func below(conn net.Conn) *net.TCPConn {
	if over, is := conn.(interface{ NetConn() net.Conn }); is {
		return below(over.NetConn())
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// dialFault returns the error of a handshake: whether the server refused it or did not answer.
func dialFault(server string, resp *http.Response, err error) *handoff.Error {
	if resp == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		return servers.DialFault(server, err)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxDetail))
	return servers.RefusalOf(server, resp.StatusCode, string(body))
}

// alive extends the read deadline after a sign of life.
func (s *socket) alive() error { return s.conn.SetReadDeadline(time.Now().Add(deadAfter)) }

// Read returns the next text frame, or a [*servers.LongFrame] for a frame that was skipped.
func (s *socket) Read() ([]byte, error) {
	for {
		kind, r, err := s.conn.NextReader()
		if err != nil {
			return nil, s.lost(err)
		}
		frame, err := s.gather(r)
		if err != nil || kind == websocket.TextMessage {
			return frame, err
		}
	}
}

// gather reads a frame. Each part is a sign of life.
func (s *socket) gather(r io.Reader) ([]byte, error) {
	var frame frameBuffer
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
			return nil, s.lost(err)
		}
	}
}

// lost ends a connection after an error. Over TCP, what the far end has not got is dropped: the system would go on to
// send it for minutes, and by then it may have been sent again on another connection.
func (s *socket) lost(err error) error {
	if err != nil && s.tcp != nil {
		_ = s.tcp.SetLinger(0)
		_ = s.tcp.Close()
	}
	return err
}

// Write sends one text frame.
func (s *socket) Write(frame []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.lost(s.conn.WriteMessage(websocket.TextMessage, frame))
}

// Ping sends a ping, whose answer is a sign of life.
func (s *socket) Ping() error {
	return s.lost(s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)))
}

// Close sends a close frame, if that takes at most a second, and closes the connection.
func (s *socket) Close() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
	return s.conn.Close()
}
