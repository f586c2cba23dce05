package keeper

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
	unusedFor = 24 * time.Hour   // after which it is ended, until it is needed again
	endWithin = 10 * time.Second // from the end of its input to its being killed
)

// maxClients bounds the connections. One more ends the oldest.
const maxClients = 16

// Bounds of what waits for a client or agent that does not read. Beyond them the connection ends.
const (
	maxFrames = 2 * maxRecorded / entryRoom
	maxBytes  = maxRecorded + 32<<20
)

// Config is what a keeper is run with.
type Config struct {
	Listener net.Listener // for clients
	// Start starts the agent. Before the close of the agent's wire returns, died is called with how the agent ended, if
	// that was by itself and with an error.
	Start  func(died func(how string)) (servers.Wire, error)
	Unused time.Duration // after which the agent is ended; 0: a day
	Room   int           // for what agents say in prompts, in bytes; 0: 16 MiB
	Log    *zap.Logger
}

// A keeper owns a book and does the I/O.
type keeper struct {
	cfg  Config         // Set once
	work sync.WaitGroup // of connections and agents

	mu       sync.Mutex // the fields below are guarded by it
	book     *book
	lastID   uint64             // of the newest client
	clients  map[uint64]*client // that are connected
	agent    *agent             // nil: it does not run, or is being ended
	lastUsed time.Time          // when the agent was used last
	lastLeft time.Time          // when a client or an agent left last
	starts   Starts             // of the agent
	gaps     uint64             // book.gaps when it was logged last
	over     bool               // Keep is about to return
}

// client is a connection. It is attached once its first message has named its instance.
type client struct {
	*servers.Outbox
	id uint64

	attached bool   // Guarded by keeper.mu
	name     string // Guarded by keeper.mu: of its instance; "": the only one
}

// An agent is one that runs.
type agent struct {
	*servers.Outbox
	died string // Guarded by keeper.mu: how it ended by itself; "": it did not, or without an error
}

// Keep runs a keeper until ctx ends, its listener fails, or nobody has used it for a day and clients know the outcomes
// of all prompts. Then it tells its agent to stop all prompts and to end, and returns when the agent has ended.
func Keep(ctx context.Context, cfg Config) error {
	cfg.Unused = cmp.Or(cfg.Unused, unusedFor)
	k := &keeper{
		cfg: cfg, book: newBook(cmp.Or(cfg.Room, maxRecorded)), clients: map[uint64]*client{}, lastUsed: time.Now(),
		lastLeft: time.Now(),
	}
	failed := make(chan error, 1)
	k.work.Go(func() { failed <- k.accept() })
	err := k.run(ctx, failed)
	_ = cfg.Listener.Close()
	k.handle(func() {
		k.over = true
		k.dropAll()
		k.endAgent("its keeper ends")
	})
	k.work.Wait()
	return err
}

func (k *keeper) accept() error {
	for {
		conn, err := k.cfg.Listener.Accept()
		if err != nil {
			return err
		}
		k.handle(func() { k.connect(conn) })
	}
}

// run waits until the keeper is to end, and ends an agent that nobody uses.
func (k *keeper) run(ctx context.Context, failed <-chan error) error {
	tick := time.NewTicker(min(time.Minute, k.cfg.Unused/4))
	defer tick.Stop()
	for unused := false; !unused; { // for the next client another keeper is started
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
			k.handle(func() { unused = k.rest() })
		}
	}
	return nil
}

// rest ends an agent that nobody uses, and reports whether nobody uses the keeper either.
func (k *keeper) rest() bool {
	switch {
	case k.agent == nil:
		return len(k.clients) == 0 && time.Since(k.lastLeft) > k.cfg.Unused && !k.book.owesOutcome()
	case time.Since(k.lastUsed) > k.cfg.Unused && !k.book.owesAnswer() && !k.book.works():
		k.cfg.Log.Info("agent is ended: it is not used")
		k.endAgent("its agent was not used")
	}
	return false
}

// handle takes a step, and does what the book asks for then.
func (k *keeper) handle(step func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	step()
	k.start()
	k.flush()
	for _, a := range k.book.alarms {
		time.AfterFunc(a.after, func() { k.handle(func() { k.book.due(a.id) }) })
	}
	k.book.alarms = nil
}

// connect adds a client, and starts its reader and writer.
func (k *keeper) connect(conn net.Conn) {
	if len(k.clients) >= maxClients {
		k.drop(k.clients[slices.Min(slices.Collect(maps.Keys(k.clients)))])
	}
	k.lastID++
	wire := transport.LinesOver(conn)
	c := &client{Outbox: servers.NewOutbox(wire, maxFrames, maxBytes, k.cfg.Log), id: k.lastID}
	k.clients[c.id] = c
	k.work.Go(func() {
		c.Run(func() {
			c.Lose(reads(wire, func(line []byte, long *servers.LongFrame) {
				if long != nil {
					return // a request of that size is never sent
				}
				k.handle(func() {
					if k.attach(c, line) && k.book.fromClient(c.id, line) {
						k.lastUsed = time.Now()
					}
				})
			}))
		})
		k.handle(func() { k.drop(c) })
	})
	if k.over {
		k.drop(c)
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
func (k *keeper) attach(c *client, first []byte) bool {
	if k.clients[c.id] == nil || c.attached {
		return c.attached
	}
	c.name = nameOf(first)
	var before []*client
	for _, other := range k.clients {
		switch {
		case !other.attached || c.name != "" && other.name != "" && other.name != c.name:
		case other.id > c.id:
			k.drop(c)
			return false
		default:
			before = append(before, other)
		}
	}
	for _, other := range before {
		k.drop(other)
	}
	c.attached = true
	k.book.attach(c.id)
	return true
}

// drop ends a client, unless it is dropped already. What it has sent and is not read yet is lost.
func (k *keeper) drop(c *client) {
	if k.clients[c.id] == nil {
		return
	}
	c.Lose(servers.ErrClosed)
	delete(k.clients, c.id)
	k.lastLeft = time.Now()
	if c.attached {
		c.attached = false
		k.book.detach(c.id)
	}
}

func (k *keeper) dropAll() {
	for _, c := range k.clients {
		k.drop(c)
	}
}

// start starts the agent if it is needed, and ends it if it did not initialize.
func (k *keeper) start() {
	if k.book.unfit {
		k.endAgent("its agent does not initialize")
	}
	if !k.book.needsAgent() || k.over {
		return
	}
	if err := k.starts.Next("its agent"); err != nil {
		k.book.fail(err.Error())
		return
	}
	k.lastUsed = time.Now()
	a := &agent{}
	wire, err := k.cfg.Start(func(how string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		a.died = how
	})
	if err != nil {
		k.book.fail("its agent cannot be started: " + err.Error())
		return
	}
	k.cfg.Log.Info("agent started")
	a.Outbox = servers.NewOutbox(wire, maxFrames, maxBytes, k.cfg.Log)
	k.agent = a
	k.work.Go(func() {
		a.Run(func() {
			a.Lose(reads(wire, func(line []byte, long *servers.LongFrame) {
				k.handle(func() { k.fromAgent(a, line, long) })
			}))
		})
		k.handle(func() { k.agentEnded(a) })
	})
	k.book.started()
}

// fromAgent takes a message of an agent, unless the agent is being ended.
func (k *keeper) fromAgent(a *agent, line []byte, long *servers.LongFrame) {
	switch {
	case k.agent != a:
	case long == nil:
		if k.book.fromAgent(line) {
			k.lastUsed = time.Now()
		}
	case long.Answers() != nil: // else it is lost
		k.book.tooLong(long.Answers())
	}
}

// endAgent tells the agent, if it runs, to stop what it does, ends its input, and forgets it.
func (k *keeper) endAgent(why string) {
	a := k.agent
	if a == nil {
		return
	}
	stop := k.book.stop()
	k.forget(why)
	k.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endWithin)
		defer cancel()
		for _, line := range stop {
			_ = a.Write(ctx, line) // an agent that takes nothing is ended all the same
		}
		a.Lose(servers.ErrClosed)
	})
}

// agentEnded handles the end of an agent.
func (k *keeper) agentEnded(a *agent) {
	k.cfg.Log.Info("agent ended", zap.String("how", a.died))
	if k.agent == a {
		k.forget(cmp.Or(a.died, "its agent ended"))
	}
}

// forget forgets the agent. It ends all connections, as the end of an agent without a keeper does, unless the agent has
// not begun to serve them.
func (k *keeper) forget(why string) {
	served := k.book.ready
	k.agent, k.lastLeft = nil, time.Now()
	k.book.ended(why)
	k.flush()
	if served {
		k.dropAll()
	}
}

// flush sends the messages of the book. It drops a client whose queue is full, and all clients if the agent's queue is.
func (k *keeper) flush() {
	if k.book.gaps > k.gaps {
		k.gaps = k.book.gaps
		k.cfg.Log.Warn("what the agent said of a prompt is dropped: there is no more room", zap.Uint64("prompts", k.gaps))
	}
	agentFull := false
	for _, line := range k.book.toAgent {
		if k.agent != nil {
			_, err := k.agent.Send(line)
			agentFull = agentFull || errors.Is(err, servers.ErrTooMany)
		}
	}
	full := map[*client]bool{}
	for _, m := range k.book.toClients {
		if c := k.clients[m.client]; c != nil {
			if _, err := c.Send(m.line); err != nil {
				full[c] = true
			}
		}
	}
	k.book.toAgent, k.book.toClients = nil, nil
	if agentFull {
		k.cfg.Log.Warn("agent does not read")
		k.dropAll()
		return
	}
	for c := range full {
		k.drop(c)
	}
	if len(full) > 0 {
		k.flush() // dropping clients has closed sessions and refused questions
	}
}
