package joined

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// ServeHTTP takes the line of a machine: a WebSocket that is a line until either end is gone. known is called once the
// machine has proved who it is.
func (m *Machines) ServeHTTP(w http.ResponseWriter, r *http.Request, known func()) error {
	if !m.enter() {
		return &handoff.Error{Code: handoff.CodeLimited, Subject: "machines that shake hands", Retry: beat}
	}
	defer m.open.Done()
	upgrader := websocket.Upgrader{HandshakeTimeout: shakeTimeout, ReadBufferSize: 16 << 10, WriteBufferSize: 32 << 10}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		m.shaken()
		m.cfg.Log.Debug("no line", zap.Error(err)) // it was answered
		return nil
	}
	defer func() { _ = conn.Close() }() // it is gone either way
	defer context.AfterFunc(m.life, func() { _ = conn.Close() })()
	ctx, come := context.WithTimeout(context.Background(), shakeTimeout) // ends when its line is there, or does not come
	defer come()
	one, secure, err := m.shake(ctx, newSocket(conn))
	m.shaken()
	if errors.Is(err, errLeft) {
		m.cfg.Log.Info("a machine has left", zap.String("machine", one.Name))
		return nil
	}
	if err != nil {
		m.counts.refused.Add(1)
		m.cfg.Log.Info("a machine was refused", zap.Error(err))
		return nil
	}
	known()
	session, err := yamux.Client(secure, multiplexed())
	if err != nil {
		return nil
	}
	m.carry(one, session, come)
	return nil
}

// errLeft ends the line on which a machine asked to be forgotten.
var errLeft = errors.New("it left")

// enter counts a handshake, unless there are too many, or no line is taken any more.
func (m *Machines) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended || m.shaking >= maxShaking {
		return false
	}
	m.shaking++
	m.open.Add(1)
	return true
}

func (m *Machines) shaken() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shaking--
}

// shake shakes hands with a machine: it proves its key, and is let in or told why not.
func (m *Machines) shake(ctx context.Context, conn *socket) (*machine, *tls.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(shakeTimeout)); err != nil {
		return nil, nil, err
	}
	secure := tls.Server(conn, m.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, nil, errors.Join(err, m.refused(ctx, nil, "", "handshake"))
	}
	key, err := peerKey(secure.ConnectionState())
	if err != nil {
		return nil, nil, err
	}
	var h hello
	if err := readFrame(secure, &h); err != nil {
		return nil, nil, err // also where it refused us, which TLS 1.3 tells here
	}
	h.About = h.About.bounded()
	var one *machine
	err = m.newest(ctx, func() (err error) {
		one, err = m.let(ctx, key, h)
		return err
	})
	if err != nil {
		why, ok := errors.AsType[Refusal](err)
		if !ok {
			why = RefusedForNow
		}
		return nil, nil, errors.Join(err, m.refused(ctx, key, h.Name, string(why)), writeFrame(secure, welcome{Refused: why}))
	}
	err = errors.Join(writeFrame(secure, welcome{Name: one.Name}), conn.SetDeadline(time.Time{}))
	if err == nil && h.Leave {
		err = errLeft
	}
	return one, secure, err
}

// let decides whether a machine is let in, and as which. It is called in changes. An error may be a [Refusal]. ctx ends
// when the line of the machine is there, or does not come.
func (m *Machines) let(ctx context.Context, key ed25519.PublicKey, h hello) (*machine, error) {
	was := m.find(key)
	invitedAs, invited := "", false
	if h.Secret != nil {
		var err error
		if invitedAs, invited, err = m.spend(ctx, h.Secret); err != nil {
			return nil, err
		}
	}
	switch {
	case was == nil && h.Secret == nil:
		return nil, RefusedKey
	case was == nil && !invited:
		return nil, RefusedCode
	case was != nil && invited && invitedAs != was.Name:
		return nil, RefusedTwice
	case was != nil && h.Leave:
		return was, m.forget(ctx, was, "machine "+hex.EncodeToString(key[:8]), "left")
	case was != nil && h.Name != "" && h.Name != was.Name && !slices.Contains(was.kept.Former, h.Name):
		return nil, RefusedName
	}
	is := machine{Record: Record{Key: key, Name: invitedAs, Joined: time.Now().UTC().Truncate(time.Millisecond)}}
	if was != nil {
		is = *was
	} else if err := m.audit(ctx, "machine "+hex.EncodeToString(key[:8]), invitedAs, "joined"); err != nil {
		return nil, err
	}
	is.kept, is.coming = is.kept.named(h.About), ctx.Done()
	if was != nil && !m.differ(was, &is) {
		return was, nil
	}
	if err := m.replace(ctx, was, is); err != nil {
		m.cfg.Log.Warn("a machine cannot be taken as it is", zap.String("machine", is.Name), zap.Error(err))
		if handoff.AsError(err).Code == handoff.CodeMalformed {
			return nil, RefusedAgents
		}
		return nil, err
	}
	return m.find(key), nil
}

// differ reports whether the servers of a machine are other ones now.
func (m *Machines) differ(was, is *machine) bool {
	return !reflect.DeepEqual(m.serversOf(was), m.serversOf(is))
}

// carry keeps a line until it is lost, in the place of an earlier one of that machine. come is called once dials find
// it.
func (m *Machines) carry(one *machine, session *yamux.Session, come func()) {
	own := &line{session}
	defer func() { _ = session.Close() }() // it is gone either way
	if !m.connect(one.Key, own) {
		return
	}
	come()
	m.counts.opened.Add(1)
	m.counts.lines.Add(1)
	m.cfg.Log.Info("machine connected", zap.String("machine", one.Name))
	for {
		stream, err := session.Accept() // the machine opens one, to tell how it is
		if err != nil {
			break
		}
		for {
			var about About
			if err := readFrame(stream, &about); err != nil {
				break
			}
			m.tells(one.Key, about.bounded())
		}
		_ = stream.Close()
	}
	m.counts.lines.Add(-1)
	m.disconnect(one.Key, own)
	m.cfg.Log.Info("machine lost", zap.String("machine", one.Name))
}

// connect makes a line that of its machine, and has its agents dialled. It is false when the machine is gone.
func (m *Machines) connect(key []byte, own *line) bool {
	m.mu.Lock()
	now := m.all[hex.EncodeToString(key)]
	if now == nil || m.ended {
		m.mu.Unlock()
		return false
	}
	before, is := now.line, *now
	is.line = own
	m.all[hex.EncodeToString(key)] = &is
	all := m.serversOf(&is)
	m.lines.put(all, own, nil)
	m.mu.Unlock()
	if before != nil {
		_ = before.session.Close()
	}
	for _, s := range all {
		m.cfg.Fleet.Retry(s.Name)
	}
	return true
}

// disconnect notes that a line is lost, unless another one is in its place.
func (m *Machines) disconnect(key []byte, own *line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.all[hex.EncodeToString(key)]
	if now == nil || now.line != own {
		return
	}
	is := *now
	is.line, is.seen = nil, time.Now()
	m.all[hex.EncodeToString(key)] = &is
	m.lines.put(m.serversOf(&is), nil, nil)
}

// tells takes what a machine tells about itself while it is connected.
func (m *Machines) tells(key []byte, about About) {
	ctx, cancel := context.WithTimeout(context.Background(), shakeTimeout)
	defer cancel()
	err := m.newest(ctx, func() error {
		was := m.find(key)
		if was == nil {
			return nil
		}
		is := *was
		if is.kept = is.kept.named(about); m.differ(was, &is) {
			return m.replace(ctx, was, is)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if now := m.all[hex.EncodeToString(key)]; now != nil { // its line may be another one
			is.line, is.seen = now.line, now.seen
			m.all[hex.EncodeToString(key)] = &is
		}
		return nil
	})
	if err != nil {
		m.cfg.Log.Warn("what a machine tells cannot be taken", zap.Error(err))
	}
}

// Remove forgets a machine, which is told so and does not come back.
func (m *Machines) Remove(ctx context.Context, by handoff.Caller, name string) error {
	return m.newest(ctx, func() error {
		one, err := m.itself(name)
		if err != nil {
			return err
		}
		return m.forget(ctx, one, by.String(), "removed")
	})
}

// forget takes a machine away. It is called in changes.
func (m *Machines) forget(ctx context.Context, one *machine, who, act string) error {
	if err := m.audit(ctx, who, one.Name, act); err != nil {
		return err
	}
	if _, err := m.cfg.Store.DropMachine(ctx, one.Key); err != nil {
		return err
	}
	return m.part(one)
}

// part ends that a machine is known here. It is called in changes.
func (m *Machines) part(one *machine) error {
	var names []string
	for _, s := range m.serversOf(one) {
		names = append(names, s.Name)
	}
	err := m.cfg.Fleet.Change(names, nil)
	m.mu.Lock()
	now := m.all[hex.EncodeToString(one.Key)]
	delete(m.all, hex.EncodeToString(one.Key))
	m.lines.drop(names)
	m.mu.Unlock()
	if now != nil && now.line != nil { // who leaves hears on another line that it is done
		_ = now.line.session.Close()
	}
	return err
}

// Rename gives a machine another name. Its former one still means it.
func (m *Machines) Rename(ctx context.Context, by handoff.Caller, name, to string) error {
	if !machineName.MatchString(to) {
		return handoff.Malformed("name",
			"a machine's name is at most 40 of A-Z a-z 0-9 . _ -, beginning with a letter or figure")
	}
	return m.newest(ctx, func() error {
		was, err := m.itself(name)
		if err != nil || was.Name == to {
			return err
		}
		if err := m.audit(ctx, by.String(), was.Name, "renamed "+to); err != nil {
			return err
		}
		is := *was
		is.Name = to
		former := slices.DeleteFunc(append(slices.Clone(is.kept.Former), was.Name), func(f string) bool { return f == to })
		is.kept.Former = former[max(len(former)-maxFormer, 0):]
		return m.replace(ctx, m.find(was.Key), is)
	})
}

// audit keeps what was done with a machine.
func (m *Machines) audit(ctx context.Context, who, name, act string) error {
	return m.cfg.Auditor.Audit(ctx, handoff.AuditRecord{Who: who, Server: name, Act: act, At: time.Now()})
}

// refused audits that a machine was refused; who tries without end is only counted. key is nil where it proved none.
func (m *Machines) refused(ctx context.Context, key ed25519.PublicKey, name, why string) error {
	now := time.Now()
	m.mu.Lock()
	m.told = slices.DeleteFunc(m.told, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	tell := len(m.told) < maxRefusals
	if tell {
		m.told = append(m.told, now)
	}
	m.mu.Unlock()
	if !tell {
		return nil
	}
	who := "machine"
	if key != nil {
		who += " " + hex.EncodeToString(key[:8])
	}
	return m.audit(ctx, who, handoff.Clip(name, maxText), "refused: "+why)
}

// Show adds what a machine tells to what people are shown of its server.
func (m *Machines) Show(server string, to *handoff.Machine) {
	one, err := m.called(server)
	if err != nil {
		return
	}
	about := one.kept.About
	to.Joined, to.Machine, to.System, to.Program = one.Joined, one.Name, about.System, about.Version
	if one.line != nil || !m.cfg.Shared { // else another instance knows how it is now
		to.DiskFree, to.Battery, to.Charging = about.Live.DiskFree, about.Live.Battery, about.Live.Charging
	}
	to.Ceiling, to.NoYes = cmp.Or(to.Ceiling, about.Ceiling), !about.Answers
}

// Metrics yields how many machines there are and what became of their lines.
func (m *Machines) Metrics() iter.Seq[handoff.Metric] {
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_machines_joined", "Machines that joined.", len(m.sorted())),
		handoff.NewMetric("switchboard_machine_lines_open", "Lines of machines that are open.", int(m.counts.lines.Load())),
		handoff.NewMetric("switchboard_machine_lines_total", "Lines of machines that were opened.", m.counts.opened.Load()),
		handoff.NewMetric("switchboard_machines_refused_total", "Machines that were refused.", m.counts.refused.Load()),
	})
}
