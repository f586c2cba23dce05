package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

const elsewhere = "https://app.example"

// TestPreflight: a preflight has no key, so for the API it is answered at any Host and for any Origin; elsewhere it is
// not.
func TestPreflight(t *testing.T) {
	for _, row := range []struct {
		name, path, host, method, headers string
		want                              string // what is allowed; "refused"
	}{
		{"a call of agents-realtime", "/v1/realtime/calls", "", "POST", "authorization,content-type,x-openai-agents-sdk",
			"authorization, content-type, x-openai-agents-sdk"},
		{"headers of OpenAI", "/v1/realtime/client_secrets", "", "POST",
			"Authorization, OpenAI-Safety-Identifier, openai-beta", "authorization, openai-safety-identifier, openai-beta"},
		{"headers of the openai package", "/v1/realtime/client_secrets", "", "POST",
			"authorization,x-stainless-os,x-stainless-retry-count", "authorization, x-stainless-os, x-stainless-retry-count"},
		{"others", "/v1/realtime/calls", "", "POST", "authorization,x-evil,cookie,idempotency-key,openai_beta,openai-\u00e9",
			"authorization, idempotency-key"},
		{"none", "/v1/realtime/calls", "", "POST", "", ""},
		{"a name for a host", "/v1/realtime/calls", "switchboard:8080", "POST", "authorization", "authorization"},
		{"an unknown path", "/v1/models", "", "GET", "authorization", "authorization"},
		{"the fleet", "/fleet/servers", "", "GET", "authorization", "refused"},
		{"the login", "/login", "", "POST", "content-type", "refused"},
		{"a path beside it", "/v1", "", "POST", "", "refused"},
		{"a path that climbs out", "/v1/../fleet/servers", "", "GET", "", "refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld()
			rec := ask(newServer(t, w, nil), http.MethodOptions, row.path, "", func(r *http.Request) {
				r.Header.Del("Authorization")
				r.Header.Set("Origin", elsewhere)
				r.Header.Set("Access-Control-Request-Method", row.method)
				if row.headers != "" {
					r.Header.Set("Access-Control-Request-Headers", row.headers)
				}
				if row.host != "" {
					r.Host = row.host
				}
			})
			h := rec.Header()
			if row.want == "refused" {
				if rec.Code < 400 || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Access-Control-Allow-Headers") != "" {
					t.Errorf("%d %v", rec.Code, h)
				}
				return
			}
			methods := strings.Split(h.Get("Access-Control-Allow-Methods"), ", ")
			if rec.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "*" || !slices.Contains(methods, row.method) || h.Get("Access-Control-Allow-Headers") != row.want {
				t.Errorf("%d %v", rec.Code, h)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" || len(w.log()) > 0 {
				t.Errorf("credentials %q, asked %q", h.Get("Access-Control-Allow-Credentials"), w.log())
			}
		})
	}
}

// TestAnswersElsewhereCanBeRead: a page of another origin can read the Location of a call, and why a call was refused.
func TestAnswersElsewhereCanBeRead(t *testing.T) {
	for path, want := range map[string]string{"/v1/realtime/calls": "*", "/v1/models": "*", "/fleet/handoffs": "", "/login": "", "/": ""} {
		for _, key := range []string{ownerKey, "wrong"} {
			rec := ask(newServer(t, newWorld(), nil), "POST", path, "v=0", func(r *http.Request) {
				r.Header.Set("Origin", elsewhere)
				r.Header.Set("Authorization", "Bearer "+key)
			})
			h := rec.Header()
			if got := h.Get("Access-Control-Allow-Origin"); got != want || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s with %s: allowed for %q", path, key, got)
			}
			if want != "" && h.Get("Access-Control-Expose-Headers") != "Location, Retry-After, X-Request-Id, X-Should-Retry, Switchboard-Ignored, Mcp-Session-Id" {
				t.Errorf("%s: exposed %q", path, h.Get("Access-Control-Expose-Headers"))
			}
			if id := h.Get("X-Request-Id"); strings.HasPrefix(id, "req_") != (want != "") {
				t.Errorf("%s: request id %q", path, id)
			}
		}
	}
}

// TestRoutesWithoutADoorAskForAKey: for the API, the access policy checks neither Host nor Origin, so every route of it
// needs a key.
func TestRoutesWithoutADoorAskForAKey(t *testing.T) {
	n := 0
	for pattern, r := range newServer(t, newWorld(), nil).known {
		if _, path, _ := strings.Cut(pattern, " "); isAPI(path) {
			n++
			if r.access == accessPublic {
				t.Errorf("%s is public", pattern)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d routes", n)
	}
}

// TestMissingKey: a request without a key, or with a key in a wrong place, gets an error that says where keys belong.
func TestMissingKey(t *testing.T) {
	socket := func(r *http.Request) {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
	}
	for name, row := range map[string]struct {
		method, target string
		adjust         func(*http.Request)
		words          string
	}{
		"a socket":           {"GET", "/v1/realtime?model=x", socket, "it has none"},
		"a socket elsewhere": {"GET", "/v1/realtime", func(r *http.Request) { socket(r); r.Header.Set("Origin", elsewhere) }, "it has none"},
		"a call":             {"POST", "/v1/realtime/calls", nil, "it has none"},
		"api-key":            {"GET", "/v1/realtime", func(r *http.Request) { socket(r); r.Header.Set("api-key", ownerKey) }, "the header api-key is not read"},
		"x-api-key": {"POST", "/v1/realtime/calls", func(r *http.Request) { r.Header.Set("X-Api-Key", ownerKey) },
			"the header x-api-key is not read"},
		"a query": {"GET", "/v1/realtime?api-key=" + ownerKey, socket, "what stands in the address ends in logs"},
		"another query": {
			"GET", "/v1/realtime?model=x&api_key=" + ownerKey, socket, "what stands in the address ends in logs",
		},
		"a cookie": {
			"POST", "/v1/realtime/calls", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "key", Value: ownerKey}) },
			"it has none",
		},
		"nothing, of a query": {"GET", "/fleet/servers", nil, "it has none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			rec := ask(newServer(t, w, nil), row.method, row.target, "", func(r *http.Request) {
				r.Header.Del("Authorization")
				if row.adjust != nil {
					row.adjust(r)
				}
			})
			body := rec.Body.String()
			if got := codeOf(t, rec); got != handoff.CodeNoKey || rec.Code != http.StatusUnauthorized || !strings.Contains(body, row.words) || !strings.Contains(body, "Authorization: Bearer") {
				t.Errorf("%d %s", rec.Code, body)
			}
			if strings.Contains(body, ownerKey) || len(w.log()) > 0 || rec.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s, asked %q", body, w.log())
			}
		})
	}
}
