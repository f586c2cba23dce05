package servers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestGrantedServers: a server that a grant does not allow seems not to exist, in all methods and in all errors.
func TestGrantedServers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		thread := func(title string) *fakeServer {
			return &fakeServer{threads: []Thread{{ID: idAuth, Title: title, Dir: "/src", Updated: time.Now()}}}
		}
		f := run(t, Spec{Name: "bigpc", Aliases: []string{"desktop"}, Projects: map[string]string{"shop": "/src/shop"},
			Dial: thread("Auth refactor").dial},
			Spec{Name: "laptop", Projects: map[string]string{"notes": "/notes"}, Dial: thread("Release notes").dial},
			Spec{Name: "attic", Dial: thread("Backups").dial})
		synctest.Wait()
		g := handoff.Grant{Caller: handoff.Caller{Principal: "helper"}, Servers: []string{"laptop", "attic"}}

		var names []string
		for _, s := range f.Servers(t.Context(), g) {
			names = append(names, s.Name)
		}
		if fmt.Sprint(names) != "[laptop attic]" {
			t.Errorf("servers %v", names)
		}
		if list, err := f.Sessions(t.Context(), g, handoff.SessionQuery{}); err != nil || len(list.Items) != 2 ||
			strings.Contains(titles(list), "Auth") {
			t.Errorf("sessions %s %v", titles(list), err)
		}
		for _, said := range []handoff.Target{
			{Server: "bigpc"}, {Server: "bigpc", Thread: idAuth}, {Server: "desktop"}, {Server: "bigbc"}, {Server: "shop"},
			{Server: "shop on bigpc"},
			{Server: "bigpc/shop"}, {Server: "laptop", Project: "shop"}, {Server: ""},
		} {
			doors := map[string]error{}
			_, doors["resolve"] = f.Resolve(t.Context(), g, said)
			_, doors["read"] = f.Read(t.Context(), g, said, 3)
			if said.Server != "" && said.Project == "" {
				_, doors["sessions"] = f.Sessions(t.Context(), g, handoff.SessionQuery{Server: said.Server})
			}
			for door, err := range doors {
				if err == nil {
					t.Errorf("%s of %+v is there", door, said)
					continue
				}
				fault := handoff.AsError(err)
				if said.Server != "" && fault.Code != handoff.CodeUnknownServer ||
					strings.Contains(fmt.Sprint(fault.Choices), "bigpc") {
					t.Errorf("%s of %+v: %v %v", door, said, fault, fault.Choices)
				}
			}
		}
		if got, err := f.Resolve(t.Context(), g, handoff.Target{Server: "laptop", Thread: "release notes"}); err != nil ||
			got.Thread != idAuth {
			t.Errorf("an allowed one: %+v %v", got, err)
		}
		one := handoff.Grant{Servers: []string{"attic"}}
		if got, err := f.Resolve(t.Context(), one, handoff.Target{}); err != nil || got.Server != "attic" {
			t.Errorf("the only one: %+v %v", got, err)
		}
		none := handoff.Grant{Servers: []string{}}
		if _, err := f.Resolve(t.Context(), none, handoff.Target{Server: "attic"}); err == nil ||
			len(f.Servers(t.Context(), none)) != 0 {
			t.Error("a grant of nothing allows something")
		}
	})
}

// TestHiddenThreads: a thread that was started for somebody else is in no list and cannot be named.
func TestHiddenThreads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const other = "0199d1f2-0000-7000-8000-0000000000aa"
		s := &fakeServer{threads: []Thread{
			{ID: idAuth, Title: "Auth refactor", Updated: time.Now()},
			{ID: other, Title: "Divorce papers", Updated: time.Now(), Status: handoff.SessionRunning},
		}}
		alice, bob := handoff.Grant{Caller: handoff.Caller{Principal: "many",
			User: "alice"}}, handoff.Grant{Caller: handoff.Caller{Principal: "many", User: "bob"}}
		f, err := New(Config{Specs: []Spec{{Name: "bigpc", Dial: s.dial, IsThread: isThread}},
			Hidden: func(c handoff.Caller, server string, ids ...string) bool {
				return server == "bigpc" && slices.Contains(ids, other) && c != alice.Caller
			}})
		must(t, err)
		start(t, f)
		synctest.Wait()
		for _, said := range []string{other, other[:12], "divorce papers", "divorce", "papers"} {
			target := handoff.Target{Server: "bigpc", Thread: said}
			if _, err := f.Resolve(t.Context(), bob, target); err == nil ||
				handoff.AsError(err).Code != handoff.CodeUnknownSession ||
				strings.Contains(fmt.Sprint(handoff.AsError(err).Choices), "Divorce") {
				t.Errorf("%q for bob: %v", said, err)
			}
			if _, err := f.Read(t.Context(), bob, target, 3); err == nil ||
				handoff.AsError(err).Code != handoff.CodeUnknownSession {
				t.Errorf("bob reads %q: %v", said, err)
			}
			if got, err := f.Resolve(t.Context(), alice, target); err != nil || got.Thread != other {
				t.Errorf("%q for alice: %+v %v", said, got, err)
			}
		}
		if list, _ := f.Sessions(t.Context(), bob, handoff.SessionQuery{}); titles(list) != "Auth refactor" {
			t.Errorf("bob sees %s", titles(list))
		}
		if list, _ := f.Sessions(t.Context(), alice, handoff.SessionQuery{}); len(list.Items) != 2 {
			t.Errorf("alice sees %s", titles(list))
		}
		if working := f.Servers(t.Context(), bob)[0].Working; len(working) != 0 {
			t.Errorf("bob sees who works on %v", working)
		}
	})
}

// TestHiddenCopies: a copy without a known owner is its source's, by any name of its server: in lists, by its id, to be
// read and to be renamed.
func TestHiddenCopies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const source, lost, again, older = "0199d1f2-0000-7000-8000-0000000000aa", "0199d1f2-0000-7000-8000-0000000000ab",
			"0199d1f2-0000-7000-8000-0000000000ac", "0199d1f2-0000-7000-8000-0000000000ad"
		s := &fakeServer{threads: []Thread{
			{ID: source, Title: "Divorce papers", Updated: time.Now()},
			{ID: lost, From: source, Title: "Divorce copy", Updated: time.Now()},
			{ID: again, From: lost, Title: "Divorce again", Updated: time.Now()},
		}}
		alice, bob := handoff.Grant{Caller: handoff.Caller{Principal: "alice"}}, handoff.Grant{Caller: handoff.Caller{Principal: "bob"}}
		f, err := New(Config{
			Specs: []Spec{{Name: "bigpc", Aliases: []string{"attic"}, Dial: s.dial, IsThread: isThread}},
			Hidden: func(c handoff.Caller, server string, ids ...string) bool { // it was made under the former name
				return server == "attic" && slices.Contains(ids, source) && c != alice.Caller
			}})
		must(t, err)
		start(t, f)
		synctest.Wait()
		for who, sees := range map[*handoff.Grant]int{&alice: 3, &bob: 0} {
			if list, _ := f.Sessions(t.Context(), *who, handoff.SessionQuery{}); len(list.Items) != sees {
				t.Errorf("%s sees %s", who.Caller.Principal, titles(list))
			}
		}
		s.set(func() { // no list has it yet
			s.threads = append(s.threads, Thread{ID: older, From: source, Title: "An old copy"})
		})
		for _, id := range []string{source, lost, strings.ToUpper(again), older} {
			for _, server := range []string{"bigpc", "attic"} {
				at := handoff.Target{Server: server, Thread: id}
				if _, err := f.Read(t.Context(), bob, at, 3); code(err) != handoff.CodeUnknownSession {
					t.Errorf("bob reads %s on %s: %v", id, server, err)
				}
				if id == older {
					continue
				}
				if _, err := f.Resolve(t.Context(), bob, at); code(err) != handoff.CodeUnknownSession {
					t.Errorf("bob finds %s on %s: %v", id, server, err)
				}
				if err := f.RenameSession(t.Context(), bob, at, "mine"); code(err) != handoff.CodeUnknownSession {
					t.Errorf("bob renames %s on %s: %v", id, server, err)
				}
			}
		}
		must(t, f.RenameSession(t.Context(), alice, handoff.Target{Server: "attic", Thread: lost}, "mine"))
		if list, _ := f.Sessions(t.Context(), alice, handoff.SessionQuery{Text: "mine"}); len(list.Items) != 1 {
			t.Errorf("alice finds %s", titles(list))
		}
	})
}

// TestAddedForOthers: for a call that is older than a server for others, that server seems not to exist, though the
// grant does not name it. So does a new server that the grant bars. Other new servers may be used.
func TestAddedForOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := run(t, Spec{Name: "bigpc", Dial: new(fakeServer).dial}, Spec{Name: "attic", Dial: new(fakeServer).dial})
		synctest.Wait()
		must(t, f.Change(nil, []Spec{
			{Name: "mini", Dial: new(fakeServer).dial, For: []string{"owner"}}, {Name: "laptop", Dial: new(fakeServer).dial},
		}))
		for principal, want := range map[string]string{"owner": "[bigpc mini laptop]", "guest": "[bigpc laptop]"} {
			g := handoff.Grant{Caller: handoff.Caller{Principal: principal}, Barred: []string{"attic"}}
			var names []string
			for _, s := range f.Servers(t.Context(), g) {
				names = append(names, s.Name)
			}
			if fmt.Sprint(names) != want {
				t.Errorf("%s sees %v, want %s", principal, names, want)
			}
			_, err := f.Resolve(t.Context(), g, handoff.Target{Server: "mini"})
			if wrong := code(err) == handoff.CodeUnknownServer; wrong != (principal == "guest") {
				t.Errorf("%s: %v", principal, err)
			}
			if _, err := f.Test(t.Context(), g, "attic"); code(err) != handoff.CodeUnknownServer {
				t.Errorf("%s reaches what is barred: %v", principal, err)
			}
		}
	})
}
