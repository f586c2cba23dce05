package sessionstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// past fails the test unless a query finds the handoffs with these keys, in this order, for several page sizes.
func past(t *testing.T, s Store, c handoff.Caller, q ledger.HistoryQuery, want ...string) {
	t.Helper()
	for _, limit := range []int{0, 1, 3} {
		var got []string
		for q, more := q, true; more; {
			q.Limit = limit
			page, err := s.History(t.Context(), c, q)
			Must(t, err)
			if len(page.Entries) > max(limit, ledger.MaxHistoryPage*(1-min(limit, 1))) {
				t.Fatalf("%d on a page of %d", len(page.Entries), limit)
			}
			for _, e := range page.Entries {
				got = append(got, e.Key)
			}
			q.Before, more = page.Next, page.Next != ""
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d a page: %q has %q, want %q", limit, q.Search, got, want)
		}
	}
}

// testPages: there are more rows than a store reads at once, several of them of one moment.
func testPages(t *testing.T, s Store) {
	const n = 300
	var want []string
	for i := 0; i < n; i += 10 {
		b := Put("open")
		for j := i; j < i+10; j++ {
			want = append(want, fmt.Sprintf("key-%03d", j))
			b.Changed = append(b.Changed, Over(since.Add(time.Duration(j/7)*time.Second), Entry(want[j])).Changed...)
		}
		write(t, s, owner, b)
	}
	slices.Reverse(want)
	past(t, s, owner, ledger.HistoryQuery{}, want...)
	_, err := s.History(t.Context(), owner, ledger.HistoryQuery{Before: "no mark"})
	if handoff.CodeOf(err) != handoff.CodeMalformed {
		t.Errorf("a page that is none gave %v", err)
	}
	again := Over(since.Add(time.Hour), Entry(want[n-1])) // it is heard after all
	write(t, s, owner, again)
	past(t, s, owner, ledger.HistoryQuery{}, append(want[n-1:], want[:n-1]...)...)
}

func testSearch(t *testing.T, s Store) {
	words := map[string]ledger.Facts{
		"a": {Title: "auth refactor", Prompt: "Fix the failing LOGIN test"},
		"b": {Title: "Übersetzung", Prompt: "schreibe die README neu"},
		"c": {Title: "修复登录", Prompt: "看看"},
		"d": {Title: `quote " and * - OR NEAR(x) ^`, Prompt: "fix fix2 don't"},
	}
	for i, key := range slices.Sorted(maps.Keys(words)) {
		e := Entry(key)
		e.Title, e.Prompt, e.Spoken = words[key].Title, words[key].Prompt, "Done: "+key+key
		write(t, s, owner, Over(since.Add(time.Duration(i)*time.Second), e))
	}
	for search, want := range map[string]string{
		"login": "a", "LOG": "a", "ogin": "", "fix": "da", "fix auth": "a", "fix zebra": "", "über": "b", "uber": "",
		"登录":    "c",
		"bigpc": "dcba", "api bb": "b", `"`: "dcba", "* OR -": "d", "near(": "d", "fix*": "da", "don't": "da", "": "dcba",
		"NOT login": "", "title:auth": "", strings.Repeat("fix ", 100): "da",
	} {
		past(t, s, owner, ledger.HistoryQuery{Search: search}, strings.Split(want, "")...)
	}
}

// testFound: a handoff and its texts are found by its key while it is open and when it is over, and only by its caller.
func testFound(t *testing.T, s Store) {
	body := ledger.Body{Prompt: strings.Repeat("Wörter \x00", 20_000), Text: "an answer", Did: "{}", Request: "whole"}
	b := Put("key")
	b.Changed = []ledger.Changed{{Key: "key", Texts: map[string]string{ledger.PartPrompt: body.Prompt,
		ledger.PartText: body.Text, ledger.PartDid: body.Did, ledger.PartRequest: body.Request}}}
	find := func(c handoff.Caller, status handoff.Status, want ledger.Body) {
		t.Helper()
		there := status != ""
		e, found, err := s.Find(t.Context(), c, "key")
		bodies, errBody := s.Bodies(t.Context(), c, "key")
		got, has := bodies["key"]
		if err != nil || errBody != nil || e.Status != status || found != there || has != there || got != want {
			t.Fatalf("%v found %+v, %t, %v, and %.80v, %t, %v", c, e, found, err, got, has, errBody)
		}
	}
	find(owner, "", ledger.Body{})
	write(t, s, owner, b)
	find(owner, handoff.StatusDispatching, body)
	over := Over(since, Entry("key"))
	over.Changed[0].Texts = map[string]string{ledger.PartRequest: ""}
	write(t, s, owner, over)
	body.Request = ""
	find(owner, handoff.StatusDelivered, body)
	find(handoff.Caller{Principal: "another"}, "", ledger.Body{})
}

// testUnkept: a handoff of which no words are kept is on no page, and is found by its key.
func testUnkept(t *testing.T, s Store) {
	e := Entry("key")
	e.Unkept = true
	write(t, s, owner, Over(since, e.Bounded()))
	past(t, s, owner, ledger.HistoryQuery{})
	past(t, s, owner, ledger.HistoryQuery{Search: "bigpc"})
	if e, ok, err := s.Find(t.Context(), owner, "key"); err != nil || !ok || !e.Unkept || e.Prompt+e.Title != "" {
		t.Errorf("found %+v, %t, %v", e, ok, err)
	}
}

// testPastApart: callers see their own past alone.
func testPastApart(t *testing.T, s Store) {
	for i, c := range hostile() {
		write(t, s, c, Over(since, Entry(fmt.Sprint("key-", i))))
	}
	for i, c := range hostile() {
		past(t, s, c, ledger.HistoryQuery{}, fmt.Sprint("key-", i))
		past(t, s, c, ledger.HistoryQuery{Search: "auth"}, fmt.Sprint("key-", i))
	}
}

// testUnreadable: a row that cannot be read hides no other one.
func testUnreadable(t *testing.T, s Store) {
	b := Over(since, Entry("a"), Entry("b"), Entry("c"))
	b.Changed[1].Past.Row = `{"Key":"b"`
	write(t, s, owner, b)
	past(t, s, owner, ledger.HistoryQuery{}, "c", "a")
	if _, _, err := s.Find(t.Context(), owner, "b"); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("by its key it gave %v", err)
	}
}
