package handoff

import (
	"sync"
)

// FeedBacklog is how many events a feed keeps for listeners that come back.
const FeedBacklog = 512

// FeedQueue is how many events a listener may be behind. A slower one is dropped, so that it does not slow the others,
// and reads a snapshot when it comes back.
const FeedQueue = 256

// A Feed has the events for one caller's pages, in order: a bounded log, and its listeners.
type Feed struct {
	mu   sync.Mutex
	last uint64 // Guarded by mu: id of the newest event
	// Guarded by mu: oldest first, at most twice FeedBacklog; only the newest FeedBacklog are used
	backlog   []PageEvent
	listeners map[*FeedListener]bool // Guarded by mu
	dropped   uint64                 // Guarded by mu: listeners dropped for being slow
}

// A FeedListener receives the events of a feed. Events is closed when the listener is dropped or stopped.
type FeedListener struct {
	Events <-chan PageEvent
	events chan PageEvent // closed under the feed's mu
	feed   *Feed          // Set once
	page   bool           // Guarded by the feed's mu: see MarkPage
}

// MarkPage notes that the listener is a page on which a person reads the events of all machines.
func (l *FeedListener) MarkPage() {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	l.page = true
}

// Shown reports whether there is such a page.
func (f *Feed) Shown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		if l.page {
			return true
		}
	}
	return false
}

// Continue makes the ids of this feed begin after last, an id of another feed, so that none is used twice. It is called
// before the feed is used.
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
	if len(f.backlog) == 2*FeedBacklog { // trimmed rarely, since that copies
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

// Listen subscribes to the events after the one with id last. missed are those that the feed has already. complete is
// false if some of them are not kept any more, or the id is from another life of the process: then a page needs a new
// snapshot.
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

// Load returns the number of listeners now, and the number that were dropped so far.
func (f *Feed) Load() (listeners int, dropped uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners), f.dropped
}
