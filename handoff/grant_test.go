package handoff

import "testing"

// TestMayJoin: a call is joined with the key that began it, since another key of the principal may allow less. A client
// secret joins only calls of client secrets, and a key whose yes does not count joins no call in which a yes counts.
func TestMayJoin(t *testing.T) {
	me := Caller{Principal: "owner"}
	key, other := Grant{Caller: me, Key: "a"}, Grant{Caller: me, Key: "b"}
	// by a link: the key may allow less
	page := Grant{Caller: me, Key: "a", Approve: ApproveAll, Page: true}
	voice := Grant{Caller: me, Key: "a", Approve: ApproveVoice}
	secret := Grant{Caller: me, Key: "a", Secret: true}
	for _, tt := range []struct {
		name     string
		call, by Grant
		want     bool
	}{
		{"the same key", key, key, true},
		{"another key", key, other, false},
		{"its key, and a call of a secret", secret, key, true},
		{"a secret, and a call of a secret", secret, secret, true},
		{"a secret, and a call of its key", key, secret, false},
		{"a key without a yes, and a call of the page", page, key, false},
		{"a key with a yes, and a call of the page", page, voice, true},
		{"the page, and a call of the key", key, page, true},
		{"somebody else", key, Grant{Caller: Caller{Principal: "x"}, Key: "a"}, false},
	} {
		if got := tt.call.MayJoin(tt.by); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestMayEnd: a call is ended by its caller; the call of a nameless caller by any holder of its key.
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
