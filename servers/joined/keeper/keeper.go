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

// A keeper is the loop that owns a book. All but cfg and the channels is owned by run.
type keeper struct {
	cfg  Config // Set once
	book *book
	work sync.WaitGroup // readers and writers

	lastID       uint64             // of the newest client
	clients      map[uint64]*client // that are connected
	accepted     chan net.Conn
	fromClients  chan clientMessage
	disconnected chan uint64 // clients that have closed their connection

	agent        *runningAgent // nil: it does not run
	fromAgent    chan message
	agentEnded   chan error
	due          chan int64 // ids of requests to the agent whose alarm is due
	lastUsed     time.Time  // when the agent was used last
	lastLeft     time.Time  // when a client or an agent left last
	agentStarted time.Time  // when the agent was started last
	failures     int        // of the agent, in a row
	retry        time.Time  // when the agent may be started again
	gaps         uint64     // sessions.gaps when it was logged last
}

// A message is a line of the agent, or the id of the request that a line answered which was too long.
type message struct {
	line    []byte
	answers []byte
}

// client is a connection. It is attached once its first message has named its instance.
type client struct {
	id         uint64
	attached   bool
	name       string // of its instance; "": the only one
	conn       net.Conn
	out        *outbox
	dropped    chan struct{} // closed by drop
	readerDone chan struct{} // closed when the reader of conn has ended
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
		cfg: cfg, book: newBook(cmp.Or(cfg.Room, maxRecorded)),
		accepted: make(chan net.Conn), fromClients: make(chan clientMessage), disconnected: make(chan uint64),
		clients: map[uint64]*client{}, fromAgent: make(chan message), agentEnded: make(chan error), due: make(chan int64),
		lastUsed: time.Now(), lastLeft: time.Now(),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	k.work.Go(func() { failed <- k.accept(ctx) })
	err := k.run(ctx, failed)
	cancel()
	_ = cfg.Listener.Close()
	k.dropAll()
	k.quit()
	k.work.Wait()
	return err
}

func (k *keeper) accept(ctx context.Context) error {
	for {
		conn, err := k.cfg.Listener.Accept()
		if err != nil {
			return err
		}
		select {
		case k.accepted <- conn:
		case <-ctx.Done():
			_ = conn.Close()
			return nil
		}
	}
}

// run handles one event after another.
func (k *keeper) run(ctx context.Context, failed <-chan error) error {
	tick := time.NewTicker(min(time.Minute, k.cfg.Unused/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case conn := <-k.accepted:
			k.connect(conn)
		case id := <-k.disconnected:
			k.drop(k.clients[id])
		case m := <-k.fromClients:
			if k.attach(k.clients[m.client], m.line) && k.book.fromClient(m.client, m.line) {
				k.lastUsed = time.Now()
			}
		case m := <-k.fromAgent:
			if m.answers != nil {
				k.book.tooLong(m.answers)
			} else if k.book.fromAgent(m.line) {
				k.lastUsed = time.Now()
			}
		case err := <-k.agentEnded:
			k.onAgentEnd(err)
		case id := <-k.due:
			k.book.due(id)
		case <-tick.C:
			switch {
			case k.agent != nil && time.Since(k.lastUsed) > k.cfg.Unused && !k.book.owesAnswer() && !k.book.sessions.works():
				k.cfg.Log.Info("agent is ended: it is not used")
				k.endAgent()
				k.book.leave()
			case k.agent == nil && len(k.clients) == 0 && time.Since(k.lastLeft) > k.cfg.Unused &&
				!k.book.sessions.owesOutcome():
				return nil // for the next client another keeper is started
			}
		}
		k.start()
		k.flush()
		k.alarm(ctx)
	}
}

// alarm sets the alarms that the book asks for.
func (k *keeper) alarm(ctx context.Context) {
	for _, a := range k.book.alarms {
		time.AfterFunc(a.after, func() {
			select {
			case k.due <- a.id:
			case <-ctx.Done():
			}
		})
	}
	k.book.alarms = nil
}

// connect adds a client, and starts its reader and writer.
func (k *keeper) connect(conn net.Conn) {
	if len(k.clients) >= maxClients {
		k.drop(k.clients[slices.Min(slices.Collect(maps.Keys(k.clients)))])
	}
	k.lastID++
	c := &client{id: k.lastID, conn: conn, out: newOutbox(), dropped: make(chan struct{}),
		readerDone: make(chan struct{})}
	k.clients[c.id] = c
	lines := transport.NewLines(conn, conn)
	k.work.Go(func() {
		c.out.drain(lines.Write)
		_ = conn.Close() // its reader sees that
	})
	k.work.Go(func() {
		defer close(c.readerDone)
		for {
			line, err := lines.Read()
			if _, long := errors.AsType[*servers.LongFrame](err); long {
				continue // a request of that size is never sent
			}
			if err != nil {
				break
			}
			select {
			case k.fromClients <- clientMessage{c.id, line}:
			case <-c.dropped:
				return
			}
		}
		select {
		case k.disconnected <- c.id:
		case <-c.dropped:
		}
	})
}

// attach attaches a client at its first message. It drops the earlier client of the same instance, and all earlier ones
// where either has no name, before the message is handled: what these have sent and is not read yet is lost. It returns
// false, and drops this client, if a later client has already replaced it.
func (k *keeper) attach(c *client, first []byte) bool {
	if c.attached {
		return true
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

// drop ends a client. What it has sent and is not read yet is lost.
func (k *keeper) drop(c *client) {
	close(c.dropped)
	c.out.end()
	_ = c.conn.Close() // it may be gone
	<-c.readerDone
	delete(k.clients, c.id)
	k.lastLeft = time.Now()
	if c.attached {
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
	if !k.book.needsAgent() || k.agent != nil {
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
			if long, ok := errors.AsType[*servers.LongFrame](err); ok {
				k.fromAgent <- message{answers: long.Answers()}
				continue
			}
			if err != nil {
				break
			}
			k.fromAgent <- message{line: line}
		}
		r.end()
		err := r.Wait()
		r.kill.Stop()
		k.agentEnded <- err
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

// quit ends the agent, and waits for its end. No client may be attached.
func (k *keeper) quit() {
	if k.agent != nil {
		k.endAgent()
	}
	for k.agent != nil {
		select {
		case <-k.fromAgent: // dropped
		case err := <-k.agentEnded:
			k.onAgentEnd(err)
		}
	}
}
