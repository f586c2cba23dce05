package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// lineProtocol is the protocol of a connection between instances that leads to an agent.
	lineProtocol = "switchboard-line"
	// openWithin bounds how long a machine takes to open a connection to its agent.
	openWithin = 20 * time.Second
	// maxFault bounds a lineFault, in bytes.
	maxFault = 16 << 10
)

// Lines reaches the agents of machines that keep a line to this instance. Errors are a [handoff.Error].
type Lines interface {
	// DialHere opens a connection to the agent of a server; apart asks for one that only reads.
	DialHere(ctx context.Context, server string, apart bool) (net.Conn, error)
}

// A lineFault is why an instance did not open a connection to an agent.
type lineFault struct {
	Reason handoff.Reason `json:"reason"`
	Detail string         `json:"detail"`
}

// DialLine opens a connection to an agent whose machine keeps its line to another instance. It asks one instance after
// another. If none has the line, the error has the reason [handoff.ReasonAsleep].
func (f *Forwarder) DialLine(ctx context.Context, server string, apart bool) (net.Conn, error) {
	fault := &handoff.Error{Code: handoff.CodeUnreachable, Subject: server, Reason: handoff.ReasonAsleep,
		Detail: "its machine is connected to no instance"}
	for _, p := range f.locator.Instances() {
		if p.ID == f.self || p.Address == "" {
			continue
		}
		conn, said, err := f.openLine(ctx, p, server, apart)
		switch {
		case err == nil && conn != nil:
			f.counts.lines.Add(lineOpened)
			return conn, nil
		case err != nil: // another instance may have the line
			f.log.Info("instance not asked for a line", zap.String("instance", p.ID), zap.Error(err))
		case said.Reason != handoff.ReasonAsleep && said.Reason != handoff.ReasonNotJoined:
			fault.Reason, fault.Detail = said.Reason, said.Detail // this instance has the line
		}
	}
	f.counts.lines.Add(lineNone)
	return nil, fault
}

// openLine requests a connection to an agent from one instance. It returns the connection, or why the instance refused.
func (f *Forwarder) openLine(
	ctx context.Context, to handoff.Instance, server string, apart bool,
) (_ net.Conn, said lineFault, err error) {
	conn, err := f.dialTLS(context.WithValue(ctx, peerKey{}, to), "tcp", "")
	if err != nil {
		return nil, said, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	query := url.Values{"server": {server}}
	if apart {
		query.Set("apart", "true")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+to.Fingerprint+"/?"+query.Encode(), nil)
	if err != nil {
		_ = conn.Close()
		return nil, said, err
	}
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {lineProtocol},
		hopHeader: {hop{by: f.self, line: true}.String()}}
	buffered := bufio.NewReader(conn)
	var answer *http.Response
	if err = conn.SetDeadline(time.Now().Add(openWithin)); err == nil {
		err = r.Write(conn)
	}
	if err == nil {
		answer, err = http.ReadResponse(buffered, r)
	}
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
		if err = conn.SetDeadline(time.Time{}); err == nil && ctx.Err() == nil {
			return lineConn{conn, buffered}, said, nil
		}
	}
	defer conn.Close()
	switch {
	case err != nil:
		return nil, said, err
	case ctx.Err() != nil:
		return nil, said, context.Cause(ctx)
	case answer.StatusCode != http.StatusBadGateway:
		return nil, said, errors.New("the instance answers " + answer.Status)
	}
	return nil, said, json.NewDecoder(io.LimitReader(answer.Body, maxFault)).Decode(&said)
}

// A lineConn is a connection of which some bytes were read into a buffer before.
type lineConn struct {
	net.Conn
	first *bufio.Reader
}

// NetConn returns the TLS connection below, so that the transport finds the TCP socket and drops what is unsent.
func (c lineConn) NetConn() net.Conn { return c.Conn }

// Read reads the buffered bytes first.
func (c lineConn) Read(b []byte) (int, error) { return c.first.Read(b) }

// serveLine gives another instance a connection to an agent whose machine keeps its line here.
func (f *Forwarder) serveLine(w http.ResponseWriter, r *http.Request, by string) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	leave, err := f.enter(&flight{to: by, cut: cancel, endless: true})
	if err == nil {
		defer leave()
		err = f.joinLine(ctx, w, r)
	}
	if err != nil {
		fault := handoff.AsError(err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(lineFault{fault.Reason, fault.Detail}) // the other instance may have left
	}
}

// joinLine copies between the other instance and an agent until one of them closes or ctx ends. After an error, nothing
// was answered.
func (f *Forwarder) joinLine(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	if f.lines == nil {
		return &handoff.Error{Code: handoff.CodeUnreachable, Reason: handoff.ReasonNotJoined}
	}
	far, err := f.lines.DialHere(ctx, r.URL.Query().Get("server"), r.URL.Query().Get("apart") != "")
	if err != nil {
		return err
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer near.Close()
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	f.counts.taken.Add(takenLine)
	const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + lineProtocol + "\r\n\r\n"
	if _, err := io.WriteString(near, switched); err != nil {
		return nil // the other instance has left
	}
	ended := make(chan struct{})
	go func() { // ends with both connections
		defer close(ended)
		_, _ = io.Copy(near, far)
		_, _ = near.Close(), far.Close()
	}()
	_, _ = io.Copy(far, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), near))
	_, _ = near.Close(), far.Close()
	<-ended
	return nil
}
