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

// protocolKey is how browsers carry a key to a WebSocket, as OpenAI's clients do.
const protocolKey = "openai-insecure-api-key."

// Logins finds logins by the SHA-256 of their token, and keeps them. It does not find one that has ended.
type Logins interface {
	Login(ctx context.Context, sum [sha256.Size]byte) (sessions.Login, bool, error)
	PutLogin(ctx context.Context, l sessions.Login) error // makes or replaces, by its ID
}

// LoginList lists the logins of a principal, newest use first, and ends them.
type LoginList interface {
	Logins(ctx context.Context, principal string) ([]sessions.Login, error)
	DropLogin(ctx context.Context, principal, id string) (bool, error)
}

// auth knows who may come in: the holders of keys, and the pages that logged in.
type auth struct {
	keys    atomic.Pointer[[]Key] // replaced as a whole
	codes   codes                 // Set once
	logins  Logins                // Set once
	secrets Secrets               // Set once
	apps    oauthTokens           // Set once: nil: no program is let in by OAuth
	access  accessPolicy          // Set once
	log     *zap.Logger           // Set once
}

// NewCode makes the code of a link, <page>#login=CODE, that logs in as a principal: once, within ten
// minutes. Whoever asks for it runs the service and says that a person will use it: the login may do what the first
// of the principal's [Key]s may, and each of its answers counts. It fails for a principal without a [Key].
func (s *Server) NewCode(ctx context.Context, principal string) (string, error) {
	switch key, ok := s.auth.of(principal); {
	case ok && key.NamesCallers:
		return "", fmt.Errorf(
			"the key of %s names its callers and has no page: give %s another key first in keys", principal, principal,
		)
	case !ok:
		return "", fmt.Errorf(
			"nobody is called %s: name them in keys, or make them a key with `switchboard key %s`", principal, principal,
		)
	}
	return s.auth.codes.make(ctx, origin{principal: principal}, time.Now())
}

// SetKeys replaces the keys. Logins whose key is gone end.
func (s *Server) SetKeys(keys []Key) { s.auth.keys.Store(&keys) }

// byText finds the key with this text. Every key is compared, so that the time tells nothing.
func (a *auth) byText(text string) (Key, bool) {
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

// An origin is what a login, or a code for one, was made by, and what it counts as for as long as it lives: a key, or
// with a zero sum a link that whoever runs the service made. A code that a login makes has the login's own.
type origin struct {
	principal string
	key       [sha256.Size]byte
}

// behind finds the key that a login or a code counts as now, or false when there is none. A key that names its callers
// has no page: a page sends no caller's name, so it would show what belongs to none of them.
func (a *auth) behind(by origin) (Key, bool) {
	if by.key == ([sha256.Size]byte{}) {
		key, ok := a.of(by.principal)
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

// of finds the first key of a principal.
func (a *auth) of(principal string) (Key, bool) {
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

// stands reports whether a login counts: until its end, and as long as its key is configured.
func (a *auth) stands(l sessions.Login, now time.Time) bool {
	_, ok := a.behind(originOf(l))
	return ok && now.Before(l.Ends)
}

// grant tells what the sender of a request may do: by a key, a client secret, or the token of a login.
func (a *auth) grant(r *http.Request, now time.Time) (handoff.Grant, error) {
	text, ok := carriedKey(r)
	if !ok {
		if inside(r) {
			return a.insider(r)
		}
		return handoff.Grant{}, handoff.Fault(handoff.CodeNoKey, whereKeyIs(r), "")
	}
	if key, ok := a.byText(text); ok {
		return grantor{grantorKey, key.Sum}.and(key.grantFor(r))
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
	key, known := a.behind(originOf(l))
	if !ok || !known || !now.Before(l.Ends) || l.Host != a.access.hostOf(r) {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "login is over, or of another host")
	}
	if err := a.access.atHome(newVisitor(r)); err != nil && !forwarded(r) { // it is the page's own, under /v1/ too
		return handoff.Grant{}, err
	}
	if now.Sub(l.Used) >= loginUsed {
		l.Used = now
		if err := a.logins.PutLogin(r.Context(), l); err != nil {
			a.log.Warn("use of a login not written", zap.Error(err)) // it counts all the same
		}
	}
	return grantor{grantorLogin, l.Sum}.and(key.loginGrant(), nil)
}

// revoked reports whether what let a request in has ended since, as an error; nil: not that anybody knew.
func (a *auth) revoked(r *http.Request) error {
	if text, _ := carriedKey(r); a.isAppToken(text) {
		return a.appRevoked(r, text)
	}
	if _, err := a.grant(r, time.Now()); err != nil && handoff.AsError(err).Code == handoff.CodeUnauthorized {
		return err
	}
	return nil
}

// whereKeyIs tells where a request has its key instead: clients of other services put it elsewhere.
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

// carriedKey is the key that a request carries itself: a bearer header, or for a WebSocket a subprotocol.
// Any Authorization header counts as carried, so that a wrong one is refused.
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

// insideKey is where a request says that it came from inside, and as whom.
type insideKey struct{}

// Inside serves the same routes to whoever is trusted without a key, such as the programs of the user who runs us,
// over a socket that is closed to others. A request that brings a key counts as that key's; any other one counts as
// a program with the first of the principal's [Key]s, never as a tap on the page. Host and Origin are not checked.
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

// insider is what somebody inside may do.
func (a *auth) insider(r *http.Request) (handoff.Grant, error) {
	principal, _ := r.Context().Value(insideKey{}).(string)
	key, ok := a.of(principal)
	if !ok {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "there is no key of that name any more")
	}
	return key.grant(), nil
}
