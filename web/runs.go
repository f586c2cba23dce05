package web

import (
	"context"
	"iter"
	"net/http"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// maxRun bounds the body of a request for work: the escaped prompt, and names.
const maxRun = 2*handoff.MaxPrompt + maxJSON

// Runs takes work that is given outside of calls. Give and Steer return when the work is promised; it then has exactly
// one outcome. A request with the idempotency key of an earlier one returns the earlier record, or an error with
// [handoff.CodeConflict].
type Runs interface {
	tools.Giver
	// Steer adds words to running work; they have a record of their own.
	Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error)
	// Follow yields the events of a handoff; see [handoff.Handoffs].
	Follow(ctx context.Context, g handoff.Grant, id handoff.ID, after uint64) iter.Seq2[handoff.Event, error]
}

// Queue has the order of waiting work.
type Queue interface {
	// Move puts waiting work before other waiting work of its session, or for "" behind all of it.
	Move(ctx context.Context, g handoff.Grant, id, before string) error
}

// give gives work to an agent.
func (wk work) give(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Server     string `json:"server"`
		Thread     string `json:"thread_id"`
		FromServer string `json:"from_server"` // with from_thread_id: a session elsewhere that a new one continues
		FromThread string `json:"from_thread_id"`
		Prompt     string `json:"prompt"`
		Mode       string `json:"mode"`
		Worktree   bool   `json:"worktree"` // a new session begins in a worktree of its own
		Goal       bool   `json:"goal"`     // the prompt is the goal of the session, too
		Begin      string `json:"begin"`    // the id of paused work, whose prompt and session are used
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	work := tools.CodexArguments{
		Server: body.Server, Thread: body.Thread, FromServer: body.FromServer, FromThread: body.FromThread,
		Prompt: body.Prompt, Worktree: body.Worktree, Goal: body.Goal, Begin: body.Begin,
	}
	args, tool := tools.Arguments(work), tools.Codex
	switch body.Mode { // where the session has running work: into it, after it, or beside it
	case "", "now":
	case "next":
		args, tool = tools.NextArguments{CodexArguments: work}, tools.QueueNext
	case "aside":
		args, tool = tools.AsideArguments{CodexArguments: work}, tools.RunOnServer
	case "watch":
		if body.Prompt != "" || body.Begin != "" || body.FromServer != "" || body.Goal {
			return handoff.Fault(handoff.CodeMalformed, "to watch takes server and thread_id alone", "")
		}
		args, tool = tools.WatchArguments{Server: body.Server, Thread: body.Thread}, tools.Watch
	default:
		return handoff.Fault(handoff.CodeMalformed, "mode is now, next, aside or watch", "")
	}
	if body.Begin != "" { // paused work begins with this tool, whatever its mode was
		tool = tools.Codex
	}
	if !g.AllowsTool(tool) {
		return handoff.Fault(handoff.CodeNotGranted, "it has no tool "+tool, "")
	}
	front := tools.Direct{Backend: wk.tools, Complete: completeBy(r, g, body)}
	result, err := args.Do(r.Context(), front.Backend, front, g)
	if err != nil {
		return err
	}
	return wk.accepted(w, r, g, result.(tools.WorkResult).Record)
}

// completeBy returns a function that adds to a request for work the idempotency key of an HTTP request, or else the
// print of its body, and a note that the caller will hear the answer in their next call.
func completeBy(r *http.Request, g handoff.Grant, body any) func(*handoff.Request) {
	return func(req *handoff.Request) {
		req.Key = r.Header.Get("Idempotency-Key")
		if req.Again = req.Key != ""; !req.Again {
			req.Print = handoff.PrintOf("api", g.Caller, g.Key, r.URL.Path, body)
		}
		req.Context = []handoff.Context{{Key: "switchboard", Trusted: true,
			Value: "The answer may be read aloud to the caller: end it with one short sentence that can be said."}}
	}
}

// steer adds words to running work.
func (wk work) steer(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Prompt string `json:"prompt"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	req := handoff.Request{Input: handoff.TextInput(body.Prompt)}
	completeBy(r, g, body)(&req)
	record, err := wk.router.Steer(r.Context(), g, r.PathValue("id"), req)
	if err != nil {
		return err
	}
	return wk.accepted(w, r, g, record)
}

// move changes the order of waiting work in a session.
func (wk work) move(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Before string `json:"before"` // the id of the work to put it before; "": behind all that waits
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	return done(w, wk.router.Move(r.Context(), g, r.PathValue("id"), body.Before))
}

// heard records that the caller knows the outcome of work, so that no call tells it again.
func (wk work) heard(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	record, err := wk.router.Handoff(g, r.PathValue("id"))
	if err != nil {
		return err
	}
	if record.Outcome == "" {
		return handoff.Fault(handoff.CodeMalformed, "the work has no outcome yet", "")
	}
	return done(w, wk.router.HeardForGood(r.Context(), g, handoff.ID(record.ID)))
}

// accepted answers with the record of promised work, and its location. If the answer did not reach the client, the same
// request is the same work.
func (wk work) accepted(w http.ResponseWriter, r *http.Request, g handoff.Grant, record handoff.Record) error {
	w.Header().Set("Location", "/fleet/handoffs/"+record.ID)
	if err := writeJSON(w, http.StatusAccepted, listed(record)); err != nil {
		return err
	}
	if handoff.Written(w, r) {
		wk.router.Answered(g, handoff.ID(record.ID), 0)
	}
	return nil
}
