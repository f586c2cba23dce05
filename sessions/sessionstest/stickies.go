package sessionstest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
)

// owner is the caller of most tests.
var owner = handoff.Caller{Principal: "owner"}

// since is a time with nanoseconds, to be kept by JSON and in every time zone.
var since = time.Date(2026, 5, 4, 12, 30, 15, 123456789, time.UTC)

// at returns a sticky thread.
func at(server, project, thread string) handoff.Sticky {
	return handoff.Sticky{
		Target: handoff.Target{Server: server, Project: project, Thread: thread}, Title: "auth refactor", Since: since,
	}
}

// list fails the test unless the caller has exactly these stickies, in any order.
func list(t *testing.T, s handoff.Stickies, c handoff.Caller, want ...handoff.Sticky) {
	t.Helper()
	got, err := s.List(t.Context(), c)
	if err != nil {
		t.Fatalf("list %v: %v", c, err)
	}
	for i := range got {
		if got[i].Since.Equal(since) {
			got[i].Since = since // the same moment in another representation
		}
	}
	byTarget := func(all []handoff.Sticky) map[handoff.Target]handoff.Sticky {
		m := map[handoff.Target]handoff.Sticky{}
		for _, one := range all {
			m[one.Target] = one
		}
		return m
	}
	if len(got) != len(want) || !maps.Equal(byTarget(got), byTarget(want)) {
		t.Fatalf("caller %v has %+v, want %+v", c, got, want)
	}
}

func set(t *testing.T, s handoff.Stickies, c handoff.Caller, all ...handoff.Sticky) {
	t.Helper()
	for _, one := range all {
		if err := s.Set(t.Context(), c, one); err != nil {
			t.Fatalf("set %v of %v: %v", one.Target, c, err)
		}
	}
}

func testEmpty(t *testing.T, s Store) {
	list(t, s, owner)
	if err := s.Clear(t.Context(), owner, handoff.Target{Server: "bigpc"}); err != nil {
		t.Fatalf("clear what is not there: %v", err)
	}
}

func testSetAndList(t *testing.T, s Store) {
	named := at("bigpc", "", "thread-1")
	named.Named = true
	untitled := at("laptop", "", "thread-3")
	untitled.Title = ""
	all := []handoff.Sticky{named, at("bigpc", "api", "thread-2"), untitled}
	set(t, s, owner, all...)
	list(t, s, owner, all...)
}

func testReplace(t *testing.T, s Store) {
	set(t, s, owner, at("bigpc", "", "thread-1"), at("bigpc", "", "thread-2"), at("bigpc", "", "thread-2"))
	list(t, s, owner, at("bigpc", "", "thread-2"))
}

func testOrder(t *testing.T, s Store) {
	for i, server := range []string{"b", "c", "a"} {
		one := at(server, "", "thread-1")
		one.Since = since.Add(time.Duration(i) * time.Minute)
		set(t, s, owner, one)
	}
	got, err := s.List(t.Context(), owner)
	Must(t, err)
	var servers []string
	for _, one := range got {
		servers = append(servers, one.Target.Server)
	}
	if want := []string{"a", "c", "b"}; !slices.Equal(servers, want) {
		t.Fatalf("order %v, want the newest first: %v", servers, want)
	}
}

func testClear(t *testing.T, s Store) {
	set(t, s, owner, at("bigpc", "", "thread-1"), at("bigpc", "api", "thread-2"), at("laptop", "", "thread-3"))
	for _, target := range []handoff.Target{
		{Server: "bigpc", Project: "web"}, {Server: "api"}, {Server: "bigpc/api"}, {Server: "BIGPC"},
	} {
		if err := s.Clear(t.Context(), owner, target); err != nil {
			t.Fatalf("clear %v: %v", target, err)
		}
	}
	list(t, s, owner, at("bigpc", "", "thread-1"), at("bigpc", "api", "thread-2"), at("laptop", "", "thread-3"))
	Must(t, s.Clear(t.Context(), owner, handoff.Target{Server: "bigpc", Thread: "another"}))
	list(t, s, owner, at("bigpc", "api", "thread-2"), at("laptop", "", "thread-3"))
}

func testOddWords(t *testing.T, s Store) {
	odd := at("big pc/ü*", "a/b\x00:{}", "thread 1\n")
	odd.Title = "quote \" backslash \\ </script> 日本語\r\n"
	set(t, s, owner, odd, at("big pc", "ü*/a/b", "thread-2"))
	list(t, s, owner, odd, at("big pc", "ü*/a/b", "thread-2"))
}

// hostile returns callers whose names would collide if principal and user were just concatenated.
func hostile() []handoff.Caller {
	return []handoff.Caller{
		owner,
		{Principal: "owner", User: "alice"}, {Principal: "owner/alice"},
		{Principal: "owner%2Falice"}, {Principal: "owner", User: "alice/"},
		{Principal: "owner/alice", User: "bob"}, {Principal: "owner", User: "alice/bob"},
		{Principal: "owner}:sticky"}, {Principal: "{owner}"}, {Principal: "owner:sticky"},
		{Principal: "owner", User: "}:sticky"}, {Principal: "owner "}, {Principal: "owner+"}, {Principal: "OWNER"},
		{Principal: "*"}, {Principal: "owner\x00"}, {Principal: "owner\r\nDEL owner"}, {Principal: "../owner"},
	}
}

func testCallers(t *testing.T, s Store) {
	for i, c := range hostile() {
		set(t, s, c, at("bigpc", "", fmt.Sprint("thread-", i)))
	}
	for i, c := range hostile() {
		list(t, s, c, at("bigpc", "", fmt.Sprint("thread-", i)))
	}
	Must(t, s.Clear(t.Context(), hostile()[1], handoff.Target{Server: "bigpc"}))
	for i, c := range hostile() {
		if i != 1 {
			list(t, s, c, at("bigpc", "", fmt.Sprint("thread-", i)))
		}
	}
}

func testRefused(t *testing.T, s Store) {
	refused := []handoff.Sticky{at("", "", "thread-1"), at("bigpc", "", ""), at("bigpc", "", handoff.NewThread)}
	for _, one := range refused {
		if err := s.Set(t.Context(), owner, one); err == nil {
			t.Errorf("set %+v was accepted", one.Target)
		}
	}
	if err := s.Set(t.Context(), handoff.Caller{User: "alice"}, at("bigpc", "", "thread-1")); err == nil {
		t.Error("a caller without a principal was accepted")
	}
	list(t, s, owner)
}

func testConcurrent(t *testing.T, s Store) {
	const callers, servers = 4, 8
	var all sync.WaitGroup
	for i := range callers {
		c := handoff.Caller{Principal: "owner", User: fmt.Sprint("user-", i)}
		for j := range servers {
			all.Go(func() {
				if err := s.Set(t.Context(), c, at(fmt.Sprint("server-", j), "", fmt.Sprint("thread-", i))); err != nil {
					t.Errorf("set: %v", err)
				}
			})
		}
	}
	all.Wait()
	for i := range callers {
		got, err := s.List(t.Context(), handoff.Caller{Principal: "owner", User: fmt.Sprint("user-", i)})
		if err != nil || len(got) != servers {
			t.Fatalf("caller %d has %d sticky threads (%v), want %d", i, len(got), err, servers)
		}
		for _, one := range got {
			if want := fmt.Sprint("thread-", i); one.Target.Thread != want {
				t.Errorf("caller %d has thread %s, want %s", i, one.Target.Thread, want)
			}
		}
	}
}
