package web

import (
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/sessions"
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

// TestCodesAreNotGuessed: five wrong codes void all waiting codes, but not later ones. A text that cannot be a code,
// and a right code, do not count as wrong.
func TestCodesAreNotGuessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = append(cfg.Keys, Key{Principal: "guest"}) })
		fresh := func(principal string) string {
			code, err := s.NewCode(t.Context(), principal)
			must(t, err)
			return code
		}
		try := func(code string) handoff.Code {
			return codeOf(t, logIn(s, handoff.Encode(map[string]string{"code": code}), nil))
		}
		first, second, guests, used := fresh("owner"), fresh("owner"), fresh("guest"), fresh("owner")
		wrong := func(n int) {
			for range n {
				if got := try("BBBBBBBB"); got != handoff.CodeLoginOver {
					t.Fatalf("a wrong code: %s", got)
				}
			}
		}
		wrong(sessions.MaxGuesses - 1)
		for range 2 * sessions.MaxGuesses {
			try("WRONG")
			try("BBBBBBBA")
		}
		tokenOf(t, s, `{"code":"`+used+`"}`, nil)
		tokenOf(t, s, `{"code":"`+first+`"}`, nil)
		late := fresh("owner")
		wrong(1)
		for _, code := range []string{second, guests} {
			if got := try(code); got != handoff.CodeLoginOver {
				t.Errorf("after %d wrong codes: %s", sessions.MaxGuesses, got)
			}
		}
		tokenOf(t, s, `{"code":"`+late+`"}`, nil)
	})
}
