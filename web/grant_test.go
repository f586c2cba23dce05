package web

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestGrant: a request may do what its key says; the page's login may also do what takes a person.
func TestGrant(t *testing.T) {
	limited := NewKey("assistant", otherKey)
	limited.Servers, limited.Tools = []string{"helper"}, []string{handoff.ToolCodex}
	limited.Limits, limited.KeyLimits = handoff.Limits{Calls: 2}, handoff.Limits{Calls: 9}
	a := newAuth(Config{Keys: []Key{NewKey("owner", ownerKey), limited}, Listen: "127.0.0.1:8080"})
	now := time.Unix(1_800_000_000, 0)
	for name, cookie := range map[string]bool{"by its key": false, "by its login": true} {
		t.Run(name, func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodGet, "/", nil)
			if cookie {
				r.AddCookie(a.cookie(limited, false, now))
			} else {
				r.Header.Set("Authorization", "Bearer "+otherKey)
			}
			g, err := a.grant(r, false, now)
			if err != nil {
				t.Fatal(err)
			}
			if g.Caller.Principal != "assistant" || !slices.Equal(g.Servers, limited.Servers) || !slices.Equal(g.Tools, limited.Tools) {
				t.Errorf("grant %+v", g)
			}
			if g.Key != limited.name() || len(g.Key) != 12 || g.Limits != limited.Limits || g.KeyLimits != limited.KeyLimits {
				t.Errorf("limits of %+v", g)
			}
			if g.Page != cookie || g.Instructions != cookie || g.Approve {
				t.Errorf("page %v, instructions %v, approve %v", g.Page, g.Instructions, g.Approve)
			}
		})
	}
}
