package handoff

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// revive takes up what a former life of the router left: work that ran or may run is looked for and
// watched, outcomes that nobody heard are told. Nothing is ever started by it.
func (r *Router) revive(ctx context.Context) {
	for try := 0; ; try++ {
		entries, err := r.ledger.OpenAll(ctx) // it bounds each of its answers; all of them may take a while
		if err == nil {
			r.adopt(ctx, entries)
			return
		}
		if try == 0 {
			r.log.Warn("the ledger cannot be read yet", zap.Error(err))
		}
		if !r.pause(ctx, try) {
			return
		}
	}
}

// catchUp takes up what is open in the ledger for this caller and not known here: another life of the
// router may have had it meanwhile. Then the caller is told what ended while nobody listened; a ledger
// that is away delays that by one try.
func (s *serving) catchUp(ctx context.Context) {
	for try := 0; ; try++ {
		entries, err := s.openEntries(ctx)
		if err == nil {
			s.r.adopt(ctx, entries)
		}
		listens := s.call.post(func(s *serving) { s.welcomeBack() })
		if err == nil || !listens || !s.r.pause(ctx, try) {
			return
		}
	}
}

func (s *serving) openEntries(ctx context.Context) ([]LedgerEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.r.ledger.Open(ctx, s.caller)
}

// adopt takes entries over that nobody here has in hand, one caller after the other, so that what ended is
// told to each in one message.
func (r *Router) adopt(ctx context.Context, entries []LedgerEntry) {
	slices.SortStableFunc(entries, func(a, b LedgerEntry) int { return strings.Compare(a.Caller.String(), b.Caller.String()) })
	for i, e := range entries {
		if r.carry(e.Key) {
			r.adoptOne(ctx, e)
		}
		if i+1 == len(entries) || entries[i+1].Caller != e.Caller {
			if live := r.book(e.Caller).live(); live != nil {
				live.post(func(s *serving) { s.welcomeBack() })
			}
		}
	}
}

func (r *Router) adoptOne(ctx context.Context, e LedgerEntry) {
	l := r.newLine(e.Key, e.Caller, r.nextID(), e.Args)
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		adopted, err := l.adopt(limited)
		cancel()
		switch {
		case err == nil && adopted.Status == StatusDelivered: // told since the entries were read
			r.lay(e.Key)
			return
		case err == nil && r.heardAlready(adopted, l):
			return
		case err == nil:
			if adopted.Status != StatusCompleted {
				r.readStickies(ctx, e.Caller)
			}
			r.takeOver(adopted, l)
			return
		case !retried(err):
			r.log.Info("an entry of the ledger is not ours", zap.String("handoff", e.ClientID), zap.Error(err))
			r.lay(e.Key)
			return
		case !r.pause(ctx, try):
			r.lay(e.Key)
			return
		}
	}
}

// heardAlready tells whether the outcome of an entry was heard here: then the store came back as it was a
// while ago, and is told once more.
func (r *Router) heardAlready(e LedgerEntry, l *line) bool {
	rec, _ := r.book(e.Caller).find(e.ClientID)
	if rec.State != StatusDelivered {
		return false
	}
	if e.Status != StatusCompleted {
		facts := LedgerFacts{Outcome: rec.Outcome, Spoken: rec.Spoken}
		if rec.Error != nil {
			facts.Code = rec.Error.Code
		}
		l.completed(facts)
	}
	l.delivered()
	return true
}

// readStickies lets the work of a former life know what the caller has chosen since.
func (r *Router) readStickies(ctx context.Context, c Caller) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.loadStickies(ctx, c, r.book(c)); err != nil {
		r.log.Warn("sticky sessions not read", zap.Error(err))
	}
}

// takeOver puts an entry into the book of its caller, and work that is not over under way again.
func (r *Router) takeOver(e LedgerEntry, l *line) {
	b := r.book(e.Caller)
	if e.Why == WhyNew || e.Why == WhyCopy {
		r.owners.made(e.Caller, e.Target)
	}
	id := e.ClientID
	if id == "" { // it never came to a start
		id = r.nextID()
	}
	rec := Record{
		ID: id, Server: e.Target.Server, Project: e.Target.Project, ThreadID: e.Target.Thread, Title: e.Title, Why: e.Why,
		Prompt: e.Prompt, State: e.Status, Outcome: e.Outcome, Spoken: e.Spoken, CreatedAt: e.Accepted,
	}
	if e.Status == StatusCompleted {
		rec.EndedAt = new(e.Ended)
		if e.Code != "" {
			rec.Fault = Fault(e.Code, e.Target.Server, "")
			rec.Error = recordError(rec.Fault)
		}
		b.open(rec, nil)
		b.ended(id)
		b.setLine(id, l)
		b.keep(id)
		b.notice(id) // its former life did, unless it was killed: the next call tells in any case
		return
	}
	w := r.newWork(id, e.Caller, b, endedCall())
	w.began, w.target, w.before, w.turn, w.line = time.Now(), e.Target, e.Watermark, e.Turn, l
	if e.Accepted.Before(w.began) { // else the clock was set back: it tells nothing
		w.asked = e.Accepted
	}
	w.args = codexArguments{Server: e.Target.Server, Thread: e.Target.Thread, Prompt: e.Prompt}
	w.state = State{Phase: PhaseSettling, Noted: true, Answered: true, Alone: true, Inherited: true, Merged: e.Why == WhyMerged}
	switch {
	case e.Status == StatusAccepted: // it certainly never began: that is written before a start. They are asked, as nothing begins unasked
		w.state.Phase, w.state.Outcome = PhaseWriting, OutcomeCancelled
		w.fault = Fault(CodeNotBegun, e.Target.Server, "a former life of this process had accepted it")
	case e.Turn != "":
		w.state.Phase, w.state.Seen = PhaseRejoining, true
	}
	b.open(rec, w)
	b.orphan(id)
	if live := b.live(); live != nil {
		live.post(func(s *serving) { s.adopt(w) })
	}
	r.start(w.run)
}
