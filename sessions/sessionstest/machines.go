package sessionstest

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"switchboard/sessions"
)

// machine returns a machine whose key repeats one byte.
func machine(key byte, name string) sessions.Machine {
	joined := time.Date(2026, 5, 4, 12, 0, int(key), 0, time.UTC)
	return sessions.Machine{Key: bytes.Repeat([]byte{key}, 32), Name: name, Joined: joined, Body: []byte(`{"a": "ü \u0000"}`)}
}

func wantMachines(t *testing.T, s Store, want ...sessions.Machine) {
	t.Helper()
	got, err := s.Machines(t.Context())
	if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("there are %+v, %v, want %+v", got, err, want)
	}
}

func wantChanged(t *testing.T, s Store, was, is sessions.Machine, want bool) {
	t.Helper()
	if done, err := s.ChangeMachine(t.Context(), was, is); done != want || err != nil {
		t.Fatalf("changed from %q to %q: %t, %v", was.Name, is.Name, done, err)
	}
}

func testMachineLife(t *testing.T, s Store) {
	wantMachines(t, s)
	mini, mac := machine(2, "mini"), machine(1, "mac \x00 ü")
	var none sessions.Machine
	wantChanged(t, s, none, mini, true)
	wantChanged(t, s, none, mac, true)
	wantMachines(t, s, mac, mini) // in the order in which they joined
	was := mini
	mini.Name, mini.Body = "studio", nil
	wantChanged(t, s, none, mini, false) // it is there
	wantChanged(t, s, was, mini, true)
	wantChanged(t, s, was, was, false) // it has changed since
	wantMachines(t, s, mac, mini)
	was, mini.Body = mini, []byte("{}")
	wantChanged(t, s, was, mini, true)
	wantChanged(t, s, was, mini, false)
	wantMachines(t, s, mac, mini)
	for i, want := range []bool{true, false} {
		if ok, err := s.DropMachine(t.Context(), mac.Key); err != nil || ok != want {
			t.Fatalf("dropped for the %d. time: %v, %v", i+1, ok, err)
		}
	}
	wantChanged(t, s, mac, mac, false) // it was dropped since
	wantMachines(t, s, mini)
}

func testNoMachines(t *testing.T, s Store) {
	short, nameless, large, torn := machine(1, "a"), machine(1, ""), machine(1, "a"), machine(1, "a")
	short.Key = short.Key[:31]
	large.Body = append(bytes.Repeat([]byte(" "), sessions.MaxMachine), "{}"...)
	torn.Body = []byte(`{"a"`)
	for _, m := range []sessions.Machine{short, nameless, large, torn} {
		if _, err := s.ChangeMachine(t.Context(), sessions.Machine{}, m); err == nil {
			t.Errorf("kept %q with a key of %d and a body of %d bytes", m.Name, len(m.Key), len(m.Body))
		}
	}
	wantMachines(t, s)
}
