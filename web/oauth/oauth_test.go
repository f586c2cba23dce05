package oauth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/web/guarded"
)

// TestFlow: a program that a person allows gets tokens and renews them until it is disconnected; the store has only
// their sums.
func TestFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		asked, err := d.ask(t.Context(), owner, wanted().Encode())
		want := Asked{ID: asked.ID, Name: "An app", Host: "app.example", Redirect: "app.example"}
		if err != nil || asked != want || asked.ID == "" {
			t.Fatalf("asked: %+v, %v", asked, err)
		}
		said := d.told(d.Decide(t.Context(), owner.principal, owner.key, asked.ID, true, handoff.ApproveVoice))
		if said.Get("state") != "s t&" || said.Get("iss") != issuer || said.Get("at") != "1" || len(said) != 4 {
			t.Errorf("the client is told %v", said)
		}
		first := d.gets(form(said.Get("code")))
		app, ok, err := d.App(t.Context(), first.Access)
		if err != nil || !ok || app.Principal != "owner" || app.Key != owner.key || app.Approve != handoff.ApproveVoice ||
			first.Expires != 3600 {
			t.Errorf("%+v, %v, %v", app, ok, err)
		}
		for _, secret := range []string{first.Access, first.Refresh, said.Get("code")} {
			if kept := fmt.Sprintf("%+v", app); strings.Contains(kept, secret) || strings.Contains(kept, secret[len(secret)-textLength:]) {
				t.Errorf("the store has %s", secret)
			}
		}
		time.Sleep(59 * time.Minute)
		d.counts(first.Access, true)
		time.Sleep(time.Minute)
		d.counts(first.Access, false)
		if _, ok, err := d.Standing(t.Context(), first.Access); !ok || err != nil {
			t.Errorf("what it began ends with its token: %v, %v", ok, err)
		}
		second := d.gets(renewal(first.Refresh))
		d.counts(second.Access, true)
		d.counts(first.Access, false)
		time.Sleep(89 * 24 * time.Hour)
		third := d.gets(renewal(second.Refresh))
		if ok, err := d.Revoke(t.Context(), "somebody", app.ID, "page"); ok || err != nil {
			t.Errorf("disconnected by somebody else: %v, %v", ok, err)
		}
		if ok, err := d.Revoke(t.Context(), "owner", app.ID, "page"); !ok || err != nil {
			t.Errorf("disconnected: %v, %v", ok, err)
		}
		d.counts(third.Access, false)
		if _, ok, _ := d.Standing(t.Context(), third.Access); ok {
			t.Error("it is still let in")
		}
		if status, _, wrong := d.post(renewal(third.Refresh).Encode()); status != 400 || wrong.Code != "invalid_grant" {
			t.Errorf("renewed when it was disconnected: %d %v", status, wrong)
		}
		d.wrote("owner let_in APP by page", "owner disconnect APP by page")
	})
}

// TestIdle: an app that fetches no new tokens for ninety days ends.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		tokens := d.gets(form(d.allowed().Get("code")))
		time.Sleep(90 * 24 * time.Hour)
		if status, _, wrong := d.post(renewal(tokens.Refresh).Encode()); status != 400 || wrong.Code != "invalid_grant" {
			t.Errorf("%d %v", status, wrong)
		}
	})
}

// TestDocuments: the metadata documents have the addresses that clients need, and no other ways to get access.
func TestDocuments(t *testing.T) {
	d := newDesk(t)
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": `{"resource":"https://bigpc.example/mcp",` +
			`"authorization_servers":["https://bigpc.example"],"scopes_supported":["switchboard"],` +
			`"bearer_methods_supported":["header"],"resource_name":"Switchboard"}`,
		"/.well-known/oauth-authorization-server": `{"issuer":"https://bigpc.example",` +
			`"authorization_endpoint":"https://bigpc.example/oauth/authorize","token_endpoint":"https://bigpc.example/oauth/token",` +
			`"scopes_supported":["switchboard"],"response_types_supported":["code"],"response_modes_supported":["query"],` +
			`"grant_types_supported":["authorization_code","refresh_token"],"token_endpoint_auth_methods_supported":["none"],` +
			`"code_challenge_methods_supported":["S256"],"client_id_metadata_document_supported":true,` +
			`"authorization_response_iss_parameter_supported":true}`,
	} {
		w := httptest.NewRecorder()
		d.ServeDocument(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, w.Body, want)
		}
	}
	if d.Challenge() != `Bearer resource_metadata="https://bigpc.example/.well-known/oauth-protected-resource/mcp", scope="switchboard"` {
		t.Error(d.Challenge())
	}
}

// lookAlike is a client whose host begins with a Cyrillic letter.
const lookAlike = "https://%D1%81hatgpt.com/oauth/client.json"

// Who asks in a wrong way. back: the program is told, with this error; "": only the person is.
var wrongAsks = []struct {
	name  string
	pairs []string
	back  string
}{
	{"http client_id", []string{"client_id", "http://app.example/oauth/client.json"}, ""},
	{"client_id of another kind", []string{"client_id", "my-app"}, ""},
	{"no client_id", []string{"client_id", "-"}, ""},
	{"client_id without a path", []string{"client_id", "https://app.example/"}, ""},
	{"client_id with a fragment", []string{"client_id", clientID + "#x"}, ""},
	{"client_id with a query", []string{"client_id", clientID + "?x=1"}, ""},
	{"client_id with a user", []string{"client_id", "https://chatgpt.com@app.example/oauth/client.json"}, ""},
	{"client_id with dots", []string{"client_id", "https://app.example/x/../oauth/client.json"}, ""},
	{"client_id with escaped dots", []string{"client_id", "https://app.example/x/%2e%2e/oauth/client.json"}, ""},
	{"client_id that looks like another", []string{"client_id", lookAlike}, ""},
	{"client_id in capitals", []string{"client_id", "https://App.example/oauth/client.json"}, ""},
	{"client_id that is long", []string{"client_id", clientID + strings.Repeat("x", maxClient)}, ""},
	{"client_id that leads to nothing", []string{"client_id", "https://app.example/other.json"}, ""},
	{"document that leads elsewhere", []string{"client_id", "https://app.example/moved.json"}, ""},
	{"document of another client", []string{"client_id", "https://evil.example/client.json"}, ""},
	{"document that is long", []string{"client_id", "https://app.example/long.json"}, ""},
	{"document that nests", []string{"client_id", "https://app.example/deep.json"}, ""},
	{"document that is none", []string{"client_id", "https://app.example/page.html"}, ""},
	{"client with a secret", []string{"client_id", "https://app.example/secret.json"}, ""},
	{"client with a key alone", []string{"client_id", "https://app.example/key.json"}, ""},
	{"client of another grant", []string{"client_id", "https://app.example/grant.json"}, ""},
	{"other redirect", []string{"redirect_uri", "https://evil.example/back"}, ""},
	{"no redirect", []string{"redirect_uri", "-"}, ""},
	{"redirect with more", []string{"redirect_uri", callback + "&x=1"}, ""},
	{"redirect with less", []string{"redirect_uri", "https://app.example/back"}, ""},
	{"redirect to another port of this computer", []string{"redirect_uri", "http://127.0.0.1:4001/back"}, ""},
	{"redirect to a script", []string{"client_id", "https://app.example/odd.json", "redirect_uri", "javascript:alert(1)//x"}, ""},
	{"redirect in the clear", []string{"client_id", "https://app.example/odd.json", "redirect_uri", "http://app.example/back"}, ""},
	{"redirect to a program's own scheme", []string{"client_id", "https://app.example/odd.json", "redirect_uri", "app://back"}, ""},
	{"redirect to a host that looks like another", []string{
		"client_id", "https://app.example/odd.json", "redirect_uri", "https://\u0430pp.example/back"}, ""},
	{"redirect with a fragment", []string{"client_id", "https://app.example/odd.json", "redirect_uri", callback + "#"}, ""},
	{"no challenge", []string{"code_challenge", "-"}, "invalid_request"},
	{"plain challenge", []string{"code_challenge_method", "plain", "code_challenge", verifier}, "invalid_request"},
	{"challenge of no method", []string{"code_challenge_method", "-"}, "invalid_request"},
	{"challenge that is no sum", []string{"code_challenge", "short"}, "invalid_request"},
	{"token at once", []string{"response_type", "token"}, "unsupported_response_type"},
	{"answer in a form", []string{"response_mode", "form_post"}, "unsupported_response_type"},
	{"other resource", []string{"resource", "https://other.example/mcp"}, "invalid_target"},
	{"other path of the resource", []string{"resource", issuer + "/v1"}, "invalid_target"},
	{"no resource", []string{"resource", "-"}, "invalid_target"},
	{"state that is long", []string{"state", strings.Repeat("s", maxState+1)}, "invalid_request"},
}

// TestWrongAsks: a wrong request is not shown to a person, and a program that is not what it claims gets no answer.
func TestWrongAsks(t *testing.T) {
	for _, c := range wrongAsks {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			for id, text := range map[string]string{
				"moved": clientID, "long": document("https://app.example/long.json", map[string]any{"x": strings.Repeat("x", maxDocument)}),
				"deep": strings.Repeat("[", 5000), "page": "<html>",
				"secret": document("https://app.example/secret.json", map[string]any{"token_endpoint_auth_method": "client_secret_post"}),
				"key":    document("https://app.example/key.json", map[string]any{"token_endpoint_auth_method": "private_key_jwt"}),
				"grant":  document("https://app.example/grant.json", map[string]any{"grant_types": []string{"implicit"}}),
				"odd": document("https://app.example/odd.json", map[string]any{"redirect_uris": []string{
					"javascript:alert(1)//x", "http://app.example/back", "app://back", callback + "#", "https://\u0430pp.example/back"}}),
			} {
				d.documents["https://app.example/"+id+".json"] = text
			}
			d.documents["https://evil.example/client.json"] = document(clientID, nil)
			d.documents[lookAlike] = document(lookAlike, nil)
			asked, err := d.ask(t.Context(), owner, with(wanted(), c.pairs...).Encode())
			if c.back == "" {
				if err == nil || handoff.AsError(err).Code != handoff.CodeMalformed {
					t.Errorf("asked: %+v, %v", asked, err)
				}
				return
			}
			said := d.told(asked.Back, err)
			if asked.ID != "" || asked.Problem == "" || said.Get("error") != c.back || said.Get("iss") != issuer || said.Has("code") {
				t.Errorf("%+v, told %v", asked, said)
			}
			if len(d.waiting) != 0 {
				t.Error("it waits for a person")
			}
		})
	}
}

// TestAsks: the document of ChatGPT's client is accepted, and a redirect address on the person's own computer is
// marked.
func TestAsks(t *testing.T) {
	d := newDesk(t)
	const id = "https://chatgpt.com/oauth/x/client.json"
	d.documents[id] = document(id, map[string]any{
		"client_name": "ChatGPT\u202e\n", "token_endpoint_auth_method": "private_key_jwt",
		"token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"}, "jwks": map[string]any{},
	})
	asked, err := d.ask(t.Context(), owner, with(wanted(), "client_id", id, "redirect_uri", "http://127.0.0.1:4000/back").Encode())
	if want := (Asked{ID: asked.ID, Name: "ChatGPT", Host: "chatgpt.com", Redirect: "127.0.0.1:4000", Local: true}); err != nil || asked != want {
		t.Errorf("%+v, %v", asked, err)
	}
	if _, err := d.ask(t.Context(), owner, wanted().Encode()+"&client_id="+url.QueryEscape(id)); err == nil {
		t.Error("a client that is named twice is asked about")
	}
	d.documents[clientID] = document(clientID, map[string]any{"client_name": "\u200b"})
	if asked, err := d.ask(t.Context(), owner, wanted().Encode()); err != nil || asked.Name != "app.example" {
		t.Errorf("a client without a name: %+v, %v", asked, err)
	}
}

// TestDecide: a person can decide a request once, before it expires, and only their own request.
func TestDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		decide := func(by person, id string, allow bool) (string, error) {
			return d.Decide(t.Context(), by.principal, by.key, id, allow, handoff.ApproveNone)
		}
		gone := func(by person, id string) {
			t.Helper()
			if back, err := decide(by, id, true); err == nil || handoff.AsError(err).Code != handoff.CodeNotPending || back != "" {
				t.Errorf("decided: %s, %v", back, err)
			}
		}
		asked, err := d.ask(t.Context(), owner, wanted().Encode())
		if err != nil {
			t.Fatal(err)
		}
		gone(person{"owner", sha256.Sum256([]byte("another login"))}, asked.ID)
		gone(person{"other", owner.key}, asked.ID)
		gone(owner, "")
		if said := d.told(decide(owner, asked.ID, false)); said.Get("error") != "access_denied" || said.Has("code") {
			t.Errorf("told %v", said)
		}
		gone(owner, asked.ID)
		if asked, err = d.ask(t.Context(), owner, wanted().Encode()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(requestLife)
		gone(owner, asked.ID)
		if len(d.store.apps) != 0 {
			t.Error("a program was let in")
		}
		d.wrote("owner keep_out APP by page")
	})
}

// What thieves do with a code. drops: the app is forgotten, whoever comes next.
var wrongCodes = []struct {
	name  string
	pairs []string
	after time.Duration
	code  string
	drops bool
}{
	{"wrong verifier", []string{"code_verifier", strings.Repeat("x", 43)}, 0, "invalid_grant", true},
	{"no verifier", []string{"code_verifier", "-"}, 0, "invalid_grant", true},
	{"the challenge for a verifier", []string{"code_verifier", challengeOf(verifier)}, 0, "invalid_grant", true},
	{"other redirect", []string{"redirect_uri", "https://evil.example/back"}, 0, "invalid_grant", true},
	{"no redirect", []string{"redirect_uri", "-"}, 0, "invalid_grant", true},
	{"other client", []string{"client_id", "https://evil.example/client.json"}, 0, "invalid_grant", true},
	{"other resource", []string{"resource", "https://other.example/mcp"}, 0, "invalid_target", false},
	{"no client", []string{"client_id", "-"}, 0, "invalid_client", false},
	{"a secret", []string{"client_secret", "x"}, 0, "invalid_client", false},
	{"an assertion", []string{"client_assertion", "x"}, 0, "invalid_client", false},
	{"another grant", []string{"grant_type", "password"}, 0, "unsupported_grant_type", false},
	{"as a refresh token", []string{"grant_type", "refresh_token"}, 0, "invalid_grant", false},
	{"after ten minutes", nil, 10 * time.Minute, "invalid_grant", true},
	{"after one", nil, time.Minute, "invalid_grant", true},
}

// TestWrongCodes: a code gives tokens only to the client that requested it, and in time. If it was stolen, it gives
// tokens to nobody.
func TestWrongCodes(t *testing.T) {
	for _, c := range wrongCodes {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				code := d.allowed().Get("code")
				time.Sleep(c.after)
				body := with(form(code), c.pairs...)
				if c.name == "as a refresh token" {
					body.Set("refresh_token", code)
				}
				status, tokens, wrong := d.post(body.Encode())
				if status/100 != 4 || wrong.Code != c.code || tokens.Access+tokens.Refresh != "" {
					t.Errorf("%d %+v %+v", status, tokens, wrong)
				}
				if status, _, _ := d.post(form(code).Encode()); (status == http.StatusOK) == c.drops {
					t.Errorf("who should have it: %d", status)
				}
			})
		})
	}
}

// TestReuse: using a code or a refresh token twice disconnects the app, even if both uses come at once.
func TestReuse(t *testing.T) {
	d := newDesk(t)
	code := d.allowed().Get("code")
	tokens := d.gets(form(code))
	if status, _, wrong := d.post(form(code).Encode()); status != 400 || wrong.Code != "invalid_grant" {
		t.Errorf("the code again: %d %v", status, wrong)
	}
	d.counts(tokens.Access, false)
	tokens = d.gets(form(d.allowed().Get("code")))
	later := d.gets(renewal(tokens.Refresh))
	evenLater := d.gets(renewal(later.Refresh))
	if status, _, wrong := d.post(renewal(tokens.Refresh).Encode()); status != 400 || wrong.Code != "invalid_grant" {
		t.Errorf("a refresh token again: %d %v", status, wrong)
	}
	d.counts(evenLater.Access, false)
	if status, _, _ := d.post(renewal(evenLater.Refresh).Encode()); status != 400 {
		t.Errorf("the newest refresh token after that: %d", status)
	}
	tokens = d.gets(form(d.allowed().Get("code")))
	if status, _, _ := d.post(with(renewal(tokens.Refresh), "client_id", "https://evil.example/client.json").Encode()); status != 400 {
		t.Errorf("by another client: %d", status)
	}
	d.counts(tokens.Access, false)
	d.wrote("owner let_in APP by page", "owner disconnect APP by misuse", "owner let_in APP by page",
		"owner disconnect APP by misuse", "owner let_in APP by page", "owner disconnect APP by misuse")
}

// TestGuesses: with an app's id, which is no secret, nobody can use or disconnect the app.
func TestGuesses(t *testing.T) {
	d := newDesk(t)
	tokens := d.gets(form(d.allowed().Get("code")))
	id := tokens.Access[len(AccessMark):][:idLength]
	for _, guess := range []string{
		"", "mcr_", refreshMark + id, refreshMark + id + strings.Repeat("A", 2*textLength),
		tokens.Refresh[:len(tokens.Refresh)-1], tokens.Refresh + "A", tokens.Access, codeMark + tokens.Refresh[4:],
		refreshMark + "../../../../" + tokens.Refresh[16:], strings.Repeat("x", maxForm),
	} {
		if status, _, _ := d.post(renewal(guess).Encode()); status/100 != 4 {
			t.Errorf("%.80q: %d", guess, status)
		}
	}
	for _, guess := range []string{"", AccessMark + id + strings.Repeat("A", textLength), tokens.Refresh, tokens.Access + "A"} {
		d.counts(guess, false)
	}
	if _, _, wrong := d.post(renewal(tokens.Refresh).Encode(), "Authorization", "Basic eDp5"); wrong.Code != "invalid_client" {
		t.Errorf("with a password: %v", wrong)
	}
	if _, _, wrong := d.post(renewal(tokens.Refresh).Encode(), "Content-Type", "application/json"); wrong.Code != "invalid_request" {
		t.Errorf("not as a form: %v", wrong)
	}
	if _, _, wrong := d.post(renewal(tokens.Refresh).Encode() + "&refresh_token=x"); wrong.Code != "invalid_request" {
		t.Errorf("twice: %v", wrong)
	}
	d.counts(tokens.Access, true)
	elsewhere := New(Config{Issuer: "https://other.example", Apps: d.store, Audit: d, Transport: d})
	if _, ok, _ := elsewhere.App(t.Context(), tokens.Access); ok {
		t.Error("a token counts at another host")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(renewal(tokens.Refresh).Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := elsewhere.ServeToken(w, r); err != nil || w.Code != http.StatusBadRequest {
		t.Errorf("a refresh token at another host: %d, %v", w.Code, err)
	}
	d.gets(renewal(tokens.Refresh)) // nobody disconnected it
}

// TestLimits: the rates of requests for access and for tokens are limited, and so is the number of waiting requests.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		first, err := d.ask(t.Context(), owner, wanted().Encode())
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < asksAtOnce; n++ {
			if _, err = d.ask(t.Context(), owner, wanted().Encode()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err = d.ask(t.Context(), owner, wanted().Encode()); err == nil || handoff.AsError(err).Code != handoff.CodeLimited {
			t.Errorf("one more: %v", err)
		}
		for range maxRequests - asksAtOnce + 1 {
			time.Sleep(time.Second)
			if _, err = d.ask(t.Context(), owner, wanted().Encode()); err != nil {
				t.Fatal(err)
			}
		}
		if len(d.waiting) != maxRequests {
			t.Errorf("%d wait", len(d.waiting))
		}
		if _, ok := d.take(owner, first.ID); ok {
			t.Error("the oldest is still there")
		}
		for range tokensAtOnce {
			d.post("x")
		}
		if status, _, wrong := d.post("x"); status != http.StatusTooManyRequests || wrong.Code != "temporarily_unavailable" {
			t.Errorf("one more: %d %v", status, wrong)
		}
	})
}

// TestFull: the number of apps of a person is limited.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for range 64 {
			d.allowed()
			time.Sleep(time.Second)
		}
		asked, err := d.ask(t.Context(), owner, wanted().Encode())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decide(t.Context(), owner.principal, owner.key, asked.ID, true, 0); err == nil ||
			handoff.AsError(err).Code != handoff.CodeLimited {
			t.Errorf("one more: %v", err)
		}
	})
}

// TestPrivate: documents are fetched only from public addresses.
func TestPrivate(t *testing.T) {
	here := httptest.NewTLSServer(http.NotFoundHandler())
	defer here.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(here.URL, "https://"), ":")
	d := newDesk(t)
	d.Server = New(Config{Issuer: issuer, Apps: d.store, Audit: d})
	for _, host := range []string{"127.0.0.1:" + port, "127.0.0.1", "[::1]", "localhost", "10.0.0.1", "169.254.169.254", "0.0.0.0", "2130706433"} {
		id := "https://" + host + "/client.json"
		_, err := d.ask(t.Context(), owner, with(wanted(), "client_id", id).Encode())
		if err == nil || !strings.Contains(err.Error(), guarded.ErrPrivate.Error()) && host != "2130706433" && host != "[::1]" {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// FuzzDoor: no request without authorisation gets access, a redirect or tokens, and nothing panics.
func FuzzDoor(f *testing.F) {
	for _, c := range wrongAsks {
		f.Add(with(wanted(), c.pairs...).Encode(), document(clientID, nil), "")
	}
	f.Add(wanted().Encode(), document(clientID, map[string]any{"redirect_uris": []string{"javascript:x"}}), form("mcc_x").Encode())
	for _, c := range wrongCodes {
		f.Add("", "{}", with(form(codeMark+"aaaaaaaaaaaa"+strings.Repeat("A", 2*textLength)), c.pairs...).Encode())
	}
	f.Fuzz(func(t *testing.T, query, text, body string) {
		d := newDesk(t)
		d.documents[clientID] = text
		asked, err := d.ask(t.Context(), owner, query)
		if err == nil {
			var c client
			all, parseErr := url.ParseQuery(strings.TrimPrefix(query, "?"))
			if parseErr != nil || json.Unmarshal([]byte(text), &c) != nil || c.ID != clientID || all.Get("client_id") != clientID {
				t.Fatalf("asked by %q with %q", query, text)
			}
			to := asked.Back
			if asked.ID != "" {
				to, err = d.Decide(t.Context(), owner.principal, owner.key, asked.ID, false, 0)
			}
			u, parseErr := url.Parse(to)
			if err != nil || parseErr != nil || u.Scheme != "https" && !local(u.Hostname()) || u.Query().Get("iss") != issuer || u.Query().Get("error") == "" {
				t.Fatalf("sent to %q, %v", to, err)
			}
		}
		for _, address := range d.fetched {
			if !strings.HasPrefix(address, "https://") {
				t.Fatalf("fetched %q", address)
			}
		}
		if status, tokens, wrong := d.post(body); status/100 != 4 || tokens.Access != "" || wrong.Code == "" {
			t.Fatalf("%q: %d %+v", body, status, wrong)
		}
		d.counts(body, false)
	})
}
