package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestCodesAreTyped: a code is short, has letters that look different, and is accepted with spaces, hyphens and small
// letters.
func TestCodesAreTyped(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	seen := map[string]bool{}
	for range 50 {
		code, err := s.NewCode(t.Context(), "owner")
		must(t, err)
		if len(code) > 8 || strings.ContainsAny(code, "AEIOUVL0123456789") || seen[code] {
			t.Fatalf("the code %q", code)
		}
		seen[code] = true
		typed := " " + strings.ToLower(code[:4]) + " - " + code[4:] + "\t"
		tokenOf(t, s, handoff.Encode(map[string]string{"code": typed}), nil)
	}
}

// A peer is where a request comes from, and what it says about that.
type peer struct{ at, hops string }

func (p peer) adjust(r *http.Request) {
	r.RemoteAddr = p.at
	r.Header.Set("X-Forwarded-For", p.hops)
}

// TestCodesAreNotGuessed: wrong codes and keys void none of the codes that wait. An address is slowed after some, also
// for right ones; others are not, and a right one counts for nothing.
func TestCodesAreNotGuessed(t *testing.T) {
	const here, proxy = "127.0.0.1:1", "10.0.0.1:1"
	for name, row := range map[string]struct {
		wrong        string
		proxies      []netip.Prefix
		many         peer // who guesses
		most         int
		same, others []peer
	}{
		"codes": {wrong: `{"code":"BBBBBBBB"}`, many: peer{"203.0.113.1:1", "198.51.100.9"}, most: maxWrong, // no proxy: its header is not read
			same: []peer{{"203.0.113.1:2", "198.51.100.8"}}, others: []peer{{"198.51.100.9:1", ""}, {here, ""}}},
		"keys": {wrong: `{"key":"a wrong one"}`, many: peer{"[2001:db8::1]:1", ""}, most: maxWrong,
			same: []peer{{"[2001:db8::2]:1", ""}}, others: []peer{{"[2001:db8:1::]:1", ""}}},
		"what is no code": {wrong: `{"code":"WRONG"}`, many: peer{here, ""}, most: sharedShare * maxWrong,
			same: []peer{{"127.0.0.1:2", ""}}, others: []peer{{here, "203.0.113.1"}}},
		"behind a proxy": {wrong: `{"code":"BBBBBBBB"}`, proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			many: peer{proxy, "203.0.113.9, 198.51.100.1, 10.0.0.2"}, most: maxWrong,
			same: []peer{{proxy, "203.0.113.7, 198.51.100.1"}}, others: []peer{{proxy, "203.0.113.9"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, newWorld(), func(cfg *Config) { cfg.TrustedProxies = row.proxies })
				fresh := func() string {
					code, err := s.NewCode(t.Context(), "owner")
					must(t, err)
					return `{"code":"` + code + `"}`
				}
				try := func(body string, by peer) handoff.Code { return codeOf(t, logIn(s, body, by.adjust)) }
				waiting := fresh()
				for range 2 * maxWrong {
					tokenOf(t, s, fresh(), row.others[0].adjust)
				}
				for range row.most {
					if got := try(row.wrong, row.many); got != handoff.CodeLoginOver && got != handoff.CodeUnauthorized {
						t.Fatalf("a wrong one: %s", got)
					}
				}
				for _, by := range append(row.same, row.many) {
					if got := try(waiting, by); got != handoff.CodeLimited {
						t.Errorf("after %d wrong ones from there: %q", row.most, got)
					}
				}
				for _, by := range row.others {
					tokenOf(t, s, fresh(), by.adjust)
				}
				time.Sleep(wrongEvery)
				tokenOf(t, s, waiting, row.many.adjust)
			})
		})
	}
}

// TestSlowdownIsBounded: however many addresses try, few are remembered, and the one that tries most is among them.
func TestSlowdownIsBounded(t *testing.T) {
	var s slowdown
	at, now := netip.MustParseAddr("198.51.100.1"), time.Now()
	for range maxWrong {
		must(t, s.try(at, now))
	}
	for n := range uint32(maxSlowed + 100) {
		must(t, s.try(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), now))
	}
	if len(s.until) != maxSlowed || s.try(at, now) == nil {
		t.Errorf("%d are remembered", len(s.until))
	}
}
