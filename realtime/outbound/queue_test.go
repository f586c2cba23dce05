package outbound

import (
	"testing"

	"switchboard/handoff"
)

func TestQueueKeepsOrder(t *testing.T) {
	q := New(nil)
	for _, e := range []string{"one", "two", "four"} {
		if !q.Send([]byte(e)) {
			t.Fatalf("%s was not taken", e)
		}
	}
	if q.End(nil); q.Put([]byte("x")) || q.Send([]byte("x")) || q.Behind() || q.Ended() != nil {
		t.Errorf("after the end: %v", q.Ended())
	}
	if q.Bytes() == 0 {
		t.Error("nothing waits")
	}
	for _, want := range []string{"one", "two", "four"} { // what was sent before is still there
		if e, ok := q.Next(); !ok || string(e) != want {
			t.Errorf("got %s, want %s", e, want)
		}
	}
	<-q.Ready()
	if _, more := q.Next(); more || q.Bytes() != 0 {
		t.Errorf("%d bytes are left", q.Bytes())
	}
}

// Put leaves no token in Ready, and Send leaves one.
func TestQueueTells(t *testing.T) {
	q := New(nil)
	if q.Put([]byte("x")); len(q.Ready()) != 0 || q.Bytes() == 0 {
		t.Error("told of what was only put")
	}
	q.Send([]byte("x"))
	if q.Send([]byte("x")); len(q.Ready()) != 1 {
		t.Error("not told")
	}
}

func TestQueueIsBounded(t *testing.T) {
	ended := 0
	events, bytes := New(nil), New(func() { ended++ })
	n := 0
	for events.Send(nil) {
		n++
	}
	if n != MaxEvents || !events.Behind() {
		t.Errorf("%d events were taken: %v", n, events.Ended())
	}
	if !bytes.Send(make([]byte, MaxBytes)) || bytes.Send([]byte{1}) || !bytes.Behind() ||
		bytes.Ended().Code != handoff.CodeSlowClient {
		t.Errorf("bytes: %v", bytes.Ended())
	}
	if bytes.End(nil); ended != 1 {
		t.Errorf("its end was told %d times", ended)
	}
}

func TestFirstReasonCounts(t *testing.T) {
	q := New(nil)
	first, second := handoff.Fault(handoff.CodeTooLarge, "", ""), handoff.Fault(handoff.CodeShutdown, "", "")
	q.End(first)
	q.End(second)
	if q.Ended() != first || q.EndedAt().IsZero() {
		t.Errorf("ended with %v", q.Ended())
	}
	<-q.Ending()
}

// A queue that is never empty, and one that was long, free the memory of events that were taken.
func TestQueueGivesRoomBack(t *testing.T) {
	q := New(nil)
	for range 500 {
		q.Send([]byte("x"))
	}
	for range 100 * MaxEvents {
		q.Send([]byte("x"))
		q.Next()
	}
	if n := cap(q.waiting); n > 8*MaxEvents {
		t.Errorf("room for %d", n)
	}
	for range 500 {
		q.Next()
	}
	if n := cap(q.waiting); n > keptSlots {
		t.Errorf("an empty one has room for %d", n)
	}
}
