package servers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

const (
	idAuth    = "01a1fac5-6c65-7c13-9ff2-be9c54078f33"
	idAuth2   = "01a1fac6-1111-7c13-9ff2-be9c54078f33"
	idRelease = "01a1fb04-2eaf-7bb3-a4ec-863db2c11a2d"
)

func testThreads() []namedThread {
	return Spec{}.name([]Thread{
		{ID: idAuth, Title: "Auth refactor"},
		{ID: "thread_7f3a9c", Title: "Checkout page polish"},
		{ID: idRelease, Title: "Release notes 2.4"},
		{ID: "01b00000-0000-7000-8000-000000000001", Title: "Invoice PDF spike"},
		{ID: "01b00000-0000-7000-8000-000000000002", Title: "Flaky login test"},
		{ID: "01b00000-0000-7000-8000-000000000003", Title: "Flaky search test"},
		{ID: "01b00000-0000-7000-8000-000000000004", Title: "Please look at /home/me/src/x.go and tell me why it is slow"},
		{ID: "01b00000-0000-7000-8000-000000000005", Title: ""},
		{ID: "01b00000-0000-7000-8000-000000000006", Title: "Session about the sessions"},
	})
}

func TestFindThread(t *testing.T) {
	t.Parallel()
	const unknown, ambiguous = handoff.CodeUnknownSession, handoff.CodeAmbiguousSession // of sessions here
	rows := []struct {
		said    string
		id      string
		code    handoff.Code
		choices string
	}{
		{said: "auth refactor", id: idAuth},
		{said: "Auth Refactor", id: idAuth},
		{said: "the auth refactor session", id: idAuth},
		{said: "auth", id: idAuth},
		{said: "the auth one", id: idAuth},
		{said: "refactor", id: idAuth},
		{said: "auth refaktor", id: idAuth},
		{said: "checkout", id: "thread_7f3a9c"},
		{said: "check", id: "thread_7f3a9c"},
		{said: "checkout polish", id: "thread_7f3a9c"},
		{said: "polish the checkout page", id: "thread_7f3a9c"},
		{said: "thread_7f3a9c", id: "thread_7f3a9c"},
		{said: "thread_7", id: "thread_7f3a9c"},
		{said: "release notes 2.4", id: idRelease},
		{said: "release notes two point four", id: idRelease},
		{said: "release notes", id: idRelease},
		{said: "01a1fb", id: idRelease},
		{said: "01A1FB04-2EAF", id: idRelease},
		{said: idRelease, id: idRelease},
		{said: "invoice", id: "01b00000-0000-7000-8000-000000000001"},
		{said: "invoice pdf", id: "01b00000-0000-7000-8000-000000000001"},
		{said: "invoice p d f spike", id: "01b00000-0000-7000-8000-000000000001"},
		{said: "flaky login", id: "01b00000-0000-7000-8000-000000000002"},
		{said: "untitled", id: "01b00000-0000-7000-8000-000000000005"},
		{said: "session about the sessions", id: "01b00000-0000-7000-8000-000000000006"},
		{said: "flaky", code: ambiguous, choices: "flaky login test, flaky search test"},
		{said: "the flaky test", code: ambiguous, choices: "flaky login test, flaky search test"},
		{said: "01b000", code: ambiguous},
		{said: "01a1f", code: unknown},
		{said: "payment", code: unknown},
		{said: "auth payment", code: unknown},
		{said: "release notes 2.5", code: unknown},
		{said: "au", code: unknown},
		{said: "the session", code: unknown},
		{said: "...", code: unknown},
		{said: strings.Repeat("auth ", 100), code: unknown},
	}
	list := nameSearch{list: testThreads(), now: time.Now()}
	for _, row := range rows {
		id, fault := list.find(row.said)
		switch {
		case row.code == "" && (fault != nil || id != row.id):
			t.Errorf("%q: got %q, %v", row.said, id, fault)
		case row.code != "" && (fault == nil || fault.Code != row.code):
			t.Errorf("%q: got %q, %v, want %s", row.said, id, fault, row.code)
		case fault != nil && len(fault.Choices) == 0:
			t.Errorf("%q: no choices", row.said)
		case row.choices != "" && strings.Join(fault.Choices, ", ") != row.choices:
			t.Errorf("%q: choices %q", row.said, fault.Choices)
		}
	}
}

// twins are sessions of the same title, or of titles that sound the same.
func twins(now time.Time) nameSearch {
	return nameSearch{now: now, list: Spec{}.name([]Thread{
		{ID: "01c00000-0000-7000-8000-000000000001", Title: "Checkout flow", Dir: "/src/shop", Branch: "main",
			Updated: now.Add(-5 * 24 * time.Hour)},
		{ID: "01c00000-0000-7000-8000-000000000002", Title: "checkout flow!", Dir: "/src/api", Branch: "main",
			Updated: now.Add(-5 * 24 * time.Hour)},
		{ID: "01c00000-0000-7000-8000-000000000003", Title: "Fix the login page", Dir: "/src/shop", Branch: "main",
			Updated: now.Add(-3 * time.Hour)},
		{ID: "01c00000-0000-7000-8000-000000000004", Title: "Fix the login page on the phone", Dir: "/src/shop",
			Branch: "phone", Updated: now.Add(-26 * time.Hour)},
		{ID: "01c00000-0000-7000-8000-000000000005", Title: "Same", Dir: "/src/shop", Updated: now},
		{ID: "01c00000-0000-7000-8000-000000000006", Title: "Same", Dir: "/src/shop", Updated: now},
		{ID: "01c00000-0000-7000-8000-000000000007", Title: "Tidy up", Dir: "/a/web", Updated: now.Add(-12 * time.Minute)},
		{ID: "01c00000-0000-7000-8000-000000000008", Title: "Tidy up", Dir: "/b/web", Updated: now.Add(-2 * time.Hour)},
		{ID: "01c00000-0000-7000-8000-000000000009", Title: "Nightly run", Created: now.Add(-time.Minute), Updated: now},
		{ID: "01c00000-0000-7000-8000-00000000000a", Title: "Nightly run", Created: now.Add(-time.Hour), Updated: now},
	})}
}

// TestFindAmongTwins: the older one is never taken without asking, labels and titles count alike, and every candidate
// finds its session.
func TestFindAmongTwins(t *testing.T) {
	t.Parallel()
	now := time.Now()
	list := twins(now)
	for said, want := range map[string]string{
		"checkout flow":     "checkout flow!, in api | Checkout flow, in shop",
		"the checkout flow": "checkout flow!, in api | Checkout flow, in shop",
		"same":              "Same, number 1 of 2 | Same, number 2 of 2",
		"nightly run":       "Nightly run, the newer one | Nightly run, the older one",
		"tidy up":           "Tidy up, in a/web, 12 minutes ago | Tidy up, in b/web, 2 hours ago",
	} {
		_, fault := list.find(said)
		if fault == nil || fault.Code != handoff.CodeAmbiguousSession {
			t.Errorf("%q: %v", said, fault)
			continue
		}
		got := slices.Sorted(slices.Values(fault.Choices))
		slices.SortFunc(got, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
		if strings.Join(got, " | ") != want {
			t.Errorf("%q: choices %s", said, strings.Join(got, " | "))
		}
		meant := map[string]bool{}
		for _, choice := range fault.Choices {
			id, fault := list.find(choice)
			if fault != nil || meant[id] {
				t.Errorf("%q: choice %q leads nowhere, or to another one's session: %q, %v", said, choice, id, fault)
			}
			meant[id] = true
		}
	}
	later := nameSearch{list: list.list, now: now.Add(90 * time.Second)}
	for said, want := range map[string]string{
		"the checkout flow in the api folder": "01c00000-0000-7000-8000-000000000002",
		"login page on branch phone":          "01c00000-0000-7000-8000-000000000004",
		"fix the login page on the phone":     "01c00000-0000-7000-8000-000000000004",
		"tidy up from 12 minutes ago":         "01c00000-0000-7000-8000-000000000007",
		"the tidy up of b/web":                "01c00000-0000-7000-8000-000000000008",
		"the newer one of nightly run":        "01c00000-0000-7000-8000-000000000009",
		"nightly run, the newer one":          "01c00000-0000-7000-8000-000000000009",
		"the older nightly run":               "01c00000-0000-7000-8000-00000000000a",
		"Nightly run, the older":              "01c00000-0000-7000-8000-00000000000a",
		"same, number two of two":             "01c00000-0000-7000-8000-000000000006",
		"same, number 2 of 3":                 "",
		"same, the older one":                 "",
		"same, number 0 of 2":                 "",
	} {
		if id, fault := later.find(said); id != want {
			t.Errorf("%q: %q, %v", said, id, fault)
		}
	}
	for _, said := range []string{"shop", "main", "in the shop", "yesterday", "web"} { // these name no session
		if id, fault := list.find(said); fault == nil || fault.Code != handoff.CodeUnknownSession {
			t.Errorf("%q: %q, %v", said, id, fault)
		}
	}
}

// BenchmarkNameApart names those that a list shows of 100 sessions of one title.
func BenchmarkNameApart(b *testing.B) {
	now := time.Now()
	var all []Thread
	for i := range maxAlike {
		at := now.Add(-time.Duration(i) * time.Hour)
		all = append(all, Thread{ID: fmt.Sprint("id-", i), Title: "Fix the login page", Dir: "/src/shop", Created: at,
			Updated: at})
	}
	list, shown := Spec{}.name(all), make([]handoff.SessionInfo, handoff.DefaultSessions)
	for b.Loop() {
		for i := range shown {
			shown[i].ID = list[i].ID
		}
		nameApart(shown, "", list, now)
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	spec := Spec{IsThread: isThread}
	for said, want := range map[string]string{
		"": "", "  ": "", "new": "new", "New": "new", " NEW. ": "new", idAuth: idAuth,
		strings.ToUpper(idAuth): strings.ToUpper(idAuth), " " + idAuth: idAuth,
	} {
		if got, ok := spec.fullThread(said); !ok || got != want {
			t.Errorf("%q: %q, %v", said, got, ok)
		}
	}
	for _, said := range []string{"auth", "new thread of mine", idAuth[:20], idAuth + "0"} {
		if _, ok := spec.fullThread(said); ok {
			t.Errorf("%q was settled", said)
		}
	}
	if _, ok := (Spec{}).fullThread(idAuth); ok {
		t.Error("an id without a form was settled")
	}
}

// TestIDsAreOpaque: ids of any form are found, also if they differ only in case.
func TestIDsAreOpaque(t *testing.T) {
	t.Parallel()
	list := Spec{}.name([]Thread{{ID: "resp_Ab1", Title: "Auth refactor"}, {ID: "resp_ab1", Title: "Release notes"},
		{ID: "7", Title: "Seven dwarfs"}})
	for said, want := range map[string]string{"resp_Ab1": "resp_Ab1", "resp_ab1": "resp_ab1", " 7 ": "7", "RESP_AB1": ""} {
		if got, _ := byID(said, list); got.ID != want {
			t.Errorf("%q is %q, want %q", said, got.ID, want)
		}
	}
	spec := Spec{IsThread: func(name string) bool { return strings.HasPrefix(name, "resp_") }}
	if got, ok := spec.fullThread(" resp_Xy9 "); !ok || got != "resp_Xy9" {
		t.Errorf("settled as %q, %v", got, ok)
	}
}

func FuzzFindThread(f *testing.F) {
	for _, t := range testThreads() {
		f.Add(t.ID[:7])
		f.Add(t.Label)
		f.Add(t.Title)
	}
	list := nameSearch{list: testThreads(), now: time.Now()}
	f.Fuzz(func(t *testing.T, said string) {
		id, fault := list.find(said)
		if fault == nil {
			known := false
			for _, have := range list.list {
				known = known || have.ID == id
			}
			if !known {
				t.Fatalf("%q made up %q", said, id)
			}
			return
		}
		if fault.Code == handoff.CodeAmbiguousSession && len(fault.Choices) < 2 {
			t.Fatalf("%q: %q", said, fault.Choices)
		}
		for _, choice := range fault.Choices {
			if _, fault := list.find(choice); fault != nil {
				t.Fatalf("%q: choice %q leads nowhere: %v", said, choice, fault)
			}
		}
	})
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Auth refactor":                           "auth refactor",
		"Release notes 2.4":                       "release notes 2.4",
		"Fix the login page on the phone":         "fix the login page on the phone",
		"one two three four five six seven eight": "one two three four five six seven",
		"  \"Don't\" panic!  ":                    "don't panic",
		"":                                        "untitled",
		"***":                                     "untitled",
		"Ünïcode Größe":                           "ünïcode größe",
		strings.Repeat("x", 90):                   strings.Repeat("x", 48),
		"internationalization documentation":      "internationalization documentation",
		"internationalization documentation rewrite of all": "internationalization documentation rewrite of",
	} {
		if got := label(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("Auth refactor", "auth refactor", "Auth refactor 2")
	f.Add("", "\x00", "日本語のタイトル")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		list := Spec{}.name([]Thread{{ID: "1", Title: a}, {ID: "2", Title: b}, {ID: "3", Title: c}})
		for _, have := range list {
			if alone := (Spec{}).name([]Thread{have.Thread}); have.Label == "" || len(have.Label) > 400 || have.Label != alone[0].Label {
				t.Fatalf("label %q of %q", have.Label, have.Title)
			}
		}
	})
}

// TestFindByWordsOfOthers: a word that is in some title was not misheard, so it does not stand for a word that only
// begins alike. It does for another form of itself.
func TestFindByWordsOfOthers(t *testing.T) {
	t.Parallel()
	list := nameSearch{list: Spec{}.name([]Thread{{ID: "1", Title: "Login page"}, {ID: "2", Title: "Logic tests"}}),
		now: time.Now()}
	for _, said := range []string{"logic page", "login tests"} {
		if id, fault := list.find(said); fault == nil || !fault.Near {
			t.Errorf("%q: took %q, %v", said, id, fault)
		}
	}
	for said, want := range map[string]string{"login pages": "1", "logic test": "2"} {
		if id, fault := list.find(said); id != want {
			t.Errorf("%q: took %q, %v", said, id, fault)
		}
	}
}

// TestOddTimes: a time that a machine names and that JSON cannot have is none: it would make all lists fail.
func TestOddTimes(t *testing.T) {
	odd := time.Unix(1796053080000, 0) // in milliseconds
	for _, named := range (Spec{}).name([]Thread{{Updated: odd, Created: odd.AddDate(-100_000, 0, 0)}}) {
		if _, err := json.Marshal([]time.Time{named.Updated, named.Created}); err != nil {
			t.Error(err)
		}
	}
}
