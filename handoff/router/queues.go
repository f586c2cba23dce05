package router

import (
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
)

// Queues serialise what this process asks of one thread, whichever router has the run: a queue is held by one run at a
// time, and the others wait in order of arrival or join the run that holds it. They are safe for concurrent use.
type Queues struct {
	mu  sync.Mutex
	all map[string]*threadQueue // Guarded by mu: queues that are held or waited for
}

// A threadQueue is one thread, or the making of a caller's next thread on a server.
type threadQueue struct {
	holder  string         // the run's id, "" while nobody holds it
	caller  handoff.Caller // of the holder
	runs    runningTurn    // of the holder
	waiting []string       // runs, in order of arrival; bounded by the runs that are open
	stops   int            // stops on their way to the holder's agent: meanwhile nobody takes it
	changed chan struct{}  // closed at each change
}

// A runningTurn is one that others could join.
type runningTurn struct {
	turn    handoff.TurnID   // "" while none runs, or it cannot be reached
	control handoff.Controls // of its agent
	target  handoff.Target   // where it runs
	title   string           // of that thread
}

// queueView is a queue as one waiting run sees it.
type queueView struct {
	mine    bool // the asking run holds it now
	holder  string
	same    bool // the holder is a run of the same caller
	changed <-chan struct{}
	runningTurn
}

// NewQueues returns queues that nobody waits in.
func NewQueues() *Queues { return &Queues{all: map[string]*threadQueue{}} }

// take gives a queue to a run if it is free and nobody waited longer. Taking it again is harmless.
func (l *Queues) take(key, id string, c handoff.Caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.getLocked(key).take(id, c)
}

// look takes the queue if it is this run's turn, and tells who has it otherwise. The run waits
// from the first look on, until it holds it or leaves.
func (l *Queues) look(key, id string, c handoff.Caller) queueView {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.getLocked(key)
	if n.take(id, c) {
		return queueView{mine: true}
	}
	if !slices.Contains(n.waiting, id) {
		n.waiting = append(n.waiting, id)
	}
	return queueView{holder: n.holder, same: n.caller == c, changed: n.changed, runningTurn: n.runs}
}

// running tells those who wait which turn they could join.
func (l *Queues) running(keys []string, id string, t runningTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if n := l.all[key]; n != nil && n.holder == id {
			n.runs = t
			n.wake()
		}
	}
}

// behind returns the runs that wait for what a run holds, in order.
func (l *Queues) behind(id string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitingLocked(l.heldLocked(id))
}

// stop carries a stop to the agent of what a run holds, which may be free before that returns. Nobody takes it before
// after was told who waits.
func (l *Queues) stop(id string, give func() error, after func(err error, waiting []string)) error {
	l.mu.Lock()
	keys := l.heldLocked(id)
	for _, key := range keys {
		l.all[key].stops++
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, key := range keys {
			n := l.all[key]
			n.stops--
			n.wake()
			l.tidyLocked(key)
		}
	}()
	err := give()
	l.mu.Lock()
	waiting := l.waitingLocked(keys)
	l.mu.Unlock()
	after(err, waiting)
	return err
}

// heldLocked returns what a run holds.
func (l *Queues) heldLocked(id string) (keys []string) {
	for key, n := range l.all {
		if n.holder == id {
			keys = append(keys, key)
		}
	}
	return keys
}

func (l *Queues) waitingLocked(keys []string) (waiting []string) {
	for _, key := range keys {
		waiting = append(waiting, l.all[key].waiting...)
	}
	return waiting
}

// leave gives the queues up, held or waited for.
func (l *Queues) leave(keys []string, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		n := l.all[key]
		if n == nil {
			continue
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w string) bool { return w == id })
		if n.holder == id {
			*n = threadQueue{waiting: n.waiting, changed: n.changed, stops: n.stops}
		}
		n.wake()
		l.tidyLocked(key)
	}
}

// tidyLocked forgets a queue that nobody uses.
func (l *Queues) tidyLocked(key string) {
	if n := l.all[key]; n.holder == "" && len(n.waiting) == 0 && n.stops == 0 {
		delete(l.all, key)
	}
}

func (l *Queues) getLocked(key string) *threadQueue {
	n := l.all[key]
	if n == nil {
		n = &threadQueue{changed: make(chan struct{})}
		l.all[key] = n
	}
	return n
}

// take is called with the queues locked.
func (n *threadQueue) take(id string, c handoff.Caller) bool {
	switch {
	case n.holder == id:
		return true
	case n.holder != "", n.stops > 0, len(n.waiting) > 0 && n.waiting[0] != id:
		return false
	}
	n.holder, n.caller = id, c
	n.waiting = slices.DeleteFunc(n.waiting, func(w string) bool { return w == id })
	return true
}

// Metrics yields how many queues are in use.
func (l *Queues) Metrics() iter.Seq[handoff.Metric] {
	l.mu.Lock()
	n := len(l.all)
	l.mu.Unlock()
	return slices.Values([]handoff.Metric{
		handoff.NewMetric("switchboard_threads_busy", "Threads that a run holds or waits for.", n),
	})
}

func (n *threadQueue) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// threadKey names the queue of a thread.
func threadKey(t handoff.Target) string { return "thread " + t.Server + " " + t.Thread }

// newSessionKey names the queue in which a caller's next thread on a server or project is made.
func newSessionKey(c handoff.Caller, t handoff.Target) string {
	return "new " + c.String() + " " + keyOf(t).String()
}

// A claim is what one run has of the queues. Its owner guards it.
type claim struct {
	queues  *Queues        // Set once
	id      string         // Set once: of the run
	caller  handoff.Caller // Set once: of the run
	held    []string       // queues that the run holds
	awaited string         // the queue that it waits in, or ""
}

// take takes a queue if it is free. Taking it again is harmless.
func (c *claim) take(key string) bool {
	if !c.queues.take(key, c.id, c.caller) {
		return false
	}
	if !slices.Contains(c.held, key) {
		c.held = append(c.held, key)
	}
	return true
}

// keep gives up all queues but one: whoever waits for a thread that the words do not go to must not meet them
// elsewhere.
func (c *claim) keep(key string) {
	var kept, left []string
	for _, held := range c.held {
		if held == key {
			kept = append(kept, held)
		} else {
			left = append(left, held)
		}
	}
	c.held = kept
	c.queues.leave(left, c.id)
}
