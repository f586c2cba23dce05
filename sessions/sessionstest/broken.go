package sessionstest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// testBroken: each caller's next call is told once about the call that broke off. After a restart it is told the last
// lines only as far as the conversations have them.
func testBroken(t *testing.T, s Store) {
	ctx, other := t.Context(), handoff.Caller{Principal: owner.Principal, User: "somebody"}
	began := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	calls := sessions.NewBrokenCalls(s, s)
	begin := func(b *sessions.BrokenCalls, c handoff.Caller) string {
		t.Helper()
		last, there, err := b.Begin(ctx, c, began)
		Must(t, err)
		var text strings.Builder
		fmt.Fprint(&text, there)
		for _, l := range last.Lines {
			fmt.Fprintf(&text, " %t:%s", l.Caller, l.Text)
		}
		return text.String()
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	broken := &handoff.BrokenCall{Began: began, Ended: time.Now(),
		Lines: []handoff.SaidLine{{Caller: true, Text: "words"}}}
	want("at first", begin(calls, owner), "false")
	want("beside an open one", begin(calls, owner), "false")
	Must(t, calls.End(ctx, owner, nil))
	Must(t, calls.End(ctx, owner, broken))
	want("of somebody", begin(calls, other), "false")
	want("after one that broke off", begin(calls, owner), "true true:words")
	want("a second time", begin(calls, owner), "false")
	Must(t, calls.End(ctx, owner, nil))
	Must(t, calls.End(ctx, owner, nil))
	want("after one that was hung up", begin(calls, owner), "false")
	Must(t, calls.End(ctx, owner, broken))

	want("after a restart, without history", begin(sessions.NewBrokenCalls(s, s), owner), "true")
	say(t, s, owner, sessions.Said{ID: "old", At: began.Add(-time.Minute), Who: "you", Text: "before the call"},
		sessions.Said{ID: "1", At: began, Who: "you", Text: "run it"},
		sessions.Said{ID: "2", At: began.Add(time.Second), Who: "voice", Text: "It runs."},
		sessions.Said{ID: "bill", At: began.Add(time.Minute), Who: sessions.WhoCall, Text: "A call"}) // nobody said it
	want("after a kill, with history", begin(sessions.NewBrokenCalls(s, s), owner), "true true:run it false:It runs.")
	Must(t, s.DropSaid(ctx, owner))
	again := sessions.NewBrokenCalls(s, s)
	want("after history was deleted", begin(again, owner), "true")
	Must(t, again.End(ctx, owner, broken))
	again.Forget(owner)
	want("after it was, in this life", begin(again, owner), "true")
}
