package responses

import (
	"context"
	"fmt"
	"slices"
	"time"

	"switchboard/handoff"
)

// same returns the run that a request repeats, as the router does; "": none. w.mu is held.
func (w *world) same(req handoff.Request) (handoff.ID, error) {
	for _, r := range slices.Backward(w.runs) {
		surely := req.Again && (r.until.IsZero() || time.Now().Before(r.until))
		may := surely || r.until.IsZero() && (r.asking == nil || r.asking.Err() != nil)
		notBegun := r.rec.Fault != nil && r.rec.Fault.Code == handoff.CodeNotBegun
		free := r.rec.TurnID == "" && (r.rec.Outcome == handoff.OutcomeFailed || notBegun)
		switch {
		case free, time.Since(r.rec.CreatedAt) > retriedFor:
		case req.Key != "" && req.Key == r.req.Key && req.Args != r.req.Args:
			return "", handoff.Fault(handoff.CodeConflict, "", "")
		case req.Key != "" && req.Key == r.req.Key, req.Print != "" && req.Print == r.req.Print && !req.First && may:
			return handoff.ID(r.rec.ID), nil
		}
	}
	return "", nil
}

func (w *world) Repeats(_ context.Context, _ handoff.Grant, req handoff.Request) (handoff.ID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken && !req.First {
		return "", handoff.Fault(handoff.CodeStoreDown, "", "")
	}
	return w.same(req)
}

func (w *world) Answered(g handoff.Grant, id handoff.ID, lost time.Duration) {
	_, r := w.find(g.Caller, string(id))
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.until.IsZero() {
		r.until = time.Now().Add(lost)
	}
}

func (w *world) Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error) {
	w.mu.Lock()
	if w.refuse != nil {
		defer w.mu.Unlock()
		return "", w.refuse
	}
	if same, err := w.same(req); same != "" || err != nil {
		defer w.mu.Unlock()
		return same, err
	}
	n := len(w.runs) + 1
	r := &scripted{owner: g.Caller, req: req, changed: make(chan struct{}), rec: handoff.Record{
		ID: fmt.Sprint("r", n), Server: serverOf(req.Target.Server), Prompt: handoff.InputText(req.Input), Unkept: req.Unkept,
		CreatedAt: time.Now(),
	}}
	if req.Waits {
		r.asking = ctx
	}
	w.runs = append(w.runs, r)
	hold := w.hold
	w.mu.Unlock()
	if !hold {
		w.place(n)
	}
	return handoff.ID(r.rec.ID), nil
}
