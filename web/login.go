package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	loginLife   = 30 * 24 * time.Hour // not renewed by use
	loginUsed   = time.Minute         // the least time between two records of a login's use
	maxLogins   = 64                  // of one key, or of the links of a principal; the least recently used are dropped
	tokenPrefix = "login_"            // marks tokens, so that not every wrong key costs a query of the store
	tokenBytes  = 32
	minNonce    = 22 // characters: 16 bytes
	maxNonce    = 128
	maxDevice   = 200
)

// proofDomain separates the HMACs of proofs from other uses.
const proofDomain = "switchboard login proof v1"

// loginInfo is a login in a list.
type loginInfo struct {
	ID     string    `json:"id"`
	Host   string    `json:"host"`
	Device string    `json:"device,omitempty"`
	Made   time.Time `json:"made"`
	Used   time.Time `json:"used"`
	Ends   time.Time `json:"ends"`
	This   bool      `json:"this,omitempty"` // the login of the request
}

// logins serves the logins of pages.
type logins struct {
	auth  *auth // Set once
	store interface {
		Logins
		LoginList
	} // Set once
	publicURL string    // Set once: the page's address for other devices, or ""
	wrong     *slowdown // Set once
}

// create makes a login, and answers its token, for a key or for the code of a link. The token is valid only at this
// Host.
func (p logins) create(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	var body struct {
		Key  string `json:"key"`
		Code string `json:"code"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	from := p.auth.access.from(r)
	if err := p.wrong.try(from, time.Now()); err != nil {
		return err
	}
	key, ok := p.auth.keyByText(body.Key)
	made := origin{key.Principal, key.Sum}
	switch {
	case body.Key != "" && body.Code != "":
		return handoff.Fault(handoff.CodeMalformed, "there is either a key or a code", "")
	case body.Code != "":
		code, there, err := p.auth.codes.spend(r.Context(), body.Code)
		if there && err == nil && code.Login != ([sha256.Size]byte{}) {
			_, there, err = p.auth.validLogin(r.Context(), code.Login)
		}
		if err != nil {
			p.wrong.wasRight(from) // nobody knows
			return err
		}
		made, ok = origin{code.Principal, code.Key}, there
		if !ok {
			return handoff.Fault(handoff.CodeLoginOver, "", "code is spent, old or unknown")
		}
	case !ok:
		return handoff.Fault(handoff.CodeUnauthorized, "", "wrong key at the login")
	}
	p.wrong.wasRight(from)
	switch _, ok := p.auth.backingKey(made); {
	case !ok && body.Code != "":
		return handoff.Fault(handoff.CodeLoginOver, "", "the key of the code is gone")
	case !ok:
		return handoff.Fault(handoff.CodeNotGranted, "it names its callers, and a page has nobody to name", "")
	}
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	now := time.Now()
	l := sessions.Login{
		ID: strings.ToLower(rand.Text()[:12]), Sum: sha256.Sum256([]byte(token)), Principal: made.principal, Key: made.key,
		Host: p.auth.access.hostOf(r), Device: device(r.UserAgent()), Made: now, Used: now, Ends: now.Add(loginLife),
	}
	if err := p.store.PutLogin(r.Context(), l); err != nil {
		return err
	}
	p.dropOldLogins(r, made)
	return writeJSON(
		w, http.StatusOK, map[string]any{"token": token, "id": l.ID, "principal": l.Principal, "ends": l.Ends},
	)
}

// device returns a browser's User-Agent, bounded and only with printable characters.
func device(agent string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, agent[:min(len(agent), maxDevice)])
}

// dropOldLogins drops the logins of one origin above [maxLogins]; other origins are not affected, so that a program's
// logins end none of a person. After an error, the next login drops the rest.
func (p logins) dropOldLogins(r *http.Request, by origin) {
	all, err := p.store.Logins(r.Context(), by.principal)
	all = slices.DeleteFunc(all, func(l sessions.Login) bool { return originOf(l) != by })
	for i := maxLogins; err == nil && i < len(all); i++ { // the newest use comes first
		_, err = p.store.DropLogin(r.Context(), by.principal, all[i].ID)
	}
	if err != nil {
		p.auth.log.Warn("old logins not dropped", zap.Error(err))
	}
}

// proof proves to a page that we know its token, before the page sends it, because after our end another program may
// listen on our port. The page sends the id of its login, which is no secret, and a nonce. The answer is an HMAC with
// the SHA-256 of the token as its key, which only the store and the page know.
func (p logins) proof(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	var body struct {
		Principal string `json:"principal"`
		ID        string `json:"id"`
		Nonce     string `json:"nonce"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if len(body.Nonce) < minNonce || len(body.Nonce) > maxNonce {
		return handoff.Fault(handoff.CodeMalformed, "nonce has 22 to 128 characters", "")
	}
	all, err := p.store.Logins(r.Context(), body.Principal)
	if err != nil {
		return err
	}
	host := p.auth.access.hostOf(r)
	for _, l := range all {
		if l.ID == body.ID && l.Host == host && p.auth.isValid(l, time.Now()) {
			mac := hmac.New(sha256.New, l.Sum[:])
			mac.Write([]byte(proofDomain + "\n" + host + "\n" + body.Nonce))
			return writeJSON(w, http.StatusOK, map[string]string{"proof": base64.RawURLEncoding.EncodeToString(mac.Sum(nil))})
		}
	}
	return handoff.Fault(handoff.CodeUnauthorized, "", "login is over")
}

// visible returns the logins that the sender of a request may see and end, newest use first: from the page all of the
// principal, otherwise those that were made with the same key.
func (p logins) visible(r *http.Request, g handoff.Grant) ([]sessions.Login, error) {
	all, err := p.store.Logins(r.Context(), g.Caller.Principal)
	return slices.DeleteFunc(all, func(l sessions.Login) bool {
		key, ok := p.auth.backingKey(originOf(l))
		return !ok || !time.Now().Before(l.Ends) || !g.Page && (l.Key != key.Sum || key.name() != g.Key)
	}), err
}

// list lists the visible logins.
func (p logins) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.visible(r, g)
	if err != nil {
		return err
	}
	token, _ := carriedKey(r)
	mine := sha256.Sum256([]byte(token))
	items := []loginInfo{}
	for _, l := range all {
		items = append(items, loginInfo{l.ID, l.Host, l.Device, l.Made, l.Used, l.Ends, l.Sum == mine})
	}
	return writeJSON(w, http.StatusOK, listOf(items))
}

// logout ends a visible login. What it opened ends within 15 s.
func (p logins) logout(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.visible(r, g)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(l sessions.Login) bool { return l.ID == r.PathValue("id") }) {
		return handoff.Fault(handoff.CodeNotFound, "such login", "")
	}
	_, err = p.store.DropLogin(r.Context(), g.Caller.Principal, r.PathValue("id"))
	return done(w, err)
}

// deviceCode makes a code with which another device logs in. It needs a login, whose rights the other device gets.
func (p logins) deviceCode(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	l, ok, err := p.auth.login(r)
	switch {
	case err != nil:
		return err
	case !ok:
		return handoff.Fault(handoff.CodeNotGranted, "a device is added from the page", "")
	}
	text, err := p.auth.codes.make(r.Context(), originOf(l), l.Sum, time.Now())
	if err != nil {
		return err
	}
	made := map[string]any{"code": text, "ends": time.Now().Add(codeLife)}
	if p.publicURL != "" {
		made["at"] = p.publicURL
	}
	return writeJSON(w, http.StatusOK, made)
}
