package router

import (
	"slices"
	"switchboard/handoff"
	"sync"
)

// lanes serialise what this process asks of one thread: a lane is held by one work at a time, and the
// others wait in order of arrival or join the work that runs in it.
type lanes struct {
	mu  sync.Mutex
	all map[string]*lane // Guarded by mu: lanes that are held or waited for
}

// A lane is one thread, or the making of a caller's next thread on a server.
type lane struct {
	holder  string           // the work's id, "" while nobody holds it
	caller  handoff.Caller   // of the holder
	turn    handoff.TurnID   // of the holder, "" while it does not run or cannot be reached
	control handoff.Controls // of the holder's agent while turn is set
	target  handoff.Target   // where the turn runs
	title   string           // of that thread
	waiting []string         // works, in order of arrival; bounded by the works that are open
	changed chan struct{}    // closed at each change
}

// laneView is a lane as one waiting work sees it.
type laneView struct {
	mine    bool // the asking work holds it now
	holder  string
	same    bool // the holder works for the same caller
	turn    handoff.TurnID
	control handoff.Controls
	target  handoff.Target
	title   string
	changed <-chan struct{}
}

func newLanes() *lanes { return &lanes{all: map[string]*lane{}} }

// take gives a lane to a work if it is free and nobody waited longer. Taking it again is harmless.
func (l *lanes) take(key, id string, c handoff.Caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.getLocked(key).take(id, c)
}

// look takes the lane if it is this work's turn, and tells who has it otherwise. The work waits in line
// from the first look on, until it holds the lane or leaves.
func (l *lanes) look(key, id string, c handoff.Caller) laneView {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.getLocked(key)
	if n.take(id, c) {
		return laneView{mine: true}
	}
	if !slices.Contains(n.waiting, id) {
		n.waiting = append(n.waiting, id)
	}
	return laneView{holder: n.holder, same: n.caller == c, turn: n.turn, control: n.control, target: n.target, title: n.title, changed: n.changed}
}

// running tells those who wait which turn they could join; no turn: none.
func (l *lanes) running(keys []string, id string, turn handoff.TurnID, control handoff.Controls, target handoff.Target, title string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if n := l.all[key]; n != nil && n.holder == id {
			n.turn, n.control, n.target, n.title = turn, control, target, title
			n.wake()
		}
	}
}

// leave gives the lanes up, held or waited for.
func (l *lanes) leave(keys []string, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		n := l.all[key]
		if n == nil {
			continue
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w string) bool { return w == id })
		if n.holder == id {
			*n = lane{waiting: n.waiting, changed: n.changed}
		}
		n.wake()
		if n.holder == "" && len(n.waiting) == 0 {
			delete(l.all, key)
		}
	}
}

func (l *lanes) getLocked(key string) *lane {
	n := l.all[key]
	if n == nil {
		n = &lane{changed: make(chan struct{})}
		l.all[key] = n
	}
	return n
}

// take is called with the lanes locked.
func (n *lane) take(id string, c handoff.Caller) bool {
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

func (n *lane) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}
