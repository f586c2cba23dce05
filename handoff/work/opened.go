package work

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/wording"
)

// Opened is what the store has of the caller, with the whole words of the handoffs that it has documents of, by key. An
// error means that not all of it was read: nothing is written from what was not read whole.
type Opened struct {
	State  ledger.State
	Bodies map[string]ledger.Body
	Err    error
}

func (o *Opened) apply(s *State) {
	k := &s.keep
	k.loading = false
	switch {
	case k.open:
		return
	case o.Err != nil:
		s.away(o.Err)
		s.tellUnheard()
		return
	}
	k.open, k.tries, k.again = true, 0, time.Time{}
	k.reads(o.State)
	s.openPlaces(o.State.Documents)
	if s.over { // the work is taken up elsewhere, or by the next life
		return
	}
	entries := ledger.Entries(o.State.Documents, s.cfg.Bad)
	for _, e := range entries {
		switch h := s.find(s.byKey[e.Key]); {
		case h != nil && h.doc.free && e.Free(): // it was asked for since, and replaces what never began
			h.doc.clear, h.doc.free = true, false
		case h != nil && !h.doc.free, e.Status == handoff.StatusDelivered:
		default:
			if h != nil {
				h.doc.taken = true
			}
			s.restore(e, o.Bodies[e.Key])
		}
	}
	for _, e := range entries {
		if e.Instead != "" && (e.Code.Asks() || !e.Free()) { // what was paused went on, though it still stands there
			paused := s.find(string(e.Instead))
			s.closePaused(paused, e.ClientID)
			s.endPaused(paused, wording.WentOn)
		}
	}
	s.tellUnheard()
}

// restore takes up a handoff of an earlier life. It starts nothing: a turn that runs, or may run, is looked for.
func (s *State) restore(e ledger.Entry, body ledger.Body) {
	if ledger.Made(e.Why) {
		s.cfg.Own(e.Target)
	}
	h := s.restored(e, body)
	if h.Unkept {
		s.closeUnkept(h)
		return
	}
	if e.Status == handoff.StatusCompleted {
		h.Paused = h.NotBegun()
		s.add(h)
		if !s.settleAdded(h) {
			h.unheard = true
			h.notified = true // the earlier life sent the notice, unless it was killed, and the next call tells anyway
		}
		return
	}
	h.open = true
	if h.run.AskedAt = s.now; e.Accepted.Before(s.now) { // else the clock was set back, and the time is useless
		h.run.AskedAt = e.Accepted
	}
	h.run.Request = handoff.Request{Target: e.Target, Instead: e.Instead}
	restoreRequest(&h.run.Request, body.Request, h.Prompt)
	switch e.Why {
	case handoff.WhyAside:
		h.run.Request.Mode = handoff.ModeAside
	case handoff.WhyWatched:
		h.run.Request.Mode = handoff.ModeWatch
	}
	h.state = phase.State{
		Phase: phase.Reconciling, Noted: true, Due: true, Inherited: true, Merged: e.Why == handoff.WhyMerged,
		Stopping: e.Stopping,
	}
	h.run.Gate.Thread = e.Target // so that the gate is freed, which the earlier life may hold
	s.add(h)
	switch {
	case e.Why == handoff.WhyWatched && e.Turn == "": // nothing was begun for it
		h.state, h.Waits = phase.State{Phase: phase.Waiting, Noted: true, Due: true}, "theirs"
		s.act(h, phase.ActAwait)
		h.offered = true
		s.handOver()
		return
	// It certainly never began: a start is written before it is sent. The caller is asked whether to begin it.
	case e.Status == handoff.StatusAccepted:
		h.state.Phase, h.state.Outcome = phase.Writing, handoff.OutcomeCancelled
		s.finish(h, handoff.Fault(handoff.CodeNotBegun, e.Target.Server, "a former life of this process had accepted it"))
		s.act(h, h.state.First())
		return
	case e.Turn != "":
		h.state.Phase, h.state.Seen, h.run.Lost = phase.Reconnecting, true, s.now
	}
	s.take(h, ThreadKey(e.Target))
	s.act(h, h.state.First())
	s.publish(h, handoff.EventNoted{})
	h.offered = true
	s.handOver()
}

// restored makes a handoff of its document.
func (s *State) restored(e ledger.Entry, body ledger.Body) *Handoff {
	h := &Handoff{
		Record: recordOf(e, cmp.Or(e.ClientID, s.cfg.NextID()), s.cfg.Registered), key: e.Key, args: e.Args,
		request: body.Request, span: handoff.SpanOf(context.Background()),
		run:     Run{Target: e.Target, Before: e.Watermark, Turn: e.Turn},
		attempt: attempt{number: e.Attempt, target: e.Target},
		doc: document{
			known: true, sent: true, status: e.Status, turn: e.Turn, code: e.Code, print: e.Print, accepted: e.Accepted,
		},
	}
	h.print, h.until = ledger.Printed(e.Print)
	for part, text := range map[string]string{ledger.PartPrompt: body.Prompt, ledger.PartText: body.Text,
		ledger.PartDid: body.Did, ledger.PartRequest: body.Request} {
		if text != "" {
			h.doc.texts = append(h.doc.texts, part)
		}
	}
	restoreDetails(&h.Record, body)
	h.log.noted = true
	s.byKey[e.Key] = h.ID
	return h
}

// closeUnkept ends a handoff of which no words are kept. Its turn is not looked for, and no outcome is told. If the
// words were never sent, a new handoff may have the key. One that may be repeated by its print does not become history,
// which is found by a key alone.
func (s *State) closeUnkept(h *Handoff) {
	delete(s.byKey, h.key)
	if h.Outcome == "" {
		h.Outcome, h.doc.code = handoff.OutcomeUnknown, handoff.CodeAgentGone
		if h.doc.status == handoff.StatusAccepted {
			h.Outcome, h.doc.code = handoff.OutcomeFailed, handoff.CodeShutdown
		}
		h.EndedAt = new(s.now)
	}
	h.doc.status, h.State = handoff.StatusDelivered, handoff.StatusDelivered
	if s.repeatable(h, true) {
		h.doc.status = handoff.StatusCompleted
		s.add(h)
	}
	s.mark(h)
}

// Recalled are records of earlier lives that are over and were heard, with the prints of their requests, in the same
// order.
type Recalled struct {
	Records []handoff.Record
	Prints  []string
}

func (r *Recalled) apply(s *State) {
	if s.recalled {
		return
	}
	s.recalled = true
	for i, rec := range r.Records {
		if len(s.all) < maxKept && s.find(rec.ID) == nil {
			h := &Handoff{Record: rec, span: handoff.SpanOf(context.Background())}
			h.print, h.until = ledger.Printed(r.Prints[i])
			s.all = append(s.all, h)
		}
	}
	slices.SortStableFunc(s.all, func(x, y *Handoff) int { return x.CreatedAt.Compare(y.CreatedAt) })
}

// HasPast asks whether the records of earlier lives are known. Known is the result.
type HasPast struct{ Known bool }

func (p *HasPast) apply(s *State) { p.Known = s.recalled }

// Past is the record of a handoff that is over and was heard, which is asked for by its key.
type Past struct {
	Entry ledger.Entry
	Body  ledger.Body
	Args  string // of the request that asks

	ID  string
	Err *handoff.Error
}

func (p *Past) apply(s *State) {
	rec := PastRecord(p.Entry, p.Body, s.cfg.Registered)
	h := s.find(rec.ID)
	if h == nil { // else it was added meanwhile
		h = &Handoff{Record: rec, span: handoff.SpanOf(context.Background())}
		s.add(h)
	}
	h.key, h.args, h.attempt.number = p.Entry.Key, p.Entry.Args, p.Entry.Attempt
	h.log.noted = true
	h.print, h.until = ledger.Printed(p.Entry.Print)
	s.byKey[h.key] = h.ID
	p.ID, p.Err = s.same(h.key, p.Args)
}

// PastRecord returns the record of a handoff that is history, with its whole words.
func PastRecord(
	e ledger.Entry, body ledger.Body, registered func(server string) handoff.Registered,
) handoff.Record {
	e.Status = handoff.StatusDelivered // an outcome that nobody heard is not told any more
	rec := recordOf(e, cmp.Or(e.ClientID, e.Key), registered)
	restoreDetails(&rec, body)
	if rec.NotBegun() { // nobody is asked about it any more
		rec.Fault, rec.Error, rec.Spoken = nil, nil, e.Told()
		rec.WentOn = rec.Spoken == wording.WentOn
		if rec.Spoken != "" {
			rec.Error = &handoff.RecordError{Code: e.Code, Message: rec.Spoken}
		}
	}
	return rec
}

// KeptRecord returns the words and the details of a handoff under a key, but not its state.
func KeptRecord(key string, body ledger.Body) handoff.Record {
	rec := handoff.Record{ID: key}
	restoreDetails(&rec, body)
	if rec.Error != nil && rec.Error.Code.Asks() { // nobody is asked any more; the row has what became of the work
		rec.Error, rec.Spoken = nil, ""
	}
	return rec
}
