package tools

import (
	"cmp"
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// A Backend has what the tools read and act on, the same for every front. Fields that a front's tools do not use may be
// nil.
type Backend struct {
	Language  wording.Language // of sentences; "": English
	Directory handoff.Directory
	Resolver  Resolver
	Namer     Namer
	Trees     Trees
	Work      Work
	Questions Questions
	Giver     Giver            // for a [Direct] without Wait
	Handoffs  handoff.Handoffs // for a [Direct] with Wait
	Decisions Decisions        // for any [Direct]
	Levels    Levels           // for a call; does not wait
	WorkIDs   bool             // [Status] has the ids of work, for a front with a tool that takes one
}

// A Resolver finds the target that a name means.
type Resolver interface {
	Resolve(ctx context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error)
}

// A Namer gives sessions names.
type Namer interface {
	// RenameSession gives the session of a resolved target a name. [handoff.CodeUnsupported] means that its agent names
	// sessions itself.
	RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error
}

// Trees removes the worktrees of sessions.
type Trees interface {
	// RemoveWorktree removes the worktree of a session and its branch, unless something would be lost.
	RemoveWorktree(ctx context.Context, g handoff.Grant, t handoff.Target) error
}

// Work lists and stops the work of callers, as far as a grant may see it.
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error the list may be incomplete.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Questions(g handoff.Grant) []handoff.RecordQuestion
	// Stop returns at once. A turn of somebody else that took words of the caller is not stopped: [handoff.CodeJoined].
	// One that is watched is not stopped by [handoff.StopOurs]: [handoff.CodeNoConsent].
	Stop(ctx context.Context, g handoff.Grant, id string, of handoff.StopOf) error
}

// Questions finds open questions of agents.
type Questions interface {
	// Question finds an open question by its label or id; "" finds the only one.
	Question(g handoff.Grant, name string) (handoff.OpenQuestion, error)
}

// A Giver gives work and waits until it is promised. If the work cannot be begun, Give returns an error, and the
// outcome counts as told.
type Giver interface {
	Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error)
}

// Decisions answers agents outside of a call, as far as the grant may: [handoff.CodeNeedsTap] says that only a tap on
// the page counts.
type Decisions interface {
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, reply handoff.Reply) error
}

// Levels sets the speech levels of callers. After an error the level holds only until the process ends.
type Levels interface {
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// A Front is the part of a tool call that depends on the front, for one request. If a method returns a nil [Result]
// without an error, the front itself answers later.
type Front interface {
	// Give has work done. The request has what the tool knows: target, input, mode and the work that it begins.
	Give(ctx context.Context, g handoff.Grant, req handoff.Request) (Result, error)
	// Answer answers an open question of an agent.
	Answer(ctx context.Context, g handoff.Grant, q handoff.OpenQuestion, a AnswerArguments) (Result, error)
}

// Direct is the [Front] of a program that waits for its answer.
type Direct struct {
	Backend  Backend
	Complete func(*handoff.Request) // adds the key, and context for the agent; nil: nothing
	// Wait bounds how long Give and Await wait for the outcome of work, or for a question of its agent. Zero: Give
	// waits until the work is promised.
	Wait time.Duration
	// Asked says that the caller knows the open questions. Then a question that can only be answered on the page, and
	// is open when Await begins, does not end its wait.
	Asked    bool
	Progress func(handoff.Event) // called with each event of the work; may be nil
}

// Give implements [Front]. Its result is a [WorkResult]. Work that could not be begun is a WorkResult with a failed
// outcome if Wait is set, and an error if not.
func (d Direct) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (Result, error) {
	if d.Complete != nil {
		d.Complete(&req)
	}
	if d.Wait == 0 {
		rec, err := d.Backend.Giver.Give(ctx, g, req)
		if err != nil {
			return nil, err
		}
		return WorkResult{Record: rec}, nil
	}
	id, err := d.Backend.Handoffs.Start(ctx, g, req)
	if err != nil {
		return nil, err
	}
	return d.Await(ctx, g, id)
}

// Await waits for the outcome of work, for an open question of its agent, or until Wait is over. It returns the state
// of the work then. Work that the grant may not see is [handoff.CodeNotFound].
func (d Direct) Await(ctx context.Context, g handoff.Grant, id handoff.ID) (Result, error) {
	waiting, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	var known handoff.QuestionID
	if q := d.asked(g, id); d.Asked && q != nil && q.Tap != "" {
		known = q.ID
	}
	var w WorkResult
	for e, err := range d.Backend.Handoffs.Follow(waiting, g, id, 0) {
		switch {
		case err != nil && w.Record.ID != "" && waiting.Err() != nil && ctx.Err() == nil:
			w.Question = d.asked(g, id)
			return w, nil
		case err != nil:
			return nil, err
		}
		if d.Progress != nil {
			d.Progress(e)
		}
		w.Record = e.Record
		switch k := e.Kind.(type) {
		case handoff.EventPromised:
			w.Waits = k.Waits
		case handoff.EventWaiting:
			w.Waits = k.Waits
		case handoff.EventSteered:
			w.Into = k.Into
		case handoff.EventAsked, handoff.EventSnapshot:
			if q := d.asked(g, id); q != nil && q.ID != known {
				w.Question = q
			}
		}
		if w.Question != nil {
			break
		}
	}
	return w, nil
}

// asked returns the oldest open question of a work, or nil. If no yes of the grant counts, the question's Tap says so.
func (d Direct) asked(g handoff.Grant, id handoff.ID) *handoff.RecordQuestion {
	var oldest *handoff.RecordQuestion
	for _, q := range d.Backend.Work.Questions(g) {
		if q.Handoff == string(id) && (oldest == nil || q.Asked.Before(oldest.Asked)) {
			oldest = &q
		}
	}
	if oldest != nil && g.Approve < handoff.ApproveAll {
		oldest.Tap = cmp.Or(oldest.Tap, handoff.WhyNoApprove)
	}
	return oldest
}

// Answer implements [Front]: the answer counts as one by the API, or, if the grant is a page's, as a tap.
func (d Direct) Answer(
	ctx context.Context, g handoff.Grant, q handoff.OpenQuestion, a AnswerArguments,
) (Result, error) {
	decision, err := cmp.Or(a.Decision, handoff.DecisionWords), error(nil)
	if decision == handoff.DecisionWords {
		err = d.Backend.Decisions.Reply(ctx, g, q.Shown.ID, handoff.Reply{Words: a.Text})
	} else {
		err = d.Backend.Decisions.Decide(ctx, g, q.Shown.ID, decision)
	}
	if err != nil {
		return nil, err
	}
	return Answer{d.Backend.Language.DecidedAnswer(q.Shown, decision)}, nil
}
