package responses

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
)

// beginInConversation begins a response in a conversation, which it reserves. One response runs there at a time.
func (a *API) beginInConversation(
	ctx context.Context, g handoff.Grant, req *request, p *attempt, run handoff.Request,
) (*liveResponse, *fault) {
	a.catchUp(ctx, g, req.conversation)
	key := liveKey{g.Caller, req.conversation}
	if f := a.conversations.occupy(key); f != nil {
		return nil, f
	}
	l, f := a.beginReserved(ctx, g, req, p, run)
	if f != nil {
		a.conversations.vacate(key)
	}
	return l, f
}

// beginReserved begins a response in a reserved conversation: in its session, and with the items that the agent has not
// got yet.
func (a *API) beginReserved(
	ctx context.Context, g handoff.Grant, req *request, p *attempt, run handoff.Request,
) (*liveResponse, *fault) {
	c, f := a.conversations.read(ctx, g, req.conversation)
	if f != nil {
		f.Param = new("conversation")
		return nil, f
	}
	run.Mode, run.Target.Thread = handoff.ModeNext, handoff.NewThread
	if c.Thread != "" {
		if serverOf(req.Model) != c.Server {
			return nil, bad(
				"model_mismatch",
				"model",
				"The conversation is with the model '"+modelOf(c.Server, c.Project)+"'; its session is on that machine.",
			)
		}
		run.Target.Server, run.Target.Thread = modelOf(c.Server, c.Project), c.Thread
	}
	if untold := c.Items[min(c.Told, len(c.Items)):]; len(untold) > 0 {
		before, f := readInput(json.RawMessage(encode(untold)))
		if f != nil {
			return nil, f
		}
		if text := handoff.InputText(before.parts); text != "" {
			before.before = append(before.before, "user: "+text)
		}
		if len(before.before) > 0 {
			req.input.before = append(before.before, req.input.before...)
			run.Context = req.context()
		}
	}
	return a.begin(ctx, g, req, p, run)
}

// catchUp follows the open response that an earlier process began in a conversation. If the response has ended, its
// items have been added afterwards; otherwise the conversation stays reserved until it ends.
func (a *API) catchUp(ctx context.Context, g handoff.Grant, id string) {
	c, f := a.conversations.read(ctx, g, id)
	if f != nil || c.Open == "" || a.live.get(g.Caller, c.Open) != nil {
		return
	}
	doc, l, f := a.find(ctx, g, c.Open)
	switch {
	case f != nil:
		return
	case l != nil:
		a.awaitEnd(g, l)
	case ended(doc.Response.Status) && doc.Response.Conversation != nil &&
		a.conversations.occupy(liveKey{g.Caller, id}) == nil:
		if c, f = a.conversations.read(ctx, g, id); f != nil || c.Open != doc.Response.ID { // another was faster
			a.conversations.vacate(liveKey{g.Caller, id})
			return
		}
		a.conversations.leave(g.Caller, doc)
	}
}

// awaitEnd waits shortly for the end of a response whose run has ended.
func (a *API) awaitEnd(g handoff.Grant, l *liveResponse) {
	rec, err := a.cfg.Work.Handoff(g, string(l.run()))
	if err != nil || rec.Outcome == "" {
		return
	}
	late := time.After(time.Second)
	for {
		_, over, changed, _ := l.read(0)
		if over {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		}
	}
}
