package sessionstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// said returns the texts of all pages of a query.
func said(t *testing.T, s sessions.Conversations, c handoff.Caller, q sessions.SaidQuery) []string {
	t.Helper()
	texts := []string{}
	for {
		page, err := s.Said(context.WithoutCancel(t.Context()), c, q)
		Must(t, err)
		for _, l := range page.Lines {
			texts = append(texts, l.Text)
		}
		if page.Next == "" {
			return texts
		}
		q.Before = page.Next
	}
}

func say(t *testing.T, s sessions.Conversations, c handoff.Caller, lines ...sessions.Said) {
	t.Helper()
	Must(t, s.AddSaid(t.Context(), c, lines))
}

func testSaidPages(t *testing.T, s Store) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	var lines []sessions.Said
	var want []string
	for i := range 250 {
		lines = append(lines, sessions.Said{ID: fmt.Sprintf("l%03d", i),
			At: now.Add(time.Duration(i/7) * time.Second).Add(-time.Hour), Who: "you", Text: fmt.Sprint("line ", i)})
		want = append(want, fmt.Sprint("line ", i))
	}
	slices.Reverse(want)
	for part := range slices.Chunk(lines, sessions.MaxSaidPage) {
		say(t, s, owner, part...)
	}
	for _, limit := range []int{0, 7} {
		if got := said(t, s, owner, sessions.SaidQuery{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("%d a page: %q", limit, got)
		}
	}
	page, err := s.Said(t.Context(), owner, sessions.SaidQuery{Limit: 1})
	if err != nil || len(page.Lines) != 1 || page.Lines[0] != lines[249] {
		t.Errorf("the newest: %+v, %v", page, err)
	}
	_, err = s.Said(t.Context(), owner, sessions.SaidQuery{Before: "no mark"})
	if handoff.CodeOf(err) != handoff.CodeMalformed {
		t.Errorf("a page that is none: %v", err)
	}
}

func testSaidSearch(t *testing.T, s Store) {
	now := time.Now()
	for i, text := range []string{"Run the tests on bigpc.", "Über die README", `It said "no" * OR (x)`, "修复登录"} {
		say(t, s, owner, sessions.Said{ID: fmt.Sprint(i), At: now.Add(time.Duration(i) * time.Second), Who: "voice",
			Text: text})
	}
	for search, want := range map[string]int{"test": 1, "TESTS bigpc": 1, "über": 1, "uber": 0, "登录": 1, "no": 1,
		`"`: 4, "OR": 1, "ests": 0, "": 4} {
		if got := said(t, s, owner, sessions.SaidQuery{Search: search}); len(got) != want {
			t.Errorf("%q found %q", search, got)
		}
	}
}

func testSaidOnce(t *testing.T, s Store) {
	other := handoff.Caller{Principal: owner.Principal, User: "somebody"}
	line := sessions.Said{ID: "a", At: time.Now(), Who: "you", Text: strings.Repeat("é", sessions.MaxSaidText)}
	say(t, s, owner, line, line)
	say(t, s, owner, sessions.Said{ID: "a", At: time.Now(), Who: "you", Text: "another text"})
	say(t, s, other, sessions.Said{ID: "a", At: time.Now(), Who: "you", Text: "of somebody"})
	if got := said(t, s, owner, sessions.SaidQuery{}); len(got) != 1 || len(got[0]) > sessions.MaxSaidText ||
		!strings.HasPrefix(got[0], "éé") {
		t.Errorf("%d lines, %d bytes", len(got), len(strings.Join(got, "")))
	}
	Must(t, s.DropSaid(t.Context(), owner))
	if got, theirs := said(t, s, owner, sessions.SaidQuery{}), said(t, s, other,
		sessions.SaidQuery{Search: "somebody"}); len(got) != 0 || len(theirs) != 1 {
		t.Errorf("after all was dropped: %q, and of somebody %q", got, theirs)
	}
	say(t, s, owner, line)
	if got := said(t, s, owner, sessions.SaidQuery{}); len(got) != 1 {
		t.Errorf("said again: %d", len(got))
	}
}

func testSaidBounded(t *testing.T, s Store) {
	now := time.Now().Add(-time.Hour)
	const over = 150
	for from := 0; from < sessions.MaxSaidLines+over; from += 1030 {
		var lines []sessions.Said
		for i := from; i < min(from+1030, sessions.MaxSaidLines+over); i++ {
			lines = append(lines, sessions.Said{ID: fmt.Sprintf("l%05d", i), At: now.Add(time.Duration(i) * time.Millisecond),
				Who: "you", Text: fmt.Sprint(i)})
		}
		say(t, s, owner, lines...)
	}
	if got := said(t, s, owner, sessions.SaidQuery{}); len(got) != sessions.MaxSaidLines ||
		got[len(got)-1] != fmt.Sprint(over) {
		t.Errorf("%d lines", len(got))
	}
}
