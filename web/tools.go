package web

import "switchboard/handoff"

// routeTools names the tool that a route stands for: who may not use the one may not use the other. Set once.
var routeTools = map[string]string{
	"GET /fleet/servers":                    handoff.ToolListServers,
	"GET /fleet/sessions":                   handoff.ToolListSessions,
	"GET /fleet/sessions/{server}/{thread}": handoff.ToolReadSession,
	"GET /fleet/handoffs":                   handoff.ToolStatus,
	"GET /fleet/handoffs/{id}":              handoff.ToolStatus,
	"POST /fleet/handoffs/{id}/stop":        handoff.ToolStopWork,
	"GET /fleet/questions":                  handoff.ToolStatus,
	"POST /fleet/questions/{id}":            handoff.ToolAnswerAgent,
	"GET /fleet/events":                     handoff.ToolStatus,
}

// mayUse tells whether a grant allows what a route does. An error has code [handoff.CodeNotGranted].
func mayUse(g handoff.Grant, pattern string) error {
	if tool := routeTools[pattern]; tool != "" && !g.AllowsTool(tool) {
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
