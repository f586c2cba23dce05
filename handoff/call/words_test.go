package call

import (
	"fmt"
	"switchboard/handoff"
	"testing"
	"time"
)

func TestHearing(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	h := newHearing()
	if h.spokeSince(at(0)) || len(h.last()) != 0 {
		t.Fatal("nothing was said")
	}
	h.began(at(5))
	_, waiting, changed := h.since(at(3))
	if !waiting || !h.spokeSince(at(4)) || h.spokeSince(at(5)) {
		t.Fatal("they speak, the words have not come")
	}
	h.add(handoff.Heard{Text: "yes", Began: at(5)}, at(7))
	<-changed
	if list, waiting, _ := h.since(at(3)); waiting || len(list) != 1 || list[0].Text != "yes" {
		t.Fatalf("heard %v, waiting %t", list, waiting)
	}
	if list, _, _ := h.since(at(5)); len(list) != 0 {
		t.Fatal("what began with the question is not after it")
	}
	h.add(handoff.Heard{Text: "typed", Typed: true}, at(9)) // without a beginning: it began when it came
	if list, _, _ := h.since(at(8)); len(list) != 1 || !list[0].Typed {
		t.Fatalf("typed text: %v", list)
	}
	h.add(handoff.Heard{}, at(10))
	for i := range 100 {
		h.add(handoff.Heard{Text: fmt.Sprint(i)}, at(11+i))
	}
	if last := h.last(); len(last) != maxWords || last[maxWords-1] != "99" || len(h.list) != maxHeard {
		t.Fatalf("last %v, %d kept", last, len(h.list))
	}
}
