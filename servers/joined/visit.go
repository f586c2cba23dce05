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

// Path is where a service takes lines.
const Path = "/node"

// A Visit is what a machine brings to open its line.
type Visit struct {
	URL        string             // of the service, such as https://bigpc.tail1234.ts.net
	Key        ed25519.PrivateKey // its own
	Service    ed25519.PublicKey  // of the service that it joined; nil: the invitation says whose it must be
	Invitation *Invitation        // that it joins with; nil: it has joined
	Name       string             // that it was told
	Leave      bool               // it wants to be forgotten
	About      About
}

// CheckURL reports what is wrong in the address of a service: a line goes to another machine by https alone.
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
	Name    string            // what the machine is called now
	Service ed25519.PublicKey // the key that the service proved

	session *yamux.Session
	telling net.Conn // Owned by Tell: the stream on which the machine tells how it is; nil: not open yet
}

// Open opens a line. An error may be a [Refusal].
func (v Visit) Open(ctx context.Context) (*Door, error) {
	if err := CheckURL(v.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, shakeTimeout)
	defer cancel()
	dialer := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: shakeTimeout, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
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
	door, err := v.shake(newSocket(conn))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // it is gone either way
		return nil, err
	}
	return door, nil
}

// shake shakes hands: the service proves its key, then the machine says hello.
func (v Visit) shake(conn *socket) (*Door, error) {
	own, err := certificate(v.Key)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(shakeTimeout)); err != nil {
		return nil, err
	}
	secure := tls.Client(conn, secured(own, v.isService))
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
	session, err := yamux.Server(secure, multiplexed())
	return &Door{Name: handoff.Clip(answer.Name, maxText), Service: key, session: session}, err
}

// isService judges the key that the service proved.
func (v Visit) isService(key ed25519.PublicKey) error {
	if v.Service != nil && bytes.Equal(key, v.Service) ||
		v.Service == nil && v.Invitation != nil && Fingerprint(key) == v.Invitation.Fingerprint {
		return nil
	}
	return errStranger
}

// Serve connects the service with agents of this machine until the line is lost or ctx ends. dial opens a connection to
// an agent by its name; no other is reached, and at most maxStreams at a time. Serve returns when all connections have
// ended.
func (d *Door) Serve(ctx context.Context, dial func(ctx context.Context, to Opening) (net.Conn, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	defer func() { _ = d.session.Close() }() // it is gone either way
	defer context.AfterFunc(ctx, func() { _ = d.session.Close() })()
	free := make(chan struct{}, maxStreams) // has one for each connection
	for {
		raw, err := d.session.AcceptStream()
		if err != nil {
			return err
		}
		own := stream{raw}
		select {
		case free <- struct{}{}:
		default:
			_ = own.Close() // a service needs a few
			continue
		}
		work.Go(func() {
			defer func() { <-free }()
			if err := serveStream(ctx, own, dial); err != nil {
				_ = own.Close() // whoever dialed sees the end
			}
		})
	}
}

// serveStream connects a stream with the agent that it names.
func serveStream(
	ctx context.Context, own net.Conn, dial func(ctx context.Context, to Opening) (net.Conn, error),
) error {
	var to Opening
	if err := errors.Join(own.SetDeadline(time.Now().Add(openTimeout)), readFrame(own, &to)); err != nil {
		return err
	}
	reached, cancel := context.WithTimeout(ctx, openTimeout)
	agent, err := dial(reached, to)
	cancel()
	if err != nil {
		fault := servers.DialFault("", err)
		why := handoff.Clip(cmp.Or(fault.Detail, err.Error()), maxText)
		return errors.Join(writeFrame(own, opened{why, fault.Reason}), err)
	}
	if err := errors.Join(writeFrame(own, opened{}), own.SetDeadline(time.Time{})); err != nil {
		return errors.Join(err, agent.Close())
	}
	Join(ctx, own, agent)
	return nil
}

// Join carries bytes between two connections until either ends or ctx does, and closes both.
func Join(ctx context.Context, a, b net.Conn) {
	end := sync.OnceFunc(func() {
		_ = a.Close() // both are gone either way
		_ = b.Close()
	})
	defer end()
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	carry := func(to, from net.Conn) {
		defer end()
		_, _ = io.Copy(to, from) // the end of either is the end of both
	}
	both.Go(func() { carry(a, b) })
	both.Go(func() { carry(b, a) })
	both.Wait()
}

// Tell tells the service how the machine is. It is called by one goroutine.
func (d *Door) Tell(about About) error {
	if d.telling == nil {
		stream, err := d.session.Open()
		if err != nil {
			return err
		}
		d.telling = stream
	}
	if err := d.telling.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return writeFrame(d.telling, about)
}

// Check asks whether the line still carries, as after the network changed; one that does not is closed.
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
	_ = d.session.Close() // Serve tells that it is lost
}

// checkTimeout is how long a line may take to answer when there is reason to doubt it.
const checkTimeout = 3 * time.Second

// Close closes the line.
func (d *Door) Close() error { return d.session.Close() }
