package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// protocolKey is the prefix of the subprotocol with which browsers send a key to a WebSocket, as OpenAI's clients do.
const protocolKey = "openai-insecure-api-key."

// Logins finds logins by the SHA-256 of their token, and stores them. It does not find expired ones.
type Logins interface {
	Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error)
	PutLogin(ctx context.Context, l sessions.Login) error
	// UseLogin sets when a login was used last, if it is still there.
	UseLogin(ctx context.Context, l sessions.Login, at time.Time) error
}

// LoginList lists the logins of a principal, newest use first, and ends them.
type LoginList interface {
	Logins(ctx context.Context, principal string) ([]sessions.Login, error)
	DropLogin(ctx context.Context, principal, id string) (bool, error)
}

// auth finds out what the sender of a request may do: by a key, a login, a client secret or a token of OAuth.
type auth struct {
	keys    atomic.Pointer[[]Key] // replaced as a whole
	codes   codes                 // Set once
	logins  Logins                // Set once
	secrets Secrets               // Set once
	apps    oauthTokens           // Set once; nil without OAuth
	access  accessPolicy          // Set once
	log     *zap.Logger           // Set once
}

// NewCode makes the code of a link, <page>#login=CODE, that logs in as a principal: once, within ten minutes. It must
// be called only for somebody who runs the service, and vouches that a person will use the link: the login may do what
// the first [Key] of the principal allows, and all its answers to questions count. It fails for a principal without a
// [Key].
func (s *Server) NewCode(ctx context.Context, principal string) (string, error) {
	switch key, ok := s.auth.firstKey(principal); {
	case ok && key.NamesCallers:
		return "", fmt.Errorf(
			"the key of %s names its callers and has no page: give %s another key first in keys", principal, principal,
		)
	case !ok:
		return "", fmt.Errorf(
			"nobody is called %s: name them in keys, or make them a key with `switchboard key %s`", principal, principal,
		)
	}
	return s.auth.codes.make(ctx, origin{principal: principal}, [sha256.Size]byte{}, time.Now())
}

// SetKeys replaces the keys. Logins of removed keys end.
func (s *Server) SetKeys(keys []Key) { s.auth.keys.Store(&keys) }

// keyByText finds the key with this text. It compares every key, so that the time it takes reveals nothing.
func (a *auth) keyByText(text string) (Key, bool) {
	sum := sha256.Sum256([]byte(text))
	var found Key
	hit := 0
	for _, k := range *a.keys.Load() {
		if subtle.ConstantTimeCompare(k.Sum[:], sum[:]) == 1 {
			found, hit = k, 1
		}
	}
	return found, hit == 1 && text != ""
}

// An origin is what a login, or a code for one, was made with, and gets its rights from: a key, or with a zero sum a
// link by somebody who runs the service. A code that a login makes has the same origin as the login.
type origin struct {
	principal string
	key       [sha256.Size]byte
}

// linked reports whether it is a link by somebody who runs the service.
func (o origin) linked() bool { return o.key == ([sha256.Size]byte{}) }

// backingKey returns the key that a login or a code gets its rights from now, or false if there is none. A key that
// names its callers has no page, because a page sends no caller's name.
func (a *auth) backingKey(by origin) (Key, bool) {
	if by.linked() {
		key, ok := a.firstKey(by.principal)
		key.Approve = handoff.ApproveAll
		return key, ok && !key.NamesCallers
	}
	key, ok := a.keyOf(by.key, by.principal)
	return key, ok && !key.NamesCallers
}

// login finds the login whose token a request carries.
func (a *auth) login(r *http.Request) (sessions.Login, bool, error) {
	text, _ := carriedKey(r)
	if !strings.HasPrefix(text, tokenPrefix) {
		return sessions.Login{}, false, nil
	}
	return a.logins.Login(r.Context(), sha256.Sum256([]byte(text)))
}

func originOf(l sessions.Login) origin { return origin{l.Principal, l.Key} }

// firstKey returns the first key of a principal.
func (a *auth) firstKey(principal string) (Key, bool) {
	return a.find(func(k Key) bool { return k.Principal == principal })
}

// keyOf finds a key of a principal by its sum.
func (a *auth) keyOf(sum [sha256.Size]byte, principal string) (Key, bool) {
	return a.find(func(k Key) bool { return k.Sum == sum && k.Principal == principal })
}

func (a *auth) find(is func(Key) bool) (Key, bool) {
	keys := *a.keys.Load()
	if i := slices.IndexFunc(keys, is); i >= 0 {
		return keys[i], true
	}
	return Key{}, false
}

// isValid reports whether a login is valid: it has not expired, and its key exists.
func (a *auth) isValid(l sessions.Login, now time.Time) bool {
	_, ok := a.backingKey(originOf(l))
	return ok && now.Before(l.Ends)
}

// LoginGrant returns what a login may do now; false: it has expired, or its key was removed.
func (s *Server) LoginGrant(l sessions.Login) (handoff.Grant, bool) {
	key, _ := s.auth.backingKey(originOf(l))
	return key.loginGrant(originOf(l)), s.auth.isValid(l, time.Now())
}

// validLogin returns the login whose token has a sum, if it is valid.
func (a *auth) validLogin(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error) {
	l, ok, err := a.logins.Login(ctx, sum)
	return l, ok && err == nil && a.isValid(l, time.Now()), err
}

// grant returns what the sender of a request may do.
func (a *auth) grant(r *http.Request, now time.Time) (handoff.Grant, error) {
	text, ok := carriedKey(r)
	if !ok {
		if inside(r) {
			return a.insideGrant(r.Context())
		}
		return handoff.Grant{}, handoff.Fault(handoff.CodeNoKey, whereKeyIs(r), "")
	}
	if key, ok := a.keyByText(text); ok {
		return grantor{grantorKey, key.Sum}.sign(key.grantFor(r))
	}
	if strings.HasPrefix(text, secretPrefix) {
		return a.bySecret(r, text, now)
	}
	if a.isAppToken(text) {
		return a.byApp(r, text)
	}
	if !strings.HasPrefix(text, tokenPrefix) {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "wrong key")
	}
	l, ok, err := a.logins.Login(r.Context(), sha256.Sum256([]byte(text)))
	if err != nil {
		return handoff.Grant{}, err
	}
	key, known := a.backingKey(originOf(l))
	if !ok || !known || !now.Before(l.Ends) || l.Host != a.access.hostOf(r) {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "login is over, or of another host")
	}
	// Only our own page has a login, so its Host and Origin are checked for the API, too.
	if err := a.access.checkPage(newVisitor(r)); err != nil && !forwarded(r) {
		return handoff.Grant{}, err
	}
	if now.Sub(l.Used) >= loginUsed {
		if err := a.logins.UseLogin(r.Context(), l, now); err != nil {
			a.log.Warn("use of a login not written", zap.Error(err)) // the login is still valid
		}
	}
	return grantor{grantorLogin, l.Sum}.sign(key.loginGrant(originOf(l)), nil)
}

// revoked returns [handoff.Grant.Revoked] for a request. It may be called after the request has ended.
func (a *auth) revoked(r *http.Request, g handoff.Grant) func() error {
	ctx := context.WithoutCancel(r.Context())
	stands := func() error { _, err := a.again(ctx, g.By, g.Caller); return err }
	switch text, _ := carriedKey(r); {
	case g.By != "": // a key's, which may begin like a token, or a login's
	case a.isAppToken(text):
		stands = func() error { return a.appStands(ctx, text) }
	default:
		stands = func() error { _, err := a.insideGrant(ctx); return err }
	}
	return func() error {
		if err := stands(); handoff.CodeOf(err) == handoff.CodeUnauthorized {
			return err
		}
		return nil // also if the store does not tell
	}
}

// whereKeyIs describes where a request without a bearer header may have its key instead: clients of other services send
// keys in other places.
func whereKeyIs(r *http.Request) string {
	for _, name := range []string{"api-key", "x-api-key"} {
		if r.Header.Get(name) != "" {
			return "the header " + name + " is not read"
		}
	}
	for _, name := range []string{"api-key", "api_key", "apikey", "key", "access_token", "token"} {
		if r.URL.Query().Has(name) {
			return "what stands in the address ends in logs, so no key is read there"
		}
	}
	return "it has none"
}

// carriedKey returns the key that a request carries itself: in a bearer header, or for a WebSocket in a subprotocol. It
// reports true for any Authorization header, so that a wrong one is refused.
func carriedKey(r *http.Request) (string, bool) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, text, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return "", true
		}
		return strings.TrimSpace(text), true
	}
	if !isUpgrade(r) {
		return "", false
	}
	for _, value := range r.Header.Values("Sec-WebSocket-Protocol") {
		for protocol := range strings.SplitSeq(value, ",") {
			if text, ok := strings.CutPrefix(strings.TrimSpace(protocol), protocolKey); ok {
				return text, true
			}
		}
	}
	return "", false
}

// insideKey is the context key of the principal of a request that came by [Server.Inside].
type insideKey struct{}

// Inside serves the same routes to clients that are trusted without a key, such as programs of the user who runs the
// service, over a socket that is closed to others. A request with a key has the rights of that key. A request without
// one has those of a program with the first [Key] of the principal, never those of a person at the page. Host and
// Origin are not checked.
func (s *Server) Inside(principal string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), insideKey{}, principal)))
	})
}

// inside reports whether a request came by [Server.Inside].
func inside(r *http.Request) bool {
	_, ok := r.Context().Value(insideKey{}).(string)
	return ok
}

// insideGrant returns the grant of a request that came by [Server.Inside] without a key.
func (a *auth) insideGrant(ctx context.Context) (handoff.Grant, error) {
	principal, _ := ctx.Value(insideKey{}).(string)
	key, ok := a.firstKey(principal)
	if !ok {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "there is no key of that name any more")
	}
	return key.grant(), nil
}
