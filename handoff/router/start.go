package router

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Bounds of a request, in bytes.
const (
	maxKey  = 512 // the name that an asker gives it
	maxName = 256 // a name of a server or thread
)

// Start implements [handoff.Runs]. [handoff.CodeJoined] comes with the id of the run that was begun instead of the
// same one before.
func (v Service) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.RunID, error) {
	return v.of(g.Caller).router.startAs(ctx, g, req, asked(req))
}

// asked is the hash of what a request asks for.
func asked(req handoff.Request) string {
	if req.Instead != "" {
		return ledger.Hash(handoff.Encode([]any{"begin", req.Instead}))
	}
	words := []any{trimmed(req.Target), req.Mode, req.After, req.Input}
	if req.From != (handoff.Target{}) {
		words = append(words, trimmed(req.From))
	}
	return ledger.Hash(handoff.Encode(words))
}

// startAs is Start of a request with the hash of what it asks for.
func (r *Router) startAs(
	ctx context.Context, g handoff.Grant, req handoff.Request, args string,
) (handoff.RunID, error) {
	c := r.caller(g.Caller)
	if c != r.mine {
		return "", handoff.Fault(handoff.CodeInternal, "", "the router of another caller was asked")
	}
	if req.Again {
		if same, err := c.again(ctx, keyedBy(g.Caller, req.Key, args)); same != "" || err != nil {
			return handoff.RunID(same), err
		}
	}
	if begun, err := c.registry.unbegun(g, &req); err != nil {
		return begun, err
	}
	if err := checkRequest(g, &req); err != nil {
		return "", err
	}
	parent, tooDeep := c.registry.asker(req.Origin)
	if tooDeep != nil {
		return "", tooDeep
	}
	w := c.newRun(r.cfg.IDs.Next())
	if req.Key == "" {
		req.Key = w.ID
	}
	w.grant, w.req, w.asked, w.agents.ahead = g, req, time.Now(), c.prefetches.take(req.Key, req.Target)
	w.span = handoff.SpanOf(ctx).Begin("handoff")
	w.ioCtx = handoff.WithSpan(w.ioCtx, w.span)
	if parent := w.span.Parent(); parent != "" {
		w.log = w.log.With(zap.String("traceparent", parent))
	}
	k := keyedBy(g.Caller, req.Key, args)
	rec := handoff.Record{
		ID: w.ID, Server: req.Target.Server, Prompt: handoff.InputText(req.Input), State: handoff.StatusAccepted,
		Unkept: req.Unkept, CreatedAt: w.asked, Client: req.Origin.Client, Parent: parent,
	}
	var begun handoff.RunID
	var same string
	var e *handoff.Error
	if !w.open(nil, func() bool {
		same, e = c.openKeyed(rec, w, k, func(former *ledgerWriter) (e *handoff.Error) {
			if begun, e = c.registry.unbegun(g, &req); e != nil { // somebody else may have said so at the same moment
				return e
			}
			if e := r.cfg.Rates.take(g, w.asked); e != nil {
				return e
			}
			if !req.Unkept || req.Again { // else nobody asks again, and nothing is to be kept
				w.writer = c.newLedgerWriter(k.key, w.ID, args, req.Again)
				w.writer.follows(former)
			}
			return nil
		})
		return e == nil && same == ""
	}) {
		w.endIO()
		w.span.End(codeOf(e), "same", strconv.FormatBool(same != ""))
		if w.agents.ahead != nil { // what was attached ahead may take a while
			r.jobs.start(func(context.Context) { w.agents.end(w.log) })
		}
		if e != nil {
			return begun, e
		}
		return handoff.RunID(same), nil
	}
	if w.req.Instead != "" && req.By == nil {
		c.feed.byHand(string(w.req.Instead), handoff.RunByHand{Deed: handoff.DeedContinue})
	}
	if !r.jobs.start(w.loop) {
		c.registry.change(w.ID, func(rec *handoff.Record) {
			rec.State, rec.Outcome, rec.EndedAt = handoff.StatusCompleted, handoff.OutcomeCancelled, new(time.Now())
		})
		c.ended(w.ID)
		w.span.End(handoff.CodeShutdown)
		return "", handoff.Fault(handoff.CodeShutdown, "", "")
	}
	return handoff.RunID(w.ID), nil
}

// checkRequest trims the names of a request and tells what is wrong with it.
func checkRequest(g handoff.Grant, req *handoff.Request) *handoff.Error {
	req.Target, req.From = trimmed(req.Target), trimmed(req.From)
	goesOn := req.From != (handoff.Target{})
	if goesOn && req.Target.Thread == "" {
		req.Target.Thread = handoff.NewThread
	}
	t := req.Target
	size, empty := 0, true
	for _, p := range req.Input {
		text, words := p.(handoff.Text)
		size += len(text)
		empty = empty && words && strings.TrimSpace(string(text)) == ""
	}
	switch {
	case empty:
		return handoff.Fault(handoff.CodeMalformed, "the prompt is empty", "")
	case size > handoff.MaxPrompt:
		return handoff.Fault(handoff.CodeTooLarge, "the prompt", "")
	case goesOn && (t.Thread != handoff.NewThread || req.Mode == handoff.ModeAside):
		return handoff.Fault(handoff.CodeMalformed, "only a new session can go on from another one", "")
	case max(len(t.Server), len(t.Thread), len(req.From.Server), len(req.From.Thread)) > maxName:
		return handoff.Fault(handoff.CodeTooLarge, "a name", "")
	case len(req.Key) > maxKey:
		return handoff.Fault(handoff.CodeTooLarge, "the key of the request", "")
	case g.Caller.Nameless() && req.By == nil: // nobody could ever hear of it
		return handoff.Fault(handoff.CodeNotGranted, "work outside of a call needs a named caller", "")
	}
	return nil
}

// trimmed is a target as it was asked for, its project behind the server.
func trimmed(t handoff.Target) handoff.Target {
	t.Server, t.Thread = strings.TrimSpace(t.Server), strings.TrimSpace(t.Thread)
	if t.Project != "" {
		t.Server, t.Project = t.Server+"/"+t.Project, ""
	}
	return t
}

// Give is Start for callers that wait for the promise: it returns the record once the ledger has the work. What
// cannot be begun is an error instead.
func (v Service) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error) {
	return v.of(g.Caller).router.giveAs(ctx, g, req, asked(req))
}

// giveAs is Give of a request with the hash of what it asks for.
func (r *Router) giveAs(
	ctx context.Context, g handoff.Grant, req handoff.Request, args string,
) (handoff.Record, error) {
	id, err := r.startAs(ctx, g, req, args)
	if err != nil {
		return handoff.Record{}, err
	}
	return r.promised(ctx, g, id)
}

// promised waits until the ledger has a run, or its end, and returns its record.
func (r *Router) promised(ctx context.Context, g handoff.Grant, id handoff.RunID) (handoff.Record, error) {
	before := false // it has ended; who asks hears of that once the ledger does
	for e, err := range r.Follow(ctx, g.Caller, id, 0) {
		if err != nil {
			c := r.caller(g.Caller) // whoever asked has gone: an outcome that was never promised is kept
			if rec, w := c.registry.find(string(id)); w == nil && rec.State == handoff.StatusCompleted {
				c.keep(rec.ID)
			}
			return handoff.Record{}, err
		}
		_, ended := e.Kind.(handoff.RunEnded)
		switch {
		case ended && before:
			return r.Handoff(g, string(id))
		case e.Noted || e.Record.State == handoff.StatusDelivered:
			before = e.Record.Outcome != "" || r.caller(g.Caller).registry.over(string(id)) // the event may be an old one
			if !before {
				return e.Record, nil
			}
		case ended:
			err := r.Heard(ctx, g.Caller, id)
			if e.Record.Fault != nil {
				err = e.Record.Fault
			}
			return e.Record, err
		}
	}
	return r.Handoff(g, string(id))
}

// Steer gives more words to running work, as a separate request: they go into its turn, or, should that end
// this moment, come after it in the same session. It waits as [Service.Give] does.
func (v Service) Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error) {
	c := v.of(g.Caller)
	args := ledger.Hash(handoff.Encode([]any{"steer", id, req.Input}))
	if req.Again { // the work may have ended since
		same, err := c.again(ctx, keyedBy(g.Caller, req.Key, args))
		if err != nil {
			return handoff.Record{}, err
		}
		if same != "" {
			return c.router.promised(ctx, g, handoff.RunID(same))
		}
	}
	rec, w := c.registry.find(id)
	switch {
	case rec.ID == "" || !rec.Shown(g):
		return handoff.Record{}, c.router.notFound()
	case w == nil, rec.Outcome != "":
		return handoff.Record{}, handoff.Fault(handoff.CodeWorkEnded, "", "")
	case rec.ThreadID == "" || rec.ThreadID == handoff.NewThread:
		e := handoff.Fault(handoff.CodeMalformed, "that work has no session yet; ask again in a moment", "")
		return handoff.Record{}, e
	}
	req.Target = handoff.Target{Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID}
	return c.router.giveAs(ctx, g, req, args)
}

// unbegun makes a request that of the run which was not begun, if it names one. When that was begun since, it returns
// what was begun with [handoff.CodeJoined].
func (g *registry) unbegun(by handoff.Grant, req *handoff.Request) (handoff.RunID, *handoff.Error) {
	if req.Instead == "" {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(string(req.Instead))
	if rec == nil || !rec.NotBegun() || !rec.Shown(by) {
		return "", handoff.Fault(handoff.CodeNotFound, "such work", "")
	}
	if begun := rec.begun; begun != "" {
		if other := g.findLocked(begun); other != nil && other.run != nil {
			return handoff.RunID(begun), handoff.Fault(handoff.CodeJoined, rec.Server, "it was begun already")
		}
		return "", handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	req.Target = handoff.Target{Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID}
	restoreWords(req, rec.waiting, rec.Prompt)
	switch rec.Why {
	case handoff.WhyContinued: // what they use there now
		req.Target.Thread = ""
	case handoff.WhyCopy:
		req.Target.Thread = copyOf + rec.ThreadID
	case handoff.WhyAside:
		req.Mode = handoff.ModeAside
	}
	if req.From != (handoff.Target{}) { // what was made for it has never run
		req.Target.Thread = handoff.NewThread
	}
	return "", nil
}
