package sessionstest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// walkBytes is how many bytes encode one step of a walk.
const walkBytes = 6

// testHistoryWalk makes random steps for a few handoffs of a few callers. Now and then the clock goes back.
func testHistoryWalk(t *testing.T, l Store) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 12 {
		walk := make([]byte, 60*walkBytes)
		for i := range walk {
			walk[i] = byte(random.Uint32())
		}
		WalkHistory(t, l, fmt.Sprint("owner-", round), walk)
	}
}

// WalkHistory decodes bytes to steps, for callers of a principal who have no entries yet. After each step it fails the
// test unless open entries, history and bodies are what the table makes of the steps so far.
func WalkHistory(t *testing.T, l Ledger, principal string, walk []byte) {
	t.Helper()
	callers := []handoff.Caller{{Principal: principal}, {Principal: principal, User: "bob"},
		handoff.NamelessCaller(principal, "call")}
	all := map[handoff.Caller]walked{}
	for _, c := range callers {
		all[c] = walked{}
	}
	for at := since; len(walk) >= walkBytes; walk = walk[walkBytes:] {
		callerByte, textByte := int(walk[4]), int(walk[5])
		at = at.Add(time.Duration(textByte%16-4) * time.Second)
		c := callers[callerByte%len(callers)]
		s := RandomStep(fmt.Sprint("key-", callerByte/4%4), [4]byte(walk))
		s.Caller, s.At = c, at
		if !s.Adopt {
			// Long enough to be cut, at times within a character or an invalid one.
			s.Set.Prompt = strings.Repeat("ö", textByte%7*20) + strings.Repeat("\xbf", textByte%3)
			s.Set.Spoken = strings.Repeat("x", textByte%3) + strings.Repeat("日", textByte%5*40)
			s.Body = ledger.Body{Prompt: pickWord(textByte, "", "p", "日本"), Text: pickWord(textByte/3, "", "t", "\x00\xff"),
				Did: pickWord(textByte/9, "", "d"), Request: pickWord(textByte/27, "", "r")}
		}
		all[c].advance(t, l, s)
		all[c].holds(t, l, c)
	}
}

func pickWord(n int, of ...string) string { return of[n%len(of)] }

// walked is what a store must have of a caller, by key.
type walked map[string]*walkedEntry

type walkedEntry struct {
	ledger.Entry
	body ledger.Body
	past time.Time // when it became history; zero before
}

// advance makes a step in the store and in w.
func (w walked) advance(t *testing.T, l Ledger, s ledger.Step) {
	t.Helper()
	e := w[s.Key]
	if e == nil {
		e = &walkedEntry{}
	}
	before := e.Entry
	e.Entry = Advance(t, l, before, s)
	if e.Entry == before {
		return
	}
	w[s.Key] = e
	if before.Anew(s) {
		e.body, e.past = ledger.Body{}, time.Time{}
	}
	e.body = ledger.Body{
		Prompt: cmp.Or(s.Body.Prompt, e.body.Prompt), Text: cmp.Or(s.Body.Text, e.body.Text),
		Did:     cmp.Or(s.Body.Did, e.body.Did),
		Request: cmp.Or(s.Body.Request, e.body.Request)}
	if !s.Keeps() {
		e.body.Request = ""
	}
	switch {
	case s.To == handoff.StatusDelivered:
		e.past = s.At
	case s.To == handoff.StatusCompleted && s.Caller.Nameless():
		e.Entry, e.past = e.History(), s.At
	}
}

// holds fails the test unless the store has the same as w.
func (w walked) holds(t *testing.T, l Ledger, c handoff.Caller) {
	t.Helper()
	var open, over []*walkedEntry
	for key, e := range w {
		if e.past.IsZero() {
			open = append(open, e)
		} else {
			over = append(over, e)
		}
		body, _, err := l.Body(t.Context(), c, key)
		if err != nil || body != e.body {
			t.Fatalf("%s of %v has the words %+v, %v, want %+v", key, c, body, err, e.body)
		}
	}
	slices.SortFunc(open, func(a, b *walkedEntry) int {
		return cmp.Or(a.Accepted.Compare(b.Accepted), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(over, func(a, b *walkedEntry) int { return cmp.Or(b.past.Compare(a.past), cmp.Compare(b.Key, a.Key)) })
	if got, err := l.Open(t.Context(), c); err != nil || !slices.Equal(got, entriesOf(open)) {
		t.Fatalf("open of %v are %+v, %v, want %+v", c, got, err, entriesOf(open))
	}
	if got := pages(t, l, c, ledger.HistoryQuery{Limit: 2}); !slices.Equal(got, entriesOf(over)) {
		t.Fatalf("the history of %v is %+v, want %+v", c, got, entriesOf(over))
	}
}

func entriesOf(all []*walkedEntry) []ledger.Entry {
	var entries []ledger.Entry
	for _, e := range all {
		entries = append(entries, e.Entry)
	}
	return entries
}
