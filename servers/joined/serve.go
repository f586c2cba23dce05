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
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// ServeHTTP takes the line of a machine, and returns when the line has ended. from is the address that the request came
// from, or the zero address if it is not known. It calls known when the machine is let in.
func (m *Machines) ServeHTTP(w http.ResponseWriter, r *http.Request, from netip.Addr, known func()) error {
	life, end := context.WithCancel(m.life)
	defer end()
	g := &guest{from: from, leave: end}
	if !m.enter(g) {
		return &handoff.Error{Code: handoff.CodeShutdown, Retry: beat}
	}
	defer m.open.Done()
	defer m.settled(g)
	upgrader := websocket.Upgrader{
		HandshakeTimeout: handshakeTimeout, ReadBufferSize: 16 << 10, WriteBufferSize: 32 << 10,
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		m.cfg.Log.Debug("no line", zap.Error(err)) // Upgrade has answered
		return nil
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(life, func() { _ = conn.Close() })()
	// ctx ends when the line can be dialled through, or the handshake has failed.
	ctx, dialled := context.WithTimeout(life, handshakeTimeout)
	defer dialled()
	one, secure, err := m.handshake(ctx, newSocket(conn), g)
	m.settled(g)
	if errors.Is(err, errLeft) {
		m.cfg.Log.Info("a machine has left", zap.String("machine", one.Name))
		return nil
	}
	if err != nil {
		m.counts.refused.Add(1)
		return nil
	}
	known()
	session, err := yamux.Client(secure, yamuxConfig())
	if err != nil {
		return nil
	}
	m.serveLine(one, &line{session, g.visit}, dialled)
	return nil
}

// errLeft ends the line on which a machine asked to be forgotten.
var errLeft = errors.New("it left")

// enter begins a handshake, which may end that of another guest. It returns false if Run has ended.
func (m *Machines) enter(g *guest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	if out := m.guests.enter(g); out != nil {
		m.counts.dropped.Add(1)
		out.leave()
	}
	m.open.Add(1)
	return true
}

// settled notes that a guest has proved a known key, or that its handshake is over.
func (m *Machines) settled(g *guest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.guests.leave(g)
}

// handshake has a machine prove its key, and lets it in or answers why not. A machine with a known key is a guest no
// more.
func (m *Machines) handshake(ctx context.Context, conn *socket, g *guest) (*machine, *tls.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, nil, err
	}
	secure := tls.Server(conn, m.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, nil, errors.Join(err, m.refused(ctx, nil, "", "handshake", err))
	}
	key, err := peerKey(secure.ConnectionState())
	if err != nil {
		return nil, nil, err
	}
	if m.find(key) != nil {
		m.settled(g)
	}
	var h hello
	if err := readFrame(secure, &h); err != nil {
		return nil, nil, err // also if the machine refuses our key: in TLS 1.3 that shows at the first read
	}
	h.About = h.About.bounded()
	var one *machine
	err = m.afterReading(ctx, func() (err error) {
		one, err = m.admit(ctx, key, h)
		m.visits++
		g.visit = m.visits
		if err != nil && (m.unread || m.rejected[hex.EncodeToString(key)] != "") {
			err = errors.Join(RefusedForNow, err) // what is known here may be old: no refusal for good rests on it
		}
		return err
	})
	if err != nil {
		why, ok := errors.AsType[Refusal](err)
		if !ok {
			why = RefusedForNow
		}
		return nil, nil, errors.Join(err, m.refused(ctx, key, h.Name, string(why), err),
			writeFrame(secure, welcome{Refused: why}))
	}
	err = errors.Join(writeFrame(secure, welcome{Name: one.Name}), conn.SetDeadline(time.Time{}))
	if err == nil && h.Leave {
		err = errLeft
	}
	return one, secure, err
}

// admit decides whether a machine is let in, and returns it. It is called in exclusively. An error may be a [Refusal].
// ctx ends when the machine's line can be dialled through, or the handshake has failed.
func (m *Machines) admit(ctx context.Context, key ed25519.PublicKey, h hello) (*machine, error) {
	was := m.find(key)
	i, invited, err := m.invitation(ctx, h.Secret)
	switch {
	case err != nil:
		return nil, err
	case was == nil && h.Secret == nil:
		return nil, RefusedKey
	case was == nil && !invited:
		return nil, RefusedCode
	case was != nil && invited && i.Name != was.Name:
		return nil, RefusedTwice
	case was != nil && h.Leave:
		return was, m.forget(ctx, was, "machine "+hex.EncodeToString(key[:8]), "left")
	case was != nil && h.Name != "" && h.Name != was.Name && !slices.Contains(was.details.Former, h.Name):
		return nil, RefusedName
	}
	is := machine{Record: Record{Key: key, Name: i.Name, Joined: time.Now().UTC().Truncate(time.Millisecond)},
		reports: newReports()}
	spent := false
	join := func() error { // once nothing speaks against the machine
		err := m.audit(ctx, "machine "+hex.EncodeToString(key[:8]), i.Name, "joined")
		if err == nil {
			spent, err = m.cfg.Invited.SpendInvitation(ctx, i.Sum)
		}
		if err == nil && !spent { // another machine has used it
			err = RefusedCode
		}
		return err
	}
	if was != nil {
		is, join = *was, nil
	}
	is.details, is.connecting = is.details.withAgents(h.About), ctx.Done()
	if was != nil && (!m.differ(was, &is) || !was.reports.Allow()) { // its first report on the line says it again
		return was, nil
	}
	if err := m.replace(ctx, was, is, join); err != nil {
		if spent {
			err = errors.Join(err, m.cfg.Invited.PutInvitation(context.WithoutCancel(ctx), i))
		}
		m.cfg.Log.Warn("a machine cannot be taken as it is", zap.String("machine", is.Name), zap.Error(err))
		if handoff.AsError(err).Code == handoff.CodeMalformed {
			return nil, RefusedAgents
		}
		return nil, err
	}
	return m.find(key), nil
}

// differ reports whether the servers of a machine have changed.
func (m *Machines) differ(was, is *machine) bool {
	return !reflect.DeepEqual(m.serversOf(was), m.serversOf(is))
}

// serveLine serves a line until it is lost. The line replaces an earlier one of the machine. settled is called once the
// machine's agents can be dialled through it.
func (m *Machines) serveLine(one *machine, own *line, settled func()) {
	session := own.session
	defer func() { _ = session.Close() }()
	if !m.connect(one.Key, own) {
		return
	}
	settled()
	m.counts.opened.Add(1)
	m.counts.lines.Add(1)
	m.cfg.Log.Info("machine connected", zap.String("machine", one.Name))
	ctx, lost := context.WithCancel(context.Background())
	go func() { // ends with the line
		<-session.CloseChan()
		lost()
	}()
	for {
		stream, err := session.Accept() // the machine opens one, for its reports
		if err != nil {
			break
		}
		for {
			var about About
			if err := readFrame(stream, &about); err != nil {
				break
			}
			if one.reports.Wait(ctx) != nil {
				break
			}
			m.update(one.Key, about.bounded())
		}
		_ = stream.Close()
	}
	m.counts.lines.Add(-1)
	m.disconnect(one.Key, own)
	if m.life.Err() == nil { // else Switchboard ends
		m.cfg.Log.Info("machine lost", zap.String("machine", one.Name))
	}
}

// connect makes own the line of its machine, and has the fleet dial the machine's agents. It returns false if the
// machine was removed, has a line of a later visit, or Run has ended.
func (m *Machines) connect(key []byte, own *line) bool {
	m.mu.Lock()
	now := m.all[hex.EncodeToString(key)]
	if now == nil || m.ended || now.line != nil && now.line.visit > own.visit {
		m.mu.Unlock()
		return false
	}
	before, is := now.line, *now
	is.line, is.connecting = own, nil
	m.all[hex.EncodeToString(key)] = &is
	m.mu.Unlock()
	if before != nil {
		_ = before.session.Close()
	}
	for _, name := range namesOf(m.serversOf(&is)) {
		m.cfg.Fleet.Retry(name)
	}
	return true
}

// disconnect notes that a line is lost, unless another one has replaced it.
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
}

// update handles a report of a machine that is connected.
func (m *Machines) update(key []byte, about About) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	err := m.afterReading(ctx, func() error {
		was := m.find(key)
		if was == nil {
			return nil
		}
		is := *was
		if is.details = is.details.withAgents(about); m.differ(was, &is) {
			return m.replace(ctx, was, is, nil)
		}
		m.put(key, &is)
		return nil
	})
	if err != nil {
		m.cfg.Log.Warn("what a machine tells cannot be taken", zap.Error(err))
	}
}

// Remove forgets a machine. The machine's key is refused from then on.
func (m *Machines) Remove(ctx context.Context, by handoff.Caller, name string) error {
	return m.afterReading(ctx, func() error {
		one, err := m.machineNamed(name)
		if err != nil {
			return err
		}
		return m.forget(ctx, one, by.String(), "removed")
	})
}

// forget removes a machine from the store, the fleet and here, and audits who did so. It is called in exclusively.
func (m *Machines) forget(ctx context.Context, one *machine, who, act string) error {
	if err := m.audit(ctx, who, one.Name, act); err != nil {
		return err
	}
	if _, err := m.cfg.Store.DropMachine(ctx, one.Key); err != nil {
		return err
	}
	return m.dropLocally(one)
}

// dropLocally removes a machine from the fleet and from this instance, and ends its line. It is called in exclusively.
func (m *Machines) dropLocally(one *machine) error {
	err := m.cfg.Fleet.Change(namesOf(m.serversOf(one)), nil)
	now := m.find(one.Key)
	m.put(one.Key, nil)
	if now != nil && now.line != nil { // a machine that leaves gets its answer on another line
		_ = now.line.session.Close()
	}
	return err
}

// Rename gives a machine another name. Its former names stay aliases of its servers.
func (m *Machines) Rename(ctx context.Context, by handoff.Caller, name, to string) error {
	if !machineName.MatchString(to) {
		return handoff.Malformed("name",
			"a machine's name is at most 40 of A-Z a-z 0-9 . _ -, beginning with a letter or figure")
	}
	return m.afterReading(ctx, func() error {
		was, err := m.machineNamed(name)
		if err != nil || was.Name == to {
			return err
		}
		if err := m.audit(ctx, by.String(), was.Name, "renamed "+to); err != nil {
			return err
		}
		is := *was
		is.Name = to
		former := slices.DeleteFunc(append(slices.Clone(is.details.Former), was.Name), func(f string) bool { return f == to })
		is.details.Former = former[max(len(former)-maxFormer, 0):]
		return m.replace(ctx, m.find(was.Key), is, nil)
	})
}

// audit records an act on a machine.
func (m *Machines) audit(ctx context.Context, who, name, act string) error {
	return m.cfg.Auditor.Audit(ctx, handoff.AuditRecord{Who: who, Server: name, Act: act, At: time.Now()})
}

// refused audits and logs that a machine was refused, at most maxRefusals times an hour. key is nil if the machine
// proved none.
func (m *Machines) refused(ctx context.Context, key ed25519.PublicKey, name, why string, cause error) error {
	now := time.Now()
	m.mu.Lock()
	m.refusals = slices.DeleteFunc(m.refusals, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	audited := len(m.refusals) < maxRefusals
	if audited {
		m.refusals = append(m.refusals, now)
	}
	m.mu.Unlock()
	if !audited {
		return nil
	}
	m.cfg.Log.Info("a machine was refused", zap.Error(cause))
	who := "machine"
	if key != nil {
		who += " " + hex.EncodeToString(key[:8])
	}
	return m.audit(ctx, who, handoff.Clip(name, maxText), "refused: "+why)
}

// Show adds to a server's card on the page what its machine reports.
func (m *Machines) Show(server string, to *handoff.Machine) {
	one, _, known := m.withServer(server)
	if !known {
		return
	}
	about := one.details.About
	to.Joined, to.Machine, to.System, to.Program = one.Joined, one.Name, about.System, about.Version
	if one.line != nil || !m.cfg.Shared { // else another instance may have newer values
		to.DiskFree, to.Battery, to.Charging = about.Live.DiskFree, about.Live.Battery, about.Live.Charging
	}
	to.Ceiling, to.NoYes = cmp.Or(to.Ceiling, about.Ceiling), about.owner().Answers() == servers.AnswersNo
}

// Metrics returns the counts of machines and lines.
func (m *Machines) Metrics() iter.Seq[handoff.Metric] {
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_machines_joined", "Machines that joined.", len(m.sorted())),
		handoff.NewMetric("switchboard_machine_lines_open", "Lines of machines that are open.", int(m.counts.lines.Load())),
		handoff.NewMetric("switchboard_machine_lines_total", "Lines of machines that were opened.", m.counts.opened.Load()),
		handoff.NewMetric("switchboard_machines_refused_total", "Machines that were refused.", m.counts.refused.Load()),
		handoff.NewMetric("switchboard_machine_handshakes_dropped_total",
			"Handshakes of strangers that others took the place of.", m.counts.dropped.Load()),
	})
}
