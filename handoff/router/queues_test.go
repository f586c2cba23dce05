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
	first, second := l.look("k", "b", c), l.look("k", "c", handoff.Caller{Principal: "else"})
	if first.mine || !first.same || second.same {
		t.Fatalf("views: %+v %+v", first, second)
	}
	l.running([]string{"k"}, "b", runningTurn{turn: "t9"}) // not the holder: nothing changes
	l.running([]string{"k"}, "a", runningTurn{turn: "t1", target: handoff.Target{Thread: "x"}, title: "Auth"})
	<-first.changed
	if v := l.look("k", "b", c); v.turn != "t1" || v.title != "Auth" || v.target.Thread != "x" {
		t.Fatalf("the running turn: %+v", v)
	}
	l.leave([]string{"k", "gone"}, "a")
	if l.take("k", "d", c) || l.look("k", "c", c).mine || !l.look("k", "b", c).mine {
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
				v := l.look(key, id, handoff.Caller{})
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
