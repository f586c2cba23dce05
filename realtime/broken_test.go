package realtime

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/rtc/rtctest"
)

// A notebook is a [Broken] in memory, for one caller.
type notebook struct {
	mu   sync.Mutex
	last *handoff.BrokenCall // Guarded by mu
	ends []string            // Guarded by mu: what each call left, in short
}

func (n *notebook) Begin(context.Context, handoff.Caller, time.Time) (handoff.BrokenCall, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		return handoff.BrokenCall{}, false, nil
	}
	last := *n.last
	n.last = nil
	return last, true, nil
}

func (n *notebook) End(_ context.Context, _ handoff.Caller, broken *handoff.BrokenCall) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = broken
	left := "-"
	if broken != nil {
		left = ""
		for _, l := range broken.Lines {
			left += fmt.Sprintf("%t:%s;", l.Caller, l.Text)
		}
	}
	n.ends = append(n.ends, left)
	return nil
}

// ended waits for the end of a call, and returns what is remembered of it.
func (n *notebook) ended(t *testing.T, nth int) (left string) {
	t.Helper()
	rtctest.Eventually(t, "the end of the call", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.ends) == nth {
			left = n.ends[nth-1]
		}
		return len(n.ends) == nth
	})
	return left
}

// TestBrokenCallOnTheWire: the next call of a caller knows what was said in the call that broke off, and in the one
// before that; of a call that somebody hangs up it knows nothing.
func TestBrokenCallOnTheWire(t *testing.T) {
	book := &notebook{}
	h := newHouseWith(t, func(c *Config) { c.Broken = book; c.Hold = time.Hour })
	client, model := h.call("")
	says := func(model *websocket.Conn, id, text string) {
		send(t, model, `{"type":"conversation.item.added","previous_item_id":null,"item":`+typedItem(id, text)+`}`)
	}
	says(model, "u1", "run the tests")
	send(t, model, `{"type":"conversation.item.added","previous_item_id":"u1","item":`+
		spokenItem("m1", "One fails.", "completed")+`}`)
	for range 2 {
		expect(t, client, "conversation.item.added")
	}
	h.model.gone.Store(http.StatusUnauthorized) // no other session is had
	_ = model.NetConn().Close()
	const first = "true:run the tests;false:One fails.;"
	if left := book.ended(t, 1); left != first {
		t.Errorf("the first left %q", left)
	}
	h.model.gone.Store(0)

	client, model = h.call(comesBack)
	note := expect(t, model, "conversation.item.create")
	text := gjson.Get(note, "item.content.0.text").String()
	for _, want := range []string{"broke off", "Say nothing of it", `The caller: "run the tests"`, `You: "One fails."`} {
		if !strings.Contains(text, want) {
			t.Errorf("the next is told %q", text)
		}
	}
	send(t, model, `{"type":"conversation.item.added","item":`+gjson.Get(note, "item").Raw+`}`)
	says(model, "u2", "fix it")
	if seen := expect(t, client, "conversation.item.added"); !strings.Contains(seen, "fix it") {
		t.Errorf("the client sees %s", seen)
	}
	_ = client.NetConn().Close() // it vanishes, and calls anew instead of coming back
	h.awaitHeld(true)
	client, model = h.call("")
	if left := book.ended(t, 2); left != first+"true:fix it;" {
		t.Errorf("the second left %q", left)
	}
	expect(t, model, "conversation.item.create")
	closes(t, client, websocket.CloseNormalClosure)
	if left := book.ended(t, 3); left != "-" {
		t.Errorf("the third left %q", left)
	}
}

// TestBrokeOffBeforeItWentOn: a call whose next socket begins no session any more leaves what was said over the one
// before. One in which nothing was said yet leaves what the call before it had left.
func TestBrokeOffBeforeItWentOn(t *testing.T) {
	said := []handoff.SaidLine{{Caller: true, Text: "run the tests"}}
	before := &handoff.BrokenCall{Lines: []handoff.SaidLine{{Text: "One fails."}}}
	for name, c := range map[string]struct{ earlier, want []handoff.SaidLine }{
		"went on": {said, append(slices.Clone(before.Lines), said...)}, "new": {nil, before.Lines},
	} {
		call := newCall(someone, ours, "rtc_test", newPeer(), newWire(), nopLog())
		call.earlier, call.cause = c.earlier, handoff.Fault(handoff.CodeVoiceGone, "", "")
		if got := call.brokeOff(before); got == nil || !slices.Equal(got.Lines, c.want) {
			t.Errorf("%s: left %+v", name, got)
		}
	}
}

// TestRoughly: how long something took, in words.
func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 seconds", time.Second: "1 second", 89 * time.Second: "89 seconds",
		90 * time.Second: "2 minutes", 89 * time.Minute: "89 minutes", 2 * time.Hour: "2 hours"} {
		if got := roughly(d); got != want {
			t.Errorf("%v is %q", d, got)
		}
	}
}
