package sessionstest

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// change changes a value and fails the test unless the store says that it did, or did not, as wanted.
func change(t *testing.T, s sessions.Values, was string, is sessions.Value, want bool) sessions.Value {
	t.Helper()
	done, err := s.Change(t.Context(), sessions.Change{Was: was, Is: is})
	Must(t, err)
	if done != want {
		t.Fatalf("change of %q: %t", is.Name, done)
	}
	return value(t, s, is.Kind, is.Name)
}

func value(t *testing.T, s sessions.Values, kind, name string) sessions.Value {
	t.Helper()
	v, err := s.Value(t.Context(), kind, name)
	Must(t, err)
	return v
}

// testValueChanged holds that a change is made only to what was read: nothing that was dropped, changed, or dropped and
// made again meanwhile is put back.
func testValueChanged(t *testing.T, s Store) {
	if v := value(t, s, "login", "a"); v.There() {
		t.Fatalf("there is %+v", v)
	}
	made := change(t, s, "", sessions.Value{Kind: "login", Name: "a", Group: "owner", Body: []byte("one")}, true)
	if string(made.Body) != "one" || made.Group != "owner" || !made.Ends.IsZero() {
		t.Fatalf("made %+v", made)
	}
	two := made
	two.Body = []byte("two \x00\xff")
	change(t, s, "", two, false) // there is one already
	changed := change(t, s, made.Version, two, true)
	if string(changed.Body) != string(two.Body) || changed.Version == made.Version {
		t.Fatalf("changed %+v", changed)
	}
	change(t, s, made.Version, sessions.Value{Kind: "login", Name: "a", Group: "owner"}, false)
	if gone := change(t, s, changed.Version, sessions.Value{Kind: "login", Name: "a", Group: "owner"}, true); gone.There() {
		t.Fatalf("dropped, and there is %+v", gone)
	}
	change(t, s, changed.Version, two, false)
	change(t, s, "", made, true)
	change(t, s, changed.Version, two, false)
	change(t, s, made.Version, two, false) // made again is another one
}

func testValueGroups(t *testing.T, s Store) {
	for _, v := range []sessions.Value{
		{Kind: "login", Name: "b", Group: "owner"}, {Kind: "login", Name: "a", Group: "owner"},
		{Kind: "login", Name: "c", Group: "own"}, {Kind: "app", Name: "d", Group: "owner"}, {Kind: "login", Name: "e"},
		{Kind: "login", Name: "odd: {x} 名 %2F \n", Group: "odd: {x} 名 %2F \n"},
	} {
		v.Body = []byte(v.Name)
		change(t, s, "", v, true)
	}
	for group, want := range map[string]string{"owner": "ab", "own": "c", "": "e", "none": "",
		"odd: {x} 名 %2F \n": "odd: {x} 名 %2F \n"} {
		all, err := s.Values(t.Context(), "login", group)
		Must(t, err)
		var names strings.Builder
		for _, v := range all {
			names.WriteString(v.Name)
			if read := value(t, s, v.Kind, v.Name); !reflect.DeepEqual(v, read) || v.Group != group {
				t.Errorf("listed is %+v, read %+v", v, read)
			}
		}
		if names.String() != want {
			t.Errorf("group %q has %q, want %q", group, names.String(), want)
		}
	}
}

func testValueEnds(t *testing.T, s Store) {
	v := sessions.Value{Kind: "code", Name: "a", Group: "g", Body: []byte("x"), Ends: time.Now().Add(-time.Minute)}
	if past := change(t, s, "", v, true); past.There() {
		t.Fatalf("ended, and there is %+v", past)
	}
	v.Ends = time.Now().Add(time.Hour)
	soon := change(t, s, "", v, true) // one that has ended is none
	if !soon.Ends.Equal(v.Ends.Truncate(time.Millisecond)) {
		t.Errorf("ends at %v, want %v", soon.Ends, v.Ends)
	}
	v.Ends = time.Time{}
	if kept := change(t, s, soon.Version, v, true); !kept.Ends.IsZero() {
		t.Errorf("it still ends at %v", kept.Ends)
	}
	soon = value(t, s, v.Kind, v.Name)
	v.Ends = time.Now().Add(-time.Minute)
	change(t, s, soon.Version, v, true)
	if all, err := s.Values(t.Context(), "code", "g"); err != nil || len(all) > 0 {
		t.Errorf("ended, and listed: %v, %v", all, err)
	}
}

func testValuesBounded(t *testing.T, s Store) {
	put := func(name, group string, ends time.Time) error {
		_, err := s.Change(t.Context(), sessions.Change{Most: 2,
			Is: sessions.Value{Kind: "secret", Name: name, Group: group, Body: []byte("x"), Ends: ends}})
		return err
	}
	Must(t, put("ended", "a", time.Now().Add(-time.Second)))
	Must(t, put("1", "a", time.Now().Add(time.Hour)))
	Must(t, put("2", "a", time.Time{}))
	if err := put("3", "a", time.Time{}); handoff.AsError(err).Code != handoff.CodeLimited {
		t.Errorf("the third of two: %v", err)
	}
	Must(t, put("3", "b", time.Time{}))
	v := value(t, s, "secret", "2")
	if done, err := s.Change(t.Context(), sessions.Change{Was: v.Version, Is: v, Most: 2}); err != nil || !done {
		t.Errorf("one of them cannot be changed: %t, %v", done, err)
	}
}

func testValueOneWins(t *testing.T, s Store) {
	v := change(t, s, "", sessions.Value{Kind: "count", Name: "a", Body: []byte("0")}, true)
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			is := v
			is.Body = []byte(strconv.Itoa(i))
			if done, err := s.Change(t.Context(), sessions.Change{Was: v.Version, Is: is}); err != nil {
				t.Error(err)
			} else if done {
				won.Add(1)
			}
		})
	}
	group.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d of 8 changed it", n)
	}
}

func testNoValues(t *testing.T, s Store) {
	for code, v := range map[handoff.Code]sessions.Value{
		handoff.CodeMalformed: {Kind: "x", Body: []byte("x")},
		handoff.CodeTooLarge:  {Kind: "x", Name: "x", Body: []byte(strings.Repeat("x", sessions.MaxValue+1))},
	} {
		if _, err := s.Change(t.Context(), sessions.Change{Is: v}); handoff.AsError(err).Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
}
