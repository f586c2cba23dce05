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
	maxKey  = 512 // its idempotency key
	maxName = 256 // a name of a server or thread
)

// Start implements [handoff.Runs]. With [handoff.CodeJoined] comes the id of a run that was begun earlier in place of
// the same run (see [handoff.Request]).
func (v Service) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.RunID, error) {
	r, done, err := v.giver(g)
	if err != nil {
		return "", err
	}
	defer done()
	return r.startAs(ctx, g, req, requestHash(req), false)
}

// requestHash returns the hash of what a request asks for: two requests with one key must have the same.
func requestHash(req handoff.Request) string {
	if req.Instead != "" {
		return ledger.Hash(handoff.Encode([]any{"begin", req.Instead}))
	}
	words := []any{trimmed(req.Target), req.Mode, req.After, req.Input}
	if req.From != (handoff.Target{}) {
		words = append(words, trimmed(req.From))
	}
	return ledger.Hash(handoff.Encode(words))
}

// startAs is Start; args is the hash of the request's arguments. waits says that the request is under way until ctx
// ends: until then, an equal one is other work.
func (r *Router) startAs(
	ctx context.Context, g handoff.Grant, req handoff.Request, args string, waits bool,
) (handoff.RunID, error) {
	c := r.caller(g.Caller)
	if c != r.mine {
		return "", handoff.Fault(handoff.CodeInternal, "", "the router of another caller was asked")
	}
	if err := mayGive(g, req); err != nil {
		return "", err
	}
	if same, err := c.findAsked(ctx, req, args); same != "" || err != nil {
		return handoff.RunID(same), err
	}
	if begun, err := c.registry.fillInstead(g, &req); err != nil {
		return begun, err
	}
	if err := checkRequest(g, &req); err != nil {
		return "", err
	}
	parent, tooDeep := c.registry.parentOf(req.Origin)
	if tooDeep != nil {
		return "", tooDeep
	}
	w := c.newRun(r.cfg.IDs.Next())
	if req.Key == "" {
		req.Key = w.ID
	}
	w.asking = waits
	w.grant, w.req, w.askedAt, w.agents.ahead = g, req, time.Now(), c.prefetches.take(req.Key, req.Target)
	w.span = handoff.SpanOf(ctx).Begin("handoff")
	w.ioCtx = handoff.WithSpan(w.ioCtx, w.span)
	if parent := w.span.Parent(); parent != "" {
		w.log = w.log.With(zap.String("traceparent", parent))
	}
	k := ledgerKeyOf(g.Caller, req.Key, args)
	rec := handoff.Record{
		ID: w.ID, Server: req.Target.Server, Prompt: handoff.InputText(req.Input), State: handoff.StatusAccepted,
		Unkept: req.Unkept, CreatedAt: w.askedAt, Key: g.Key, Client: req.Origin.Client, Parent: parent,
	}
	var begun handoff.RunID
	var same string
	var e *handoff.Error
	if !w.open(nil, func() bool {
		same, e = c.openKeyed(rec, w, k, func(former *ledgerWriter) (e *handoff.Error) {
			if begun, e = c.registry.fillInstead(g, &req); e != nil { // another request may have begun it meanwhile
				return e
			}
			if e := r.cfg.Rates.take(g, w.askedAt); e != nil {
				return e
			}
			if !req.Unkept || req.Key != w.ID { // else the request is never repeated, and nothing is to be kept
				w.writer = c.newLedgerWriter(k.key, w.ID, args, req.Again)
				w.writer.setPrint(req.Print)
				w.writer.takeOver(former)
			}
			return nil
		})
		return e == nil && same == ""
	}) {
		w.endIO()
		w.span.End(codeOf(e), "same", strconv.FormatBool(same != ""))
		if w.agents.ahead != nil { // its attach may still take a while
			r.jobs.start(func(context.Context) { w.agents.end(w.log) })
		}
		if e != nil {
			return begun, e
		}
		return handoff.RunID(same), nil
	}
	if waits && req.Print != "" {
		context.AfterFunc(ctx, func() { c.registry.with(w.ID, func(rec *recordState) { rec.asking = false }) })
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

// mayGive returns why a grant does not allow a request, or nil. Paused work is begun as other work is, whatever its
// mode was.
func mayGive(g handoff.Grant, req handoff.Request) error {
	act := handoff.ActGive
	switch {
	case req.Instead != "":
	case req.Mode == handoff.ModeNext:
		act = handoff.ActGiveNext
	case req.Mode == handoff.ModeAside:
		act = handoff.ActAside
	}
	err := g.May(act)
	if err == nil && req.From != (handoff.Target{}) {
		err = g.May(handoff.ActTranscript)
	}
	return err
}

// checkRequest trims the names of a request, and returns what is wrong with it.
func checkRequest(g handoff.Grant, req *handoff.Request) *handoff.Error {
	req.Target, req.From = trimmed(req.Target), trimmed(req.From)
	continues := req.From != (handoff.Target{}) // with a session of another machine
	if continues && req.Target.Thread == "" {
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
	case continues && (t.Thread != handoff.NewThread || req.Mode == handoff.ModeAside):
		return handoff.Fault(handoff.CodeMalformed, "only a new session can go on from another one", "")
	case max(len(t.Server), len(t.Thread), len(req.From.Server), len(req.From.Thread)) > maxName:
		return handoff.Fault(handoff.CodeTooLarge, "a name", "")
	case max(len(req.Key), len(req.Print)) > maxKey:
		return handoff.Fault(handoff.CodeTooLarge, "the key of the request", "")
	case g.Caller.Nameless() && req.By == nil: // nobody could ever hear its outcome
		return handoff.Fault(handoff.CodeNotGranted, "work outside of a call needs a named caller", "")
	}
	return nil
}

// trimmed returns a target with trimmed names, its project written behind the server: "bigpc/api".
func trimmed(t handoff.Target) handoff.Target {
	t.Server, t.Thread = strings.TrimSpace(t.Server), strings.TrimSpace(t.Thread)
	if t.Project != "" {
		t.Server, t.Project = t.Server+"/"+t.Project, ""
	}
	return t
}

// Give is Start for fronts that must be sure: it returns the record once the ledger has the work. If the run ends
// without having begun, its fault is returned as an error.
func (v Service) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.Record, error) {
	r, done, err := v.giver(g)
	if err != nil {
		return handoff.Record{}, err
	}
	defer done()
	return r.giveAs(ctx, g, req, requestHash(req))
}

// giveAs is Give; args is the hash of the request's arguments.
func (r *Router) giveAs(
	ctx context.Context, g handoff.Grant, req handoff.Request, args string,
) (handoff.Record, error) {
	id, err := r.startAs(ctx, g, req, args, true)
	if err != nil {
		return handoff.Record{}, err
	}
	return r.promised(ctx, g, id)
}

// promised waits until the ledger has a run, or its outcome, and returns its record.
func (r *Router) promised(ctx context.Context, g handoff.Grant, id handoff.RunID) (handoff.Record, error) {
	hasEnded := false // the run has an outcome, which is returned once the ledger has that, too
	for e, err := range r.Follow(ctx, g, id, 0) {
		if err != nil {
			c := r.caller(g.Caller) // the client has gone, so the outcome of a run that was never noted is kept
			if rec, w := c.registry.find(string(id)); w == nil && rec.State == handoff.StatusCompleted {
				c.keep(rec.ID)
			}
			return handoff.Record{}, err
		}
		_, ended := e.Kind.(handoff.RunEnded)
		switch {
		case ended && hasEnded:
			return r.Handoff(g, string(id))
		case e.Noted || e.Record.State == handoff.StatusDelivered:
			hasEnded = e.Record.Outcome != "" || r.caller(g.Caller).registry.over(string(id)) // the event may be an old one
			if !hasEnded {
				return e.Record, nil
			}
		case ended && ctx.Err() != nil: // nobody is there to be told
			r.caller(g.Caller).keep(string(id))
			return e.Record, handoff.AsError(ctx.Err())
		case ended:
			err := r.Heard(ctx, g, id)
			if e.Record.Fault != nil {
				err = e.Record.Fault
			}
			return e.Record, err
		}
	}
	return r.Handoff(g, string(id))
}

// Steer gives more words to running work, as a separate request. They go into its turn, or, if the turn ends at this
// moment, into a new turn of the same session. It waits as [Service.Give] does.
func (v Service) Steer(ctx context.Context, g handoff.Grant, id string, req handoff.Request) (handoff.Record, error) {
	if err := g.May(handoff.ActGive); err != nil {
		return handoff.Record{}, err
	}
	c := v.of(g.Caller)
	args := ledger.Hash(handoff.Encode([]any{"steer", id, req.Input}))
	switch same, err := c.findAsked(ctx, req, args); { // the work may have ended since
	case err != nil:
		return handoff.Record{}, err
	case same != "":
		return c.router.promised(ctx, g, handoff.RunID(same))
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

// fillInstead completes a request that begins a run which was not begun (req.Instead): it takes over that run's target
// and words. If that run was begun meanwhile, fillInstead returns the id of the new run and [handoff.CodeJoined].
func (g *registry) fillInstead(by handoff.Grant, req *handoff.Request) (handoff.RunID, *handoff.Error) {
	if req.Instead == "" {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.findLocked(string(req.Instead))
	if rec == nil || !rec.NotBegun() || !rec.Shown(by) {
		return "", handoff.Fault(handoff.CodeNotFound, "such work", "")
	}
	if begun := rec.begunAs; begun != "" {
		if other := g.findLocked(begun); other != nil && other.run != nil {
			return handoff.RunID(begun), handoff.Fault(handoff.CodeJoined, rec.Server, "it was begun already")
		}
		return "", handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	req.Target = handoff.Target{Server: rec.Server, Project: rec.Project, Thread: rec.ThreadID}
	restoreRequest(req, rec.request, rec.Prompt)
	switch rec.Why {
	case handoff.WhyContinued: // the session that is sticky there now
		req.Target.Thread = ""
	case handoff.WhyCopy:
		req.Target.Thread = copyOf + rec.ThreadID
	case handoff.WhyAside:
		req.Mode = handoff.ModeAside
	}
	if req.From != (handoff.Target{}) { // the session that was made for it has never run
		req.Target.Thread = handoff.NewThread
	}
	return "", nil
}
