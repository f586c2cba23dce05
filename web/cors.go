package web

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// isAPI reports whether a path is one of OpenAI's or /mcp, which pages of any origin may ask for with a key, or what
// leads programs to /mcp.
func isAPI(name string) bool {
	return name == "/mcp" || name == "/oauth/token" || strings.HasPrefix(name, "/.well-known/oauth-") ||
		strings.HasPrefix(name, "/v1/") && path.Clean(name) == strings.TrimSuffix(name, "/")
}

// sharedHeaders are what pages elsewhere may send: what clients of OpenAI and of MCP send from browsers.
var sharedHeaders = regexp.MustCompile(
	`^(authorization|content-type|idempotency-key|x-openai-agents-sdk|last-event-id|(openai|x-stainless|mcp)-[a-z0-9-]+)$`,
)

// share lets pages of any origin read what answers under /v1/, and answers a preflight, which is then all.
// Credentials that a browser adds by itself are never shared: there are none.
func share(w http.ResponseWriter, r *http.Request) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id, X-Should-Retry, Mcp-Session-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	var allowed []string
	for name := range strings.SplitSeq(strings.ToLower(r.Header.Get("Access-Control-Request-Headers")), ",") {
		if name = strings.TrimSpace(name); sharedHeaders.MatchString(name) && !slices.Contains(allowed, name) {
			allowed = append(allowed, name)
		}
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Vary", "Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
	return true
}
