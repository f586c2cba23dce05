package work

import (
	"cmp"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// WatchFor is after how long a thread is watched no longer, once no turn runs there.
const WatchFor = 12 * time.Hour

// unwatchable returns why a thread is not watched: its machine is not, work of ours uses it, or none is named.
func (s *State) unwatchable(h *Handoff, never, free bool) (phase.Fact, *handoff.Error) {
	s.leave(h, "")
	switch server := h.run.Target.Server; {
	case never:
		return phase.FactUnresolved, handoff.Fault(handoff.CodeRefused, server, "its settings say watch: none")
	case !free:
		return phase.FactUnresolved, handoff.Fault(handoff.CodeBusy, server, "work of the caller's own runs there")
	}
	return phase.FactUnresolved, handoff.Fault(handoff.CodeUnknownSession, "to watch", "it has to be named")
}

// watches reports whether other work than but watches a thread.
func (s *State) watches(t handoff.Target, but *Handoff) bool {
	return slices.ContainsFunc(s.all, func(h *Handoff) bool {
		return h != but && h.open && h.run.Request.Mode == handoff.ModeWatch && h.run.Target == t
	})
}

// nextWatched decides whether the thread has a turn to be followed: one that runs, or one that began and ended since
// the last look. Else it is looked at again. Meanwhile others may use it, and the caller's own turns there are not
// followed: they are told as their own work.
func (s *State) nextWatched(h *Handoff) (phase.Fact, *handoff.Error) {
	at, registered := h.run.Attached, s.cfg.Registered(h.run.Target.Server)
	turn, first := cmp.Or(at.Running, at.Newest), h.state.Phase != phase.Waiting
	switch {
	case first && at.Running == "" && registered.Private: // the next turn of somebody else would not show
		return phase.FactAttachFailed, handoff.Fault(handoff.CodeIdle, h.Title, "")
	case registered.Unwatched, at.Running == "" && s.watchedEnough(h):
		return phase.FactLeft, nil
	case at.Running == "" && (first || turn == h.run.Before):
	case !s.owns(h, turn) && s.take(h, ThreadKey(h.run.Target)):
		return phase.FactAttached, nil
	}
	s.leave(h, "")
	h.run.Before, h.run.Tries, h.wait.reason = turn, 0, handoff.WaitsTheirs
	return phase.FactAttachedBusy, nil
}

// watchedEnough reports whether h has watched for as long as it may.
func (s *State) watchedEnough(h *Handoff) bool {
	return handoff.Passed(h.run.AskedAt, s.now) >= WatchFor
}

// owns reports whether other work of the caller has a turn of the thread that h watches.
func (s *State) owns(h *Handoff, turn handoff.TurnID) bool {
	return slices.ContainsFunc(s.all, func(o *Handoff) bool {
		return o != h && o.TurnID == turn && o.Server == h.Server && o.ThreadID == h.ThreadID
	})
}

// watchOn has a thread watched on whose turn has ended: as another handoff, since each has one outcome. It is written
// with that outcome, so that a kill in between loses neither.
func (s *State) watchOn(h *Handoff) {
	if h.run.Request.Mode != handoff.ModeWatch || h.run.Turn == "" || h.state.Stopping || s.over ||
		h.state.Outcome == handoff.OutcomeCancelled || s.cfg.Registered(h.run.Target.Server).Private {
		return
	}
	id := s.cfg.NextID()
	next := &Handoff{
		Record: handoff.Record{
			ID: id, Server: h.Server, Project: h.Project, ThreadID: h.ThreadID, Title: h.Title, Why: h.Why,
			State: handoff.StatusAccepted, Unkept: h.Unkept, CreatedAt: s.now, EndsWithUs: h.EndsWithUs,
			Key: h.Key, Client: h.Client, Parent: h.Parent,
		},
		open: true, span: h.span, key: KeyOf(s.cfg.Caller, id), args: h.args,
		doc: document{never: h.doc.never, free: true, accepted: h.run.AskedAt},
		run: Run{
			Grant: h.run.Grant, Target: h.run.Target, Before: h.run.Turn, AskedAt: h.run.AskedAt,
			Request: handoff.Request{Key: id, Target: h.run.Target, Mode: handoff.ModeWatch, Unkept: h.Unkept},
		},
		state: phase.State{Phase: phase.Waiting, Due: true},
	}
	s.add(next)
	s.byKey[next.key] = id
	s.act(next, phase.ActAwait)
	s.act(next, phase.ActNote)
}
