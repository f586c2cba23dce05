package router

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A moody store of stickies is slow, and away for a while.
type moodyStickies struct {
	mu    sync.Mutex
	away  time.Time     // Guarded by mu: until when
	slow  time.Duration // Set once: the first write alone
	wrote []string      // Guarded by mu
	tries int           // Guarded by mu
}

func (m *moodyStickies) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	return nil, nil
}
func (m *moodyStickies) Set(_ context.Context, _ handoff.Caller, s handoff.Sticky) error {
	return m.write(fmt.Sprint("set ", keyOf(s.Target), " ", s.Target.Thread))
}

func (m *moodyStickies) Clear(_ context.Context, _ handoff.Caller, t handoff.Target) error {
	return m.write(fmt.Sprint("clear ", keyOf(t)))
}

func (m *moodyStickies) write(what string) error {
	m.mu.Lock()
	m.tries++
	first, away := m.tries == 1, time.Now().Before(m.away)
	m.mu.Unlock()
	if first {
		time.Sleep(m.slow)
	}
	if away {
		return handoff.Fault(handoff.CodeUnreachable, "the store", "")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrote = append(m.wrote, what)
	return nil
}

// stuck runs fn with a router on a store, and returns the writes.
func stuck(t *testing.T, store *moodyStickies, fn func(stick func(server, thread string))) []string {
	t.Helper()
	var wrote []string
	synctest.Test(t, func(t *testing.T) {
		r := idle(Config{Stickies: store})
		end := begin(t, r)
		fn(func(server, thread string) {
			sticky := handoff.Sticky{Target: handoff.Target{Server: server, Thread: thread}}
			r.mine.stick(stickyWrite{sticky: sticky, clear: thread == ""})
		})
		end()
		wrote = store.wrote
	})
	return wrote
}

// TestStickiesAreWrittenInOrder: no write overtakes a slow one, and of the writes that come meanwhile only the newest
// is made.
func TestStickiesAreWrittenInOrder(t *testing.T) {
	got := stuck(t, &moodyStickies{slow: time.Second}, func(stick func(string, string)) {
		stick("bigpc", "")
		synctest.Wait()
		stick("bigpc", "t1")
		stick("bigpc", "t2")
		stick("laptop", "t3")
		time.Sleep(2 * time.Second)
	})
	if want := []string{"clear bigpc", "set bigpc t2", "set laptop t3"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q", got)
	}
}

// TestStickiesOutliveAnOutage: a write that failed is made when the store is back, unless there is a newer one.
func TestStickiesOutliveAnOutage(t *testing.T) {
	store := &moodyStickies{}
	got := stuck(t, store, func(stick func(string, string)) {
		store.away = time.Now().Add(30 * time.Second)
		stick("bigpc", "t1")
		stick("laptop", "t2")
		time.Sleep(10 * time.Second)
		stick("bigpc", "t3")
		time.Sleep(time.Minute)
	})
	if want := []string{"set bigpc t3", "set laptop t2"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q", got)
	}
}

// TestStickiesFailedIsNotNewer: a write that comes while an older one fails replaces the older one.
func TestStickiesFailedIsNotNewer(t *testing.T) {
	store := &moodyStickies{slow: 2 * time.Second}
	got := stuck(t, store, func(stick func(string, string)) {
		store.away = time.Now().Add(time.Second)
		stick("bigpc", "t1")
		time.Sleep(time.Second)
		stick("bigpc", "t2")
		time.Sleep(time.Minute)
	})
	if want := []string{"set bigpc t2"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q", got)
	}
}

// TestStickiesAtTheEnd: when the process ends, each pending write is tried once more.
func TestStickiesAtTheEnd(t *testing.T) {
	store := &moodyStickies{}
	got := stuck(t, store, func(stick func(string, string)) {
		store.away = time.Now().Add(time.Hour)
		stick("bigpc", "t1")
		time.Sleep(time.Second)
	})
	if len(got) != 0 || store.tries < 2 {
		t.Errorf("wrote %q in %d tries", got, store.tries)
	}
}
