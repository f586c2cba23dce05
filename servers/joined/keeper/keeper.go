package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/transport"
)

// Times of an agent.
const (
	unusedFor = 24 * time.Hour   // after which it is ended, until it is needed again
	endWithin = 10 * time.Second // from the end of its input to its being killed
	livedFor  = time.Minute      // an agent that ends sooner, with an error, has failed
)

// maxClients bounds the connections. One more ends the oldest.
const maxClients = 16

// maxQueued bounds the bytes that wait for a client or agent which does not read. Beyond it the connection ends.
const maxQueued = maxRecorded + 32<<20

// restarts are the pauses before an agent that fails again and again is started again.
var restarts = handoff.Backoff{First: time.Second, Longest: time.Minute}

// An Agent is a running agent.
type Agent struct {
	In   io.WriteCloser // its input: closing it tells the agent to end
	Out  io.Reader      // its output, up to its end
	Wait func() error   // returns when the agent has ended; nil: without an error
	Kill func()         // ends the agent at once
}

// Config is what a keeper is run with.
type Config struct {
	Listener net.Listener // for clients
	Start    func() (*Agent, error)
	Unused   time.Duration // after which the agent is ended; 0: a day
	Room     int           // for the agent's recorded messages, in bytes; 0: 16 MiB
	Log      *zap.Logger
}

// A keeper owns a book and does the I/O.
type keeper struct {
	cfg  Config         // Set once
	work sync.WaitGroup // readers and writers

	mu           sync.Mutex // the fields below are guarded by it
	book         *book
	lastID       uint64             // of the newest client
	clients      map[uint64]*client // that are connected
	agent        *runningAgent      // nil: it does not run
	lastUsed     time.Time          // when the agent was used last
	lastLeft     time.Time          // when a client or an agent left last
	agentStarted time.Time          // when the agent was started last
	failures     int                // of the agent, in a row
	retry        time.Time          // when the agent may be started again
	gaps         uint64             // sessions.gaps when it was logged last
	over         bool               // Keep is about to return
}

// client is a connection. It is attached once its first message has named its instance.
type client struct {
	id   uint64
	conn net.Conn
	out  *outbox

	attached bool   // Guarded by keeper.mu
	name     string // Guarded by keeper.mu: of its instance; "": the only one
}

// runningAgent is an agent and the queue of its input.
type runningAgent struct {
	*Agent
	out  *outbox
	stop sync.Once
	kill *time.Timer // Set by end
}

// end ends the agent's input, and kills the agent if it has not ended after endWithin.
func (r *runningAgent) end() {
	r.stop.Do(func() {
		r.out.end()
		r.kill = time.AfterFunc(endWithin, r.Kill)
	})
}

// Keep runs a keeper until ctx ends, its listener fails, or nobody has used it for a day and clients know the outcomes
// of all prompts. Then it tells its agent to stop all prompts and to end, kills the agent after endWithin, and returns
// when the agent has ended.
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
		if k.agent != nil {
			k.endAgent()
		}
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
		return len(k.clients) == 0 && time.Since(k.lastLeft) > k.cfg.Unused && !k.book.sessions.owesOutcome()
	case time.Since(k.lastUsed) > k.cfg.Unused && !k.book.owesAnswer() && !k.book.sessions.works():
		k.cfg.Log.Info("agent is ended: it is not used")
		k.endAgent()
		k.book.leave()
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
	c := &client{id: k.lastID, conn: conn, out: newOutbox()}
	k.clients[c.id] = c
	lines := transport.NewLines(conn, conn)
	k.work.Go(func() {
		c.out.drain(lines.Write)
		_ = conn.Close() // its reader sees that
	})
	k.work.Go(func() {
		for {
			line, err := lines.Read()
			if _, long := errors.AsType[*servers.LongFrame](err); long {
				continue // a request of that size is never sent
			}
			if err != nil {
				break
			}
			k.handle(func() {
				if k.attach(c, line) && k.book.fromClient(c.id, line) {
					k.lastUsed = time.Now()
				}
			})
		}
		k.handle(func() { k.drop(c) })
	})
	if k.over {
		k.drop(c)
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
	c.out.end()
	_ = c.conn.Close() // it may be gone
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
	if k.agent != nil && k.book.initFailed {
		k.endAgent()
	}
	if !k.book.needsAgent() || k.agent != nil || k.over {
		return
	}
	if wait := time.Until(k.retry); wait > 0 {
		k.book.fail(fmt.Sprintf("its agent ended %d times in a row; it is started again in %v",
			k.failures, wait.Round(time.Second)))
		return
	}
	k.agentStarted, k.lastUsed = time.Now(), time.Now()
	agent, err := k.cfg.Start()
	if err != nil {
		k.failed()
		k.book.fail("its agent cannot be started: " + err.Error())
		return
	}
	k.cfg.Log.Info("agent started")
	r := &runningAgent{Agent: agent, out: newOutbox()}
	k.agent = r
	k.work.Go(func() {
		r.out.drain(func(line []byte) error {
			_, err := r.In.Write(append(line, '\n'))
			return err
		})
		_ = r.In.Close() // the agent ends at the end of its input
	})
	k.work.Go(func() {
		lines := transport.NewLines(r.Out, nil)
		for {
			line, err := lines.Read()
			long, is := errors.AsType[*servers.LongFrame](err)
			if err != nil && !is {
				break
			}
			k.handle(func() {
				switch {
				case is && long.Answers() == nil: // it is lost
				case is:
					k.book.tooLong(long.Answers())
				case k.book.fromAgent(line):
					k.lastUsed = time.Now()
				}
			})
		}
		r.end()
		err := r.Wait()
		r.kill.Stop()
		k.handle(func() { k.onAgentEnd(err) })
	})
	k.book.started()
}

// failed counts a failure of the agent.
func (k *keeper) failed() {
	k.failures++
	k.retry = time.Now().Add(restarts.Step(k.failures - 1))
}

// endAgent tells the agent to stop what it does, and ends its input.
func (k *keeper) endAgent() {
	for _, line := range k.book.sessions.stop() {
		k.agent.out.put(line)
	}
	k.agent.end()
}

// onAgentEnd handles the end of the agent. It ends all connections, as the end of an agent without a keeper does.
func (k *keeper) onAgentEnd(err error) {
	why := "its agent ended"
	if err != nil {
		why += ": " + err.Error()
	}
	k.cfg.Log.Info("agent ended", zap.Error(err))
	k.agent, k.lastLeft = nil, time.Now()
	if time.Since(k.agentStarted) < livedFor && err != nil {
		k.failed()
	} else {
		k.failures, k.retry = 0, time.Time{}
	}
	k.book.ended(why)
	k.flush()
	k.dropAll()
}

// flush sends the messages of the book. It drops a client whose queue is full, and all clients if the agent's queue is.
func (k *keeper) flush() {
	if gaps := k.book.sessions.gaps; gaps > k.gaps {
		k.gaps = gaps
		k.cfg.Log.Warn("what the agent said of a prompt is dropped: there is no more room", zap.Uint64("prompts", gaps))
	}
	agentFull := false
	for _, line := range k.book.toAgent {
		agentFull = k.agent != nil && !k.agent.out.put(line) || agentFull
	}
	full := map[*client]bool{}
	for _, m := range k.book.toClients {
		if c := k.clients[m.client]; c != nil && !c.out.put(m.line) {
			full[c] = true
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
