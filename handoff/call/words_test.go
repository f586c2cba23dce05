package call

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
)

func TestHearing(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	h := &hearing{}
	if h.spokeSince(at(0)) || len(h.words) != 0 {
		t.Fatal("nothing was said")
	}
	h.began(at(5))
	if !h.spokeSince(at(4)) || h.spokeSince(at(5)) {
		t.Fatal("they speak, the words have not come")
	}
	h.add(handoff.Heard{Text: "yes", Began: at(5)}, at(7))
	h.add(handoff.Heard{Text: "typed", Typed: true}, at(9)) // without a beginning: it began when it came
	if last := h.words; len(last) != 2 || last[0] != "yes" || !h.spokeSince(at(8)) {
		t.Fatalf("heard %q", last)
	}
	h.add(handoff.Heard{}, at(10))
	if !h.spokeSince(at(9)) {
		t.Error("words that could not be made out are words")
	}
	for i := range 100 {
		h.add(handoff.Heard{Text: fmt.Sprint(i)}, at(11+i))
	}
	if last := h.words; len(last) != maxWords || last[0] != "94" || last[maxWords-1] != "99" {
		t.Fatalf("last %q", last)
	}
}
