package web

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/sessions"
)

// OAuth lets programs elsewhere in whom a person allows to come in. Their tokens count at /mcp alone.
type OAuth interface {
	oauthOpen
	oauthConsent
	oauthTokens
}

// oauthOpen is what anybody may ask for.
type oauthOpen interface {
	// Challenge is what /mcp says to who may not come in.
	Challenge() string
	ServeDocument(w http.ResponseWriter, r *http.Request)
	ServeToken(w http.ResponseWriter, r *http.Request) error
}

// oauthConsent asks a person. Key is the sum of the key of their login, zero: of a link.
type oauthConsent interface {
	// Ask reads what a program asks for, from the query of the address that it opened. What it returns is shown.
	Ask(ctx context.Context, principal string, key [sha256.Size]byte, query string) (any, error)
	// Decide returns the address that tells the program. Approve is which yes of the program counts, at most.
	Decide(
		ctx context.Context, principal string, key [sha256.Size]byte, id string, allow bool, approve handoff.Approval,
	) (string, error)
	Revoke(ctx context.Context, principal, id, by string) (bool, error)
}

// oauthTokens finds who sent a token.
type oauthTokens interface {
	// App finds the app of an access token that counts.
	App(ctx context.Context, token string) (sessions.App, bool, error)
	// Standing finds the app whose token let a request in, while it is still let in.
	Standing(ctx context.Context, token string) (sessions.App, bool, error)
}

// appMark begins the tokens of apps, so that not every wrong key asks the store.
const appMark = "mcp_"

// maxForm bounds a request for tokens, in bytes.
const maxForm = 8 << 10

// apps are the programs elsewhere that people let in.
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

// letIn registers the routes of programs that are let in. Without OAuth there is none, and nothing tells of any.
func (s *Server) letIn(cfg Config) {
	p := apps{&s.auth, cfg.OAuth, cfg.Store}
	s.handle(route{"GET /fleet/apps", accessCaller, 0, "", p.list})
	if cfg.OAuth == nil {
		return
	}
	s.auth.apps, s.challenge = cfg.OAuth, cfg.OAuth.Challenge()
	for _, r := range []route{
		{"GET /.well-known/oauth-protected-resource", accessPublic, 0, "", p.document},
		{"GET /.well-known/oauth-protected-resource/mcp", accessPublic, 0, "", p.document},
		{"GET /.well-known/oauth-authorization-server", accessPublic, 0, "", p.document},
		{"GET /oauth/authorize", accessPublic, 0, "", ofFile("authorize.html")},
		{"POST /oauth/token", accessPublic, maxForm, "", p.token},
		{"POST /oauth/requests", accessCaller, maxJSON, "", p.ask},
		{"POST /oauth/requests/{id}", accessCaller, maxJSON, "", p.decide},
		{"DELETE /fleet/apps/{id}", accessCaller, maxJSON, "", p.revoke},
	} {
		s.handle(r)
	}
}

// document describes the way in, for clients.
func (p apps) document(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	p.oauth.ServeDocument(w, r)
	return nil
}

// token gives tokens to a client that was let in.
func (p apps) token(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	return p.oauth.ServeToken(w, r)
}

// person is the login of who sits before the page. A program has none whose every yes counts: nobody is let in by a
// program.
func (p apps) person(r *http.Request, g handoff.Grant) (sessions.Login, error) {
	l, ok, err := p.auth.login(r)
	if err == nil && (!ok || !g.Page) {
		err = handoff.Fault(
			handoff.CodeNotGranted, "only a person lets a program in: log in here with a link of `switchboard login`", "",
		)
	}
	return l, err
}

// ask shows a person which program wants to be let in, and what it could do.
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
	asked, err := p.oauth.Ask(r.Context(), l.Principal, l.Key, body.Query)
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
		"program": asked, "principal": l.Principal, "tools": may, "servers": g.Servers,
	})
}

// decide lets a program in, or does not.
func (p apps) decide(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Allow   bool `json:"allow"`
		Answers bool `json:"answers"` // a yes of it to what agents ask counts
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

// within returns the apps that the sender of a request may see and disconnect: on a page where a person sits, and
// inside, all of the principal, else those that were let in with the same key.
func (p apps) within(r *http.Request, g handoff.Grant) ([]sessions.App, error) {
	if p.oauth == nil { // their tokens do not count
		return nil, nil
	}
	all, err := p.store.Apps(r.Context(), g.Caller.Principal)
	return slices.DeleteFunc(all, func(a sessions.App) bool {
		key, ok := p.auth.behind(origin{a.Principal, a.Key})
		return !ok || !g.Page && !inside(r) && (a.Key != key.Sum || key.name() != g.Key)
	}), err
}

// list lists those that the sender may see.
func (p apps) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.within(r, g)
	if err != nil {
		return err
	}
	items := []appInfo{}
	for _, a := range all {
		if a.Redirect != "" { // it has no tokens yet
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

// revoke disconnects an app that the sender may see. What it does at that moment ends with its next sign of life; work
// that it gave goes on.
func (p apps) revoke(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	all, err := p.within(r, g)
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

// byApp is what the holder of an app's token may do: use /mcp as the person who let it in, with no more than the key of
// their login has now.
func (a *auth) byApp(r *http.Request, text string) (handoff.Grant, error) {
	if r.URL.Path != "/mcp" {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "a token for /mcp elsewhere")
	}
	app, ok, err := a.apps.App(r.Context(), text)
	if err != nil {
		return handoff.Grant{}, err
	}
	key, known := a.behind(origin{app.Principal, app.Key})
	if !ok || !known {
		return handoff.Grant{}, handoff.Fault(handoff.CodeUnauthorized, "", "a token that is over")
	}
	g := key.grant()
	g.Approve, g.Instructions, g.Metrics = min(app.Approve, key.Approve), handoff.InstructNone, false
	return g, nil
}

// appRevoked reports whether the app whose token let a request in was disconnected since, or its key taken away. The
// token itself may have ended: that ends nothing which it began.
func (a *auth) appRevoked(r *http.Request, text string) error {
	app, ok, err := a.apps.Standing(r.Context(), text)
	if err != nil {
		return nil // it is not certain
	}
	if _, known := a.behind(origin{app.Principal, app.Key}); !ok || !known {
		return handoff.Fault(handoff.CodeUnauthorized, "", "the program was disconnected")
	}
	return nil
}

// isAppToken reports whether a text has the form of an app's token, which counts only where programs are let in.
func (a *auth) isAppToken(text string) bool { return a.apps != nil && strings.HasPrefix(text, appMark) }
