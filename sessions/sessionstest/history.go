package sessionstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Deliver writes all steps of a handoff that is heard at a time. change may alter each step before it is written.
func Deliver(t *testing.T, l ledger.Ledger, key string, at time.Time, change func(*ledger.Step)) ledger.Entry {
	t.Helper()
	var e ledger.Entry
	for _, to := range ledgerPath {
		s := LedgerStep(key, "a", to)
		s.At = at
		if change != nil {
			change(&s)
		}
		e = Advance(t, l, e, s)
	}
	return e
}

// pages reads all pages of a history.
func pages(t *testing.T, l Ledger, c handoff.Caller, q ledger.HistoryQuery) (all []ledger.Entry) {
	t.Helper()
	for range 1000 {
		page, err := l.History(t.Context(), c, q)
		Must(t, err)
		if q.Limit > 0 && len(page.Entries) > q.Limit {
			t.Fatalf("%d on a page of %d", len(page.Entries), q.Limit)
		}
		all = append(all, page.Entries...)
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
	}
	t.Fatal("the history does not end")
	return nil
}

// past fails the test unless a query finds exactly these entries, in this order, for several page sizes.
func past(t *testing.T, l Ledger, c handoff.Caller, q ledger.HistoryQuery, want ...ledger.Entry) {
	t.Helper()
	for _, limit := range []int{0, 1, 3} {
		q.Limit = limit
		if got := pages(t, l, c, q); !slices.Equal(got, want) {
			t.Fatalf("%d a page: %d found, %+v, want %d, %+v", limit, len(got), got, len(want), want)
		}
	}
}

func testHeard(t *testing.T, l Store) {
	past(t, l, owner, ledger.HistoryQuery{})
	long := strings.Repeat("wörter ", 1000)
	var want []ledger.Entry
	for i := range 4 {
		want = append(want, Deliver(t, l, fmt.Sprint("key-", i), since.Add(time.Duration(i)*time.Second),
			func(s *ledger.Step) {
				if s.To == handoff.StatusCompleted {
					s.Set.Spoken, s.Set.Title = long, long
				}
				if s.To == handoff.StatusDispatching {
					s.Set.Prompt = long
				}
			}))
	}
	Advance(t, l, ledger.Entry{}, LedgerStep("runs", "a", handoff.StatusDispatching)) // not over
	slices.Reverse(want)
	past(t, l, owner, ledger.HistoryQuery{}, want...)
	for _, e := range want {
		if size := len(fmt.Sprintf("%v", e)); size > 1<<10 {
			t.Errorf("an entry of history has %d bytes: %+v", size, e)
		}
	}
	_, err := l.History(t.Context(), owner, ledger.HistoryQuery{Before: "no mark"})
	if handoff.CodeOf(err) != handoff.CodeMalformed {
		t.Errorf("a page that is none gave %v", err)
	}
}

// testPages reads more entries than a store reads at once, several of them of one moment.
func testPages(t *testing.T, l Store) {
	const n = 300
	var want []string
	for i := range n {
		key := fmt.Sprintf("key-%03d", i)
		Deliver(t, l, key, since.Add(time.Duration(i/7)*time.Second), nil)
		want = append(want, key)
	}
	slices.Reverse(want)
	var got []string
	for _, e := range pages(t, l, owner, ledger.HistoryQuery{Limit: 50}) {
		got = append(got, e.Key)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	page, err := l.History(t.Context(), owner, ledger.HistoryQuery{})
	if err != nil || len(page.Entries) != ledger.MaxHistoryPage || page.Next == "" {
		t.Fatalf("%d on a page without a limit, next %q, %v", len(page.Entries), page.Next, err)
	}
}

func testSearch(t *testing.T, l Store) {
	words := map[string]ledger.Facts{
		"a": {Title: "auth refactor", Prompt: "Fix the failing LOGIN test"},
		"b": {Title: "Übersetzung", Prompt: "schreibe die README neu"},
		"c": {Title: "修复登录", Prompt: "看看"},
		"d": {Title: `quote " and * - OR NEAR(x) ^`, Prompt: "fix fix2 don't"},
	}
	at := since
	for _, key := range []string{"a", "b", "c", "d"} {
		at = at.Add(time.Second)
		Deliver(t, l, key, at, func(s *ledger.Step) {
			if s.To == handoff.StatusDispatching {
				s.Set.Title, s.Set.Prompt = words[key].Title, words[key].Prompt
			}
			if s.To == handoff.StatusCompleted {
				s.Set.Spoken = "Done: " + key + key
			}
		})
	}
	for search, want := range map[string]string{
		"login": "a", "LOG": "a", "ogin": "", "fix": "da", "fix auth": "a", "fix zebra": "", "über": "b", "uber": "",
		"登录":    "c",
		"bigpc": "dcba", "api bb": "b", `"`: "dcba", "* OR -": "d", "near(": "d", "fix*": "da", "don't": "da", "": "dcba",
		"NOT login": "", "title:auth": "", strings.Repeat("fix ", 100): "da",
	} {
		var got strings.Builder
		for _, e := range pages(t, l, owner, ledger.HistoryQuery{Search: search, Limit: 2}) {
			got.WriteString(e.Key)
		}
		if got.String() != want {
			t.Errorf("%q found %q, want %q", search, got.String(), want)
		}
	}
}

func testBodies(t *testing.T, l Store) {
	body := func(c handoff.Caller, key string, want ledger.Body, there bool) {
		t.Helper()
		if got, ok, err := l.Body(t.Context(), c, key); got != want || ok != there || err != nil {
			t.Fatalf("the body of %q is %.40q (%d), %.40q (%d), %v, %v", key, got.Prompt, len(got.Prompt), got.Text,
				len(got.Text), ok, err)
		}
	}
	body(owner, "key", ledger.Body{}, false)
	prompt, text := strings.Repeat("Wörter \x00", 20_000), strings.Repeat("antwort ", 30_000)
	did := strings.Repeat(`{"output":"ok"}`, 10_000)
	var e ledger.Entry
	for _, to := range ledgerPath {
		s := LedgerStep("key", "a", to)
		switch to {
		case handoff.StatusAccepted:
			s.Body.Prompt = prompt
		case handoff.StatusCompleted:
			s.Body.Text, s.Body.Did = text, did
		}
		e = Advance(t, l, e, s)
		want := ledger.Body{Prompt: prompt}
		if e.Status == handoff.StatusCompleted || e.Status == handoff.StatusDelivered {
			want.Text, want.Did = text, did
		}
		body(owner, "key", want, true)
		body(handoff.Caller{Principal: "another"}, "key", ledger.Body{}, false)
	}
	Deliver(t, l, "huge", since, func(s *ledger.Step) {
		if s.To == handoff.StatusCompleted {
			s.Body.Text, s.Body.Did = strings.Repeat("x", ledger.MaxBody+1), strings.Repeat("x", ledger.MaxBody+1)
		}
	})
	got, _, err := l.Body(t.Context(), owner, "huge")
	if err != nil || len(got.Text) > ledger.MaxBody || len(got.Text) < ledger.MaxBody-3 || got.Did != "" {
		t.Fatalf("%d bytes are kept, %v", len(got.Text), err)
	}
}

func testHistoryCallers(t *testing.T, l Store) {
	for i, c := range hostile() {
		Deliver(t, l, "key", since, func(s *ledger.Step) {
			s.Caller = c
			s.Args = fmt.Sprint("args-", i)
		})
	}
	for i, c := range hostile() {
		for _, search := range []string{"", "fix"} {
			got := pages(t, l, c, ledger.HistoryQuery{Search: search})
			if len(got) != 1 || got[0].Caller != c || got[0].Args != fmt.Sprint("args-", i) {
				t.Fatalf("%v has %+v", c, got)
			}
		}
	}
	if _, err := l.History(t.Context(), handoff.Caller{User: "alice"}, ledger.HistoryQuery{}); err == nil {
		t.Error("a caller without a principal was accepted")
	}
}

// testUnheard: outcomes beyond those that may wait become history, the oldest first, and can still be heard.
func testUnheard(t *testing.T, l Store) {
	const over = 3
	var all []ledger.Entry
	for i := range ledger.MaxUnheard + over {
		s := LedgerStep(fmt.Sprintf("key-%04d", i), "a", handoff.StatusCompleted)
		s.New, s.At = true, since.Add(time.Duration(i)*time.Second)
		s.Set.ClientID = s.Key
		e, err := l.Advance(t.Context(), s)
		Must(t, err)
		all = append(all, e)
	}
	opened(t, l, all[over:]...)
	gone := []ledger.Entry{all[2].History(), all[1].History(), all[0].History()}
	past(t, l, owner, ledger.HistoryQuery{}, gone...)
	if gone[0].Status != handoff.StatusCompleted {
		t.Fatalf("what nobody heard is %s", gone[0].Status)
	}
	s := LedgerStep(all[0].Key, "a", handoff.StatusDelivered)
	s.At = since.Add(24 * time.Hour)
	heard := Advance(t, l, gone[2], s)
	past(t, l, owner, ledger.HistoryQuery{}, heard, gone[0], gone[1])
	Advance(t, l, gone[1], LedgerStep(all[1].Key, "b", "")) // it stays history when a new life adopts it
	opened(t, l, all[over:]...)
}

// testNameless: outcomes for a caller without a name do not wait, since no later call can be told. Within the call
// they may be heard.
func testNameless(t *testing.T, l Store) {
	nobody := handoff.NamelessCaller("helper", "call")
	advance := func(key string, to handoff.Status, at time.Duration) ledger.Entry {
		t.Helper()
		s := LedgerStep(key, "a", to)
		s.Caller, s.At = nobody, since.Add(at)
		e, err := l.Advance(t.Context(), s)
		Must(t, err)
		return e
	}
	open := func(want ...ledger.Entry) {
		t.Helper()
		got, err := l.Open(t.Context(), nobody)
		all, errAll := l.OpenAll(t.Context())
		if err != nil || errAll != nil || !slices.Equal(got, want) || !slices.Equal(all, want) {
			t.Fatalf("open are %+v, %v, of all %+v, %v, want %+v", got, err, all, errAll, want)
		}
	}
	for _, key := range []string{"first", "second"} {
		open(advance(key, handoff.StatusDispatching, 0))
		ended := advance(key, handoff.StatusCompleted, time.Second)
		open()
		if got := pages(t, l, nobody, ledger.HistoryQuery{Limit: 1})[0]; got != ended.History() ||
			got.Status != handoff.StatusCompleted {
			t.Fatalf("history has %+v, want %+v", got, ended.History())
		}
		advance(key, handoff.StatusCompleted, time.Second) // the same step again
		open()
	}
	heard := advance("first", handoff.StatusDelivered, time.Minute)
	past(t, l, nobody, ledger.HistoryQuery{}, heard, pages(t, l, nobody, ledger.HistoryQuery{})[1])
	open()
}
