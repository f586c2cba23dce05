package codex

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestJudge: the finding of a look at a thread, for a start with the id m1 and the watermark w.
func TestJudge(t *testing.T) {
	entry := func(turn, client string) itemEntry {
		e := itemEntry{TurnID: turn, Item: wireItem{Type: typeUserMessage}}
		if client != "" {
			e.Item.ClientID = &client
		}
		return e
	}
	turn := func(id, status string) wireTurn { return wireTurn{ID: id, Status: status} }
	ended := int64(1)
	const runs, done, cut = statusInProgress, statusCompleted, statusInterrupted
	for name, c := range map[string]struct {
		turns   []wireTurn  // newest first
		entries []itemEntry // newest first
		after   handoff.TurnID
		want    finding
	}{
		"nothing there": {nil, nil, "", finding{}},
		"nothing new":   {[]wireTurn{turn("w", done)}, []itemEntry{entry("w", "old")}, "w", finding{}},
		"ours runs": {[]wireTurn{turn("a", runs), turn("w", done)},
			[]itemEntry{entry("a", "m1"), entry("w", "old")}, "w", finding{turn: "a", certain: true}},
		"ours ended": {[]wireTurn{turn("a", done), turn("w", done)},
			[]itemEntry{entry("a", "m1"), entry("w", "old")}, "w", finding{turn: "a", certain: true}},
		"ours, another after it": {[]wireTurn{turn("b", runs), turn("a", done), turn("w", done)},
			[]itemEntry{entry("b", ""), entry("a", "m1")}, "w", finding{turn: "a", certain: true}},
		"ours, steered since": {[]wireTurn{turn("a", runs)}, []itemEntry{entry("a", "m2"), entry("a", "m1")}, "",
			finding{turn: "a", certain: true}},
		"ours without a message": {[]wireTurn{turn("a", cut), turn("w", done)}, []itemEntry{entry("w", "old")}, "w",
			finding{turn: "a"}},
		"two without a message":  {[]wireTurn{turn("b", cut), turn("a", cut), turn("w", done)}, nil, "w", finding{turn: "a"}},
		"a goal's, ended":        {[]wireTurn{turn("a", done), turn("w", done)}, []itemEntry{entry("w", "old")}, "w", finding{}},
		"a goal's, stopped":      {[]wireTurn{{ID: "a", Status: cut, CompletedAt: &ended}, turn("w", done)}, nil, "w", finding{}},
		"no goal, ended":         {[]wireTurn{turn("a", done), turn("w", done)}, nil, "w", finding{turn: "a"}},
		"its message is to come": {[]wireTurn{turn("a", runs), turn("w", done)}, nil, "w", finding{turn: "a"}},
		"somebody else's, ended": {[]wireTurn{turn("a", done), turn("w", done)}, []itemEntry{entry("a", "desk")}, "w",
			finding{}},
		"typed at the desk": {[]wireTurn{turn("a", done), turn("w", done)}, []itemEntry{entry("a", "")}, "w", finding{}},
		"somebody else's, runs": {[]wireTurn{turn("a", runs), turn("w", done)}, []itemEntry{entry("a", "desk")}, "w",
			finding{undecided: true}},
		"went into another": {[]wireTurn{turn("a", runs), turn("w", done)},
			[]itemEntry{entry("a", "m1"), entry("a", "desk")}, "w", finding{turn: "a", joined: true}},
		"went into the old one": {[]wireTurn{turn("w", done)}, []itemEntry{entry("w", "m1"), entry("w", "old")}, "w",
			finding{turn: "w", joined: true}},
		"the old one runs on": {[]wireTurn{turn("w", runs)}, []itemEntry{entry("w", "old")}, "w", finding{undecided: true}},
		"two of ours": {[]wireTurn{turn("b", done), turn("a", done)},
			[]itemEntry{entry("b", "m1"), entry("a", "m1")}, "", finding{turn: "a", certain: true, duplicate: true}},
		"an unknown watermark": {[]wireTurn{turn("a", done)}, []itemEntry{entry("a", "desk")}, "gone", finding{}},
	} {
		if got := findStart(c.turns, c.entries, c.after, "m1", !strings.Contains(name, "no goal")); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// looks answers one look of Reconcile: a resume, and a reading of the newest items, newest first.
func (f *fake) looks(turns string, entries ...string) {
	f.t.Helper()
	f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turns))
	f.reply(f.expect("thread/items/list"), `{"data":[`+strings.Join(entries, ",")+`],"nextCursor":null}`)
}

func reconcile(ctx context.Context, at handoff.Attached) async[handoff.TurnID] {
	return call(func() (handoff.TurnID, error) { return at.Agent.(handoff.Reconciler).Reconcile(ctx, turn2, "m1") })
}

const watermark = `{"id":"` + turn2 + `","status":"completed","completedAt":1,"items":[],"error":null}`

// old is the user's message in the watermark.
var old = entryOf(turn2, userSays("m0"))

// reconcileCases are the looks of Reconcile and its results. Set once.
var reconcileCases = map[string]struct {
	looks []func(f *fake)
	turn  handoff.TurnID
	code  handoff.Code
	took  time.Duration
}{
	"it runs": {[]func(*fake){
		func(f *fake) {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("m1")), old)
		},
	}, turn1, "", 0},
	"it never ran": {[]func(*fake){
		func(f *fake) { f.looks(watermark, old) },
		func(f *fake) { f.looks(watermark, old) },
	}, "", "", reconcileFor},
	"it came late": {[]func(*fake){
		func(f *fake) { f.looks(watermark, old) },
		func(f *fake) {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("m1")), old)
		},
	}, turn1, "", reconcileFor},
	"something moved between": {[]func(*fake){
		func(f *fake) { f.looks(watermark, old) },
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, entryOf(turn1, userSays("desk")), old)
		},
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, entryOf(turn1, userSays("desk")), old)
		},
	}, "", "", 2 * reconcileFor},
	"a crash took the message": {[]func(*fake){
		func(f *fake) { f.looks(turnJSON(turn1, "interrupted", false)+","+watermark, old) },
		func(f *fake) { f.looks(turnJSON(turn1, "interrupted", false)+","+watermark, old) },
	}, turn1, "", reconcileFor},
	"it ended without its message": {[]func(*fake){
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, old)
			f.reply(f.expect("thread/goal/get"), `{"goal":null}`)
		},
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, old)
			f.refuse(f.expect("thread/goal/get"), -32600, "unknown variant")
		},
	}, turn1, "", reconcileFor},
	"a goal's turn ended": {[]func(*fake){
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, old)
			f.reply(f.expect("thread/goal/get"), `{"goal":{"objective":"o","status":"complete"}}`)
		},
		func(f *fake) {
			f.goal("complete")
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, old)
		},
	}, "", "", reconcileFor},
	"it joined another": {[]func(*fake){
		func(f *fake) {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("m1")),
				entryOf(turn1, userSays("desk")), old)
		},
	}, turn1, handoff.CodeJoined, 0},
	"another runs for a while": {[]func(*fake){
		func(f *fake) {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("desk")), old)
		},
		func(f *fake) {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("desk")), old)
		},
		func(f *fake) {
			f.looks(turnJSON(turn1, "completed", true)+","+watermark, entryOf(turn1, userSays("m1")),
				entryOf(turn1, userSays("desk")), old)
		},
	}, turn1, handoff.CodeJoined, 2 * reconcileFor},
	"the thread never ran": {[]func(*fake){
		func(f *fake) {
			f.gone()
			f.refuse(f.expect("thread/items/list"), -32601, "thread/items/list is not supported yet")
			f.refuse(f.expect("thread/turns/list"), -32601, "list_turns is not supported yet")
		},
		func(f *fake) {
			f.gone()
			f.refuse(f.expect("thread/items/list"), -32601, "thread/items/list is not supported yet")
			f.refuse(f.expect("thread/turns/list"), -32601, "list_turns is not supported yet")
		},
	}, "", "", reconcileFor + 700*time.Millisecond},
	"it is lost again": {[]func(*fake){func(f *fake) { f.expect("thread/resume"); f.close() }}, "",
		handoff.CodeUnreachable, 0},
	"it is lost while it waits": {[]func(*fake){
		func(f *fake) { f.looks(watermark, old); synctest.Wait(); f.close() },
	}, "", handoff.CodeAgentGone, 0},
	"nobody knows": {[]func(*fake){func(f *fake) { f.refuse(f.expect("thread/resume"), -32600, "disk on fire") }}, "",
		handoff.CodeRefused, 0},
}

// TestReconcile: a turn with our id decides at once. That there is none takes two equal looks.
func TestReconcile(t *testing.T) {
	for name, c := range reconcileCases {
		t.Run(name, bubble(func(t *testing.T) {
			f, at := again(t, idle, watermark)
			begin := time.Now()
			s := reconcile(t.Context(), at)
			for i, look := range c.looks {
				if i > 0 {
					sleep(reconcileFor)
				}
				look(f)
			}
			r := <-s.done
			code := handoff.Code("")
			if r.err != nil {
				code = handoff.AsError(r.err).Code
			}
			if r.value != c.turn || code != c.code {
				t.Errorf("%q, %v", r.value, r.err)
			}
			if took := time.Since(begin); took != c.took {
				t.Errorf("took %v", took)
			}
			f.take()
		}))
	}
}

// TestReconcileStaysOpen: while somebody else's newer turn runs, our input may wait in it: the outcome stays unknown.
func TestReconcileStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, idle, watermark)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s := reconcile(ctx, at)
		for range 3 {
			f.looks(turnJSON(turn1, "inProgress", false)+","+watermark, entryOf(turn1, userSays("desk")))
			sleep(reconcileFor)
		}
		s.wantCode(t, handoff.CodeUnknownStart)
	})
}

// didMuch answers the reading of a thread whose newest turn has many items after its user's message.
func (f *fake) didMuch(turn string) {
	f.t.Helper()
	for range searchPages {
		f.reply(f.expect("thread/items/list"), `{"data":[`+entryOf(turn, says("a", "x", "null"))+`],"nextCursor":"more"}`)
	}
}

// begunBy is a turn in the summary of a thread: its first and its last message.
func begunBy(turn, client string) string {
	return fmt.Sprintf(`{"id":%q,"status":"completed","completedAt":1,"items":[%s,%s],"error":null}`, turn,
		userSays(client), says("z", "Done.", "null"))
}

// TestReconcileReadsSummaries: the first message of a turn with many items is read from the summaries of the turns.
func TestReconcileReadsSummaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, idle, watermark)
		s := reconcile(t.Context(), at)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "completed", true)+","+watermark))
		f.didMuch(turn1)
		f.turns(begunBy(turn1, "m1") + "," + begunBy(turn2, "m0"))
		if id := s.get(t); id != turn1 {
			t.Errorf("%q", id)
		}
	})
}

// TestReconcileReadsFarEnough: a long turn has its message on a later page.
func TestReconcileReadsFarEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, idle, watermark)
		s := reconcile(t.Context(), at)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "completed", true)+","+watermark))
		f.reply(f.expect("thread/items/list"), `{"data":[`+entryOf(turn1, says("a", "x", "null"))+`],"nextCursor":"more"}`)
		next := f.expect("thread/items/list")
		if !strings.Contains(string(next.Params), `"cursor":"more"`) {
			t.Errorf("%s", next.Params)
		}
		f.reply(next, `{"data":[`+entryOf(turn1, userSays("m1"))+`,`+entryOf(turn2,
			userSays("m0"))+`],"nextCursor":"and more"}`)
		if id := s.get(t); id != turn1 {
			t.Errorf("%q", id)
		}
	})
}
