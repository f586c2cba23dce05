package tools

import (
	"cmp"
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// A Backend is what the tools look at and act on, the same for every front. What nobody asks for may be nil.
type Backend struct {
	Language  wording.Language // of what is said; "": English
	Directory handoff.Directory
	Resolver  Resolver
	Namer     Namer
	Work      Work
	Questions Questions
	Giver     Giver        // for a [Direct] that does not wait
	Runs      handoff.Runs // for one that does
	Decisions Decisions    // for both, like Levels
	Levels    Levels
	WorkIDs   bool // whether [Status] names work by its id, for a front with a tool that takes one
}

// A Resolver finds what a name means.
type Resolver interface {
	Resolve(ctx context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error)
}

// A Namer gives sessions names.
type Namer interface {
	// RenameSession gives the session of a resolved target a name. [handoff.CodeUnsupported]: its agent names sessions
	// itself.
	RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error
}

// Work is what callers asked for. Lists hold what the grant may see.
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error it returns what is known, and there may be more.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Questions(g handoff.Grant) []handoff.RecordQuestion
	// Stop returns at once. Work that somebody else began is not stopped: [handoff.CodeJoined].
	Stop(ctx context.Context, g handoff.Grant, id string) error
}

// Questions are what agents wait for.
type Questions interface {
	// Question finds an open question by its label or id; "" means the only one that is open.
	Question(g handoff.Grant, name string) (handoff.OpenQuestion, error)
}

// A Giver gives work and waits until it is promised. What cannot be begun is an error, and counts as told.
type Giver interface {
	Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error)
}

// Decisions answers agents outside of a call, as far as the grant may: [handoff.CodeNeedsTap] says that only a tap on
// the page counts.
type Decisions interface {
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error
}

// Levels keeps how much callers want to hear of work.
type Levels interface {
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// A Front is who passes one request on to the table. It does what depends on who asks. A nil [Result] without an error
// says that the answer comes later, from the front itself.
type Front interface {
	// Give has work done. The request holds what the tool knows: target, input, mode and the work it begins.
	Give(ctx context.Context, g handoff.Grant, req handoff.Request) (Result, error)
	// Answer answers an open question of an agent.
	Answer(ctx context.Context, g handoff.Grant, q handoff.OpenQuestion, a AnswerArguments) (Result, error)
	// SetLevel sets how much the caller hears of work.
	SetLevel(ctx context.Context, g handoff.Grant, level handoff.SpeechLevel) error
}

// Direct is the [Front] of a program that waits for its answer.
type Direct struct {
	Backend  Backend
	Complete func(*handoff.Request) // adds the key, and what the agent is told beside the prompt; nil: nothing
	// Wait bounds how long Give and Await wait for the outcome of work, or for a question of its agent. Zero: Give
	// waits until the work is promised.
	Wait time.Duration
	// Asked says that the caller knows what is open already: a question that only the page answers, and that stands
	// when Await begins, does not end its wait.
	Asked    bool
	Progress func(handoff.RunEvent) // what happens to the work meanwhile; nil: nobody looks
}

// Give implements [Front]. Its result is a [WorkResult]. With a Wait, work that could not be begun is one too, with a
// failed outcome; else it is an error.
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
	id, err := d.Backend.Runs.Start(ctx, g, req)
	if err != nil {
		return nil, err
	}
	return d.Await(ctx, g, id)
}

// Await waits for the outcome of work, for a question of its agent that is open, or for the end of Wait: then the
// result says how the work stands. Work that the grant may not see is [handoff.CodeNotFound].
func (d Direct) Await(ctx context.Context, g handoff.Grant, id handoff.RunID) (Result, error) {
	waiting, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	var stands handoff.QuestionID
	if q := d.asked(g, id); d.Asked && q != nil && q.Tap != "" {
		stands = q.ID
	}
	var w WorkResult
	for e, err := range d.Backend.Runs.Follow(waiting, g.Caller, id, 0) {
		switch {
		case err != nil && w.Record.ID != "" && waiting.Err() != nil && ctx.Err() == nil:
			w.Question = d.asked(g, id)
			return w, nil
		case err != nil:
			return nil, err
		case !e.Record.Shown(g):
			return nil, handoff.Fault(handoff.CodeNotFound, "such work", "")
		}
		if d.Progress != nil {
			d.Progress(e)
		}
		w.Record = e.Record
		switch k := e.Kind.(type) {
		case handoff.RunPromised:
			w.Waits = k.Waits
		case handoff.RunWaiting:
			w.Waits = k.Waits
		case handoff.RunSteered:
			w.Into = k.Into
		case handoff.RunAsked, handoff.RunSnapshot:
			if q := d.asked(g, id); q != nil && q.ID != stands {
				w.Question = q
			}
		}
		if w.Question != nil {
			break
		}
	}
	return w, nil
}

// asked returns the oldest question of a work that is open now, or nil. Where no yes of the grant counts, it says so.
func (d Direct) asked(g handoff.Grant, id handoff.RunID) *handoff.RecordQuestion {
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

// Answer implements [Front]: the answer counts as one by the API, or as a tap where the grant is the page's.
func (d Direct) Answer(
	ctx context.Context, g handoff.Grant, q handoff.OpenQuestion, a AnswerArguments,
) (Result, error) {
	decision, err := cmp.Or(a.Decision, handoff.DecisionWords), error(nil)
	if decision == handoff.DecisionWords {
		err = d.Backend.Decisions.Reply(ctx, g, q.Shown.ID, a.Text)
	} else {
		err = d.Backend.Decisions.Decide(ctx, g, q.Shown.ID, decision)
	}
	if err != nil {
		return nil, err
	}
	return Answer{d.Backend.Language.DecidedAnswer(q.Shown, decision)}, nil
}

// SetLevel implements [Front].
func (d Direct) SetLevel(ctx context.Context, g handoff.Grant, level handoff.SpeechLevel) error {
	return d.Backend.Levels.SetLevel(ctx, g.Caller, level)
}
