package web

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"switchboard/handoff"
)

// maxDecisions is how many decisions one answer has.
const maxDecisions = 200

// maxStickyTitle bounds the title of a session that is put to use, in bytes.
const maxStickyTitle = 200

func (s *Server) machines(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(s.cfg.Machines.Machines(g)))
}

// testMachine asks a machine something now.
func (s *Server) testMachine(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	took, err := s.cfg.Machines.Test(r.Context(), g, r.PathValue("server"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]int64{"took_ms": max(took.Milliseconds(), 1)})
}

// archive puts a session away, or brings it back.
func (s *Server) archive(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	t := handoff.Target{Server: r.PathValue("server"), Thread: r.PathValue("thread")}
	return done(w, s.cfg.Machines.Archive(r.Context(), g, t, r.Method == http.MethodPost))
}

// putSticky makes a session the one in use on a machine.
func (s *Server) putSticky(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Thread string `json:"thread_id"`
		Title  string `json:"title"` // as it is shown
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if body.Thread == "" {
		return handoff.Fault(handoff.CodeMalformed, "thread_id is missing", "")
	}
	return done(w, s.cfg.Stickies.PutSticky(r.Context(), g, r.PathValue("server"), body.Thread, handoff.Clip(body.Title, maxStickyTitle)))
}

// levelInfo is how much of work is told.
type levelInfo struct {
	Level handoff.SpeechLevel `json:"level"`
}

func (s *Server) updates(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, levelInfo{s.cfg.Levels.Level(r.Context(), g.Caller)})
}

func (s *Server) setUpdates(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body levelInfo
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if !slices.Contains([]handoff.SpeechLevel{handoff.LevelQuiet, handoff.LevelMilestones, handoff.LevelChatty}, body.Level) {
		return handoff.Fault(handoff.CodeMalformed, "level is quiet, milestones or chatty", "")
	}
	return done(w, s.cfg.Levels.SetLevel(r.Context(), g.Caller, body.Level))
}

// decisionInfo is a decision as people read it.
type decisionInfo struct {
	Server   string           `json:"server"`
	Thread   string           `json:"thread_id"`
	Decision handoff.Decision `json:"decision"`
	Risk     string           `json:"risk"`
	By       string           `json:"by"`
	At       time.Time        `json:"at"`
}

// decisions lists what the caller decided, the newest first.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", maxDecisions)
	if err != nil {
		return err
	}
	records, err := s.cfg.Decisions.Decisions(g.Caller, cmp.Or(limit, maxDecisions))
	if err != nil {
		return err
	}
	items := []decisionInfo{}
	for _, d := range records {
		if g.AllowsServer(d.Server) {
			items = append(items, decisionInfo{d.Server, d.Thread, d.Decision, d.Tier, d.By, d.At})
		}
	}
	return writeJSON(w, http.StatusOK, listOf(items))
}

// deviceCode makes a code with which another device logs in. Only a login makes one, and the other device may do what
// that login may.
func (s *Server) deviceCode(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	l, ok, err := s.auth.login(r)
	switch {
	case err != nil:
		return err
	case !ok:
		return handoff.Fault(handoff.CodeNotGranted, "a device is added from the page", "")
	}
	text := s.auth.codes.make(originOf(l), time.Now())
	made := map[string]any{"code": text, "ends": time.Now().Add(codeLife)}
	if s.cfg.PublicURL != "" {
		made["at"] = s.cfg.PublicURL // where other devices open the page
	}
	return writeJSON(w, http.StatusOK, made)
}
