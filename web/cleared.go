package web

import (
	"net/http"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// clearedID names the document in which it stands until when a caller's finished work was put away.
const clearedID = "page: finished work was put away"

// clearedInfo says until when finished work is not listed on the page; no time: all of it is.
type clearedInfo struct {
	At time.Time `json:"at,omitzero"`
}

// cleared tells until when the caller has put finished work away, so that all their devices list the same.
func (s *Server) cleared(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	d, there, err := s.cfg.Documents.Document(r.Context(), g.Caller, clearedID)
	if err != nil {
		return err
	}
	var info clearedInfo
	if there {
		_ = info.At.UnmarshalText(d.Body) // ours; else nothing was put away
	}
	return writeJSON(w, http.StatusOK, info)
}

// setCleared puts finished work away, or brings it back, and tells every page of the caller. It stays in the history.
func (s *Server) setCleared(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var info clearedInfo
	if err := decode(r.Body, &info); err != nil {
		return err
	}
	if g.Caller.Nameless() {
		return done(w, nil)
	}
	text, err := info.At.MarshalText()
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "at is a time", err.Error())
	}
	d := sessions.Document{Owner: g.Caller, ID: clearedID, Body: text, Ends: time.Now().Add(sessions.HistoryFor)}
	if err := s.cfg.Documents.PutDocument(r.Context(), d); err != nil {
		return err
	}
	s.cfg.Feeds.Feed(g).Publish(handoff.PageEvent{Kind: handoff.EventCleared})
	return done(w, nil)
}
