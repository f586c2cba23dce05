package router

import (
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// Queues let one handoff of this process at a time use a thread, whichever routers they belong to: one handoff holds
// the queue of a thread, and the others wait in order of arrival, or join the one that holds it. Queues are safe for
// concurrent use.
type Queues struct {
	mu  sync.Mutex
	all map[string]*threadQueue // Guarded by mu: by key; queues that are held or waited for
}

// A threadQueue is the queue of one thread, or of the next new thread of a caller on a server.
type threadQueue struct {
	holder  string         // id of the handoff that holds it; "": none
	caller  handoff.Caller // of the holder
	turn    work.Turn      // of the holder
	waiting []string       // ids of handoffs, in order of arrival; bounded by the number of open handoffs
	changed chan struct{}  // closed at each change
}

// NewQueues returns empty queues.
func NewQueues() *Queues { return &Queues{all: map[string]*threadQueue{}} }

// Take implements [work.Threads].
func (l *Queues) Take(key, id string, c handoff.Caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.getLocked(key).take(id, c)
}

// Look implements [work.Waiting].
func (l *Queues) Look(key, id string, c handoff.Caller) work.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.getLocked(key)
	if n.take(id, c) {
		return work.View{Mine: true}
	}
	if !slices.Contains(n.waiting, id) {
		n.waiting = append(n.waiting, id)
	}
	return work.View{Holder: n.holder, Same: n.caller == c, Changed: n.changed, Turn: n.turn}
}

// Held reports whether work of any caller uses a thread.
func (l *Queues) Held(server, thread string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.all[work.ThreadKey(handoff.Target{Server: server, Thread: thread})]
	return n != nil && n.holder != ""
}

// Runs implements [work.Threads]: it wakes the handoffs that wait there, which may join the turn.
func (l *Queues) Runs(id string, t work.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		if n.holder == id {
			n.turn = t
			n.wake()
		}
	}
}

// Behind implements [work.Waiting].
func (l *Queues) Behind(id string) (waiting []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		if n.holder == id {
			waiting = append(waiting, n.waiting...)
		}
	}
	return waiting
}

// Leave implements [work.Threads].
func (l *Queues) Leave(id, but string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range l.all {
		if key == but || n.holder != id && !slices.Contains(n.waiting, id) {
			continue
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w string) bool { return w == id })
		if n.holder == id {
			*n = threadQueue{waiting: n.waiting, changed: n.changed}
		}
		n.wake()
		if n.holder == "" && len(n.waiting) == 0 { // nobody uses it
			delete(l.all, key)
		}
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

// take is [Queues.Take]. The mu of Queues is held.
func (n *threadQueue) take(id string, c handoff.Caller) bool {
	switch {
	case n.holder == id:
		return true
	case n.holder != "", len(n.waiting) > 0 && n.waiting[0] != id:
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

// Move implements [work.Waiting].
func (l *Queues) Move(id, before string, own map[string]bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		if !slices.Contains(n.waiting, id) {
			continue
		}
		order := slices.DeleteFunc(slices.Clone(n.waiting), func(w string) bool { return !own[w] || w == id })
		to := len(order)
		if before != "" {
			to = slices.Index(order, before)
		}
		if to < 0 || !own[id] {
			return nil
		}
		order = slices.Insert(order, to, id)
		next := 0
		for i, w := range n.waiting {
			if own[w] {
				n.waiting[i] = order[next]
				next++
			}
		}
		n.wake() // another handoff may be first now
		return order
	}
	return nil
}
