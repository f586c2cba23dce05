package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// maxForm bounds a request for tokens, in bytes.
const maxForm = 8 << 10

// verifierForm matches a PKCE verifier (RFC 7636, 4.1).
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// A denial is why a client gets no tokens (RFC 6749, 5.2).
type denial struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
	status      int
}

func denied(code, description string) *denial {
	return &denial{code, description, http.StatusBadRequest}
}

// ended returns the same denial for every invalid code or refresh token, so that it reveals nothing.
func ended() *denial {
	return denied("invalid_grant", "the code or refresh token is wrong, used or too old")
}

// A tokens is the answer to a successful request for tokens (RFC 6749, 5.1).
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// ServeToken answers a request for tokens with a code or a refresh token. It answers mistakes of the client itself, and
// returns other errors.
func (s *Server) ServeToken(w http.ResponseWriter, r *http.Request) error {
	granted, wrong, err := s.token(r)
	if err != nil {
		return err
	}
	if wrong != nil {
		s.counts.Add(wasDenied)
		s.cfg.Log.Info("tokens refused", zap.String("error", wrong.Code))
		if wrong.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		answer(w, wrong.status, wrong)
		return nil
	}
	answer(w, http.StatusOK, granted)
	return nil
}

func (s *Server) token(r *http.Request) (tokens, *denial, error) {
	if !s.tokens.Allow() {
		return tokens{}, &denial{"temporarily_unavailable", "too many requests", http.StatusTooManyRequests}, nil
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return tokens{}, denied("invalid_request", "the body is not a form"), nil
	}
	form, err := values(string(body), maxForm)
	if err != nil {
		return tokens{}, denied("invalid_request", handoff.AsError(err).Spoken()), nil
	}
	if form.Get("client_id") == "" || form.Has("client_secret") || form.Has("client_assertion") ||
		r.Header.Get("Authorization") != "" { // some clients try this first; the code is still unused
		return tokens{}, &denial{"invalid_client", "clients name themselves by client_id alone", http.StatusUnauthorized}, nil
	}
	if form.Has("resource") && !oauthex.MatchesResource(form["resource"], s.resource()) {
		return tokens{}, denied("invalid_target", "tokens are for "+s.resource()), nil
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		return s.exchange(r.Context(), form, form.Get("code"), codeMark)
	case "refresh_token":
		return s.exchange(r.Context(), form, form.Get("refresh_token"), refreshMark)
	}
	return tokens{}, denied("unsupported_grant_type", ""), nil
}

// exchange gives tokens for a code or a refresh token.
func (s *Server) exchange(ctx context.Context, form url.Values, credential, mark string) (tokens, *denial, error) {
	a, ok, err := s.appOf(ctx, credential, 2, mark)
	if err != nil {
		return tokens{}, nil, err
	}
	shared := ""
	if ok {
		shared = credential[len(mark)+idLength:][:textLength]
	}
	if !ok || !equal(a.Shared, sumOf(shared)) { // it was never issued
		return tokens{}, ended(), nil
	}
	if !equal(a.Next, sumOf(credential)) || !fits(a, form) {
		return tokens{}, ended(), s.misused(ctx, a)
	}
	now, next := time.Now(), a
	granted := tokens{
		Access: newAccess(a.ID), Type: "Bearer", Expires: int(accessLife / time.Second),
		Refresh: refreshMark + a.ID + shared + rand.Text(), Scope: Scope,
	}
	next.Access, next.AccessEnds, next.Next = sumOf(granted.Access), now.Add(accessLife), sumOf(granted.Refresh)
	next.Redirect, next.Challenge, next.Used, next.Ends = "", "", now, now.Add(appLife)
	kept, err := s.cfg.Apps.ChangeApp(ctx, next, a.Next)
	if err != nil {
		return tokens{}, nil, err
	}
	if !kept { // it was used at the same moment by another request
		return tokens{}, ended(), s.misused(ctx, a)
	}
	if mark == codeMark {
		s.counts.Add(wasConnected)
	} else {
		s.counts.Add(wasRenewed)
	}
	return granted, nil, nil
}

// fits reports whether a valid credential comes from its client, and for a code, with the right redirect address and
// PKCE verifier.
func fits(a sessions.App, form url.Values) bool {
	if form.Get("client_id") != a.Client {
		return false
	}
	if a.Redirect == "" {
		return true
	}
	verifier := form.Get("code_verifier")
	sum := sha256.Sum256([]byte(verifier))
	return form.Get("redirect_uri") == a.Redirect && verifierForm.MatchString(verifier) &&
		base64.RawURLEncoding.EncodeToString(sum[:]) == a.Challenge
}

// misused drops an app whose code or refresh token may have been stolen.
func (s *Server) misused(ctx context.Context, a sessions.App) error {
	s.counts.Add(wasMisused)
	s.cfg.Log.Warn("a code or refresh token was used twice or wrongly; its app is disconnected", zap.String("app", a.ID))
	_, err := s.cfg.Apps.DropApp(ctx, a.Principal, a.ID)
	if err != nil {
		return err
	}
	return s.audit(ctx, a.Principal, a.Client, handoff.DecisionDisconnect, "misuse")
}
