package handoff

import "testing"

// TestMayEnd: a call is ended by its caller; one that nobody named by whoever has its key.
func TestMayEnd(t *testing.T) {
	grant := func(principal, user, key string) Grant {
		return Grant{Caller: Caller{Principal: principal, User: user}, Key: key}
	}
	for _, tt := range []struct {
		call, by Grant
		want     bool
	}{
		{grant("owner", "", "k"), grant("owner", "", "another"), true},
		{grant("owner", "", "k"), grant("other", "", "k"), false},
		{grant("many", "alice", "k"), grant("many", "alice", "k"), true},
		{grant("many", "alice", "k"), grant("many", "bob", "k"), false},
		{grant("many", "alice", "k"), grant("many", "~1", "k"), false},
		{grant("many", "~1", "k"), grant("many", "alice", "k"), false},
		{grant("many", "~1", "k"), grant("many", "~2", "k"), true},
		{grant("many", "~1", "k"), grant("many", "~2", "another"), false},
	} {
		if got := tt.call.MayEnd(tt.by); got != tt.want {
			t.Errorf("%v ended by %v: %v", tt.call.Caller, tt.by.Caller, got)
		}
	}
}
