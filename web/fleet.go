package web

import (
	"net/http"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// list is the form of every list.
type list[T any] struct {
	Items []T `json:"items"`
}

// listOf gives a list whose items are never null.
func listOf[T any](items []T) list[T] {
	if items == nil {
		items = []T{}
	}
	return list[T]{Items: items}
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request, _ handoff.Grant) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	if s.cfg.Ready != nil {
		if err := s.cfg.Ready(r.Context()); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) realtime(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	s.cfg.Front.ServeWebSocket(w, r, g)
	return nil
}

func (s *Server) calls(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	s.cfg.Front.ServeCalls(w, r, g)
	return nil
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		CallID string `json:"call_id"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	s.cfg.Calls.ServeAttach(w, r, g, body.CallID)
	return nil
}

func (s *Server) liveCalls(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(s.cfg.Calls.Calls(g)))
}

func (s *Server) hangup(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, s.cfg.Front.Hangup(g, r.PathValue("id")))
}

func (s *Server) servers(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	voice := s.cfg.Voice
	if voice.Chips == nil {
		voice.Chips = []Chip{}
	}
	found, err := tools.ServersArguments{}.Do(r.Context(), s.backend(), nil, g)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		tools.ServersResult
		Voice VoiceInfo `json:"voice"`
	}{found.(tools.ServersResult), voice})
}

func (s *Server) sessions(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", handoff.MaxSessions)
	if err != nil {
		return err
	}
	return s.look(w, r, g, &tools.SessionsArguments{Server: r.URL.Query().Get("server"), Query: r.URL.Query().Get("query"), Limit: limit})
}

func (s *Server) session(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", handoff.MaxReadWhole)
	if err != nil {
		return err
	}
	args := &wholeRead{ReadArguments: tools.ReadArguments{Server: r.PathValue("server"), Thread: r.PathValue("thread")}, limit: limit}
	return s.look(w, r, g, args)
}

// wholeRead reads a session for a person, who has room for more lines than a voice model.
type wholeRead struct {
	tools.ReadArguments
	limit int // 0: as for a voice model
}

// Check implements [lookup].
func (a *wholeRead) Check() error {
	err := a.ReadArguments.Check()
	if a.limit > 0 {
		a.Limit = a.limit
	}
	return err
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, s.cfg.Work.Stop(r.Context(), g, r.PathValue("id")))
}

func (s *Server) questions(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(s.cfg.Questions.Questions(g)))
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Decision handoff.Decision `json:"decision"`
		Text     string           `json:"text"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	id := handoff.QuestionID(r.PathValue("id"))
	if body.Text != "" && body.Decision == "" {
		return done(w, s.cfg.Questions.Reply(r.Context(), g, id, body.Text))
	}
	if body.Text != "" {
		return handoff.Fault(handoff.CodeMalformed, "there is either a decision or a text", "")
	}
	switch body.Decision {
	case handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop:
	default:
		return handoff.Fault(handoff.CodeMalformed, "decision is accept, accept_for_session, decline or stop", "")
	}
	return done(w, s.cfg.Questions.Decide(r.Context(), g, id, body.Decision))
}

func (s *Server) stickies(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	items, err := s.cfg.Stickies.Stickies(r.Context(), g)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, listOf(items))
}

func (s *Server) clearSticky(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, s.cfg.Stickies.ClearSticky(r.Context(), g, r.PathValue("server")))
}
