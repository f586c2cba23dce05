package web

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"switchboard/sessions"
)

func (w *world) PutCode(_ context.Context, c sessions.Code) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = append(w.codes, c)
	mine := func(k sessions.Code) bool { return k.Principal == c.Principal && k.Key == c.Key }
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
	w.codes = slices.DeleteFunc(w.codes, func(k sessions.Code) bool { return !time.Now().Before(k.Ends) })
	if i := slices.IndexFunc(w.codes, func(k sessions.Code) bool { return k.Sum == sum }); i >= 0 {
		c := w.codes[i]
		w.codes = slices.Delete(w.codes, i, i+1)
		return c, true, w.failLogins
	}
	return sessions.Code{}, false, w.failLogins
}

func (w *world) UseLogin(_ context.Context, l sessions.Login, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.kept, func(k sessions.Login) bool { return k.ID == l.ID })
	if i >= 0 && w.failLogins == nil {
		l.Used = at
		w.kept = slices.Insert(slices.Delete(w.kept, i, i+1), 0, l)
	}
	return w.failLogins
}
