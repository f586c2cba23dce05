package web

import (
	"net/http"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// routeTools names the tool that a route stands for: who may not use the one may not use the other. Set once.
var routeTools = map[string]string{
	"GET /fleet/servers":                    tools.ListServers,
	"GET /fleet/sessions":                   tools.ListSessions,
	"GET /fleet/sessions/{server}/{thread}": tools.ReadSession,
	"GET /fleet/handoffs":                   tools.Status,
	"GET /fleet/history":                    tools.Status,
	"GET /fleet/history/{id}":               tools.Status,
	"GET /fleet/conversation":               tools.Status,
	"GET /fleet/machines":                   tools.ListServers,
	"POST /fleet/machines/{server}/test":    tools.ListServers,
	"PUT /fleet/updates":                    tools.SetUpdates,
	"PUT /fleet/sticky/{server...}":         tools.Codex,

	"POST /fleet/sessions/{server}/{thread}/archive":   tools.Codex,
	"DELETE /fleet/sessions/{server}/{thread}/archive": tools.Codex,
	"GET /fleet/handoffs/{id}":                         tools.Status,
	"GET /fleet/handoffs/{id}/events":                  tools.Status,
	"POST /fleet/handoffs":                             tools.Codex,
	"POST /fleet/handoffs/{id}/steer":                  tools.Codex,
	"POST /fleet/handoffs/{id}/stop":                   tools.StopWork,
	"POST /fleet/handoffs/{id}/heard":                  tools.Status,
	"GET /fleet/questions":                             tools.Status,
	"POST /fleet/questions/{id}":                       tools.AnswerAgent,
	"GET /fleet/events":                                tools.Status,
	"GET /v1/models":                                   tools.ListServers,
	"GET /v1/models/{model...}":                        tools.ListServers,
}

// mayUse tells whether a grant allows what a route does. An error has code [handoff.CodeNotGranted].
func mayUse(g handoff.Grant, pattern string) error {
	tool := routeTools[pattern]
	if _, path, _ := strings.Cut(pattern, " "); strings.HasPrefix(path, "/v1/responses") || strings.HasPrefix(path, "/v1/conversations") {
		tool = tools.Codex
	}
	if tool != "" && !g.AllowsTool(tool) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tool "+tool, "")
	}
	return nil
}

// hears tells whether an event is about what a grant may know of.
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

// backend is what the tools look at and act on.
func (s *Server) backend() tools.Backend { return tools.Backend{Directory: s.cfg.Directory} }

// A lookup is a tool's arguments that came in a path and a query.
type lookup interface {
	tools.Doer
	Check() error
}

// look answers with what a tool returns. A page has room for all of it, so the tool's limit does not count.
func (s *Server) look(w http.ResponseWriter, r *http.Request, g handoff.Grant, args lookup) error {
	if err := args.Check(); err != nil {
		return err
	}
	result, err := args.Do(r.Context(), s.backend(), g)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, result)
}
