package call

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// A hastyVoice is a voice that confirms each answer that holds an outcome before the one who gives it gets on.
type hastyVoice struct {
	events chan handoff.VoiceEvent // unbuffered

	mu   sync.Mutex
	said []handoff.Utterance // Guarded by mu
}

func (v *hastyVoice) Events() <-chan handoff.VoiceEvent { return v.events }

func (v *hastyVoice) Say(u handoff.Utterance) {
	v.mu.Lock()
	v.said = append(v.said, u)
	v.mu.Unlock()
	if u.CallID != "" && len(u.Tells) > 0 {
		go func() {
			v.events <- handoff.Said{ID: u.ID, At: time.Now()}
		}()
	}
}

// ask makes a function call.
func (v *hastyVoice) ask(id, tool, arguments string) {
	v.events <- handoff.FunctionCall{CallID: id, Asked: time.Now(), Tool: tool, Arguments: arguments}
}

// count says how many of the utterances so far are such.
func (v *hastyVoice) count(such func(handoff.Utterance) bool) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, u := range v.said {
		if such(u) {
			n++
		}
	}
	return n
}

// A liveCall is a call in a world, with the router that does its work.
type liveCall struct {
	*hastyVoice
	world  *world
	router *homes.Homes
	owners *router.Owners
	over   bool // the voice closed its events
}

// inCall does something in a call of a grant, and then ends the call and the process.
func inCall(t *testing.T, script string, g handoff.Grant, do func(t *testing.T, c *liveCall)) {
	synctest.Test(t, func(t *testing.T) {
		w, owners := newWorld(t, script), router.NewOwners(nil)
		r, calls := service("h", router.Config{Fleet: w, Store: w.Ledger.For("h"), Owners: owners}, w, "")
		c := &liveCall{hastyVoice: &hastyVoice{events: make(chan handoff.VoiceEvent)}, world: w, router: r, owners: owners}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = r.Run(ctx) })
		all.Go(func() { _ = calls.Serve(ctx, &g, c.hastyVoice) })
		synctest.Wait() // what a former life left is known
		do(t, c)
		if !c.over {
			c.events <- handoff.CallEnded{}
			close(c.events)
		}
		synctest.Wait()
		cancel()
		all.Wait()
	})
}

// TestConfirmedAtOnce: an outcome that the voice model has before the call knows that it was given counts as
// heard, and is not told again.
func TestConfirmedAtOnce(t *testing.T) {
	world := "server bigpc\nsticky bigpc t1 Auth\nturn t1 100ms completed Done."
	inCall(t, world, calltest.Grant, func(t *testing.T, c *liveCall) {
		c.ask("c1", tools.Codex, `{"server":"bigpc","prompt":"x"}`)
		time.Sleep(time.Hour)
		if rec, err := c.router.Handoff(calltest.Grant, "h-1"); err != nil || rec.State != handoff.StatusDelivered {
			t.Errorf("the record is %+v, %v", rec, err)
		}
		tells := func(u handoff.Utterance) bool { return slices.Contains(u.Tells, "h-1") }
		if n := c.count(tells); n != 1 || c.count(func(u handoff.Utterance) bool {
			return u.ID == "h-1-a" && tells(u)
		}) != 1 {
			t.Errorf("it was told %d times", n)
		}
	})
}

// TestAfterTheEnd: a call ends also when a stop that waits for words, and work behind it, come after its end.
func TestAfterTheEnd(t *testing.T) {
	inCall(t, "server bigpc\nsticky bigpc t1 Auth\nturn t1 1s completed Done.", calltest.Grant, func(t *testing.T, c *liveCall) {
		c.events <- handoff.Quiet{}
		c.events <- handoff.CallEnded{}
		c.events <- handoff.Spoke{At: time.Now()}
		c.ask("c1", tools.StopWork, `{"server":"bigpc"}`)
		c.ask("c2", tools.Codex, `{"server":"bigpc","prompt":"x"}`)
		c.over = true
		close(c.events)
		time.Sleep(time.Minute)
		if all, err := c.router.Handoffs(calltest.Grant); err != nil || len(all) != 1 {
			t.Errorf("the work is %+v, %v", all, err)
		}
	})
}

// TestCallersAreApart holds that nothing of one caller is seen or touched by another.
func TestCallersAreApart(t *testing.T) {
	world := "server bigpc\nsticky bigpc t1 Auth\nturn t1 1s ask rm -rf; 1s completed Done."
	inCall(t, world, calltest.Grant, func(t *testing.T, c *liveCall) {
		r, ctx := c.router, t.Context()
		c.ask("c1", tools.Codex, `{"server":"bigpc","prompt":"x"}`)
		time.Sleep(10 * time.Second)
		other := handoff.Grant{Caller: handoff.Caller{Principal: "owner", User: "somebody"}, Approve: handoff.ApproveAll,
			Page: true}
		id := r.Questions(calltest.Grant)[0].ID
		if err := r.Decide(ctx, other, id, handoff.DecisionAccept); handoff.CodeOf(err) != handoff.CodeNotPending {
			t.Errorf("a foreign question: %v", err)
		}
		if err := r.Stop(ctx, other, "h-1", handoff.StopOurs); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("a foreign work: %v", err)
		}
		if _, err := r.Handoff(other, "h-1"); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("a foreign record: %v", err)
		}
		if theirs, _ := r.Handoffs(other); len(theirs)+len(r.Questions(other)) != 0 || r.Feed(other).Last() != 0 {
			t.Error("something of another caller is shown")
		}
		if rec, err := r.Handoff(calltest.Grant, "h-1"); err != nil || rec.State != handoff.StatusStarted {
			t.Errorf("own record: %+v, %v", rec, err)
		}
		r.ServersChanged()
	})
}

// TestEventsEndWithoutGoodbye holds that a voice that just closes its events has ended its call.
func TestEventsEndWithoutGoodbye(t *testing.T) {
	world := "server bigpc\nsticky bigpc t1 Auth\nturn t1 9s completed Done."
	inCall(t, world, calltest.Grant, func(t *testing.T, c *liveCall) {
		c.ask("c1", tools.Codex, `{"server":"bigpc","prompt":"x"}`)
		time.Sleep(3 * time.Second)
		close(c.events)
		c.over = true
		time.Sleep(20 * time.Second)
		if got, _ := c.router.Handoffs(calltest.Grant); len(got) != 1 || got[0].Outcome != handoff.OutcomeResult ||
			got[0].State != handoff.StatusCompleted {
			t.Errorf("unheard: %+v", got)
		}
	})
}

// TestGrantedCall: in a call, a tool that the grant lacks does not exist, and what the caller made is nobody
// else's.
func TestGrantedCall(t *testing.T) {
	g := handoff.Grant{Caller: calltest.Grant.Caller, Key: "k", Tools: []string{tools.Codex}}
	inCall(t, "server bigpc\nturn t1 100ms completed Done.", g, func(t *testing.T, c *liveCall) {
		for i, tool := range []string{tools.ListServers, tools.Status, tools.AnswerAgent, tools.RemainSilent, "shell"} {
			c.ask(fmt.Sprint("no", i), tool, `{}`)
		}
		c.ask("yes", tools.Codex, `{"server":"bigpc","thread_id":"new","prompt":"x"}`)
		time.Sleep(time.Minute)
		if refused := c.count(func(u handoff.Utterance) bool {
			return strings.HasPrefix(u.CallID, "no") && strings.Contains(u.Text, "there is no tool")
		}); refused != 5 {
			t.Errorf("%d of 5 refused", refused)
		}
		r, ctx := c.router, t.Context()
		all, _ := r.Handoffs(g)
		if len(all) != 1 || all[0].ThreadID == "" || all[0].Why != handoff.WhyNew {
			t.Fatalf("no thread was made: %+v", all)
		}
		rec, mine, bob := all[0], calltest.Grant.Caller, handoff.Caller{Principal: "owner", User: "bob"}
		if c.owners.Hidden(mine, "bigpc", rec.ThreadID) || !c.owners.Hidden(bob, "bigpc", rec.ThreadID) ||
			c.owners.Hidden(handoff.Caller{Principal: "bob"}, "bigpc", "another") {
			t.Error("who sees the thread is wrong")
		}
		elsewhere := handoff.Grant{Caller: calltest.Grant.Caller, Servers: []string{"laptop"}}
		if shown, _ := r.Handoffs(elsewhere); len(shown) != 0 {
			t.Error("work of a machine that may not be used is shown")
		}
		if _, err := r.Handoff(elsewhere, rec.ID); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("it can be read: %v", err)
		}
		if err := r.Stop(ctx, elsewhere, rec.ID, handoff.StopOurs); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("it can be stopped: %v", err)
		}
		if list, err := r.Stickies(ctx, elsewhere); err != nil || len(list) != 0 {
			t.Errorf("its sticky is shown: %v %v", list, err)
		}
		if err := r.ClearSticky(ctx, elsewhere, "bigpc"); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("its sticky can be cleared: %v", err)
		}
	})
}

// TestRateInACall: what is too much is refused in words, and nothing is begun.
func TestRateInACall(t *testing.T) {
	world := "server bigpc\nturn t1 100ms completed Done.\nturn t2 100ms completed Done."
	g := handoff.Grant{Caller: handoff.NamelessCaller("many", "1"), Key: "k",
		KeyLimits: handoff.Limits{HandoffsPerMinute: 1}}
	inCall(t, world, g, func(t *testing.T, c *liveCall) {
		for i := range 3 {
			c.ask(fmt.Sprint("c", i), tools.Codex, fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"job %d"}`, i))
		}
		time.Sleep(10 * time.Second)
		if begun, _ := c.router.Handoffs(g); len(begun) != 1 {
			t.Errorf("%d begun", len(begun))
		}
		if refused := c.count(func(u handoff.Utterance) bool {
			return strings.Contains(u.Text, `"code":"rate_limit_exceeded"`) &&
				strings.Contains(u.Text, "one piece of work was given")
		}); refused != 2 {
			t.Errorf("%d refused", refused)
		}
		if all := c.world.Ledger.Places(); len(all) != 0 {
			t.Errorf("stored for who has no name: %v", all)
		}
	})
}

// What a caller wants to hear is the same by voice and on the page, in a call and before one.
func TestLevel(t *testing.T) {
	c := New(Config{})
	owner, nobody := handoff.Caller{Principal: "owner"}, handoff.NamelessCaller("owner", "1")
	for _, caller := range []handoff.Caller{owner, nobody} {
		if got := c.Level(t.Context(), caller); got != handoff.LevelMilestones {
			t.Errorf("at first: %s", got)
		}
		if err := c.SetLevel(t.Context(), caller, handoff.LevelQuiet); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Level(t.Context(), owner); got != handoff.LevelQuiet {
		t.Errorf("then: %s", got)
	}
	if got := c.enter(t.Context(), owner, nil); got != handoff.LevelQuiet {
		t.Errorf("in a call: %s", got)
	}
	if got := c.Level(t.Context(), nobody); got != handoff.LevelMilestones {
		t.Errorf("of nobody: %s", got)
	}
}

// keptLevels is a store of what callers want to hear.
type keptLevels map[handoff.Caller]handoff.SpeechLevel

func (k keptLevels) Level(_ context.Context, c handoff.Caller) (handoff.SpeechLevel, error) {
	return k[c], nil
}

func (k keptLevels) SetLevel(_ context.Context, c handoff.Caller, level handoff.SpeechLevel) error {
	k[c] = level
	return nil
}

// What a caller wants to hear outlives the process, unless they have no name.
func TestLevelIsKept(t *testing.T) {
	kept := keptLevels{}
	owner, nobody := handoff.Caller{Principal: "owner"}, handoff.NamelessCaller("owner", "1")
	for _, caller := range []handoff.Caller{owner, nobody} {
		if err := New(Config{Levels: kept}).SetLevel(t.Context(), caller, handoff.LevelQuiet); err != nil {
			t.Fatal(err)
		}
	}
	next := New(Config{Levels: kept})
	if page, call := next.Level(t.Context(), owner), next.enter(t.Context(), owner, nil); page != handoff.LevelQuiet ||
		call != handoff.LevelQuiet {
		t.Errorf("in the next life: %s on the page, %s in a call", page, call)
	}
	if len(kept) != 1 || next.Level(t.Context(), nobody) != handoff.LevelMilestones {
		t.Errorf("kept %v", kept)
	}
}

// TestHearing: a call remembers the newest words of the caller, and when they last began to speak.
func TestHearing(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	h := &hearing{}
	if h.spoke.After(at(0)) || len(h.texts) != 0 {
		t.Fatal("nothing was said")
	}
	h.begins(at(5), false)
	if !h.spoke.After(at(4)) || h.spoke.After(at(5)) {
		t.Fatal("they speak, the words have not come")
	}
	h.add(handoff.Heard{Text: "yes", Began: at(5)}, at(7))
	h.add(handoff.Heard{Text: "typed", Typed: true}, at(9)) // without a beginning: it began when it came
	if last := h.texts; len(last) != 2 || last[0] != "yes" || !h.spoke.After(at(8)) {
		t.Fatalf("heard %q", last)
	}
	h.add(handoff.Heard{}, at(10))
	if !h.spoke.After(at(9)) {
		t.Error("words that could not be made out are words")
	}
	for i := range 100 {
		h.add(handoff.Heard{Text: fmt.Sprint(i)}, at(11+i))
	}
	if last := h.texts; len(last) != maxWords || last[0] != "94" || last[maxWords-1] != "99" {
		t.Fatalf("last %q", last)
	}
}

// TestTranscriptsInOrder: a transcript without a beginning belongs to the oldest sentence that has none.
func TestTranscriptsInOrder(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	h := &hearing{}
	first, second := h.begins(at(1), true), h.begins(at(2), true)
	h.add(handoff.Heard{Text: "hold on"}, at(3))
	if !first.told || !first.hushed || second.told {
		t.Fatalf("%+v, %+v", first, second)
	}
	h.add(handoff.Heard{Text: "stop the build", Began: at(2)}, at(3))
	if !second.told || second.hushed || h.asked(at(1)) != first || h.asked(time.Time{}) != second {
		t.Errorf("%+v, %+v", first, second)
	}
}

// TestCallsSettle: at the end of the process, calls may end only after they have passed on what the router told them.
func TestCallsSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		busy, ended := newInbox(nil, new(atomic.Uint64)), newInbox(nil, new(atomic.Uint64))
		ended.end()
		for _, box := range []*inbox{busy, ended} {
			c.enter(t.Context(), handoff.Caller{Principal: "owner"}, box)
		}
		told, settled := false, false
		busy.post(func(*serving) { told = true })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx); settled = true }()
		cancel()
		synctest.Wait()
		if settled {
			t.Error("a call has not passed on what it was told")
		}
		for _, do := range busy.take() {
			do(nil)
		}
		synctest.Wait()
		if !told || !settled {
			t.Errorf("told %t, settled %t", told, settled)
		}
	})
}
