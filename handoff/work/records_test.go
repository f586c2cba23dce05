package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// with returns a life with records, the oldest first.
func with(records ...handoff.Record) *life {
	l := newWorld().newest()
	l.now = l.w.now
	for i, rec := range records {
		rec.CreatedAt = l.w.now.Add(time.Duration(i) * time.Second)
		if rec.Outcome != "" {
			rec.EndedAt = new(rec.CreatedAt)
		}
		l.add(&Handoff{Record: rec, key: rec.ID, span: handoff.SpanOf(context.Background()), open: rec.Outcome == ""})
	}
	return l
}

func over(id string, s handoff.Status) handoff.Record {
	return handoff.Record{ID: id, State: s, Outcome: handoff.OutcomeResult}
}

// TestRecordsAreBounded: the oldest that were heard are removed first, then the oldest that have ended; what runs
// stays. They are listed in the order of when they were asked for.
func TestRecordsAreBounded(t *testing.T) {
	var all []handoff.Record
	for i := range maxKept + 5 {
		rec := over(strconv.Itoa(i), handoff.StatusDelivered)
		if i == 2 {
			rec.State, rec.Outcome = handoff.StatusStarted, ""
		}
		all = append(all, rec)
	}
	l := with(all...)
	if l.find("2") == nil || l.find("0") != nil || len(l.all) != maxKept {
		t.Errorf("%d are kept, the oldest %s", len(l.all), l.all[0].ID)
	}
	l.add(&Handoff{Record: handoff.Record{ID: "late", CreatedAt: l.w.now}})
	list := &List{}
	if l.step(list); list.All[len(list.All)-1].ID != "2" && list.All[len(list.All)-1].ID != "late" {
		t.Errorf("the oldest is %s", list.All[len(list.All)-1].ID)
	}
	all = nil
	for i := range maxUnheard + 1 {
		all = append(all, over(strconv.Itoa(i), handoff.StatusCompleted))
	}
	if l = with(all...); len(l.all) != maxUnheard || l.find("0") != nil {
		t.Errorf("%d that nobody heard are kept", len(l.all))
	}
}

// TestUnheardBecomesHistory: an outcome that nobody heard, and that is too much, is in the history and nowhere else.
func TestUnheardBecomesHistory(t *testing.T) {
	var all []handoff.Record
	for i := range maxUnheard {
		all = append(all, over(strconv.Itoa(i), handoff.StatusCompleted))
	}
	l := with(all...)
	for _, h := range l.all {
		h.unheard = true
		h.doc = document{known: true, sent: true, status: handoff.StatusCompleted}
		l.w.store.Documents[ledger.HandoffDoc+h.key] = "kept"
	}
	l.keep.open, l.keep.docs, l.keep.version, l.w.store.Version = true, map[string]bool{}, "1", "1"
	l.asks("one more", handoff.ModeNow)
	for l.sent != nil {
		l.commits(takes)
	}
	if old := "0"; !l.w.store.over(old) || l.w.store.Documents[ledger.HandoffDoc+old] != "" || l.find(old) != nil {
		t.Errorf("its row is there: %v; its document: %q", l.w.store.over(old), l.w.store.Documents[ledger.HandoffDoc+old])
	}
}

// TestOldDetailsAreCut: of all but the newest work that has ended, no more is in memory than the store keeps.
func TestOldDetailsAreCut(t *testing.T) {
	l := with()
	l.cfg.Stored, l.cfg.Pages = false, new(handoff.Feed)
	whole := strings.Repeat("x", maxOutput)
	for range maxWhole + 2 {
		h := l.find(string(l.asks(l.cfg.NextID(), handoff.ModeNow).ID))
		for i := range maxItems {
			l.item(h, handoff.RecordItem{ID: strconv.Itoa(i), Kind: handoff.ItemCommand, Output: whole})
		}
		l.step(&Stop{Grant: owner, ID: h.ID})
		l.now = l.now.Add(time.Second)
	}
	for i, h := range l.all {
		size := 0
		for _, it := range h.Items {
			size += len(it.Output)
		}
		most := ledger.MaxBody
		if i >= 2 {
			most = maxItems * maxOutput
		}
		if h.open || size > most || size <= most/2 || h.LeftOut+len(h.Items) != maxItems {
			t.Errorf("of %d, %d items with %d bytes are kept", i, len(h.Items), size)
		}
	}
}

// TestItems: an item grows by its deltas, is replaced when it is done, and goes when it is withdrawn, unless it is a
// command. What is gone is not brought back by the end of its text, and a record has no more items than it may.
func TestItems(t *testing.T) {
	l := with(handoff.Record{ID: "h"})
	h := l.find("h")
	delta := func(id, text string) { l.delta(h, handoff.Delta{ItemID: id, Text: text}) }
	item := func(id string, k handoff.ItemKind, state string) {
		l.item(h, handoff.RecordItem{ID: id, Kind: k, State: state})
	}
	is := func(want string) {
		t.Helper()
		var got []string
		for _, it := range h.Items {
			got = append(got, it.ID+" "+it.Text+it.Output+" "+it.State)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
		}
	}
	h.state.Seen = true
	delta("m", "half of ")
	delta("m", "it")
	item("c", handoff.ItemCommand, itemRunning)
	delta("c", "out")
	is("m half of it running, c out running")
	l.drop(h, "m")
	l.drop(h, "c")
	delta("m", "more")
	is("c out failed")
	item("c", handoff.ItemCommand, itemDone)
	is("c  done")
	delta("c", strings.Repeat("x", maxOutput))
	delta("c", "end")
	if out := h.Items[0].Output; len(out) != maxOutput || !strings.HasSuffix(out, "xend") || !h.Items[0].Cut {
		t.Errorf("%d bytes of output, cut: %v", len(out), h.Items[0].Cut)
	}
	for i := range 2 * maxItems {
		delta("n"+strconv.Itoa(i), "text")
	}
	if delta("c", "late"); len(h.Items) != maxItems || indexItem(h.Items, "c") >= 0 || h.LeftOut != maxItems+1 {
		t.Errorf("%d items, %d left out", len(h.Items), h.LeftOut)
	}
	l.update(h, handoff.ItemDone{Item: handoff.Item{ID: "end", Kind: handoff.ItemCommand, Output: strings.Repeat("x", maxOutput)}})
	if it := h.Items[maxItems-1]; !it.Cut {
		t.Error("what the agent's server has cut is not marked")
	}
	var rec handoff.Record
	restoreDetails(&rec, ledger.Body{Did: encodeDetails(h.Record)})
	if len(rec.Items)+rec.LeftOut != maxItems*2+2 || !rec.Items[len(rec.Items)-1].Cut {
		t.Errorf("kept: %d items, %d left out", len(rec.Items), rec.LeftOut)
	}
}

// TestItemsArePlain: nothing that a terminal would obey is kept, shown or said, also where it comes in two pieces, or
// was kept by an older Switchboard.
func TestItemsArePlain(t *testing.T) {
	const printed = "\x1b[31mFAIL\x1b[0m auth"
	l := with(handoff.Record{ID: "h"})
	h := l.find("h")
	h.state.Seen = true
	for _, u := range []handoff.Update{
		handoff.ItemStarted{Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "go test \x1b[1m./..."}},
		handoff.Delta{ItemID: "c", Text: printed[:3]}, handoff.Delta{ItemID: "c", Text: printed[3:]},
	} {
		l.update(h, u)
	}
	if it := h.Items[0]; it.Text != "go test ./..." || it.Output != "FAIL auth" {
		t.Errorf("while it runs: %q, %q", it.Text, it.Output)
	}
	l.update(h, handoff.ItemDone{Item: handoff.Item{ID: "c", Kind: handoff.ItemCommand, Output: printed}})
	l.update(h, handoff.TurnEnded{Status: handoff.TurnFailed, Text: printed, Detail: printed})
	if it := h.Items[0]; it.Output != "FAIL auth" || h.Text != "FAIL auth" {
		t.Errorf("at its end: %q, %q", it.Output, h.Text)
	}
	rec := handoff.Record{}
	restoreDetails(&rec, ledger.Body{Did: encodeDetails(handoff.Record{Items: []handoff.RecordItem{{ID: "c", Output: printed}}})})
	if it := rec.Items[0]; it.Output != "FAIL auth" {
		t.Errorf("from before: %q", it.Output)
	}
}

// TestLog: a reader gets what it has not read, a snapshot where that is not kept; deltas go first when there are too
// many, and have no number of their own.
func TestLog(t *testing.T) {
	l := with(handoff.Record{ID: "h"})
	h := l.find("h")
	read := &Read{ID: "h"}
	reads := func() string {
		l.step(read)
		var got []string
		for _, e := range read.Events {
			got = append(got, fmt.Sprintf("%d %s", e.Seq, strings.TrimPrefix(fmt.Sprintf("%T", e.Kind), "handoff.Event")))
		}
		return strings.Join(got, ", ")
	}
	l.step(&Follows{"h", 1})
	if got := reads(); got != "0 Snapshot" {
		t.Error(got)
	}
	l.publish(h, handoff.EventDoing{ID: "m"})
	l.item(h, handoff.RecordItem{ID: "m", Kind: handoff.ItemMessage, State: itemRunning})
	l.delta(h, handoff.Delta{ItemID: "m", Text: "by "})
	if got := reads(); got != "1 Doing, 1 Delta" {
		t.Error(got)
	}
	l.delta(h, handoff.Delta{ItemID: "m", Text: "others"})
	h.logEvent(handoff.EventItem{})
	if got := reads(); got != "1 Delta, 2 Item" {
		t.Error(got)
	}
	if got := reads(); got != "" || read.Changed == nil {
		t.Errorf("%q, and waits for nothing", got)
	}
	for range 3 * maxDeltas {
		l.delta(h, handoff.Delta{ItemID: "m", Text: "x"})
	}
	l.delta(h, handoff.Delta{ItemID: "m", Text: strings.Repeat("x", maxDeltaBytes)})
	if n := h.log.deltas; n != 1 || len(h.log.events) != 3 {
		t.Errorf("%d deltas of %d events", n, len(h.log.events))
	}
	for range 2 * maxLog {
		h.logEvent(handoff.EventUsage{Usage: handoff.Usage{Input: 7}})
	}
	if h.log.deltas != 0 || h.log.bytes != 0 || len(h.log.events) != maxLog {
		t.Errorf("%d events with %d deltas", len(h.log.events), h.log.deltas)
	}
	if got := reads(); got != fmt.Sprint(2+2*maxLog, " Snapshot") {
		t.Error(got)
	}
}

// TestDepth: work of an agent may ask for work, and that once more. Only work that runs asks; a program that names no
// session, or one of nobody's, is a person's own; and a chain with a piece missing goes no further.
func TestDepth(t *testing.T) {
	chain := func(ended int, parents ...handoff.ID) []handoff.Record { // each runs in the thread of its name
		list := make([]handoff.Record, len(parents))
		for i, parent := range parents {
			id := fmt.Sprint("r", i+1)
			list[i] = handoff.Record{ID: id, ThreadID: "t" + id, Parent: parent}
			if i+1 == ended {
				list[i].State, list[i].Outcome = handoff.StatusDelivered, handoff.OutcomeResult
			}
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		works  []handoff.Record
		thread string
		parent handoff.ID
		code   handoff.Code
	}{
		{"a person", chain(0, "", "r1", "r2"), "", "", ""},
		{"a session of nobody's", chain(0, "", "r1", "r2"), "elsewhere", "", ""},
		{"the first", chain(0, "", "r1", "r2"), "tr1", "r1", ""},
		{"the second", chain(0, "", "r1", "r2"), "tr2", "r2", ""},
		{"the third", chain(0, "", "r1", "r2"), "tr3", "", handoff.CodeTooDeep},
		{"a branch beside it", chain(0, "", "r1", "r1"), "tr3", "r3", ""},
		{"what has ended", chain(2, "", "r1"), "tr2", "", ""},
		{"what an ended one asked for", chain(2, "", "r1", "r2"), "tr3", "", handoff.CodeTooDeep},
		{"what a forgotten one asked for", chain(0, "gone"), "tr1", "", handoff.CodeTooDeep},
	} {
		parent, fault := with(tt.works...).parentOf(handoff.Origin{Client: "x", Thread: tt.thread})
		if parent != tt.parent || codeOf(fault) != tt.code {
			t.Errorf("%s: %q, %v", tt.name, parent, fault)
		}
	}
}

// TestDetailsAreBounded: of many items the newest are kept whole and the others cut, within the bound of a text; what
// is kept of a record comes back.
func TestDetailsAreBounded(t *testing.T) {
	for name, output := range map[string]string{
		"text": strings.Repeat("x", maxOutput), "escaped": strings.Repeat("\x01", maxOutput),
	} {
		rec := handoff.Record{Tested: handoff.TestsFailed, Into: "h1", Server: "s", Undelivered: []string{"and push it"}, Goal: handoff.GoalBlocked}
		for i := range maxItems {
			rec.Items = append(rec.Items, handoff.RecordItem{
				ID: fmt.Sprint(i), Kind: handoff.ItemCommand, Text: "go test", Output: output, State: itemDone,
				Changes: []handoff.FileChange{{Path: "a", Diff: strings.Repeat("+", 1000)}},
			})
		}
		rec.Items = append(rec.Items, handoff.RecordItem{ID: "last", Kind: handoff.ItemCommand, Output: "ok"})
		kept := encodeDetails(rec)
		if len(kept) > ledger.MaxBody || !json.Valid([]byte(kept)) {
			t.Fatalf("%s: %d bytes", name, len(kept))
		}
		var back handoff.Record
		restoreDetails(&back, ledger.Body{Did: kept})
		if n := len(back.Items); n < 20 || back.Items[n-1].Output != "ok" || !back.Items[0].Changes[0].Cut ||
			name == "text" && len(back.Items[n-2].Output) != maxOutput {
			t.Errorf("%s: %d items", name, n)
		}
		if back.Tests() != handoff.TestsFailed || back.Into != "h1" || back.Server != "s" ||
			!slices.Equal(back.Undelivered, rec.Undelivered) || back.Goal != rec.Goal {
			t.Errorf("%s: %+v", name, back)
		}
	}
}

// TestQuestionStates: open, claimed, decided. One answer at a time has it, one that could not be given gives it back,
// and what nobody answers is declined, again and again as long as it is open.
func TestQuestionStates(t *testing.T) {
	w, l, _ := opened()
	j := l.goes(string(l.asks("k", handoff.ModeNow).ID), Follow)
	asks := handoff.Question{
		ID: "q", Kind: handoff.QuestionCommand, Command: "ls", Asked: w.now, Decisions: []handoff.Decision{handoff.DecisionDecline},
	}
	l.updates(j, asks)
	claim := func(d handoff.Decision) handoff.Code {
		c := &Claim{ID: "q", Decision: d}
		l.step(c)
		return codeOf(c.Err)
	}
	q := l.questions["q"]
	if got := claim(handoff.DecisionAccept); got != handoff.CodeMalformed {
		t.Errorf("what is not offered: %s", got)
	}
	for _, want := range []handoff.Code{"", handoff.CodeNotPending} {
		if got := claim(handoff.DecisionDecline); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	decided := func(err error) {
		l.step(&Decided{Question: q, Decided: handoff.Decided{Decision: handoff.DecisionDecline}, Err: err})
	}
	decided(errAway)
	declines := func() bool {
		return slices.ContainsFunc(l.lately, func(e Effect) bool { _, is := e.(Decline); return is })
	}
	for range 2 { // nobody answers, and the agent is away
		l.passes(q.giveUp)
		if !declines() {
			t.Error("it is not declined")
		}
		l.step(&Unanswered{q})
	}
	if got := claim(handoff.DecisionDecline); got != "" {
		t.Errorf("given back: %s", got)
	}
	decided(nil)
	if still := (&Still{Question: q}); len(l.questions) != 0 || claim(handoff.DecisionDecline) != handoff.CodeNotPending {
		t.Error("it is still open")
	} else if l.step(still); still.Open {
		t.Error("it is still open")
	}
	if l.step(&Unanswered{q}); len(l.questions) != 0 {
		t.Error("it is open again")
	}
}

// TestWhatMayBeSaid holds what the page tells of answering in the call.
func TestWhatMayBeSaid(t *testing.T) {
	both := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	command := func(text, beyond string, may []handoff.Decision) handoff.Question {
		return handoff.Question{Kind: handoff.QuestionCommand, Command: text, Cwd: "/src", Beyond: beyond, Decisions: may}
	}
	words := func(asks ...handoff.Ask) handoff.Question {
		return handoff.Question{Kind: handoff.QuestionInput, Words: true, Asks: asks, Decisions: both[1:]}
	}
	which := handoff.Ask{Text: "Which?"}
	for name, c := range map[string]struct {
		q       handoff.Question
		level   string
		replies bool
		want    bool
	}{
		"an ordinary command":       {q: command("npm install", "", both), want: true},
		"above the machine's level": {q: command("npm install", "", both), level: "low"},
		"a risky command":           {q: command("sudo reboot", "", both)},
		"more than the one act":     {q: command("ls", "the network", both)},
		"nothing to say yes to":     {q: command("ls", "", both[1:])},
		"words":                     {q: words(which), level: "none", replies: true, want: true},
		"words that nobody takes":   {q: words(which)},
		"a secret among other words": {
			q: words(which, handoff.Ask{Text: "Password?", Secret: true}), replies: true,
		},
		"a copy":                    {q: handoff.Question{Kind: handoff.QuestionCopy, Decisions: both}, want: true},
		"only where the agent runs": {q: handoff.Question{Kind: handoff.QuestionOther}},
	} {
		a := &Question{
			OpenQuestion: handoff.OpenQuestion{Question: c.q, Workspace: "/src", Level: c.level}, Replies: c.replies,
		}
		a.Shown = handoff.RecordQuestion{
			Server: "bigpc", Kind: c.q.Kind, Decisions: c.q.Decisions, Words: c.q.Words && c.replies,
		}
		a.Shown.Tap = a.tapReason()
		if got := a.mayBeSaid(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
