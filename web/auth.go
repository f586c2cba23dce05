package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"time"

	"switchboard/handoff"
)

// cookieLife is how long a login lasts; it is not renewed by use.
const cookieLife = 30 * 24 * time.Hour

// Cookies are not kept apart by port, so the name carries it: two Switchboards on one machine do not log
// each other out. Over TLS the prefix makes browsers refuse one set by a sibling host.
const (
	plainCookie  = "switchboard-"
	secureCookie = "__Host-switchboard"
)

// protocolKey is how browsers carry a key to a WebSocket, as OpenAI's clients do.
const protocolKey = "openai-insecure-api-key."

// auth knows the keys and signs login cookies. Set once.
type auth struct {
	keys   []Key
	secret []byte
	plain  string // name of the cookie without TLS
}

func newAuth(cfg Config) auth {
	a := auth{keys: cfg.Keys, secret: cfg.CookieSecret, plain: plainCookie + portOf(cfg.Listen)}
	if len(a.secret) == 0 {
		sum := sha256.New()
		sum.Write([]byte("switchboard login cookie v1"))
		for _, k := range cfg.Keys {
			sum.Write(k.Sum[:])
		}
		a.secret = sum.Sum(nil)
	}
	return a
}

func portOf(listen string) string {
	return listen[strings.LastIndexByte(listen, ':')+1:]
}

// byText finds the key with this text. Every key is compared, so that the time tells nothing.
func (a auth) byText(text string) (Key, bool) {
	sum := sha256.Sum256([]byte(text))
	var found Key
	hit := 0
	for _, k := range a.keys {
		if subtle.ConstantTimeCompare(k.Sum[:], sum[:]) == 1 {
			found, hit = k, 1
		}
	}
	return found, hit == 1 && text != ""
}

// grant tells what the sender of a request may do. A key in the request wins over a cookie, also when it is wrong.
func (a auth) grant(r *http.Request, secure bool, now time.Time) (handoff.Grant, error) {
	if text, ok := carriedKey(r); ok {
		if key, ok := a.byText(text); ok {
			return key.grantFor(r)
		}
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "wrong key")
	}
	cookie, err := r.Cookie(a.cookieName(secure))
	if err != nil {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "no key")
	}
	key, ok := a.open(cookie.Value, now)
	if !ok {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "login is over")
	}
	return key.grant(true), nil
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

func (a auth) cookieName(secure bool) string {
	if secure {
		return secureCookie
	}
	return a.plain
}

// cookie makes the login cookie of a key: a signed token that holds no part of the key.
func (a auth) cookie(key Key, secure bool, now time.Time) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName(secure), Value: a.seal(key, now.Add(cookieLife)), Path: "/",
		MaxAge: int(cookieLife / time.Second), Secure: secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// seal returns the token: the end of the login in Unix seconds (8 bytes) and its signature for this key.
func (a auth) seal(key Key, until time.Time) string {
	token := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(token, a.sign(key, token)...))
}

// open finds the key a token was made for. A key that is no longer configured opens nothing.
func (a auth) open(token string, now time.Time) (Key, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 8+sha256.Size {
		return Key{}, false
	}
	if until := binary.BigEndian.Uint64(raw); until <= uint64(now.Unix()) {
		return Key{}, false
	}
	var found Key
	hit := false
	for _, k := range a.keys {
		if hmac.Equal(a.sign(k, raw[:8]), raw[8:]) {
			found, hit = k, true
		}
	}
	return found, hit
}

func (a auth) sign(key Key, token []byte) []byte {
	mac := hmac.New(sha256.New, a.secret)
	mac.Write(key.Sum[:])
	mac.Write([]byte(key.Principal))
	mac.Write(token)
	return mac.Sum(nil)
}
