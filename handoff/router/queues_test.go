package router

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"switchboard/handoff"
)

func TestQueuesAreTakenInOrder(t *testing.T) {
	l := NewQueues()
	c := handoff.Caller{Principal: "owner"}
	if took, again := l.take("k", "a", c), l.take("k", "a", c); !took || !again || l.take("k", "b", c) {
		t.Fatal("a queue has one holder")
	}
	first, second := l.takeOrWait("k", "b", c), l.takeOrWait("k", "c", handoff.Caller{Principal: "else"})
	if first.mine || !first.same || second.same {
		t.Fatalf("views: %+v %+v", first, second)
	}
	l.running([]string{"k"}, "b", runningTurn{turn: "t9"}) // not the holder: nothing changes
	l.running([]string{"k"}, "a", runningTurn{turn: "t1", target: handoff.Target{Thread: "x"}, title: "Auth"})
	<-first.changed
	if v := l.takeOrWait("k", "b", c); v.turn != "t1" || v.title != "Auth" || v.target.Thread != "x" {
		t.Fatalf("the running turn: %+v", v)
	}
	l.leave([]string{"k", "gone"}, "a")
	if l.take("k", "d", c) || l.takeOrWait("k", "c", c).mine || !l.takeOrWait("k", "b", c).mine {
		t.Fatal("who waited longest is next")
	}
	l.leave([]string{"k"}, "c")
	l.leave([]string{"k"}, "b")
	if !l.take("k", "d", c) {
		t.Fatal("who left the queue does not hold it up")
	}
	l.leave([]string{"k"}, "d")
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
		l.take("k", "holds", c)
		l.take("other", "holds-other", c)
		l.takeOrWait("other", "elsewhere", c)
		first := l.takeOrWait("k", "a", c)
		l.takeOrWait("k", "x", other)
		l.takeOrWait("k", "b", c)
		l.takeOrWait("k", "c", c)
		if got := fmt.Sprint(l.move(row.id, row.before, own)); got != row.own {
			t.Errorf("%s before %q: %s, want %s", row.id, row.before, got, row.own)
		}
		if got := fmt.Sprint(l.all["k"].waiting); got != row.all {
			t.Errorf("%s before %q: the queue is %s, want %s", row.id, row.before, got, row.all)
		}
		select {
		case <-first.changed: // the first one may be another
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
				v := l.takeOrWait(key, id, handoff.Caller{})
				if v.mine {
					break
				}
				<-v.changed
			}
			mu.Lock()
			if holders[key]++; holders[key] != 1 {
				t.Errorf("%d hold %s", holders[key], key)
			}
			mu.Unlock()
			l.running([]string{key}, id, runningTurn{turn: "t"})
			mu.Lock()
			holders[key]--
			mu.Unlock()
			l.leave([]string{key}, id)
		})
	}
	works.Wait()
	if len(l.all) != 0 {
		t.Errorf("%d queues are kept", len(l.all))
	}
}
