package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"switchboard/handoff"
)

// A grantor is what let the sender of a request in, as [handoff.Grant.By] names it: the sum of a key, or of a login's
// token, which lets nobody in.
type grantor struct {
	kind string
	sum  [sha256.Size]byte
}

const (
	grantorKey    = "key"
	grantorSecret = "secret" // made with a key
	grantorLogin  = "login"
)

// and names the grantor in a grant that it led to.
func (e grantor) and(g handoff.Grant, err error) (handoff.Grant, error) {
	g.By = e.kind + " " + hex.EncodeToString(e.sum[:])
	return g, err
}

// parseGrantor reads a name of a grantor.
func parseGrantor(by string) (e grantor, ok bool) {
	kind, text, _ := strings.Cut(by, " ")
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != len(e.sum) {
		return e, false
	}
	return grantor{kind, [sha256.Size]byte(sum)}, true
}

// Again returns what the holder of what once made a grant for a caller may do now, by its By. Errors have code
// [handoff.CodeUnauthorized] where that is over, or are of the store.
func (s *Server) Again(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
	g, err := s.auth.again(ctx, by, c)
	if err == nil {
		g.Revoked = func() error {
			_, err := s.auth.again(context.WithoutCancel(ctx), by, c)
			if err != nil && handoff.AsError(err).Code == handoff.CodeUnauthorized {
				return err
			}
			return nil
		}
	}
	return g, err
}

func (a *auth) again(ctx context.Context, by string, c handoff.Caller) (g handoff.Grant, err error) {
	e, ok := parseGrantor(by)
	key, known := a.keyOf(e.sum, c.Principal)
	switch {
	case !ok:
	case e.kind == grantorKey && known:
		g = key.grant()
	case e.kind == grantorSecret && known:
		g = secretGrant(key.grant())
	case e.kind == grantorLogin:
		l, there, err := a.logins.Login(ctx, e.sum)
		if err != nil {
			return g, err
		}
		if there && l.Principal == c.Principal && a.stands(l, time.Now()) {
			key, _ = a.behind(originOf(l))
			g = key.loginGrant()
		}
	}
	if g.Caller.Principal == "" || g.Caller != c && !key.NamesCallers {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "what let the call in is over")
	}
	g.Caller, g.By = c, by
	return g, nil
}
