package joined

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"

	"switchboard/handoff"
	"switchboard/servers"
)

// Path is the path of the service's URL that takes lines.
const Path = "/node"

// A Visit is a machine's request for a line.
type Visit struct {
	URL        string             // of the service, such as https://bigpc.tail1234.ts.net
	Key        ed25519.PrivateKey // of the machine
	Service    ed25519.PublicKey  // of the service; nil: the invitation has its fingerprint
	Invitation *Invitation        // that it joins with; nil: it has joined
	Name       string             // of the machine, as the service said last
	Leave      bool               // it wants to be forgotten
	About      About
}

// CheckURL returns what is wrong in the address of a service. A line to another machine needs https.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s is no address of a Switchboard, such as https://bigpc.tail1234.ts.net", address)
	case u.Scheme == "http" && !servers.Loopback(u.Hostname()):
		return fmt.Errorf("the line to %s would go in the clear: use https://, or a tunnel to this machine", u.Host)
	}
	return nil
}

// A Door is the machine's end of a line.
type Door struct {
	Name    string            // of the machine, as the service calls it
	Service ed25519.PublicKey // the service's key, which it has proved

	session *yamux.Session
	reports net.Conn // Owned by Tell: the stream for the machine's state; nil: not open yet
}

// Open opens a line. An error may be a [Refusal].
func (v Visit) Open(ctx context.Context) (*Door, error) {
	if err := CheckURL(v.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: handshakeTimeout,
		ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
	}
	conn, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(strings.TrimSuffix(v.URL, "/"), "http")+Path, nil)
	if err != nil {
		if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
			return nil, fmt.Errorf("%s answers with HTTP %d: no Switchboard that takes machines, or something before it "+
				"that lets no WebSocket through", v.URL, resp.StatusCode)
		}
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	door, err := v.handshake(newSocket(conn))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return door, nil
}

// handshake has the service prove its key, and exchanges hello and welcome.
func (v Visit) handshake(conn *socket) (*Door, error) {
	own, err := certificate(v.Key)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	secure := tls.Client(conn, tlsConfig(own, v.isService))
	if err := secure.Handshake(); err != nil {
		return nil, err
	}
	h := hello{Name: v.Name, Leave: v.Leave, About: v.About}
	if v.Invitation != nil {
		h.Secret = v.Invitation.Secret[:]
	}
	var answer welcome
	if err := errors.Join(writeFrame(secure, h), readFrame(secure, &answer), conn.SetDeadline(time.Time{})); err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, answer.Refused
	}
	key, err := peerKey(secure.ConnectionState())
	if err != nil {
		return nil, err
	}
	session, err := yamux.Server(secure, yamuxConfig())
	return &Door{Name: handoff.Clip(answer.Name, maxText), Service: key, session: session}, err
}

// isService returns nil if a key is the service's, by its key or by the fingerprint in the invitation.
func (v Visit) isService(key ed25519.PublicKey) error {
	if v.Service != nil && bytes.Equal(key, v.Service) ||
		v.Service == nil && v.Invitation != nil && Fingerprint(key) == v.Invitation.Fingerprint {
		return nil
	}
	return errStranger
}

// A Reach connects to an agent of this machine. serve serves a connection of the service to that agent until either
// ends.
type Reach func(ctx context.Context, to Opening) (serve func(net.Conn), err error)

// Serve serves the connections of the service to agents of this machine, at most maxStreams at a time, until the line
// is lost or ctx ends. They end then too, but an agent may take its time: work has those that have not ended, so that
// the next line need not wait for them.
func (d *Door) Serve(ctx context.Context, work *sync.WaitGroup, reach Reach) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { _ = d.session.Close() }() // ends all connections
	defer context.AfterFunc(ctx, func() { _ = d.session.Close() })()
	slots := make(chan struct{}, maxStreams) // has a token for each connection
	for {
		raw, err := d.session.AcceptStream()
		if err != nil {
			return err
		}
		own := stream{raw}
		select {
		case slots <- struct{}{}:
		default:
			_ = own.Close() // a service never needs so many
			continue
		}
		work.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = own.Close() }()
			serveStream(ctx, own, reach)
		})
	}
}

// serveStream serves a connection to the agent that its Opening names.
func serveStream(ctx context.Context, own net.Conn, reach Reach) {
	var to Opening
	if errors.Join(own.SetDeadline(time.Now().Add(openTimeout)), readFrame(own, &to)) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	serve, err := reach(ctx, to)
	cancel()
	if err != nil {
		fault := servers.DialFault("", err)
		_ = writeFrame(own, opened{handoff.Clip(cmp.Or(fault.Detail, err.Error()), maxText), fault.Reason})
		return
	}
	if errors.Join(writeFrame(own, opened{}), own.SetDeadline(time.Time{})) != nil {
		_ = own.Close() // what serves it sees that
	}
	serve(own)
}

// Join copies bytes between two connections, both ways, until either ends or ctx does, and closes both.
func Join(ctx context.Context, a, b io.ReadWriteCloser) {
	end := sync.OnceFunc(func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer end()
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	forward := func(to io.Writer, from io.Reader) {
		defer end()
		_, _ = io.Copy(to, from) // an error ends both directions, like the end of from
	}
	both.Go(func() { forward(a, b) })
	both.Go(func() { forward(b, a) })
	both.Wait()
}

// Tell sends the service the machine's state. Calls must not overlap.
func (d *Door) Tell(about About) error {
	if d.reports == nil {
		stream, err := d.session.Open()
		if err != nil {
			return err
		}
		d.reports = stream
	}
	if err := d.reports.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return writeFrame(d.reports, about)
}

// Check pings the service, as after a change of the network, and closes the line if the answer takes longer than
// checkTimeout.
func (d *Door) Check() {
	answered := make(chan error, 1)
	go func() { // ends with the line
		_, err := d.session.Ping()
		answered <- err
	}()
	timer := time.NewTimer(checkTimeout)
	defer timer.Stop()
	select {
	case err := <-answered:
		if err == nil {
			return
		}
	case <-timer.C:
	}
	_ = d.session.Close() // ends Serve
}

// checkTimeout is how long the service may take to answer a Check.
const checkTimeout = 3 * time.Second

// Close closes the line.
func (d *Door) Close() error { return d.session.Close() }
