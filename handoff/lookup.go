package handoff

import (
	"context"
	"fmt"
	"time"
)

// lookupTimeout bounds a question to the directory. It is longer than the directory's own deadline for
// one server, so that a dead one costs its entry and not the answer.
const lookupTimeout = 5 * time.Second

// lookup answers one of the tools that only look.
func (s *serving) lookup(ctx context.Context, id string, req Request) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	text, err := s.r.look(ctx, s.grant, req)
	if err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	s.answer(id, req, text, FloorAsk)
}

func (r *Router) look(ctx context.Context, g Grant, req Request) (string, error) {
	switch req.Tool {
	case ToolListServers:
		if err := parse(req.Arguments, &struct{}{}); err != nil {
			return "", err
		}
		return serversAnswer(r.directory.Servers(ctx, g)), nil
	case ToolListSessions:
		args, err := parseSessions(req.Arguments)
		if err != nil {
			return "", err
		}
		list, err := r.directory.Sessions(ctx, g, SessionQuery{Server: args.Server, Text: args.Query, Limit: args.Limit})
		if err != nil {
			return "", err
		}
		return sessionsAnswer(list), nil
	case ToolReadSession:
		args, err := parseRead(req.Arguments)
		if err != nil {
			return "", err
		}
		t, err := r.directory.Read(ctx, g, Target{Server: args.Server, Thread: args.Thread}, args.Limit)
		if err != nil {
			return "", err
		}
		return readAnswer(t), nil
	}
	return "", noTool(req.Tool)
}

// noTool is the answer to a tool that does not exist, or not for this caller.
func noTool(name string) *Error {
	return Fault(CodeMalformed, fmt.Sprintf("there is no tool %.40q", name), "")
}
