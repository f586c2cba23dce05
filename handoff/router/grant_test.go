package router

import (
	"fmt"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// TestMayJoin: a call is joined with the key that began it, since another key of the principal may allow less. A client
// secret joins only calls of client secrets, and a key whose yes does not count joins no call in which a yes counts.
func TestMayJoin(t *testing.T) {
	me := handoff.Caller{Principal: "owner"}
	key, other := handoff.Grant{Caller: me, Key: "a"}, handoff.Grant{Caller: me, Key: "b"}
	// by a link: the key may allow less
	page := handoff.Grant{Caller: me, Key: "a", Approve: handoff.ApproveAll, Page: true}
	voice := handoff.Grant{Caller: me, Key: "a", Approve: handoff.ApproveVoice}
	secret := handoff.Grant{Caller: me, Key: "a", Secret: true}
	for _, tt := range []struct {
		name     string
		call, by handoff.Grant
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
		{"somebody else", key, handoff.Grant{Caller: handoff.Caller{Principal: "x"}, Key: "a"}, false},
	} {
		if got := tt.call.MayJoin(tt.by); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestMayEnd: a call is ended by its caller; the call of a nameless caller by any holder of its key.
func TestMayEnd(t *testing.T) {
	grant := func(principal, user, key string) handoff.Grant {
		return handoff.Grant{Caller: handoff.Caller{Principal: principal, User: user}, Key: key}
	}
	for _, tt := range []struct {
		call, by handoff.Grant
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

// TestOwnersAreBounded: a thread keeps its first owner, and the oldest threads are forgotten.
func TestOwnersAreBounded(t *testing.T) {
	r := NewRouter(Config{Caller: ladderCaller})
	a, b := handoff.Caller{Principal: "a"}, handoff.Caller{Principal: "b"}
	for i := range ledger.MaxOwned + 1 {
		r.cfg.Owners.add(a, handoff.Target{Server: "s", Project: "p", Thread: fmt.Sprint(i)})
	}
	last := fmt.Sprint(ledger.MaxOwned)
	r.cfg.Owners.add(b, handoff.Target{Server: "s", Thread: last})
	if !r.cfg.Owners.Hidden(b, "s", last) || r.cfg.Owners.Hidden(b, "s", "0") ||
		len(r.cfg.Owners.by) > ledger.MaxOwned || len(r.cfg.Owners.by) != len(r.cfg.Owners.order) {
		t.Errorf("%d are kept", len(r.cfg.Owners.by))
	}
}
