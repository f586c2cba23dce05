package web

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/sessions"
)

// Programs has the fronts for programs, and what lets them in. Each may be nil.
type Programs struct {
	Responses Mounted
	MCP       Mounted
	OAuth     OAuth // nil: no program elsewhere gets access
	// MCPPipe serves MCP to a program on this machine, one message in each line, until the program closes the
	// connection or ctx ends.
	MCPPipe func(ctx context.Context, conn io.ReadWriteCloser, g handoff.Grant) error
}

// Mounted is a front with routes of its own behind the edge's checks, such as OpenAI's Responses API. The body of each
// request is in memory. If its key is revoked meanwhile, the request's context ends with a cause of code
// [handoff.CodeUnauthorized].
type Mounted interface {
	Patterns() []string // of its routes
	Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error
	Close() // ends its streams
}

// OAuth gives access to programs elsewhere that a person allowed. Their tokens are valid at /mcp only.
type OAuth interface {
	oauthOpen
	oauthConsent
	oauthTokens
}

// oauthOpen serves requests without a key.
type oauthOpen interface {
	// Challenge returns the WWW-Authenticate of /mcp for requests that are not authorised.
	Challenge() string
	ServeDocument(w http.ResponseWriter, r *http.Request)
	ServeToken(w http.ResponseWriter, r *http.Request) error
}

// oauthConsent asks a person. key is the sum of the key of their login, zero for a login by a link.
type oauthConsent interface {
	// Ask parses the request of a program, the query of the page that it opened. Its result is shown as JSON.
	Ask(ctx context.Context, principal string, key [sha256.Size]byte, query string) (any, error)
	// Decide returns the address that tells the program the decision. approve limits which yes of the program counts.
	Decide(
		ctx context.Context, principal string, key [sha256.Size]byte, id string, allow bool, approve handoff.Approval,
	) (string, error)
	Revoke(ctx context.Context, principal, id, by string) (bool, error)
}

// oauthTokens finds the app of a token.
type oauthTokens interface {
	// App finds the app of a valid access token.
	App(ctx context.Context, token string) (sessions.App, bool, error)
	// Standing finds the app of a token that authorised a request, as long as the app has access; the token itself may
	// have expired.
	Standing(ctx context.Context, token string) (sessions.App, bool, error)
}

// appMark is the prefix of apps' tokens. Because of it, not every wrong key costs a query of the store.
const appMark = "mcp_"

// maxForm bounds a request for tokens, in bytes.
const maxForm = 8 << 10

// apps serves the programs elsewhere that people gave access.
type apps struct {
	auth  *auth // Set once
	oauth OAuth // Set once
	store AppList
}

// AppList lists the apps of a principal, newest use first.
type AppList interface {
	Apps(ctx context.Context, principal string) ([]sessions.App, error)
}

// appInfo is an app as lists show it.
type appInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Host    string    `json:"host"` // of its document
	Answers bool      `json:"answers,omitempty"`
	Made    time.Time `json:"made"`
	Used    time.Time `json:"used"`
}

// oauthRoutes registers the routes for programs elsewhere. Without OAuth it registers only an empty list.
func (s *Server) oauthRoutes(cfg Config) {
	p := apps{&s.auth, cfg.OAuth, cfg.Store}
	s.handle(route{"GET /fleet/apps", accessCaller, 0, handoff.ActNone, p.list})
	if cfg.OAuth == nil {
		return
	}
	s.auth.apps, s.challenge = cfg.OAuth, cfg.OAuth.Challenge()
	for _, r := range []route{
		{"GET /.well-known/oauth-protected-resource", accessPublic, 0, handoff.ActNone, p.document},
		{"GET /.well-known/oauth-protected-resource/mcp", accessPublic, 0, handoff.ActNone, p.document},
		{"GET /.well-known/oauth-authorization-server", accessPublic, 0, handoff.ActNone, p.document},
		{"GET /oauth/authorize", accessPublic, 0, handoff.ActNone, ofFile("authorize.html")},
		{"POST /oauth/token", accessPublic, maxForm, handoff.ActNone, p.token},
		{"POST /oauth/requests", accessCaller, maxJSON, handoff.ActNone, p.ask},
		{"POST /oauth/requests/{id}", accessCaller, maxJSON, handoff.ActNone, p.decide},
		{"DELETE /fleet/apps/{id}", accessCaller, maxJSON, handoff.ActNone, p.revoke},
	} {
		s.handle(r)
	}
}

// document serves the OAuth metadata for clients.
func (p apps) document(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	p.oauth.ServeDocument(w, r)
	return nil
}

// token gives tokens to a client that has access.
func (p apps) token(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	return p.oauth.ServeToken(w, r)
}

// person returns the login of the person at the page. A program has no such login, so no program can give another one
// access.
func (p apps) person(r *http.Request, g handoff.Grant) (sessions.Login, error) {
	l, ok, err := p.auth.login(r)
	if err == nil && (!ok || !g.Page) {
		err = handoff.Fault(
			handoff.CodeNotGranted, "only a person lets a program in: log in here with a link of `switchboard login`", "",
		)
	}
	return l, err
}

// ask describes to a person which program asks for access, and what it could do.
func (p apps) ask(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Query string `json:"query"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	l, err := p.person(r, g)
	if err != nil {
		return err
	}
	program, err := p.oauth.Ask(r.Context(), l.Principal, l.Key, body.Query)
	if err != nil {
		return err
	}
	may := []string{}
	for _, t := range tools.All() {
		if g.AllowsTool(t.Name) && !t.InCall {
			may = append(may, t.Name)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"program": program, "principal": l.Principal, "tools": may, "servers": g.Servers,
	})
}

// decide gives a program access, or refuses it.
func (p apps) decide(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Allow   bool `json:"allow"`
		Answers bool `json:"answers"` // the program's yes to agents' questions counts
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	l, err := p.person(r, g)
	if err != nil {
		return err
	}
	approve := handoff.ApproveNone
	if body.Answers {
		approve = g.Approve
	}
	back, err := p.oauth.Decide(r.Context(), l.Principal, l.Key, r.PathValue("id"), body.Allow, approve)
	return answer(w, map[string]string{"redirect": back}, err)
}

// visible returns the apps that the sender of a request may see and disconnect: from the page, and from inside, all of
// the principal; otherwise those that were given access with the same key.
func (p apps) visible(r *http.Request, g handoff.Grant) ([]sessions.App, error) {
	if p.oauth == nil { // their tokens are not valid
		return nil, nil
	}
	all, err := p.store.Apps(r.Context(), g.Caller.Principal)
	return slices.DeleteFunc(all, func(a sessions.App) bool {
		key, ok := p.auth.backingKey(origin{a.Principal, a.Key})
		return !ok || !g.Page && !inside(r) && (a.Key != key.Sum || key.name() != g.Key)
	}), err
}

// list lists the visible apps.
func (p apps) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.visible(r, g)
	if err != nil {
		return err
	}
	items := []appInfo{}
	for _, a := range all {
		if a.Redirect != "" { // the app has not fetched tokens yet
			continue
		}
		host := a.Client
		if u, err := url.Parse(a.Client); err == nil {
			host = u.Host
		}
		items = append(items, appInfo{a.ID, a.Name, host, a.Approve >= handoff.ApproveAll, a.Made, a.Used})
	}
	return writeJSON(w, http.StatusOK, listOf(items))
}

// revoke disconnects a visible app. Its open requests end within 15 s; work that it gave goes on.
func (p apps) revoke(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.visible(r, g)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if !slices.ContainsFunc(all, func(a sessions.App) bool { return a.ID == id }) {
		return handoff.Fault(handoff.CodeNotFound, "such program", "")
	}
	by := "api"
	if g.Page {
		by = "page"
	}
	_, err = p.oauth.Revoke(r.Context(), g.Caller.Principal, id, by)
	return done(w, err)
}

// byApp returns the grant for an app's token: to use /mcp as the person who gave the app access, with no more rights
// than the key of the person's login has now.
func (a *auth) byApp(r *http.Request, text string) (handoff.Grant, error) {
	if r.URL.Path != "/mcp" {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "a token for /mcp elsewhere")
	}
	app, ok, err := a.apps.App(r.Context(), text)
	if err != nil {
		return handoff.Grant{}, err
	}
	key, known := a.backingKey(origin{app.Principal, app.Key})
	if !ok || !known {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "a token that is over")
	}
	g := key.grant()
	g.Approve, g.Instructions, g.Metrics = min(app.Approve, key.Approve), handoff.InstructNone, false
	return g, nil
}

// appStands returns an error if the app whose token authorised a request was disconnected since, or its key removed. An
// expired token is no error: it does not end requests that began before.
func (a *auth) appStands(ctx context.Context, text string) error {
	app, ok, err := a.apps.Standing(ctx, text)
	if err != nil {
		return err
	}
	if _, known := a.backingKey(origin{app.Principal, app.Key}); !ok || !known {
		return handoff.Fault(handoff.CodeUnauthorized, "", "the program was disconnected")
	}
	return nil
}

// isAppToken reports whether a text looks like an app's token, and OAuth is on.
func (a *auth) isAppToken(text string) bool { return a.apps != nil && strings.HasPrefix(text, appMark) }
