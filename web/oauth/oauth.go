// Package oauth lets a person give programs elsewhere access to /mcp. It is an authorization server of OAuth 2.1 with
// one kind of client and one flow, for clients that cannot use a key, such as ChatGPT.
//
// It must not know the page, keys or grants: the edge decides who a person is, and what a [sessions.App] may do.
//
// # What is implemented
//
// The metadata documents (RFC 9728, RFC 8414), and the authorization code with PKCE, only with S256. Clients are
// identified by the address of their own metadata document (draft-ietf-oauth-client-id-metadata-document). They are
// public clients: there are no client secrets and no registration. Tokens are valid at one resource (RFC 8707), and the
// answer at the redirect address names its issuer (RFC 9207).
//
// A code and a refresh token can be used once. If one is used twice or wrongly, it may have been stolen: the app is
// then dropped, with all its tokens.
package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"switchboard/handoff"
	"switchboard/sessions"
	"switchboard/web/guarded"
)

const (
	requestLife = 10 * time.Minute    // for the person to decide
	codeLife    = time.Minute         // from a yes until the client has fetched its tokens
	accessLife  = time.Hour           // of an access token
	appLife     = 90 * 24 * time.Hour // of an app that fetches no new tokens
	usedEvery   = time.Minute         // the least time between two records of an app's use
	maxRequests = 64                  // that wait for a decision; above it the oldest is dropped

	// The rates of requests for tokens, and of requests for access, of all clients together.
	tokensPerSecond, tokensAtOnce = 10, 60
	asksPerSecond, asksAtOnce     = 1, 20
)

// Scope is the only scope: what a token allows is for the person to decide.
const Scope = "switchboard"

// Config is what a [Server] is made of. Issuer, Apps and Audit are required.
type Config struct {
	// Issuer is the address of the page, scheme and host without a slash at the end. Tokens are valid at Issuer/mcp.
	Issuer string
	Apps   sessions.Apps
	Audit  handoff.Auditor
	// Transport fetches the documents of clients. Nil: one that connects only to public addresses.
	Transport http.RoundTripper
	Log       *zap.Logger // nil: silent
}

// A Server is an authorization server. It is safe for concurrent use.
type Server struct {
	cfg    Config        // Set once
	client *http.Client  // Set once: fetches documents
	tokens *rate.Limiter // Set once
	asks   *rate.Limiter // Set once: see [Server.Ask]
	counts *handoff.Tally[outcome]

	mu      sync.Mutex
	waiting []request // Guarded by mu: oldest first, at most maxRequests
}

// An outcome is the outcome of a request of a client or a decision of a person, for /metrics.
type outcome string

const (
	wasAsked     outcome = "asked"
	wasAllowed   outcome = "allowed"
	wasRefused   outcome = "refused"
	wasConnected outcome = "connected" // tokens for a code
	wasRenewed   outcome = "renewed"   // tokens for a refresh token
	wasMisused   outcome = "misused"   // a code or refresh token was used twice or wrongly, and its app dropped
	wasDenied    outcome = "denied"    // a request for tokens
	wasDropped   outcome = "dropped"   // a waiting request, because too many waited
)

// New returns a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Transport == nil {
		cfg.Transport = guarded.Transport(fetchWithin, 443)
	}
	return &Server{
		cfg: cfg, client: documents(cfg.Transport),
		tokens: rate.NewLimiter(tokensPerSecond, tokensAtOnce), asks: rate.NewLimiter(asksPerSecond, asksAtOnce),
		counts: handoff.NewTally(wasAsked, wasAllowed, wasRefused, wasConnected, wasRenewed, wasMisused, wasDenied,
			wasDropped),
	}
}

// Metrics yields the metrics of the server.
func (s *Server) Metrics() iter.Seq[handoff.Metric] {
	return s.counts.Metrics("switchboard_oauth_total", "What programs elsewhere asked for by OAuth, by what became of it.",
		"outcome")
}

// resource returns the resource at which tokens are valid.
func (s *Server) resource() string { return s.cfg.Issuer + "/mcp" }

// The paths that clients use.
const (
	resourcePath  = "/.well-known/oauth-protected-resource"
	serverPath    = "/.well-known/oauth-authorization-server"
	authorizePath = "/oauth/authorize"
	tokenPath     = "/oauth/token"
)

// Challenge returns the WWW-Authenticate of /mcp for requests that are not authorised. It names the metadata document.
func (s *Server) Challenge() string {
	return `Bearer resource_metadata="` + s.cfg.Issuer + resourcePath + `/mcp", scope="` + Scope + `"`
}

// ServeDocument serves the metadata of the resource or of the authorization server, as the path says.
func (s *Server) ServeDocument(w http.ResponseWriter, r *http.Request) {
	var document any = oauthex.ProtectedResourceMetadata{
		Resource: s.resource(), AuthorizationServers: []string{s.cfg.Issuer}, ScopesSupported: []string{Scope},
		BearerMethodsSupported: []string{"header"}, ResourceName: "Switchboard",
	}
	if r.URL.Path == serverPath {
		document = serverDocument{AuthServerMeta: oauthex.AuthServerMeta{
			Issuer: s.cfg.Issuer, AuthorizationEndpoint: s.cfg.Issuer + authorizePath, TokenEndpoint: s.cfg.Issuer + tokenPath,
			ScopesSupported: []string{Scope}, ResponseTypesSupported: []string{"code"},
			ResponseModesSupported:            []string{"query"},
			GrantTypesSupported:               []string{"authorization_code", "refresh_token"},
			TokenEndpointAuthMethodsSupported: []string{"none"}, CodeChallengeMethodsSupported: []string{"S256"},
			ClientIDMetadataDocumentSupported: true, AuthorizationResponseIssParameterSupported: true,
		}}
	}
	answer(w, http.StatusOK, document)
}

// A serverDocument is the metadata of the authorization server (RFC 8414). There are no keys, so jwks_uri is left out:
// an empty one would be an invalid address for strict clients.
type serverDocument struct {
	oauthex.AuthServerMeta
	NoKeys string `json:"jwks_uri,omitempty"`
}

// answer sends JSON that must not be cached.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(handoff.Encode(body))) // the client may have left
}

// The prefixes of credentials. After the prefix come the app's id, in a code or refresh token a random text that all of
// them of the app share, and a random text of its own.
const (
	AccessMark  = "mcp_"
	codeMark    = "mcc_"
	refreshMark = "mcr_"
	idLength    = 12
)

var textLength = len(rand.Text()) // 130 bits

func newAccess(id string) string { return AccessMark + id + rand.Text() }

func sumOf(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

func equal(a, b [sha256.Size]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// appOf finds the app of a credential, which must have one of the prefixes marks and so many random texts. It reports
// false if there is none.
func (s *Server) appOf(ctx context.Context, credential string, texts int, marks ...string) (sessions.App, bool, error) {
	mark := credential[:min(len(AccessMark), len(credential))]
	if len(credential) != len(AccessMark)+idLength+texts*textLength || !slices.Contains(marks, mark) {
		return sessions.App{}, false, nil // without a query of the store
	}
	id := credential[len(mark):][:idLength]
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return sessions.App{}, false, nil
	}
	a, ok, err := s.cfg.Apps.App(ctx, id)
	return a, ok && a.Resource == s.resource(), err
}

// App finds the app of an access token, and records the use of the app. It reports false for a token that is wrong,
// expired, or of another resource.
func (s *Server) App(ctx context.Context, token string) (sessions.App, bool, error) {
	a, ok, err := s.appOf(ctx, token, 1, AccessMark)
	now := time.Now()
	if err != nil || !ok || !equal(a.Access, sumOf(token)) || !now.Before(a.AccessEnds) {
		return sessions.App{}, false, err
	}
	if now.Sub(a.Used) >= usedEvery {
		a.Used = now
		// If this fails, the app got new tokens meanwhile, or the time of its use is wrong; the token is valid anyway.
		if _, err := s.cfg.Apps.ChangeApp(ctx, a, a.Next); err != nil {
			s.cfg.Log.Warn("use of an app not written", zap.Error(err))
		}
	}
	return a, true, nil
}

// Standing finds the app of a token that authorised a request, as long as the app has access. The token itself may have
// expired.
func (s *Server) Standing(ctx context.Context, token string) (sessions.App, bool, error) {
	return s.appOf(ctx, token, 1, AccessMark)
}

// audit records a decision about an app.
func (s *Server) audit(ctx context.Context, principal, client string, what handoff.Decision, by string) error {
	return s.cfg.Audit.Audit(ctx, handoff.AuditRecord{
		Who: handoff.Caller{Principal: principal}.String(), Client: handoff.Clip(client, maxClient), Decision: what, By: by,
		At: time.Now(),
	})
}

// Revoke drops an app of a principal, and reports false if there is none with this id. by is as in
// [handoff.AuditRecord].
func (s *Server) Revoke(ctx context.Context, principal, id, by string) (bool, error) {
	a, ok, err := s.cfg.Apps.App(ctx, id)
	if err != nil || !ok || a.Principal != principal {
		return false, err
	}
	if err := s.audit(ctx, principal, a.Client, handoff.DecisionDisconnect, by); err != nil {
		return false, err
	}
	return s.cfg.Apps.DropApp(ctx, principal, id)
}
