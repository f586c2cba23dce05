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
	unusedFor = 24 * time.Hour   // after which it is ended; it is started again when it is needed
	endWithin = 10 * time.Second // from the end of its input; then it is killed
	livedFor  = time.Minute      // one that ends sooner is started again later and later
)

// maxClients bounds the connections; of more, the oldest ends.
const maxClients = 16

// maxQueued is how many bytes may wait for an end that does not read, beyond which it is given up.
const maxQueued = maxKept + 32<<20

// restarts says how long an agent that ends again and again is left alone.
var restarts = handoff.Backoff{First: time.Second, Longest: time.Minute}

// An Agent is one that runs.
type Agent struct {
	In  io.WriteCloser // its input, whose end tells it to end
	Out io.Reader      // what it says; it ends when the agent does
	// Wait returns how it ended; nil: well. Kill ends what is left of it at once.
	Wait func() error
	Kill func()
}

// Config is what a keeper is run with.
type Config struct {
	Listener net.Listener // where clients come from
	Start    func() (*Agent, error)
	Unused   time.Duration // after which the agent is ended; 0: a day
	Room     int           // bytes of what the agent said of prompts that are kept; 0: 16 MiB
	Log      *zap.Logger
}

// A keeper is the loop that owns a book. All but cfg is owned by run.
type keeper struct {
	cfg  Config // Set once
	book *book
	work sync.WaitGroup // readers and writers

	last    uint64             // client that came
	clients map[uint64]*client // who is connected
	come    chan net.Conn
	sent    chan letter // of a client
	lost    chan uint64 // a client of which nothing more comes

	agent    *running // nil: it does not run
	said     chan message
	ended    chan error
	due      chan int64 // requests to the agent whose time is over
	used     time.Time  // when it was used last
	alone    time.Time  // when a client or an agent left last
	began    time.Time  // when it was started last
	failures int        // starts in a row that did not last
	retry    time.Time  // when it may be started again
	gaps     uint64     // of the book, as it was logged
}

// A message is one of the agent; of one that was left out only the request that it answers is known.
type message struct {
	line    []byte
	answers []byte
}

// client is whoever is connected. It is attached once its first message has told its name.
type client struct {
	id       uint64
	attached bool
	name     string // of the instance that it is of; "": it is the only one
	conn     net.Conn
	out      *outbox
	gone     chan struct{} // closed by drop
	read     chan struct{} // closed when nothing more is read of it
}

// running is an agent and what is on its way to it.
type running struct {
	*Agent
	out  *outbox
	stop sync.Once
	kill *time.Timer // Set by end
}

// end ends the agent's input, and kills the agent where that does not end it.
func (r *running) end() {
	r.stop.Do(func() {
		r.out.end()
		r.kill = time.AfterFunc(endWithin, r.Kill)
	})
}

// Keep runs a keeper until ctx ends, or nobody has used it for a day and it owes nobody an answer. Then its agent is
// told to stop and to end, and Keep returns when that is done, or takes too long.
func Keep(ctx context.Context, cfg Config) error {
	cfg.Unused = cmp.Or(cfg.Unused, unusedFor)
	k := &keeper{
		cfg: cfg, book: newBook(cmp.Or(cfg.Room, maxKept)),
		come: make(chan net.Conn), sent: make(chan letter), lost: make(chan uint64), said: make(chan message),
		clients: map[uint64]*client{}, ended: make(chan error), due: make(chan int64), used: time.Now(), alone: time.Now(),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	k.work.Go(func() { failed <- k.accept(ctx) })
	err := k.run(ctx, failed)
	cancel()
	_ = cfg.Listener.Close() // nobody else may come
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
		case k.come <- conn:
		case <-ctx.Done():
			_ = conn.Close()
			return nil
		}
	}
}

// run takes one event after another.
func (k *keeper) run(ctx context.Context, failed <-chan error) error {
	tick := time.NewTicker(min(time.Minute, k.cfg.Unused/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case conn := <-k.come:
			k.connect(conn)
		case id := <-k.lost:
			k.drop(k.clients[id])
		case m := <-k.sent:
			if k.attach(k.clients[m.to], m.line) && k.book.fromClient(m.to, m.line) {
				k.used = time.Now()
			}
		case m := <-k.said:
			if m.answers != nil {
				k.book.tooLong(m.answers)
			} else if k.book.fromAgent(m.line) {
				k.used = time.Now()
			}
		case err := <-k.ended:
			k.gone(err)
		case id := <-k.due:
			k.book.due(id)
		case <-tick.C:
			switch {
			case k.agent != nil && time.Since(k.used) > k.cfg.Unused && !k.book.asks() && !k.book.sessions.works():
				k.cfg.Log.Info("agent is ended: it is not used")
				k.endAgent()
				k.book.leave()
			case k.agent == nil && len(k.clients) == 0 && time.Since(k.alone) > k.cfg.Unused && !k.book.sessions.owes():
				return nil // the next client is given another keeper
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

// connect begins a client.
func (k *keeper) connect(conn net.Conn) {
	if len(k.clients) >= maxClients {
		k.drop(k.clients[slices.Min(slices.Collect(maps.Keys(k.clients)))])
	}
	k.last++
	c := &client{id: k.last, conn: conn, out: newOutbox(), gone: make(chan struct{}), read: make(chan struct{})}
	k.clients[c.id] = c
	lines := transport.NewLines(conn, conn)
	k.work.Go(func() {
		c.out.drain(lines.Write)
		_ = conn.Close() // its reader sees that
	})
	k.work.Go(func() {
		defer close(c.read)
		for {
			line, err := lines.Read()
			if _, long := errors.AsType[*servers.LongFrame](err); long {
				continue // no request is so long
			}
			if err != nil {
				break
			}
			select {
			case k.sent <- letter{c.id, line}:
			case <-c.gone:
				return
			}
		}
		select {
		case k.lost <- c.id:
		case <-c.gone:
		}
	})
}

// attach takes a client's first message. It comes in the place of the one before of the same name, and where either
// has none, of all others: what they have sent and nobody has read comes to nothing before this one looks. False: a
// client that came later is there in its place, and it has ended.
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

// drop ends a client. What it has sent and nobody has read is not read any more.
func (k *keeper) drop(c *client) {
	close(c.gone)
	c.out.end()
	_ = c.conn.Close() // it may be gone
	<-c.read
	delete(k.clients, c.id)
	k.alone = time.Now()
	if c.attached {
		k.book.detach(c.id)
	}
}

func (k *keeper) dropAll() {
	for _, c := range k.clients {
		k.drop(c)
	}
}

// start starts the agent if it is needed.
func (k *keeper) start() {
	if k.agent != nil && k.book.unfit {
		k.endAgent()
	}
	if !k.book.needs() || k.agent != nil {
		return
	}
	if wait := time.Until(k.retry); wait > 0 {
		k.book.fail(fmt.Sprintf("its agent ended %d times in a row; it is started again in %v",
			k.failures, wait.Round(time.Second)))
		return
	}
	k.began, k.used = time.Now(), time.Now()
	agent, err := k.cfg.Start()
	if err != nil {
		k.failed()
		k.book.fail("its agent cannot be started: " + err.Error())
		return
	}
	k.cfg.Log.Info("agent started")
	r := &running{Agent: agent, out: newOutbox()}
	k.agent = r
	k.work.Go(func() {
		r.out.drain(func(line []byte) error {
			_, err := r.In.Write(append(line, '\n'))
			return err
		})
		_ = r.In.Close() // which ends it
	})
	k.work.Go(func() {
		lines := transport.NewLines(r.Out, nil)
		for {
			line, err := lines.Read()
			if long, ok := errors.AsType[*servers.LongFrame](err); ok {
				k.said <- message{answers: long.Answers()}
				continue
			}
			if err != nil {
				break
			}
			k.said <- message{line: line}
		}
		r.end()
		err := r.Wait()
		r.kill.Stop()
		k.ended <- err
	})
	k.book.began()
}

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

// gone notes that the agent has ended. Whoever is attached sees the end of the connection, as with any agent.
func (k *keeper) gone(err error) {
	why := "its agent ended"
	if err != nil {
		why += ": " + err.Error()
	}
	k.cfg.Log.Info("agent ended", zap.Error(err))
	k.agent, k.alone = nil, time.Now()
	if time.Since(k.began) < livedFor && err != nil {
		k.failed()
	} else {
		k.failures, k.retry = 0, time.Time{}
	}
	k.book.ended(why)
	k.flush()
	k.dropAll()
}

// flush sends what the book has to say. An end that takes nothing is given up.
func (k *keeper) flush() {
	if gaps := k.book.sessions.gaps; gaps > k.gaps {
		k.gaps = gaps
		k.cfg.Log.Warn("what the agent said of a prompt is dropped: there is no more room", zap.Uint64("prompts", gaps))
	}
	deaf := false
	for _, line := range k.book.toAgent {
		deaf = k.agent != nil && !k.agent.out.put(line) || deaf
	}
	full := map[*client]bool{}
	for _, m := range k.book.toClients {
		if c := k.clients[m.to]; c != nil && !c.out.put(m.line) {
			full[c] = true
		}
	}
	k.book.toAgent, k.book.toClients = nil, nil
	if deaf {
		k.cfg.Log.Warn("agent does not read")
		k.dropAll()
		return
	}
	for c := range full {
		k.drop(c)
	}
	if len(full) > 0 {
		k.flush() // what they leave behind is closed, and refused
	}
}

// quit ends the agent, and waits for that. Nobody is attached any more.
func (k *keeper) quit() {
	if k.agent != nil {
		k.endAgent()
	}
	for k.agent != nil {
		select {
		case <-k.said: // nobody hears it
		case err := <-k.ended:
			k.gone(err)
		}
	}
}
