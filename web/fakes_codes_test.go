package web

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"switchboard/sessions"
)

// A waitingCode is a code of a login with the wrong ones that were tried meanwhile.
type waitingCode struct {
	sessions.Code
	guesses int
}

func (w *world) PutCode(_ context.Context, c sessions.Code) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = append(w.codes, waitingCode{Code: c})
	mine := func(k waitingCode) bool { return k.Principal == c.Principal && k.Key == c.Key }
	n := 0
	for _, k := range w.codes {
		if mine(k) {
			n++
		}
	}
	if n > sessions.MaxCodes {
		i := slices.IndexFunc(w.codes, mine)
		w.codes = slices.Delete(w.codes, i, i+1)
	}
	return w.failLogins
}

func (w *world) SpendCode(_ context.Context, sum [sha256.Size]byte) (sessions.Code, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = slices.DeleteFunc(w.codes, func(k waitingCode) bool { return !time.Now().Before(k.Ends) })
	if i := slices.IndexFunc(w.codes, func(k waitingCode) bool { return k.Sum == sum }); i >= 0 {
		c := w.codes[i].Code
		w.codes = slices.Delete(w.codes, i, i+1)
		return c, true, w.failLogins
	}
	for i := range w.codes {
		w.codes[i].guesses++
	}
	w.codes = slices.DeleteFunc(w.codes, func(k waitingCode) bool { return k.guesses >= sessions.MaxGuesses })
	return sessions.Code{}, false, w.failLogins
}
