package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"switchboard/handoff"
	"switchboard/realtime"
	"switchboard/sessions"
)

const (
	secretPrefix  = "ek_" // OpenAI's clients in browsers require it
	secretLife    = 10 * time.Minute
	minSecretLife = 10 * time.Second
	maxSecretLife = 2 * time.Hour
	maxSecretBody = 80 << 10
	maxConfigured = 64 << 10 // bytes of the session configuration of a secret
)

// Secrets stores client secrets, and finds them by the SHA-256 of their text. It does not find expired ones. PutSecret
// reports false if the principal has too many.
type Secrets interface {
	PutSecret(ctx context.Context, s sessions.Secret) (bool, error)
	Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error)
}

// clientSecrets makes client secrets, and counts them.
type clientSecrets struct {
	auth  *auth   // Set once
	store Secrets // Set once
	model string  // Set once: the default model of a session

	made, refused atomic.Uint64
}

// create makes a secret with which a page can begin calls as the same caller for a while, so that it needs no key. The
// secret allows nothing else.
func (c *clientSecrets) create(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	life, session, err := readSecretOrder(r.Body)
	if err != nil {
		return err
	}
	key, ok := c.auth.find(func(k Key) bool { return k.Principal == g.Caller.Principal && k.name() == g.Key })
	if !ok { // the key was removed just now
		return handoff.Fault(handoff.CodeUnauthorized, "", "the key is gone")
	}
	user, err := endUser(r)
	if err != nil {
		return err
	}
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails
	text := secretPrefix + base64.RawURLEncoding.EncodeToString(raw)
	ends := time.Now().Add(life).Truncate(time.Second)
	kept, err := c.store.PutSecret(r.Context(), sessions.Secret{
		Sum: sha256.Sum256([]byte(text)), Principal: key.Principal, Key: key.Sum, Login: loginOf(g), User: user,
		Session: session, Ends: ends,
	})
	if err != nil {
		return err
	}
	if !kept {
		c.refused.Add(1)
		return &handoff.Error{
			Code: handoff.CodeLimited, Subject: strconv.Itoa(sessions.MaxSecrets) + " client secrets that have not ended",
			Retry: minSecretLife,
		}
	}
	c.made.Add(1)
	return writeJSON(w, http.StatusOK, map[string]any{
		"value": text, "expires_at": ends.Unix(), "session": json.RawMessage(realtime.ShowSession(session, c.model)),
	})
}

// loginOf returns the sum of the login that a grant was made by; zero: it was no login.
func loginOf(g handoff.Grant) (sum [sha256.Size]byte) {
	if by, ok := parseGrantor(g.By); ok && by.kind == grantorLogin {
		sum = by.sum
	}
	return sum
}

// endUser returns the end user that a request names, or "". The error has code [handoff.CodeMalformed].
func endUser(r *http.Request) (string, error) {
	names := r.Header.Values(callerHeader)
	switch {
	case len(names) == 0:
		return "", nil
	case len(names) > 1 || !callerName.MatchString(names[0]):
		return "", handoff.Malformed(
			callerHeader,
			callerHeader+" is one name of at most 128 of A-Z a-z 0-9 . _ @ : + = | -, beginning with a letter or figure",
		)
	}
	return names[0], nil
}

// readSecretOrder reads the request for a secret: how long it is valid, and its session, a JSON object. Errors have
// code [handoff.CodeMalformed] and a param.
func readSecretOrder(from io.Reader) (life time.Duration, session []byte, err error) {
	var body struct {
		ExpiresAfter *struct {
			Anchor  string      `json:"anchor"`
			Seconds json.Number `json:"seconds"`
		} `json:"expires_after"`
		Session json.RawMessage `json:"session"`
	}
	life, session = secretLife, []byte("{}")
	if err := decode(from, &body); err != nil {
		return 0, nil, err
	}
	if after := body.ExpiresAfter; after != nil {
		if after.Anchor != "" && after.Anchor != "created_at" {
			return 0, nil, handoff.Malformed("expires_after.anchor", "expires_after.anchor is created_at")
		}
		if after.Seconds != "" {
			n, err := strconv.Atoi(after.Seconds.String())
			life = time.Duration(n) * time.Second
			if err != nil || n > int(maxSecretLife/time.Second) || life < minSecretLife {
				return 0, nil, handoff.Malformed("expires_after.seconds", "expires_after.seconds is a whole number from 10 to 7200")
			}
		}
	}
	if len(body.Session) > 0 && string(body.Session) != "null" {
		session = body.Session
	}
	if len(session) > maxConfigured {
		return 0, nil, handoff.Malformed("session", "a session has at most "+strconv.Itoa(maxConfigured)+" bytes here")
	}
	if fault := realtime.CheckSession(session); fault != nil {
		return 0, nil, fault
	}
	return life, session, nil
}

// bySecret returns the grant for a client secret: to begin calls, as the caller for whom it was made and with its
// session. An end user that the request names is ignored.
func (a *auth) bySecret(r *http.Request, text string, now time.Time) (handoff.Grant, error) {
	// The check of the length saves a query of the store for a wrong key.
	if len(text) != len(secretPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return handoff.Grant{}, handoff.Fault(handoff.CodeSecretOver, "", "")
	}
	secret, ok, err := a.secrets.Secret(r.Context(), sha256.Sum256([]byte(text)))
	if err != nil {
		return handoff.Grant{}, err
	}
	key, known := a.keyOf(secret.Key, secret.Principal)
	by, stands := grantor{grantorSecret, key.Sum}, true
	if secret.Login != ([sha256.Size]byte{}) {
		by = grantor{grantorLoginSecret, secret.Login}
		if _, stands, err = a.validLogin(r.Context(), secret.Login); err != nil {
			return handoff.Grant{}, err
		}
	}
	if !ok || !known || !stands || !now.Before(secret.Ends) {
		return handoff.Grant{}, handoff.Fault(handoff.CodeSecretOver, "", "")
	}
	r.Header.Del(callerHeader)
	if secret.User != "" {
		r.Header.Set(callerHeader, secret.User)
	}
	g, err := by.sign(key.grantFor(r))
	if err != nil {
		return handoff.Grant{}, err
	}
	g = secretGrant(g)
	g.Session = secret.Session
	return g, nil
}

// secretGrant returns the grant of a client secret that was made with a grant: to begin calls, and nothing else.
func secretGrant(g handoff.Grant) handoff.Grant {
	g.Approve = min(g.Approve, handoff.ApproveVoice)
	g.Metrics, g.Secret = false, true
	return g
}
