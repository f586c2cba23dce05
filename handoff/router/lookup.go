package router

import (
	"context"
	"fmt"
	"switchboard/handoff"
	"switchboard/handoff/tools"
	"time"
)

// lookupTimeout bounds a question to the directory. It is longer than the directory's own deadline for
// one server, so that a dead one costs its entry and not the answer.
const lookupTimeout = 5 * time.Second

// lookup answers one of the tools that only look.
func (s *serving) lookup(ctx context.Context, id string, req handoff.Request) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	text, err := s.r.look(ctx, s.grant, req)
	if err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	s.answer(id, req, text, handoff.FloorAsk)
}

func (r *Router) look(ctx context.Context, g handoff.Grant, req handoff.Request) (string, error) {
	switch req.Tool {
	case tools.ListServers:
		if err := tools.Parse(req.Arguments, &struct{}{}); err != nil {
			return "", err
		}
		return tools.ServersAnswer(r.directory.Servers(ctx, g)), nil
	case tools.ListSessions:
		args, err := tools.ParseSessions(req.Arguments)
		if err != nil {
			return "", err
		}
		list, err := r.directory.Sessions(ctx, g, handoff.SessionQuery{Server: args.Server, Text: args.Query, Limit: args.Limit})
		if err != nil {
			return "", err
		}
		return tools.SessionsAnswer(list), nil
	case tools.ReadSession:
		args, err := tools.ParseRead(req.Arguments)
		if err != nil {
			return "", err
		}
		t, err := r.directory.Read(ctx, g, handoff.Target{Server: args.Server, Thread: args.Thread}, args.Limit)
		if err != nil {
			return "", err
		}
		return tools.ReadAnswer(t), nil
	}
	return "", noTool(req.Tool)
}

// noTool is the answer to a tool that does not exist, or not for this caller.
func noTool(name string) *handoff.Error {
	return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("there is no tool %.40q", name), "")
}
