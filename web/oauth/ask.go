package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A person is the principal of a login, and the key or link that it was made with.
type person struct {
	principal string
	key       [sha256.Size]byte // as in [sessions.App]
}

// An Asked is the request of a program for access, as it is shown to a person.
type Asked struct {
	ID       string `json:"id,omitempty"`      // the request's id for [Server.Decide]; "": it cannot be allowed
	Name     string `json:"name"`              // the program's own name
	Host     string `json:"host"`              // the host of its document, which identifies it
	Redirect string `json:"redirect"`          // the host that the answer goes to
	Local    bool   `json:"local,omitempty"`   // Redirect is the person's own computer, where any program may read it
	Problem  string `json:"problem,omitempty"` // why it cannot be allowed, for people
	Back     string `json:"back,omitempty"`    // with a Problem: the address that tells the program
}

// A request is a request of a program that waits for a person's decision.
type request struct {
	id                         string
	of                         person
	client                     client
	redirect, state, challenge string
	until                      time.Time
}

const (
	maxQuery = 8 << 10 // bytes of a request
	maxState = 2 << 10
)

// challengeForm matches a PKCE challenge by S256: a SHA-256 in base64url (RFC 7636, 4.2).
var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// Ask parses the request of a program from the query of the page that it opened, and fetches the program's document.
// The result is an [Asked]. If the document or the redirect address is wrong, Ask returns an error, of code
// [handoff.CodeMalformed] or [handoff.CodeLimited], and nothing is sent to the redirect address.
func (s *Server) Ask(ctx context.Context, principal string, key [sha256.Size]byte, query string) (any, error) {
	return s.ask(ctx, person{principal, key}, query)
}

func (s *Server) ask(ctx context.Context, by person, query string) (Asked, error) {
	if !s.asks.Allow() {
		return Asked{}, &handoff.Error{Code: handoff.CodeLimited, Subject: "requests of programs", Retry: time.Second}
	}
	params, err := values(query, maxQuery)
	if err != nil {
		return Asked{}, err
	}
	redirect := params.Get("redirect_uri")
	to, err := redirectAddress(redirect)
	if err != nil {
		return Asked{}, err
	}
	c, err := s.fetch(ctx, params.Get("client_id"))
	if err != nil {
		return Asked{}, err
	}
	if !slices.Contains(c.Redirects, redirect) {
		return Asked{}, handoff.Malformed("redirect_uri", "redirect_uri is none of those in the client's document")
	}
	at, err := clientAddress(c.ID)
	if err != nil {
		return Asked{}, err
	}
	shown := Asked{Name: c.Name, Host: at.Host, Redirect: to.Host, Local: local(to.Hostname())}
	req := request{
		id: rand.Text(), of: by, client: c, redirect: redirect, state: params.Get("state"),
		challenge: params.Get("code_challenge"), until: time.Now().Add(requestLife),
	}
	code := ""
	switch {
	case params.Get("response_type") != "code" ||
		params.Get("response_mode") != "" && params.Get("response_mode") != "query":
		code, shown.Problem = "unsupported_response_type", "It asks for something else than a code."
	case params.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(req.challenge):
		code, shown.Problem = "invalid_request", "It does not protect its code (PKCE with S256)."
	case !oauthex.MatchesResource(params["resource"], s.resource()):
		code, shown.Problem = "invalid_target", "It wants to use something else than this Switchboard ("+s.resource()+")."
	case len(req.state) > maxState:
		code, shown.Problem, req.state = "invalid_request", "It gave a state that is too long.", ""
	}
	if code != "" {
		shown.Back = s.back(req, url.Values{"error": {code}, "error_description": {strings.Trim(shown.Problem, ".")}})
		return shown, nil
	}
	shown.ID = req.id
	s.wait(req)
	s.counts.Add(wasAsked)
	return shown, nil
}

// values parses a form or a query of a client. A name that occurs twice is an error.
func values(text string, most int) (url.Values, error) {
	if len(text) > most {
		return nil, handoff.Fault(handoff.CodeTooLarge, "what the program asks", "")
	}
	all, err := url.ParseQuery(strings.TrimPrefix(text, "?"))
	if err != nil {
		return nil, handoff.Fault(handoff.CodeMalformed, "what the program asks cannot be read", "")
	}
	for name, list := range all {
		if len(list) > 1 {
			return nil, handoff.Malformed(handoff.Clip(name, maxName), handoff.Clip(name, maxName)+" is there twice")
		}
	}
	return all, nil
}

// wait adds a request to those that wait for a decision. If too many wait, it drops the oldest.
func (s *Server) wait(req request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(r request) bool { return !time.Now().Before(r.until) })
	if len(s.waiting) >= maxRequests {
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.counts.Add(wasDropped)
	}
	s.waiting = append(s.waiting, req)
}

// take removes and returns a waiting request of a person, so that it is decided once. It reports false if there is
// none.
func (s *Server) take(by person, id string) (request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(
		s.waiting,
		func(r request) bool { return r.id == id && r.of == by && time.Now().Before(r.until) },
	)
	if i < 0 {
		return request{}, false
	}
	req := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return req, true
}

// Decide allows or refuses a request, and returns the address that tells the program. approve limits which yes of the
// program counts. For a request that was decided, has expired or is another person's, the error has code
// [handoff.CodeNotPending].
func (s *Server) Decide(
	ctx context.Context, principal string, key [sha256.Size]byte, id string, allow bool, approve handoff.Approval,
) (string, error) {
	by := person{principal, key}
	req, ok := s.take(by, id)
	if !ok {
		return "", handoff.Fault(handoff.CodeNotPending, "", "request of an app")
	}
	decision := handoff.DecisionLetIn
	if !allow {
		decision = handoff.DecisionKeepOut
	}
	if err := s.audit(ctx, by.principal, req.client.ID, decision, "page"); err != nil {
		return "", err
	}
	if !allow {
		s.counts.Add(wasRefused)
		return s.back(req, url.Values{"error": {"access_denied"}}), nil
	}
	now := time.Now()
	a := sessions.App{
		ID: strings.ToLower(rand.Text()[:idLength]), Principal: by.principal, Key: by.key, Client: req.client.ID,
		Name: req.client.Name, Resource: s.resource(), Approve: approve, Redirect: req.redirect, Challenge: req.challenge,
		Made: now, Used: now, Ends: now.Add(codeLife),
	}
	shared := rand.Text()
	code := codeMark + a.ID + shared + rand.Text()
	a.Shared, a.Next = sumOf(shared), sumOf(code)
	kept, err := s.cfg.Apps.PutApp(ctx, a)
	if err != nil {
		return "", err
	}
	if !kept {
		return "", handoff.Fault(
			handoff.CodeLimited, "programs that may use Switchboard; disconnect some in the settings", "",
		)
	}
	s.counts.Add(wasAllowed)
	return s.back(req, url.Values{"code": {code}}), nil
}

// back returns the redirect address of a request with an answer in its query.
func (s *Server) back(req request, answer url.Values) string {
	u, err := url.Parse(req.redirect)
	if err != nil {
		return "" // never, since it was parsed before
	}
	q := u.Query()
	maps.Copy(q, answer)
	if req.state != "" {
		q.Set("state", req.state)
	}
	q.Set("iss", s.cfg.Issuer)
	u.RawQuery = q.Encode()
	return u.String()
}
