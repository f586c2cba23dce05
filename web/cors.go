package web

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// isAPI reports whether pages of any origin may use a path: OpenAI's API and /mcp, with a key, and the token endpoint
// and the metadata of OAuth.
func isAPI(name string) bool {
	return name == "/mcp" || name == "/oauth/token" || strings.HasPrefix(name, "/.well-known/oauth-") ||
		strings.HasPrefix(name, "/v1/") && path.Clean(name) == strings.TrimSuffix(name, "/")
}

// sharedHeaders matches the headers that pages of other origins may send: those of clients of OpenAI and MCP.
var sharedHeaders = regexp.MustCompile(
	`^(authorization|content-type|idempotency-key|x-openai-agents-sdk|last-event-id|(openai|x-stainless|mcp)-[a-z0-9-]+)$`,
)

// share allows pages of any origin to read the answer. It answers a preflight itself, and reports whether it did.
// Credentials that a browser adds by itself are not allowed, and nothing here uses any.
func share(w http.ResponseWriter, r *http.Request) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id, X-Should-Retry, Switchboard-Ignored, Mcp-Session-Id")
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
