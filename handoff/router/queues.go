package router

import (
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
)

// Queues let one run of this process at a time use a thread, whichever routers the runs belong to: one run holds the
// queue of a thread, and the others wait in order of arrival, or join the run that holds it. Queues are safe for
// concurrent use.
type Queues struct {
	mu  sync.Mutex
	all map[string]*threadQueue // Guarded by mu: by key; queues that are held or waited for
}

// A threadQueue is the queue of one thread, or of the next new thread of a caller on a server.
type threadQueue struct {
	holder  string         // id of the run that holds it; "": none
	caller  handoff.Caller // of the holder
	turn    runningTurn    // of the holder
	waiting []string       // ids of runs, in order of arrival; bounded by the number of open runs
	stops   int            // number of stops on their way to the holder's agent; until they arrive nobody takes the queue
	changed chan struct{}  // closed at each change
}

// A runningTurn is a turn into which other runs may put their words.
type runningTurn struct {
	turn    handoff.TurnID   // "" while none runs, or it cannot be reached
	control handoff.Controls // of its agent
	target  handoff.Target   // where it runs
	title   string           // of that thread
}

// queueView is a queue as one waiting run sees it.
type queueView struct {
	mine    bool // this run holds the queue now
	holder  string
	same    bool // the holder is a run of the same caller
	changed <-chan struct{}
	runningTurn
}

// NewQueues returns empty queues.
func NewQueues() *Queues { return &Queues{all: map[string]*threadQueue{}} }

// take gives a queue to a run if it is free and nobody waits longer. It reports whether the run holds it now.
func (l *Queues) take(key, id string, c handoff.Caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.getLocked(key).take(id, c)
}

// takeOrWait is take for a run that waits: it adds the run to the end of the queue, unless it waits there already, and
// returns what the run sees.
func (l *Queues) takeOrWait(key, id string, c handoff.Caller) queueView {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.getLocked(key)
	if n.take(id, c) {
		return queueView{mine: true}
	}
	if !slices.Contains(n.waiting, id) {
		n.waiting = append(n.waiting, id)
	}
	return queueView{holder: n.holder, same: n.caller == c, changed: n.changed, runningTurn: n.turn}
}

// running sets the turn of a run that holds queues, and wakes the runs that wait there, which may join the turn.
func (l *Queues) running(keys []string, id string, t runningTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if n := l.all[key]; n != nil && n.holder == id {
			n.turn = t
			n.wake()
		}
	}
}

// waitingFor returns the ids of the runs that wait for the queues of a run, in order.
func (l *Queues) waitingFor(id string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitingLocked(l.heldLocked(id))
}

// stop calls give, which sends a stop to the agent of a run, and then after, with the runs that wait for this run. The
// run may leave its queues before give returns; no other run takes them before after has returned.
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

// heldLocked returns the keys of the queues that a run holds.
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

// leave removes a run from queues that it holds or waits in.
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

// tidyLocked deletes a queue that nobody uses.
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

// take is [Queues.take]. The mu of Queues is held.
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

// newSessionKey names the queue of a caller's next new thread on a server or project.
func newSessionKey(c handoff.Caller, t handoff.Target) string {
	return "new " + c.String() + " " + keyOf(t).String()
}

// A claim is the part that one run has in the queues. The run guards it.
type claim struct {
	queues  *Queues        // Set once
	id      string         // Set once: of the run
	caller  handoff.Caller // Set once: of the run
	held    []string       // queues that the run holds
	awaited string         // the queue that it waits in, or ""
}

// take takes a queue if it is free, and reports whether the run holds it now.
func (c *claim) take(key string) bool {
	if !c.queues.take(key, c.id, c.caller) {
		return false
	}
	if !slices.Contains(c.held, key) {
		c.held = append(c.held, key)
	}
	return true
}

// keep leaves all queues but one ("": all of them): runs that wait in another queue must not join this run, whose words
// do not go to that thread.
func (c *claim) keep(key string) {
	others := slices.DeleteFunc(slices.Clone(c.held), func(held string) bool { return held == key })
	c.held = slices.DeleteFunc(c.held, func(held string) bool { return held != key })
	c.queues.leave(others, c.id)
}
