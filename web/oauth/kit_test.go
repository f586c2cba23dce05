package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	issuer   = "https://bigpc.example"
	clientID = "https://app.example/oauth/client.json"
	callback = "https://app.example/back?at=1"
	verifier = "a-verifier-of-43-characters-or-more-000000000000"
)

// challengeOf returns the challenge that a client sends for a verifier.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// memory is a store of apps, as sessionstest wants one.
type memory struct {
	mu   sync.Mutex
	apps map[string]sessions.App // Guarded by mu
}

func (m *memory) PutApp(_ context.Context, a sessions.App) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.apps[a.ID]; there || len(m.apps) >= sessions.MaxApps {
		return false, nil
	}
	m.apps[a.ID] = a
	return true, nil
}

func (m *memory) App(_ context.Context, id string) (sessions.App, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.apps[id]
	return a, ok && time.Now().Before(a.Ends), nil
}

func (m *memory) ChangeApp(_ context.Context, a sessions.App, from [sha256.Size]byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if its, ok := m.apps[a.ID]; !ok || its.Next != from {
		return false, nil
	}
	m.apps[a.ID] = a
	return true, nil
}

func (m *memory) Apps(context.Context, string) (all []sessions.App, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.apps {
		all = append(all, a)
	}
	return all, nil
}

func (m *memory) DropApp(_ context.Context, principal, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.apps[id]
	if ok = ok && a.Principal == principal; ok {
		delete(m.apps, id)
	}
	return ok, nil
}

// A desk is a server with a person before it and a client somewhere.
type desk struct {
	*Server
	t     testing.TB
	store *memory
	audit []string // what was written down

	mu        sync.Mutex
	documents map[string]string // Guarded by mu: by address; what is not there is 404
	fetched   []string          // Guarded by mu
}

// RoundTrip serves the documents of clients.
func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fetched = append(d.fetched, r.URL.String())
	w := httptest.NewRecorder()
	switch body, ok := d.documents[r.URL.String()]; {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(body, "https://"):
		w.Header().Set("Location", body)
		w.WriteHeader(http.StatusFound)
	default:
		_, _ = io.WriteString(w, body)
	}
	return w.Result(), nil
}

// Audit implements [handoff.Auditor].
func (d *desk) Audit(_ context.Context, rec handoff.AuditRecord) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audit = append(d.audit, fmt.Sprintf("%s %s %s by %s", rec.Who, rec.Decision, rec.Client, rec.By))
	return nil
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, store: &memory{apps: map[string]sessions.App{}}, documents: map[string]string{
		clientID: document(clientID, nil),
	}}
	d.Server = New(Config{Issuer: issuer, Apps: d.store, Audit: d, Transport: d})
	return d
}

// document returns the document of a client with some fields changed.
func document(id string, change map[string]any) string {
	all := map[string]any{
		"client_id": id, "client_name": "An app", "redirect_uris": []string{callback, "http://127.0.0.1:4000/back"},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": "none",
	}
	maps.Copy(all, change)
	text, _ := json.Marshal(all)
	return string(text)
}

// with returns names and values with some replaced or added; "-" removes one.
func with(all url.Values, pairs ...string) url.Values {
	all = url.Values(http.Header(all).Clone())
	for i := 0; i < len(pairs); i += 2 {
		if all.Set(pairs[i], pairs[i+1]); pairs[i+1] == "-" {
			all.Del(pairs[i])
		}
	}
	return all
}

// wanted returns the parameters of a client's request for access.
func wanted() url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {callback}, "state": {"s t&"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "resource": {issuer + "/mcp"},
		"scope": {"anything"},
	}
}

var owner = person{"owner", sha256.Sum256([]byte("key"))}

// allowed makes a request and allows it; it returns the parameters of the redirect.
func (d *desk) allowed() url.Values {
	d.t.Helper()
	asked, err := d.ask(d.t.Context(), owner, "?"+wanted().Encode())
	if err != nil || asked.ID == "" {
		d.t.Fatalf("asked: %+v, %v", asked, err)
	}
	back, err := d.Decide(d.t.Context(), owner.principal, owner.key, asked.ID, true, handoff.ApproveVoice)
	return d.told(back, err)
}

// told returns the parameters of the address that the browser is sent to.
func (d *desk) told(back string, err error) url.Values {
	d.t.Helper()
	u, parseErr := url.Parse(back)
	if err != nil || parseErr != nil || !strings.HasPrefix(back, "https://app.example/back?") {
		d.t.Fatalf("sent to %q, %v", back, err)
	}
	return u.Query()
}

// form returns a request for tokens with a code.
func form(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {clientID}, "redirect_uri": {callback},
		"code_verifier": {verifier}, "resource": {issuer + "/mcp"},
	}
}

// renewal returns a request for tokens with a refresh token.
func renewal(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {clientID}}
}

// post sends a request for tokens.
func (d *desk) post(body string, header ...string) (status int, granted tokens, wrong denial) {
	d.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if err := d.ServeToken(w, r); err != nil {
		d.t.Fatal(err)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		d.t.Error("somebody may keep the answer")
	}
	_ = json.Unmarshal(w.Body.Bytes(), &wrong)
	_ = json.Unmarshal(w.Body.Bytes(), &granted)
	return w.Code, granted, wrong
}

// gets sends a request for tokens that must succeed.
func (d *desk) gets(body url.Values) tokens {
	d.t.Helper()
	status, tokens, wrong := d.post(body.Encode())
	if status != http.StatusOK || tokens.Access == "" || tokens.Refresh == "" || tokens.Type != "Bearer" {
		d.t.Fatalf("%d %+v %+v", status, tokens, wrong)
	}
	return tokens
}

// counts fails the test unless an access token is valid, or is not.
func (d *desk) counts(token string, want bool) {
	d.t.Helper()
	if _, ok, err := d.App(d.t.Context(), token); ok != want || err != nil {
		d.t.Errorf("the token counts: %v, %v, want %v", ok, err, want)
	}
}

// wrote fails the test unless the audit has these lines.
func (d *desk) wrote(want ...string) {
	d.t.Helper()
	for i, line := range want {
		want[i] = strings.ReplaceAll(line, "APP", clientID)
	}
	if !slices.Equal(d.audit, want) {
		d.t.Errorf("the audit says %q, want %q", d.audit, want)
	}
}
