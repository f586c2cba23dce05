package web

import (
	"context"
	"iter"
	"net/http"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// maxRun bounds the body of a request for work: the prompt, escaped, and its names.
const maxRun = 2*handoff.MaxPrompt + maxJSON

// Runs takes work that is given without a call. It returns once the work is promised: then it has exactly one
// outcome. A request with the key of an earlier one gives that one's record, or [handoff.CodeConflict].
type Runs interface {
	Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error)
	// Steer gives more words to work that runs; they are a record of their own.
	Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error)
	// Follow yields what happens to a run; see [handoff.Runs].
	Follow(ctx context.Context, c handoff.Caller, id handoff.RunID, after uint64) iter.Seq2[handoff.RunEvent, error]
}

// run gives work to an agent.
func (s *Server) run(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Server string `json:"server"`
		Thread string `json:"thread_id"`
		Prompt string `json:"prompt"`
		Mode   string `json:"mode"`
		Begin  string `json:"begin"` // work that is paused: its words and its place count
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	mode, known := modes[body.Mode]
	if !known {
		return handoff.Fault(handoff.CodeMalformed, "mode is now, next or aside", "")
	}
	tool := modeTools[mode]
	if body.Begin != "" { // an earlier request, which begins by this tool whatever the mode
		tool = tools.Codex
	}
	if err := mayUseTool(g, tool); err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	record, err := s.cfg.Runs.Give(r.Context(), g, handoff.Request{
		Key: key, Again: key != "", Target: handoff.Target{Server: body.Server, Thread: body.Thread},
		Input: handoff.TextInput(body.Prompt), Context: readAloud(), Mode: mode, Instead: handoff.RunID(body.Begin),
	})
	return accepted(w, record, err)
}

// modes are how work may meet what runs in its session: into it, after it, or beside it.
var modes = map[string]handoff.Mode{"": handoff.ModeNow, "now": handoff.ModeNow, "next": handoff.ModeNext, "aside": handoff.ModeAside}

// modeTools names the tool that a mode of work stands for. Set once.
var modeTools = map[handoff.Mode]string{handoff.ModeNow: tools.Codex, handoff.ModeNext: tools.QueueNext, handoff.ModeAside: tools.RunOnServer}

// steer gives more words to work that runs.
func (s *Server) steer(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Prompt string `json:"prompt"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	record, err := s.cfg.Runs.Steer(r.Context(), g, r.PathValue("id"), handoff.Request{
		Key: key, Again: key != "", Input: handoff.TextInput(body.Prompt), Context: readAloud(),
	})
	return accepted(w, record, err)
}

// heard notes that somebody was told the outcome of work, so that no call tells it again.
func (s *Server) heard(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	record, err := s.cfg.Work.Handoff(g, r.PathValue("id"))
	if err != nil {
		return err
	}
	if record.Outcome == "" {
		return handoff.Fault(handoff.CodeMalformed, "the work has no outcome yet", "")
	}
	return done(w, s.cfg.Outbox.HeardForGood(r.Context(), g.Caller, handoff.RunID(record.ID)))
}

// readAloud tells the agent how its answer will be used: the caller hears it in their next call.
func readAloud() []handoff.Context {
	return []handoff.Context{{Key: "switchboard", Trusted: true, Value: "The answer may be read aloud to the caller: end it with one short sentence that can be said."}}
}

// accepted answers with the record of work that is promised, and where to read what becomes of it.
func accepted(w http.ResponseWriter, record handoff.Record, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/fleet/handoffs/"+record.ID)
	return writeJSON(w, http.StatusAccepted, listed(record))
}
