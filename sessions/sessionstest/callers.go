package sessionstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// has fails the test unless exactly these documents are kept of a caller. It returns the version of the state.
func has(t *testing.T, s sessions.Callers, c handoff.Caller, want map[string]string) (version string) {
	t.Helper()
	got, err := s.State(t.Context(), c)
	if err != nil || !maps.Equal(got.Documents, want) || (got.Version == "") != (len(want) == 0) {
		t.Fatalf("of %v there is %q, %v, want %q", c, got, err, want)
	}
	return got.Version
}

// comesTo fails the test unless a commit has a result.
func comesTo(t *testing.T, s sessions.Callers, b ledger.Batch, want ledger.Committed) {
	t.Helper()
	if got, err := s.Commit(t.Context(), owner, b); err != nil || got != want {
		t.Fatalf("%+v came to %d, %v, want %d", b, got, err, want)
	}
}

// texts fails the test unless exactly these texts are kept of a handoff of the owner.
func texts(t *testing.T, s sessions.Pages, key string, want map[string]string) {
	t.Helper()
	if got, err := s.Texts(t.Context(), owner, key); err != nil || !maps.Equal(got[key], want) {
		t.Fatalf("%s has the texts %.80q, %v, want %.80q", key, got, err, want)
	}
}

// testNothing: of a caller without documents nothing is kept, not even the version.
func testNothing(t *testing.T, s Store) {
	WantOpen(t, s)
	write(t, s, owner, ledger.Batch{Drop: []string{"what is not there"}})
	WantOpen(t, s)
	write(t, s, owner, Put("key"))
	WantOpen(t, s, "key")
	write(t, s, owner, Over(since, Entry("key")))
	WantOpen(t, s)
	comesTo(t, s, ledger.Batch{Was: "", Now: "anew"}, ledger.Written)
}

// testBatch: a batch changes documents, texts and the past of several handoffs at once.
func testBatch(t *testing.T, s Store) {
	b := Put("one", "two", "three")
	b.Put["sticky:bigpc"] = "{}"
	b.Changed = []ledger.Changed{
		{Key: "one", Free: true, Texts: map[string]string{ledger.PartPrompt: "words of one"}},
		{Key: "two", Free: true, Texts: map[string]string{ledger.PartPrompt: "words of two", ledger.PartDid: "{}"}},
	}
	write(t, s, owner, b)
	has(t, s, owner, b.Put)
	over := Over(since, Entry("one"), Entry("two"))
	over.Put = Put("four").Put
	over.Drop = append(over.Drop, "sticky:bigpc")
	over.Changed[0].Texts = map[string]string{ledger.PartPrompt: "", ledger.PartText: "an answer"}
	write(t, s, owner, over)
	WantOpen(t, s, "three", "four")
	texts(t, s, "one", map[string]string{ledger.PartText: "an answer"})
	texts(t, s, "two", map[string]string{ledger.PartPrompt: "words of two", ledger.PartDid: "{}"})
	texts(t, s, "three", nil)
}

// testOutdated: a batch that was decided from another state changes nothing.
func testOutdated(t *testing.T, s Store) {
	first := Put("key")
	first.Was, first.Now = "lost", "1"
	comesTo(t, s, first, ledger.Outdated)
	WantOpen(t, s)
	first.Was = ""
	comesTo(t, s, first, ledger.Written)
	for _, was := range []string{"", "0", "2"} {
		late := Over(since, Entry("key"))
		late.Was, late.Now, late.Put = was, "3", Put("late").Put
		late.Changed[0].Texts = map[string]string{ledger.PartPrompt: "late"}
		comesTo(t, s, late, ledger.Outdated)
	}
	WantOpen(t, s, "key")
	texts(t, s, "key", nil)
	past(t, s, owner, ledger.HistoryQuery{})
}

// testRepeated: a batch whose answer was lost is written once. The version says whether it was written.
func testRepeated(t *testing.T, s Store) {
	b := Put("key")
	b.Now = "1"
	comesTo(t, s, b, ledger.Written)
	comesTo(t, s, b, ledger.Outdated)
	if version := has(t, s, owner, b.Put); version != b.Now {
		t.Fatalf("it has version %q", version)
	}
}

// testNotFree: a key of the past refuses what needs it free, with everything else in the batch. What clears it leaves
// nothing of before.
func testNotFree(t *testing.T, s Store) {
	over := Over(since, Entry("key"))
	over.Now, over.Put = "1", Put("another").Put
	over.Changed[0].Texts = map[string]string{ledger.PartPrompt: "former", ledger.PartText: "former"}
	comesTo(t, s, over, ledger.Written)
	again := Put("key", "third")
	again.Was, again.Now = "1", "2"
	again.Changed = []ledger.Changed{{Key: "third", Texts: map[string]string{ledger.PartText: "third"}},
		{Key: "key", Free: true}}
	comesTo(t, s, again, ledger.NotFree)
	if version := has(t, s, owner, over.Put); version != "1" {
		t.Fatalf("it has version %q", version)
	}
	texts(t, s, "third", nil)
	again.Changed[1] = ledger.Changed{Key: "key", Clear: true, Texts: map[string]string{ledger.PartPrompt: "now"}}
	comesTo(t, s, again, ledger.Written)
	WantOpen(t, s, "another", "key", "third")
	texts(t, s, "key", map[string]string{ledger.PartPrompt: "now"})
	past(t, s, owner, ledger.HistoryQuery{})
	past(t, s, owner, ledger.HistoryQuery{Search: "auth"})
}

// testKeptFor: documents are kept as long as the newest batch says. What comes after them has nothing of before.
func testKeptFor(t *testing.T, s Store) {
	b := Put("old")
	b.For = time.Hour
	write(t, s, owner, b)
	b = Put("older")
	b.For = time.Millisecond
	write(t, s, owner, b)
	for {
		now, err := s.State(t.Context(), owner)
		if Must(t, err); now.Version == "" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	WantOpen(t, s)
	write(t, s, owner, Put("new"))
	WantOpen(t, s, "new")
}

// testOneWriter: of many writers that decide from one state, one writes, and nothing of the others.
func testOneWriter(t *testing.T, s Store) {
	const writers, rounds = 8, 5
	was := ""
	for range rounds {
		results := make([]ledger.Committed, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				mine := fmt.Sprint(i)
				b := ledger.Batch{Was: was, Now: fmt.Sprint(was, "/", i), Put: map[string]string{"a": mine, "b": mine},
					Changed: []ledger.Changed{{Key: "key", Texts: map[string]string{ledger.PartText: mine}}}}
				var err error
				if results[i], err = s.Commit(t.Context(), owner, b); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		won := slices.Index(results, ledger.Written)
		if n := len(slices.DeleteFunc(results, func(r ledger.Committed) bool { return r == ledger.Outdated })); n != 1 {
			t.Fatalf("%d have written", n)
		}
		version := has(t, s, owner, map[string]string{"a": fmt.Sprint(won), "b": fmt.Sprint(won)})
		if was = fmt.Sprint(was, "/", won); version != was {
			t.Fatalf("it has version %q, want %q", version, was)
		}
		texts(t, s, "key", map[string]string{ledger.PartText: fmt.Sprint(won)})
	}
}

// testCallers: callers are apart, and all of them are found by what waits.
func testCallers(t *testing.T, s Store) {
	all := hostile()
	for i := range 200 {
		all = append(all, handoff.Caller{Principal: "many", User: fmt.Sprint("user ", i)})
	}
	docs := func(i int) map[string]string {
		return map[string]string{ledger.HandoffDoc + "key": fmt.Sprint("of ", i)}
	}
	for i, c := range all {
		write(t, s, c, ledger.Batch{Put: docs(i), Changed: []ledger.Changed{{Key: "key",
			Texts: map[string]string{ledger.PartText: fmt.Sprint("text of ", i)}}}})
	}
	write(t, s, handoff.Caller{Principal: "idle"}, ledger.Batch{Put: map[string]string{"sticky:bigpc": "{}"}})
	waiting, err := s.Waiting(t.Context(), ledger.HandoffDoc)
	Must(t, err)
	for i, c := range all {
		parts, err := s.Texts(t.Context(), c, "key", "none")
		text := parts["key"][ledger.PartText]
		has(t, s, c, docs(i))
		if err != nil || len(parts) != 1 || text != fmt.Sprint("text of ", i) ||
			!slices.Contains(waiting, c) {
			t.Errorf("%v has %q, %v, among those that wait: %t", c, parts, err, slices.Contains(waiting, c))
		}
	}
	if len(waiting) != len(all) {
		t.Errorf("%d wait, want %d", len(waiting), len(all))
	}
}

// testWords: names, versions, documents and texts are kept as they are, however long.
func testWords(t *testing.T, s Store) {
	odd := "quote \" \\ \x00 日本語 , ,started, -1\r\nDEL key"
	long := strings.Repeat("picture \x00 日本", ledger.MaxRequest/20)
	for _, now := range []string{odd, "1", "-1"} {
		b := ledger.Batch{Now: now, Put: map[string]string{odd: odd, "version ": long, ledger.HandoffDoc + odd: "\x00"},
			Changed: []ledger.Changed{{Key: odd, Texts: map[string]string{odd: odd, ledger.PartRequest: long + "\xff"}}}}
		if now != odd {
			b.Was = has(t, s, owner, b.Put)
		}
		comesTo(t, s, b, ledger.Written)
		if version := has(t, s, owner, b.Put); version != now {
			t.Fatalf("it has version %q", version)
		}
		texts(t, s, odd, b.Changed[0].Texts)
	}
}

// testNobody: a caller without a principal, whose data everybody would share, is refused.
func testNobody(t *testing.T, s Store) {
	nobody := handoff.Caller{User: "alice"}
	_, errState := s.State(t.Context(), nobody)
	_, errCommit := s.Commit(t.Context(), nobody, Put("key"))
	_, _, errPast := s.Past(t.Context(), nobody, "key")
	_, _, errPage := s.Page(t.Context(), nobody, sessions.PageQuery{Limit: 1})
	_, errTexts := s.Texts(t.Context(), nobody, "key")
	_, errHistory := s.History(t.Context(), nobody, ledger.HistoryQuery{})
	_, _, errFind := s.Find(t.Context(), nobody, "key")
	_, errBody := s.Bodies(t.Context(), nobody, "key")
	for i, err := range []error{errState, errCommit, errPast, errPage, errTexts, errHistory, errFind, errBody} {
		if handoff.CodeOf(err) != handoff.CodeInternal {
			t.Errorf("number %d: %v", i, err)
		}
	}
}

// testOwned: for which caller a thread was made is written with the handoff that is about to use it, and listed in
// that order. The first owner stays.
func testOwned(t *testing.T, s Store) {
	other := handoff.Caller{Principal: "other", User: "bob"}
	want := []ledger.Owned{{Server: "bigpc", Thread: `thread "1`, Caller: other},
		{Server: "bigpc", Thread: "2", Caller: owner}, {Server: "mini", Thread: "2", Caller: other}}
	own := func(at time.Duration, all ...ledger.Owned) {
		b := Put("key")
		for i, o := range all {
			b.Changed = append(b.Changed, ledger.Changed{Key: fmt.Sprint("key", i), Owned: o, At: since.Add(at)})
		}
		write(t, s, all[0].Caller, b)
	}
	own(0, want[0])
	own(time.Second, want[1], want[1])
	own(2*time.Second, want[2], want[0])
	if got, err := s.Owned(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Fatalf("owned are %+v, %v, want %+v", got, err, want)
	}
	write(t, s, owner, Put("none"))
	if got, err := s.Owned(t.Context()); err != nil || len(got) != len(want) {
		t.Fatalf("owned are %+v, %v", got, err)
	}
}
