package web

import (
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// callRoutes begin a call or enter one. A call is billed, so a key that may do nothing in it has none. Set once.
var callRoutes = []string{
	"GET /v1/realtime", "POST /v1/realtime/calls", "POST /v1/realtime/client_secrets", "POST /v1/realtime/attach",
}

// apiTool names the tool that a route of the Responses API stands for.
func apiTool(pattern string) string {
	switch _, path, _ := strings.Cut(pattern, " "); {
	case strings.HasPrefix(path, "/v1/responses"), strings.HasPrefix(path, "/v1/conversations"):
		return tools.Codex
	case strings.HasPrefix(path, "/v1/models"):
		return tools.ListServers
	}
	return ""
}

// mayUse reports whether a grant allows what a route does. An error has code [handoff.CodeNotGranted].
func mayUse(g handoff.Grant, to route) error {
	if g.Tools != nil && len(g.Tools) == 0 && slices.Contains(callRoutes, to.pattern) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tools, so it begins no calls", "")
	}
	if to.tool == "" {
		return nil
	}
	return mayUseTool(g, to.tool)
}

// mayUseTool reports whether a grant has a tool. An error has code [handoff.CodeNotGranted].
func mayUseTool(g handoff.Grant, tool string) error {
	if !g.AllowsTool(tool) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tool "+tool, "")
	}
	return nil
}
