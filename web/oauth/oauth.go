// Package oauth lets programs elsewhere use /mcp for a person who allows it: an authorization server of OAuth 2.1 with
// one kind of client and one way in, for clients that take nothing else, such as ChatGPT.
//
// It must not know the page, keys or grants: the edge tells who asks, and what a [sessions.App] may do.
//
// # What is there, and what is not
//
// The documents that clients find the way by (RFC 9728, RFC 8414); the authorization code with PKCE, S256 alone;
// clients that are known by the address of their own metadata document
// (draft-ietf-oauth-client-id-metadata-document), which are public clients: there are no secrets and no registration.
// Tokens count at one resource (RFC 8707), and the answer at the redirect address names its issuer (RFC 9207).
//
// A credential that gives tokens, a code or a refresh token, counts once. Whoever presents one in a wrong way, or one
// that was used, may have stolen it: the app is forgotten, and with it all that it was given.
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
)

const (
	requestLife = 10 * time.Minute    // for the person to decide
	codeLife    = time.Minute         // from their yes until the client has its tokens
	accessLife  = time.Hour           // of an access token
	appLife     = 90 * 24 * time.Hour // after which an app ends that got no new tokens
	usedEvery   = time.Minute         // how often the use of an app is written down
	maxRequests = 64                  // that wait for a person; the oldest goes

	// How often tokens may be asked for, and clients be looked up, by all together.
	tokensPerSecond, tokensAtOnce = 10, 60
	asksPerSecond, asksAtOnce     = 1, 20
)

// Scope is the one that there is: what a token may do, the person decides.
const Scope = "switchboard"

// Config is what a [Server] is made of. Issuer, Apps and Audit are required.
type Config struct {
	// Issuer is the address of the page, scheme and host without a slash at the end. Tokens count at Issuer/mcp.
	Issuer string
	Apps   sessions.Apps
	Audit  handoff.Auditor
	// Transport fetches the documents of clients. Nil: one that does not reach private networks.
	Transport http.RoundTripper
	Log       *zap.Logger // nil: silent
}

// A Server is an authorization server. It is safe for concurrent use.
type Server struct {
	cfg    Config        // Set once
	client *http.Client  // Set once: fetches documents
	tokens *rate.Limiter // Set once
	asks   *rate.Limiter // Set once
	counts *handoff.Tally[outcome]

	mu      sync.Mutex
	waiting []request // Guarded by mu: oldest first, at most maxRequests
}

// An outcome is what became of something that a client or a person asked for, for /metrics.
type outcome string

const (
	wasAsked     outcome = "asked"
	wasAllowed   outcome = "allowed"
	wasRefused   outcome = "refused"
	wasConnected outcome = "connected" // a code gave tokens
	wasRenewed   outcome = "renewed"
	wasMisused   outcome = "misused" // a credential was used twice or wrongly, and its app forgotten
	wasDenied    outcome = "denied"  // a request for tokens
	wasDropped   outcome = "dropped" // a request that waited, for a newer one
)

// New returns a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Transport == nil {
		cfg.Transport = guarded()
	}
	return &Server{
		cfg: cfg, client: documents(cfg.Transport),
		tokens: rate.NewLimiter(tokensPerSecond, tokensAtOnce), asks: rate.NewLimiter(asksPerSecond, asksAtOnce),
		counts: handoff.NewTally(
			wasAsked,
			wasAllowed,
			wasRefused,
			wasConnected,
			wasRenewed,
			wasMisused,
			wasDenied,
			wasDropped,
		),
	}
}

// Metrics yields what the server counts.
func (s *Server) Metrics() iter.Seq[handoff.Metric] {
	return s.counts.Metrics("switchboard_oauth_total", "What programs elsewhere asked for by OAuth, by what became of it.",
		"outcome")
}

// resource is where tokens count.
func (s *Server) resource() string { return s.cfg.Issuer + "/mcp" }

// Where clients find what. Other servers put the documents elsewhere, too; those places stay empty.
const (
	resourcePath  = "/.well-known/oauth-protected-resource"
	serverPath    = "/.well-known/oauth-authorization-server"
	authorizePath = "/oauth/authorize"
	tokenPath     = "/oauth/token"
)

// Challenge is what /mcp answers with to a request that may not come in: where the way in is described.
func (s *Server) Challenge() string {
	return `Bearer resource_metadata="` + s.cfg.Issuer + resourcePath + `/mcp", scope="` + Scope + `"`
}

// ServeDocument describes the resource or the server, by the path.
func (s *Server) ServeDocument(w http.ResponseWriter, r *http.Request) {
	var document any = oauthex.ProtectedResourceMetadata{
		Resource: s.resource(), AuthorizationServers: []string{s.cfg.Issuer}, ScopesSupported: []string{Scope},
		BearerMethodsSupported: []string{"header"}, ResourceName: "Switchboard",
	}
	if r.URL.Path == serverPath {
		document = serverDocument{AuthServerMeta: oauthex.AuthServerMeta{
			Issuer: s.cfg.Issuer, AuthorizationEndpoint: s.cfg.Issuer + authorizePath, TokenEndpoint: s.cfg.Issuer + tokenPath,
			ScopesSupported: []string{
				Scope,
			}, ResponseTypesSupported: []string{"code"}, ResponseModesSupported: []string{"query"},
			GrantTypesSupported:               []string{"authorization_code", "refresh_token"},
			TokenEndpointAuthMethodsSupported: []string{"none"}, CodeChallengeMethodsSupported: []string{"S256"},
			ClientIDMetadataDocumentSupported: true, AuthorizationResponseIssParameterSupported: true,
		}}
	}
	answer(w, http.StatusOK, document)
}

// A serverDocument describes the server (RFC 8414). It has no keys, and so no address of them: an empty one would be an
// address to strict clients.
type serverDocument struct {
	oauthex.AuthServerMeta
	NoKeys string `json:"jwks_uri,omitempty"`
}

// answer sends JSON that nobody keeps.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(handoff.Encode(body))) // a client that left cannot be told
}

// The forms of credentials. After the mark comes the app's id, in one that gives tokens what all such of the app share,
// and then what nobody can guess.
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

// appOf finds the app that a credential with one of some marks names; false when there is none. Texts says how many
// unguessable parts it has.
func (s *Server) appOf(ctx context.Context, credential string, texts int, marks ...string) (sessions.App, bool, error) {
	mark := credential[:min(len(AccessMark), len(credential))]
	if len(credential) != len(AccessMark)+idLength+texts*textLength || !slices.Contains(marks, mark) {
		return sessions.App{}, false, nil // so that not everything asks the store
	}
	id := credential[len(mark):][:idLength]
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return sessions.App{}, false, nil
	}
	a, ok, err := s.cfg.Apps.App(ctx, id)
	return a, ok && a.Resource == s.resource(), err
}

// App finds the app whose access token this is, and notes that it was used. A token that is wrong, that has ended or
// that is of another resource is none.
func (s *Server) App(ctx context.Context, token string) (sessions.App, bool, error) {
	a, ok, err := s.appOf(ctx, token, 1, AccessMark)
	now := time.Now()
	if err != nil || !ok || !equal(a.Access, sumOf(token)) || !now.Before(a.AccessEnds) {
		return sessions.App{}, false, err
	}
	if now.Sub(a.Used) >= usedEvery {
		a.Used = now
		// With an error it got new tokens meanwhile, or it counts all the same.
		if _, err := s.cfg.Apps.ChangeApp(ctx, a, a.Next); err != nil {
			s.cfg.Log.Warn("use of an app not written", zap.Error(err))
		}
	}
	return a, true, nil
}

// Standing finds the app whose token let a request in, while it is still let in. The token itself may have ended since.
func (s *Server) Standing(ctx context.Context, token string) (sessions.App, bool, error) {
	return s.appOf(ctx, token, 1, AccessMark)
}

// audit writes down what happened to an app.
func (s *Server) audit(ctx context.Context, principal, client string, what handoff.Decision, by string) error {
	return s.cfg.Audit.Audit(ctx, handoff.AuditRecord{
		Who: handoff.Caller{Principal: principal}.String(), Client: handoff.Clip(client, maxClient), Decision: what, By: by,
		At: time.Now(),
	})
}

// Revoke forgets an app of a principal; false when there is none with this id. By is who asks, as in
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
