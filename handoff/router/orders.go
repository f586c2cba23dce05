package router

import (
	"slices"
	"switchboard/handoff/phase"
	"sync"
)

// An order is a fact from outside.
type order struct{ fact phase.Fact }

// orders are what a work was told from outside (stop, due) and has not taken
// yet. None is ever dropped: one of a kind is all that counts, so there are as many as kinds at most.
type orders struct {
	come chan struct{} // holds one token while there are some

	mu   sync.Mutex
	list []order // Guarded by mu: in order
}

func newOrders() *orders { return &orders{come: make(chan struct{}, 1)} }

// put adds an order without waiting.
func (q *orders) put(o order) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.ContainsFunc(q.list, func(old order) bool { return old.fact == o.fact }) {
		return
	}
	q.list = append(q.list, o)
	select {
	case q.come <- struct{}{}:
	default: // it is awake already
	}
}

// take returns what has come.
func (q *orders) take() []order {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// order hands a fact to the work without waiting.
func (w *work) order(o order) { w.orders.put(o) }

// hear takes the orders that have come: a stop counts before anything that would go on.
func (w *work) hear() {
	for _, o := range w.orders.take() {
		w.Step(o.fact)
	}
}
