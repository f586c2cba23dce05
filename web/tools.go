package web

import (
	"net/http"
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

// hears reports whether an event is about what a grant may know of.
func (s *Server) hears(g handoff.Grant, e handoff.PageEvent) bool {
	switch {
	case g.Servers == nil:
		return true
	case e.Question != nil:
		return g.AllowsServer(e.Question.Server)
	case e.Record != nil:
		_, err := s.cfg.Work.Handoff(g, e.Record.ID)
		return err == nil
	case e.Handoff != "":
		_, err := s.cfg.Work.Handoff(g, e.Handoff)
		return err == nil
	}
	return true
}

// backend is what the tools look at and act on here.
func (s *Server) backend() tools.Backend {
	return tools.Backend{Directory: s.cfg.Directory, Giver: s.cfg.Runs}
}

// A lookup is a tool's arguments that came in a path and a query.
type lookup interface {
	tools.Arguments
	Check() error
}

// look answers with what a tool returns. A page has room for all of it, so the tool's limit does not count.
func (s *Server) look(w http.ResponseWriter, r *http.Request, g handoff.Grant, args lookup) error {
	if err := args.Check(); err != nil {
		return err
	}
	result, err := args.Do(r.Context(), s.backend(), nil, g)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, result)
}
