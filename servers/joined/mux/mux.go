package mux

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// Times of an agent.
const (
	unusedFor  = 24 * time.Hour  // after which it is ended, until it is needed again
	stopWithin = time.Second     // to take the messages that stop its prompts, before the end of its input
	endWithin  = 5 * time.Second // from the end of its input to SIGTERM, 2 s before SIGKILL
)

// maxClients bounds the connections. One more ends the oldest.
const maxClients = 16

// Bounds of what waits for a client or agent that does not read. Beyond them the connection ends.
const (
	maxFrames = 2 * maxRecorded / entryRoom
	maxBytes  = maxRecorded + 32<<20
)

// Config is what a mux is run with.
type Config struct {
	Listener net.Listener // for clients
	// Start starts the agent. Before the close of the agent's wire returns, died is called with how the agent ended, if
	// that was by itself and with an error.
	Start  func(died func(how string)) (servers.Wire, error)
	Unused time.Duration // after which the agent is ended; 0: a day
	Room   int           // for what agents say in prompts, in bytes; 0: 16 MiB
	Log    *zap.Logger
}

// A mux owns a broker and does the I/O.
type mux struct {
	cfg  Config         // Set once
	work sync.WaitGroup // of connections and agents

	mu       sync.Mutex // the fields below are guarded by it
	broker   *broker
	lastID   uint64             // of the newest client
	clients  map[uint64]*client // that are connected
	agent    *agent             // nil: it does not run, or is being ended
	lastUsed time.Time          // when the agent was used last
	lastLeft time.Time          // when a client or an agent left last
	starts   Starts             // of the agent
	gaps     uint64             // broker.gaps when it was logged last
	over     bool               // Serve is about to return
}

// client is a connection. It is attached once its first message has named its instance.
type client struct {
	*servers.Outbox
	id uint64

	attached bool   // Guarded by mux.mu
	name     string // Guarded by mux.mu: of its instance; "": the only one
}

// An agent is one that runs.
type agent struct {
	*servers.Outbox
	died string // Guarded by mux.mu: how it ended by itself; "": it did not, or without an error
}

// Serve runs a mux until ctx ends, its listener is closed, or nobody has used it for a day and clients know the
// outcomes of all prompts. Then it tells its agent to stop all prompts and to end, and returns when the agent has
// ended.
func Serve(ctx context.Context, cfg Config) error {
	cfg.Unused = cmp.Or(cfg.Unused, unusedFor)
	m := &mux{
		cfg: cfg, broker: newBroker(cmp.Or(cfg.Room, maxRecorded)), clients: map[uint64]*client{}, lastUsed: time.Now(),
		lastLeft: time.Now(),
	}
	failed := make(chan error, 1)
	m.work.Go(func() { failed <- m.accept() })
	err := m.run(ctx, failed)
	_ = cfg.Listener.Close()
	m.handle(func() {
		m.over = true
		m.dropAll()
		m.endAgent("its mux ends")
	})
	m.work.Wait()
	return err
}

// accept takes clients until the listener is closed. It goes on when one cannot be taken, as without free files.
func (m *mux) accept() error {
	for {
		conn, err := m.cfg.Listener.Accept()
		switch {
		case err == nil:
			m.handle(func() { m.connect(conn) })
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			m.cfg.Log.Warn("a client cannot be taken", zap.Error(err))
			time.Sleep(time.Second)
		}
	}
}

// run waits until the mux is to end, and ends an agent that nobody uses.
func (m *mux) run(ctx context.Context, failed <-chan error) error {
	tick := time.NewTicker(min(time.Minute, m.cfg.Unused/4))
	defer tick.Stop()
	for unused := false; !unused; { // for the next client another mux is started
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
			m.handle(func() { unused = m.rest() })
		}
	}
	return nil
}

// rest ends an agent that nobody uses, and reports whether nobody uses the mux either.
func (m *mux) rest() bool {
	switch {
	case m.agent == nil:
		return len(m.clients) == 0 && time.Since(m.lastLeft) > m.cfg.Unused && !m.broker.owesOutcome()
	case time.Since(m.lastUsed) > m.cfg.Unused && !m.broker.owesAnswer() && !m.broker.works():
		m.cfg.Log.Info("agent is ended: it is not used")
		m.endAgent("its agent was not used")
	}
	return false
}

// handle takes a step, and does what the broker asks for then.
func (m *mux) handle(step func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	step()
	m.start()
	m.flush()
	for _, a := range m.broker.alarms {
		time.AfterFunc(a.after, func() { m.handle(func() { m.broker.due(a.id) }) })
	}
	m.broker.alarms = nil
}

// connect adds a client, and starts its reader and writer.
func (m *mux) connect(conn net.Conn) {
	if len(m.clients) >= maxClients {
		m.drop(m.clients[slices.Min(slices.Collect(maps.Keys(m.clients)))])
	}
	m.lastID++
	wire := transport.LinesOver(conn)
	c := &client{Outbox: servers.NewOutbox(wire, maxFrames, maxBytes, m.cfg.Log), id: m.lastID}
	m.clients[c.id] = c
	m.work.Go(func() {
		c.Run(func() {
			c.Lose(reads(wire, func(line []byte, long *servers.LongFrame) {
				if long != nil {
					return // a request of that size is never sent
				}
				m.handle(func() {
					if m.attach(c, line) && m.broker.fromClient(c.id, line) {
						m.lastUsed = time.Now()
					}
				})
			}))
		})
		m.handle(func() { m.drop(c) })
	})
	if m.over {
		m.drop(c)
	}
}

// reads reads a wire until its end. It calls take with each line, or with a line that was left out.
func reads(wire servers.Wire, take func(line []byte, long *servers.LongFrame)) error {
	for {
		line, err := wire.Read()
		long, is := errors.AsType[*servers.LongFrame](err)
		if err != nil && !is {
			return err
		}
		take(line, long)
	}
}

// attach attaches a client at its first message. It drops the earlier client of the same instance, and all earlier ones
// where either has no name, before the message is handled: what these have sent and is not read yet is lost. It returns
// false, and drops this client, if a later client has already replaced it.
func (m *mux) attach(c *client, first []byte) bool {
	if m.clients[c.id] == nil || c.attached {
		return c.attached
	}
	c.name = nameOf(first)
	var before []*client
	for _, other := range m.clients {
		switch {
		case !other.attached || c.name != "" && other.name != "" && other.name != c.name:
		case other.id > c.id:
			m.drop(c)
			return false
		default:
			before = append(before, other)
		}
	}
	for _, other := range before {
		m.drop(other)
	}
	c.attached = true
	m.broker.attach(c.id)
	return true
}

// drop ends a client, unless it is dropped already. What it has sent and is not read yet is lost.
func (m *mux) drop(c *client) {
	if m.clients[c.id] == nil {
		return
	}
	c.Lose(servers.ErrClosed)
	delete(m.clients, c.id)
	m.lastLeft = time.Now()
	if c.attached {
		c.attached = false
		m.broker.detach(c.id)
	}
}

func (m *mux) dropAll() {
	for _, c := range m.clients {
		m.drop(c)
	}
}

// start starts the agent if it is needed, and ends it if it did not initialize.
func (m *mux) start() {
	if m.broker.unfit {
		m.endAgent("its agent does not initialize")
	}
	if !m.broker.needsAgent() || m.over {
		return
	}
	if err := m.starts.Next("its agent"); err != nil {
		m.broker.fail(err.Error())
		return
	}
	m.lastUsed = time.Now()
	a := &agent{}
	wire, err := m.cfg.Start(func(how string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		a.died = how
	})
	if err != nil {
		m.broker.fail("its agent cannot be started: " + err.Error())
		return
	}
	m.cfg.Log.Info("agent started")
	a.Outbox = servers.NewOutbox(wire, maxFrames, maxBytes, m.cfg.Log)
	m.agent = a
	m.work.Go(func() {
		a.Run(func() {
			a.Lose(reads(wire, func(line []byte, long *servers.LongFrame) {
				m.handle(func() { m.fromAgent(a, line, long) })
			}))
		})
		m.handle(func() { m.agentEnded(a) })
	})
	m.broker.started()
}

// fromAgent takes a message of an agent, unless the agent is being ended.
func (m *mux) fromAgent(a *agent, line []byte, long *servers.LongFrame) {
	switch {
	case m.agent != a:
	case long == nil:
		if m.broker.fromAgent(line) {
			m.lastUsed = time.Now()
		}
	case long.Answers() != nil:
		m.broker.tooLong(long.Answers())
	default:
		if id, method := long.Asks(); id != nil { // else it is lost
			m.broker.refuse(question{id: id, method: method})
		}
	}
}

// endAgent tells the agent, if it runs, to stop what it does, ends its input, and forgets it.
func (m *mux) endAgent(why string) {
	a := m.agent
	if a == nil {
		return
	}
	stop := m.broker.stop()
	m.forget(why)
	m.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		for _, line := range stop {
			_ = a.Write(ctx, line) // an agent that takes nothing is ended all the same
		}
		a.Lose(servers.ErrClosed)
	})
}

// agentEnded handles the end of an agent.
func (m *mux) agentEnded(a *agent) {
	m.cfg.Log.Info("agent ended", zap.String("how", a.died))
	if m.agent == a {
		m.forget(cmp.Or(a.died, "its agent ended"))
	}
}

// forget forgets the agent. It ends all connections, as the end of an agent without a mux does, unless the agent has
// not begun to serve them.
func (m *mux) forget(why string) {
	served := m.broker.ready
	m.agent, m.lastLeft = nil, time.Now()
	m.broker.ended(why)
	m.flush()
	if served {
		m.dropAll()
	}
}

// flush sends the messages of the broker. It drops a client whose queue is full, and all clients if the agent's is.
func (m *mux) flush() {
	if m.broker.gaps > m.gaps {
		m.gaps = m.broker.gaps
		m.cfg.Log.Warn("what the agent said of a prompt is dropped: there is no more room", zap.Uint64("prompts", m.gaps))
	}
	agentFull := false
	for _, line := range m.broker.toAgent {
		if m.agent != nil {
			_, err := m.agent.Send(line)
			agentFull = agentFull || errors.Is(err, servers.ErrTooMany)
		}
	}
	full := map[*client]bool{}
	for _, to := range m.broker.toClients {
		if c := m.clients[to.client]; c != nil {
			if _, err := c.Send(to.line); err != nil {
				full[c] = true
			}
		}
	}
	m.broker.toAgent, m.broker.toClients = nil, nil
	if agentFull {
		m.cfg.Log.Warn("agent does not read")
		m.dropAll()
		return
	}
	for c := range full {
		m.drop(c)
	}
	if len(full) > 0 {
		m.flush() // dropping clients has closed sessions and refused questions
	}
}
