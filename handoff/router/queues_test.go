package router

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

func TestQueuesAreTakenInOrder(t *testing.T) {
	l := NewQueues()
	c := handoff.Caller{Principal: "owner"}
	if took, again := l.Take("k", "a", c), l.Take("k", "a", c); !took || !again || l.Take("k", "b", c) {
		t.Fatal("a queue has one holder")
	}
	first, second := l.Look("k", "b", c), l.Look("k", "c", handoff.Caller{Principal: "else"})
	if first.Mine || !first.Same || second.Same {
		t.Fatalf("views: %+v %+v", first, second)
	}
	l.Runs("b", work.Turn{ID: "t9"}) // not the holder: nothing changes
	l.Runs("a", work.Turn{ID: "t1", Target: handoff.Target{Thread: "x"}, Title: "Auth"})
	<-first.Changed
	if v := l.Look("k", "b", c); v.ID != "t1" || v.Title != "Auth" || v.Target.Thread != "x" {
		t.Fatalf("the running turn: %+v", v)
	}
	l.Leave("a", "")
	if l.Take("k", "d", c) || l.Look("k", "c", c).Mine || !l.Look("k", "b", c).Mine {
		t.Fatal("who waited longest is next")
	}
	l.Leave("c", "")
	l.Leave("b", "")
	if !l.Take("k", "d", c) {
		t.Fatal("who left the queue does not hold it up")
	}
	l.Take("other", "d", c)
	if l.Leave("d", "k"); l.Take("k", "e", c) || !l.Take("other", "e", c) {
		t.Error("who leaves all queues but one has left that one, or not the other")
	}
	l.Leave("e", "")
	l.Leave("d", "")
	if len(l.all) != 0 {
		t.Fatalf("%d queues are kept", len(l.all))
	}
}

// TestQueueOrder: who waits is moved among its own, those of others keep their turn, and what does not wait there any
// more moves nothing.
func TestQueueOrder(t *testing.T) {
	c, other := handoff.Caller{Principal: "owner"}, handoff.Caller{Principal: "else"}
	own := map[string]bool{"holds": true, "a": true, "b": true, "c": true, "elsewhere": true}
	for _, row := range []struct{ id, before, own, all string }{
		{"c", "a", "[c a b]", "[c x a b]"}, {"a", "", "[b c a]", "[b x c a]"}, {"b", "a", "[b a c]", "[b x a c]"},
		{"c", "b", "[a c b]", "[a x c b]"}, {"a", "c", "[b a c]", "[b x a c]"}, {"a", "x", "[]", "[a x b c]"},
		{"x", "a", "[]", "[a x b c]"}, {"a", "a", "[]", "[a x b c]"}, {"a", "holds", "[]", "[a x b c]"},
		{"holds", "a", "[]", "[a x b c]"}, {"b", "elsewhere", "[]", "[a x b c]"}, {"gone", "", "[]", "[a x b c]"},
	} {
		l := NewQueues()
		l.Take("k", "holds", c)
		l.Take("other", "holds-other", c)
		l.Look("other", "elsewhere", c)
		first := l.Look("k", "a", c)
		l.Look("k", "x", other)
		l.Look("k", "b", c)
		l.Look("k", "c", c)
		if got := fmt.Sprint(l.Move(row.id, row.before, own)); got != row.own {
			t.Errorf("%s before %q: %s, want %s", row.id, row.before, got, row.own)
		}
		if got := fmt.Sprint(l.all["k"].waiting); got != row.all {
			t.Errorf("%s before %q: the queue is %s, want %s", row.id, row.before, got, row.all)
		}
		select {
		case <-first.Changed: // the first one may be another
		default:
			if row.own != "[]" {
				t.Error("nobody looks again")
			}
		}
	}
}

// TestQueuesUnderLoad holds that never two hold a queue, that everybody gets it, and that nothing is kept.
func TestQueuesUnderLoad(t *testing.T) {
	l := NewQueues()
	var works sync.WaitGroup
	var mu sync.Mutex
	holders := map[string]int{}
	for i := range 60 {
		works.Go(func() {
			key, id := fmt.Sprint("k", rand.N(3)), fmt.Sprint("w", i)
			for {
				v := l.Look(key, id, handoff.Caller{})
				if v.Mine {
					break
				}
				<-v.Changed
			}
			mu.Lock()
			if holders[key]++; holders[key] != 1 {
				t.Errorf("%d hold %s", holders[key], key)
			}
			mu.Unlock()
			l.Runs(id, work.Turn{ID: "t"})
			mu.Lock()
			holders[key]--
			mu.Unlock()
			l.Leave(id, "")
		})
	}
	works.Wait()
	if len(l.all) != 0 {
		t.Errorf("%d queues are kept", len(l.all))
	}
}
