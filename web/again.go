package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"switchboard/handoff"
)

// A grantor is what a request was authorised by, as in [handoff.Grant.By]: a key, or the token of a login. A client
// secret has that which it was made by, and ends with it. A grantor has only the SHA-256 of the text, which authorises
// nobody.
type grantor struct {
	kind string
	sum  [sha256.Size]byte
}

const (
	grantorKey         = "key"
	grantorLogin       = "login"
	grantorSecret      = "secret"       // a client secret that was made with a key
	grantorLoginSecret = "login-secret" // one that was made with a login
)

// sign sets the By of a grant to the grantor.
func (e grantor) sign(g handoff.Grant, err error) (handoff.Grant, error) {
	g.By = e.kind + " " + hex.EncodeToString(e.sum[:])
	return g, err
}

// parseGrantor parses [handoff.Grant.By].
func parseGrantor(by string) (e grantor, ok bool) {
	kind, text, _ := strings.Cut(by, " ")
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != len(e.sum) {
		return e, false
	}
	return grantor{kind, [sha256.Size]byte(sum)}, true
}

// Again returns the present grant of a caller by the grantor of an earlier one, which is its By. The error has code
// [handoff.CodeUnauthorized] if the grantor is no longer valid; other errors are the store's.
func (s *Server) Again(ctx context.Context, by string, c handoff.Caller) (handoff.Grant, error) {
	g, err := s.auth.again(ctx, by, c)
	if err == nil {
		g.Revoked = func() error {
			_, err := s.auth.again(context.WithoutCancel(ctx), by, c)
			if handoff.CodeOf(err) == handoff.CodeUnauthorized {
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
	case e.kind == grantorLogin, e.kind == grantorLoginSecret:
		l, there, err := a.validLogin(ctx, e.sum)
		if err != nil {
			return g, err
		}
		if there && l.Principal == c.Principal {
			key, _ = a.backingKey(originOf(l))
			g = key.loginGrant(originOf(l))
		}
		if there && e.kind == grantorLoginSecret {
			key, _ = a.keyOf(key.Sum, c.Principal) // without the yes of a link
			g = secretGrant(key.grant())
		}
	}
	if g.Caller.Principal == "" || g.Caller != c && !key.NamesCallers {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "what let the call in is over")
	}
	g.Caller, g.By = c, by
	return g, nil
}
