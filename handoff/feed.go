package handoff

import (
	"sync"
)

// FeedBacklog is how many events a caller's feed keeps for those who come back.
const FeedBacklog = 512

// FeedQueue is how many events a listener may be behind before it is dropped; it then reads the snapshot
// again. A page that cannot keep up must not slow the others.
const FeedQueue = 256

// A Feed is what one caller's pages see, in order: a bounded log and its listeners.
type Feed struct {
	mu   sync.Mutex
	last uint64 // Guarded by mu: id of the newest event
	// Guarded by mu: oldest first; the newest FeedBacklog count, twice as many stand here at most
	backlog   []PageEvent
	listeners map[*FeedListener]bool // Guarded by mu
	dropped   uint64                 // Guarded by mu: listeners dropped for being slow
}

// A FeedListener receives a feed. Events is closed when it fell behind or was stopped.
type FeedListener struct {
	Events <-chan PageEvent
	events chan PageEvent // closed under the feed's mu
	feed   *Feed          // Set once
}

// Continue lets the ids go on after that of an event of another feed, so that no id of that one is taken for one of
// this. It is called before anybody has the feed.
func (f *Feed) Continue(last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, last)
}

// Publish appends an event and hands it to every listener that has room.
func (f *Feed) Publish(e PageEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e.ID = f.last
	if len(f.backlog) == 2*FeedBacklog { // rarely, for it copies
		f.backlog = append(f.backlog[:0:0], f.backlog[FeedBacklog:]...)
	}
	f.backlog = append(f.backlog, e)
	for l := range f.listeners {
		select {
		case l.events <- e:
		default:
			f.dropped++
			f.removeLocked(l)
		}
	}
}

// Listen subscribes after the event with id last. The events missed since come first; complete is false
// when the backlog no longer reaches back that far, or the id is from another life of the process: then
// the caller shows a fresh snapshot.
func (f *Feed) Listen(last uint64) (l *FeedListener, missed []PageEvent, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := make(chan PageEvent, FeedQueue)
	l = &FeedListener{Events: events, events: events, feed: f}
	if f.listeners == nil {
		f.listeners = map[*FeedListener]bool{}
	}
	f.listeners[l] = true
	if last > f.last {
		return l, nil, false
	}
	kept := f.backlog[max(0, len(f.backlog)-FeedBacklog):]
	first := f.last - uint64(len(kept)) // id before the oldest kept
	return l, append(missed, kept[max(last, first)-first:]...), last >= first
}

// Last returns the id of the newest event.
func (f *Feed) Last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Stop ends the subscription. It may be called more than once.
func (l *FeedListener) Stop() {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	l.feed.removeLocked(l)
}

func (f *Feed) removeLocked(l *FeedListener) {
	if f.listeners[l] {
		delete(f.listeners, l)
		close(l.events)
	}
}

// Load returns how many listen now, and how many were dropped so far.
func (f *Feed) Load() (listeners int, dropped uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners), f.dropped
}
