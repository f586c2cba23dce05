package joined

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// TestAttackers: a machine without a valid key or invitation is not let in, and each try is audited.
func TestAttackers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		try  func(t *testing.T, s *service, mini, own ed25519.PrivateKey, used *Invitation) error
		want error // nil: any
		act  string
	}{
		{"a used code", func(t *testing.T, s *service, _, own ed25519.PrivateKey, used *Invitation) error {
			_, err := Visit{URL: s.url, Key: own, Invitation: used, About: codex}.Open(t.Context())
			return err
		}, RefusedCode, "machine: refused: used or unknown code"},
		{"a guessed code", func(t *testing.T, s *service, _, own ed25519.PrivateKey, used *Invitation) error {
			guess := *used
			guess.Secret[0]++
			_, err := Visit{URL: s.url, Key: own, Invitation: &guess, About: codex}.Open(t.Context())
			return err
		}, RefusedCode, "machine: refused: used or unknown code"},
		{"an old code", func(t *testing.T, s *service, _, own ed25519.PrivateKey, _ *Invitation) error {
			i := s.invite(t, "late")
			s.memory.mu.Lock()
			s.memory.invited[len(s.memory.invited)-1].Until = time.Now()
			s.memory.mu.Unlock()
			_, err := Visit{URL: s.url, Key: own, Invitation: i, About: codex}.Open(t.Context())
			return err
		}, RefusedCode, "machine: refused: used or unknown code"},
		{"no code", func(t *testing.T, s *service, _, own ed25519.PrivateKey, _ *Invitation) error {
			_, err := Visit{URL: s.url, Key: own, Service: s.key.Public().(ed25519.PublicKey), About: codex}.Open(t.Context())
			return err
		}, RefusedKey, "machine: refused: unknown key"},
		{"a stolen public key", func(t *testing.T, s *service, mini, own ed25519.PrivateKey, _ *Invitation) error {
			return s.impersonate(t, mini.Public().(ed25519.PublicKey), own)
		}, nil, "machine: refused: handshake"},
		{"a replayed handshake", func(t *testing.T, s *service, mini, _ ed25519.PrivateKey, _ *Invitation) error {
			v := Visit{Key: mini, Service: s.key.Public().(ed25519.PublicKey), Name: "mini", About: codex}
			lines := s.counts.opened.Load()
			err := s.replay(t, v)
			until(t, "the recorded line", func() bool { return s.counts.opened.Load() > lines }) // it may come late
			lines = s.counts.opened.Load()
			serve(t, s.open(t, v)) // the recorded handshake has replaced the machine's line
			until(t, "its line", func() bool { return s.counts.opened.Load() > lines })
			return err
		}, nil, "machine: refused: handshake"},
		{"another machine's name", func(t *testing.T, s *service, _, own ed25519.PrivateKey, _ *Invitation) error {
			mac := s.open(t, Visit{Key: own, Invitation: s.invite(t, "mac"), About: codex})
			_, err := Visit{URL: s.url, Key: own, Service: mac.Service, Name: "mini", About: codex}.Open(t.Context())
			return err
		}, RefusedName, "machine mini: refused: another machine's name"},
		{"the name of a machine without its key", func(t *testing.T, s *service, _, own ed25519.PrivateKey, _ *Invitation) error {
			_, err := Visit{URL: s.url, Key: own, Service: s.key.Public().(ed25519.PublicKey), Name: "mini", About: codex}.Open(t.Context())
			return err
		}, RefusedKey, "machine mini: refused: unknown key"},
		{"a wrong fingerprint", func(t *testing.T, s *service, _, own ed25519.PrivateKey, _ *Invitation) error {
			i := s.invite(t, "other")
			i.Fingerprint[0]++
			_, err := Visit{URL: s.url, Key: own, Invitation: i, About: codex}.Open(t.Context())
			if there, ok, err := s.invitation(t.Context(), i.Secret[:]); !ok || there.Name != "other" || err != nil {
				t.Error("the code went to a stranger")
			}
			return err
		}, errStranger, "machine: refused: handshake"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, mini, own := fresh(t), newKey(t), newKey(t)
			used := s.invite(t, "mini")
			serve(t, s.open(t, Visit{Key: mini, Invitation: used, About: codex}))
			until(t, "mini", func() bool { return s.counts.lines.Load() == 1 })
			err := row.try(t, s, mini, own, used)
			if err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("it was told %v, want %v", err, row.want)
			}
			until(t, "its record", func() bool { return slices.Contains(s.memory.audited(), row.act) })
			for _, one := range s.sorted() {
				if one.Name == "mini" && !bytes.Equal(one.Key, mini.Public().(ed25519.PublicKey)) {
					t.Error("mini has another key")
				}
			}
			s.says(t, "mini", "still here")
		})
	}
}

// TestNamesOfOthers: a machine cannot take the name of another machine's server by the names of its agents or by their
// order, nor the name of a machine without agents.
func TestNamesOfOthers(t *testing.T) {
	t.Parallel()
	s, mini, studio, bare := fresh(t), newKey(t), newKey(t), newKey(t)
	serve(t, s.open(t, Visit{Key: studio, Invitation: s.invite(t, "mini-studio"), About: codex}))
	s.open(t, Visit{Key: bare, Invitation: s.invite(t, "bare")})
	until(t, "mini-studio", func() bool { return s.counts.lines.Load() == 2 })

	both := About{Agents: []Agent{codex.Agents[0], {Name: "studio", Kind: "codex"}}}
	_, err := Visit{URL: s.url, Key: mini, Invitation: s.invite(t, "mini"), About: both}.Open(t.Context())
	if !errors.Is(err, RefusedAgents) {
		t.Errorf("it joined with the name of another machine's server: %v", err)
	}
	door := s.open(t, Visit{Key: mini, Invitation: s.invite(t, "mini"), About: codex})
	serve(t, door)
	must(t, door.Tell(both))
	must(t, door.Tell(About{Version: "2", Agents: codex.Agents})) // the service handles it after the report before it
	until(t, "its version", func() bool { return s.find(mini.Public().(ed25519.PublicKey)).details.About.Version == "2" })
	s.says(t, "mini-studio", "still here")

	owner := handoff.Caller{Principal: "owner"}
	if err := s.Rename(t.Context(), owner, "mini", "bare"); err == nil {
		t.Error("two machines have a name")
	}
	first, second := s.invite(t, "twin"), s.invite(t, "twin")
	s.open(t, Visit{Key: newKey(t), Invitation: first})
	if _, err := (Visit{URL: s.url, Key: newKey(t), Invitation: second}).Open(t.Context()); !errors.Is(
		err,
		RefusedAgents,
	) {
		t.Errorf("two machines have a name: %v", err)
	}
}

// TestInvitationOutlivesRefusal: an invitation is used up only by the machine that is let in.
func TestInvitationOutlivesRefusal(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini-studio"), About: codex})
	i := s.invite(t, "mini")
	v := Visit{URL: s.url, Key: key, Invitation: i, About: About{Agents: []Agent{codex.Agents[0], {Name: "studio", Kind: "codex"}}}}
	if _, err := v.Open(t.Context()); !errors.Is(err, RefusedAgents) {
		t.Errorf("with a name that clashes: %v", err)
	}
	s.memory.mu.Lock()
	s.memory.refuse = errors.New("the disk is full")
	s.memory.mu.Unlock()
	v.About = codex
	if _, err := v.Open(t.Context()); !errors.Is(err, RefusedForNow) || slices.Contains(s.memory.names(), "mini") {
		t.Errorf("with a store that is full: %v, %v", err, s.memory.names())
	}
	s.memory.mu.Lock()
	s.memory.refuse = nil
	s.memory.mu.Unlock()
	s.open(t, v)
	v.Key = newKey(t)
	if _, err := v.Open(t.Context()); !errors.Is(err, RefusedCode) {
		t.Errorf("used again: %v", err)
	}
}

// TestManyReports: a machine that reports other agents all the time, also on new lines, changes the fleet and the store
// now and then only, and is remembered with few names. Its connections go on.
func TestManyReports(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	var changes atomic.Int64
	s.memory.mu.Lock()
	s.memory.changing = func(string) { changes.Add(1) }
	s.memory.mu.Unlock()
	began := time.Now()
	about := func(n int) About {
		all := About{}
		for i := range maxAgents {
			all.Agents = append(all.Agents, Agent{Name: fmt.Sprintf("a-%d-%d", n, i), Kind: "codex"})
		}
		return all
	}
	v := Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex}
	for n := range 2 * reportsAtOnce {
		door := s.open(t, v)
		v.Invitation, v.Service, v.Name, v.About = nil, door.Service, "mini", about(n)
		serve(t, door)
		if n+1 < 2*reportsAtOnce {
			must(t, door.Close())
			continue
		}
		for n := range 100 {
			must(t, door.Tell(about(1000+n)))
		}
		ping, err := door.session.Ping() // what came before has come
		if err != nil {
			t.Errorf("after %v: %v", ping, err)
		}
	}
	taken := int64(maxAgents) * int64(reportsAtOnce+2+int(time.Since(began)/reportsEvery)) // with the one that joined
	if got := changes.Load(); got > taken {
		t.Errorf("%d servers were made, more than %d", got, taken)
	}
	d := details{Servers: map[string]string{"codex": ""}}
	for n := range 1000 {
		d = d.withAgents(about(n))
	}
	if suffix, kept := d.Servers["codex"]; !kept || suffix != "" || len(d.Servers) > maxNames {
		t.Errorf("%d names are remembered, of codex: %t", len(d.Servers), kept)
	}
}

// TestEarlierVisitComesLate: of two visits of a machine, the later one's line stays, in whatever order they connect.
func TestEarlierVisitComesLate(t *testing.T) {
	s, key := fresh(t), newKey(t)
	serve(t, s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex}))
	until(t, "mini", func() bool { return s.counts.lines.Load() == 1 })
	public := key.Public().(ed25519.PublicKey)
	now := s.find(public).line
	if s.connect(public, &line{visit: now.visit - 1}) || s.find(public).line != now || now.session.IsClosed() {
		t.Error("the earlier visit took the place of the later one")
	}
}

// TestManyConnections: a machine serves maxStreams connections at a time, and another one when one has ended.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	serve(t, s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini"), About: codex}))
	until(t, "mini", func() bool { return s.counts.lines.Load() == 1 })
	var open []net.Conn
	for range maxStreams {
		conn, err := s.lines.Dial(t.Context(), "mini", false)
		must(t, err)
		open = append(open, conn)
	}
	if conn, err := s.lines.Dial(t.Context(), "mini", false); err == nil {
		t.Error("it serves more")
		must(t, conn.Close())
	}
	for _, conn := range open {
		_ = conn.Close() // the other end sees it
	}
	until(t, "a free place", func() bool {
		conn, err := s.lines.Dial(t.Context(), "mini", false)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// TestLineDuringChange: a line that is lost or opened while a report of its machine is being stored stays lost or open.
func TestLineDuringChange(t *testing.T) {
	t.Parallel()
	s, key := fresh(t), newKey(t)
	door := s.open(t, Visit{Key: key, Invitation: s.invite(t, "mini"), About: codex})
	serve(t, door)
	until(t, "mini", func() bool { return s.counts.lines.Load() == 1 })
	s.memory.mu.Lock()
	s.memory.putting = func() { // the line is lost, and the machine comes back on another one
		is := s.find(key.Public().(ed25519.PublicKey))
		s.disconnect(is.Key, is.line)
	}
	s.memory.mu.Unlock()
	must(t, s.Rename(t.Context(), handoff.Caller{Principal: "owner"}, "mini", "studio"))
	if is := s.find(key.Public().(ed25519.PublicKey)); is.line != nil {
		t.Error("the line that was lost is its line again")
	}
	if _, err := s.lines.Dial(t.Context(), "studio", false); err == nil ||
		!strings.Contains(handoff.AsError(err).Detail, "offline") {
		t.Errorf("it is dialled through a line that was lost: %v", err)
	}
}

// raw opens a WebSocket to a service.
func (s *service) raw(t *testing.T) *socket {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+Path, nil)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return newSocket(conn)
}

// impersonate presents the certificate of a public key, and signs with another key.
func (s *service) impersonate(t *testing.T, victim ed25519.PublicKey, own ed25519.PrivateKey) error {
	t.Helper()
	shown, err := certificate(own)
	must(t, err)
	forged := bytes.Replace(shown.Certificate[0], own.Public().(ed25519.PublicKey), victim, 1)
	conn := tls.Client(s.raw(t), tlsConfig(tls.Certificate{Certificate: [][]byte{forged}, PrivateKey: liar{own, victim}},
		func(ed25519.PublicKey) error { return nil }))
	if err := conn.Handshake(); err != nil {
		return err
	}
	var answer welcome
	return errors.Join(writeFrame(conn, hello{Name: "mini", About: codex}), readFrame(conn, &answer))
}

// A liar is a signer that signs with its own key and has the public key of another.
type liar struct {
	ed25519.PrivateKey
	shown ed25519.PublicKey
}

func (l liar) Public() any { return l.shown }

// A recorder is a connection that records what is written to it.
type recorder struct {
	net.Conn
	sent [][]byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.sent = append(r.sent, bytes.Clone(p))
	return r.Conn.Write(p)
}

// replay records the handshake of a machine, and sends the recorded bytes again.
func (s *service) replay(t *testing.T, v Visit) error {
	t.Helper()
	own, err := certificate(v.Key)
	must(t, err)
	first := &recorder{Conn: s.raw(t)}
	conn := tls.Client(first, tlsConfig(own, v.isService))
	must(t, conn.Handshake())
	var answer welcome
	must(t, errors.Join(writeFrame(conn, hello{Name: v.Name, About: v.About}), readFrame(conn, &answer)))
	must(t, conn.Close())
	again := s.raw(t)
	for _, part := range first.sent {
		if _, err := again.Write(part); err != nil {
			return err
		}
	}
	must(t, again.SetDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, again) // until it is ended
	return errors.Join(err, errors.New("it was ended"))
}

// TestLostLineEndsAtOnce: the end of a line does not wait for an agent whose connection takes long to end.
func TestLostLineEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	door := s.open(t, Visit{Key: newKey(t), Invitation: s.invite(t, "mini"), About: codex})
	var work sync.WaitGroup
	goOn, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = door.Serve(t.Context(), &work, func(context.Context, Opening) (func(net.Conn), error) {
			return func(net.Conn) { <-goOn }, nil
		})
	}()
	until(t, "mini", func() bool { return s.counts.lines.Load() == 1 })
	_, err := s.lines.Dial(t.Context(), "mini", false)
	must(t, err)
	must(t, door.Close())
	select {
	case <-ended:
	case <-time.After(patience / 4):
		t.Error("it waits for the agent")
	}
	close(goOn)
	<-ended
	work.Wait()
}
