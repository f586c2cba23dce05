package call

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/evidence"
	"switchboard/handoff/speech"
	"switchboard/handoff/wording"
)

// serving is what the loop of one call owns.
type serving struct {
	calls *Calls        // Set once
	cfg   *Config       // Set once: that of calls
	ID    string        // Set once: names the call in the ledger and the audit
	grant handoff.Grant // Set once
	box   *inbox        // Set once; safe by itself
	leave func()        // Set once
	began time.Time     // Set once

	language wording.Language // Set once: in which the caller is told and asked

	besides sync.WaitGroup  // what is done beside the loop
	open    context.Context // Set once: ends with the call
	shut    func()          // Set once: ends open
	lasting context.Context // Set once: of what is finished although the call has ended

	over     bool              // Owned by the loop: the call has ended
	loud     bool              // Owned by the loop: somebody speaks, or is about to
	heard    hearing           // Owned by the loop
	seen     handoff.IDSet     // Owned by the loop: call ids of function calls, to tell one that is delivered twice
	runs     map[string]*owed  // Owned by the loop: runs that go on and of which this call hears
	spans    spans             // Owned by the loop
	schedule *speech.Schedule  // Owned by the loop
	evidence evidence.Evidence // Owned by the loop: what the caller said to which question
	stops    sync.Map          // safe by itself: ids of work that this call stops or drops, until it hears of that
	words    atomic.Int64      // safe by itself: how often the caller began to say something
	claims   []*claim          // Owned by the loop: answers that wait for what the caller said
	rule     *time.Timer       // Owned by the loop: when the claims are judged at the latest
	wake     *time.Timer       // Owned by the loop: the schedule's
	halts    []func()          // Owned by the loop: wishes to stop work that wait for what the caller said; see maxHalts
}

// log returns a logger that names the principal. It is not kept: a call writes few lines, and a logger takes 2 KB.
func (s *serving) log() *zap.Logger {
	return s.cfg.Log.With(zap.String("principal", s.grant.Caller.Principal))
}

// owed is a run of which a call hears, and what the call owes for it.
type owed struct {
	req      handoff.FunctionCall // that asked for it; the zero one: an earlier call did
	asked    handoff.Request
	began    time.Time
	answered bool // the function call has its output
	noted    bool // the ledger has an entry
	// something else was done about it or given to its server since: the same words again may undo that
	overtaken bool
	added     handoff.Request // the words that were added to it last, while nothing else came in between
	rec       handoff.Record
}

// overtake notes that something else was done about the run.
func (o *owed) overtake() { o.overtaken, o.added = true, handoff.Request{} }

func (s *serving) loop(ctx context.Context, voice handoff.Voice) error {
	for {
		select {
		case e, open := <-voice.Events():
			if !open {
				return nil
			}
			s.take(e)
		case <-s.box.ready:
			for _, do := range s.box.take() {
				do(s)
			}
		case <-s.wake.C:
			s.pace(speech.Wake{})
		case <-s.rule.C:
			s.judge(time.Now())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take decides what an event of the call means.
func (s *serving) take(e handoff.Event) {
	switch e := e.(type) {
	case handoff.FunctionCall:
		s.request(e)
		return
	case handoff.Hint:
		s.hint(e)
		return
	case handoff.Spoke:
		s.words.Add(1)
		s.heard.began(e.At)
		s.heard.over, s.heard.wordless, s.heard.hushed = s.loud, true, false
		s.evidence.Spoke(e)
	case handoff.Quiet:
		s.loud = !e.On
	case handoff.Heard:
		if e.Typed && e.Began.IsZero() {
			e.Began = time.Now()
		}
		if e.Typed {
			s.words.Add(1)
			s.heard.over = e.Into
			e.Shown = s.cfg.Shown != nil && s.cfg.Shown(s.grant)
		}
		s.heard.add(e, time.Now())
		s.evidence.Heard(e)
		s.heard.wordless = s.heard.wordless && e.Typed
		s.heard.hushed = s.heard.over && consent.Hush(e.Text)
		s.pace(s.meant(e))
		s.halt()
		s.judgeAll()
		return
	case handoff.Said:
		s.evidence.Said(e)
	case handoff.CallEnded:
		s.hangUp()
		return
	}
	s.pace(e)
	s.judgeAll()
}

// meant is what the schedule is told of something that the caller said. What they type is never a mere backchannel, nor
// is what could not be written down. A "stop" that they type into silence is not for the voice.
func (s *serving) meant(e handoff.Heard) speech.Event {
	switch {
	case e.Lost:
	case !e.Typed && consent.Backchannel(e.Text):
		return speech.Backchannel{}
	case consent.Hush(e.Text) && (s.heard.over || !e.Typed):
		return speech.Hush{Began: e.Began, Typed: e.Typed}
	}
	return e
}

// welcomeBack tells what ended while nobody listened, as one message.
func (s *serving) welcomeBack(records []handoff.Record) {
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = rec.ID
	}
	u := handoff.Utterance{ID: s.cfg.Attending.NextID() + "-w", Text: s.language.AwaySummary(records, s.began),
		Floor: handoff.FloorAsk, Tells: ids}
	s.box.say(u)
	s.pace(speech.Gave{Utterance: u.ID, Text: u.Text, Works: ids})
}

// answer gives a function call that is no run its output. It may be used from any goroutine.
func (s *serving) answer(id string, req handoff.FunctionCall, text string, floor handoff.Floor) {
	s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID, Text: text, Floor: floor})
	s.box.tell(speech.AnsweredEvent{ID: id})
}

// refuse answers a function call that was not accepted.
func (s *serving) refuse(id string, req handoff.FunctionCall, e *handoff.Error) {
	s.log().Info("request refused", zap.String("tool", handoff.Clip(req.Tool, 64)), zap.String("code", string(e.Code)))
	s.calls.counts.refused.Add(e.Code)
	s.answer(id, req, s.language.Refusal(e).Encode(), handoff.FloorAsk)
}

// hangUp ends the call: what was not said is told in another one.
func (s *serving) hangUp() {
	if s.over {
		return
	}
	s.over = true
	s.calls.exit(s.grant.Caller, s.box)
	for _, do := range s.box.end() {
		do(s)
	}
	s.halt() // who hangs up asks for no quiet; its answer has nobody to go to
	s.pace(handoff.CallEnded{})
	s.spans.endAll()
	s.leave()
}

// pace gives the schedule an event and does what it says.
func (s *serving) pace(e speech.Event) {
	was := s.schedule.Counts
	effects := s.schedule.Step(time.Now(), e)
	s.calls.counts.paced(was, s.schedule.Counts)
	for _, x := range effects {
		s.effect(x)
	}
}

func (s *serving) effect(x speech.Effect) {
	switch x.Act {
	case speech.DoNote:
		s.box.say(handoff.Utterance{ID: x.ID, Text: x.Text})
	case speech.DoSay:
		if x.Question != "" {
			s.evidence.Announced(x.Question, x.ID, time.Now())
		}
		s.box.say(handoff.Utterance{ID: x.ID, Text: x.Text, Floor: handoff.FloorAsk, Tells: x.Works})
	case speech.DoTakeBack:
		s.box.say(handoff.Utterance{ID: x.ID})
	case speech.DoGiven:
		for _, id := range x.Works { // work that is forgotten needs no note
			s.spans.end(id, true)
			_ = s.cfg.Runs.Heard(context.Background(), s.grant.Caller, handoff.RunID(id))
		}
	case speech.DoNotify:
		s.cfg.Questions.Unanswered(s.grant, x.Question)
	case speech.DoWake:
		s.wake.Reset(time.Until(x.At))
	}
}

// Bounds of what a call remembers of the caller's words.
const (
	maxWords    = 6    // last utterances, given to agents as context
	maxWordSize = 2000 // bytes of one
)

// A hearing is what the caller said in a call. The loop of the call owns it. Only what the voice reports as theirs is
// in it: transcripts of their speech and text they typed, never what was put into the conversation by somebody else.
type hearing struct {
	words    []string  // oldest first, at most maxWords
	spoke    time.Time // the newest beginning of anything they said
	over     bool      // they began it while somebody spoke, or typed it into the voice
	wordless bool      // and its words have not come
	due      time.Time // until then they are waited for
	hushed   bool      // or it only asked for quiet
}

// add takes a finalized utterance.
func (h *hearing) add(e handoff.Heard, now time.Time) {
	if e.Began.IsZero() {
		e.Began = now
	}
	h.began(e.Began)
	if e.Text == "" {
		return
	}
	if len(h.words) == maxWords {
		h.words = slices.Delete(h.words, 0, 1)
	}
	h.words = append(h.words, handoff.Clip(e.Text, maxWordSize))
}

// began notes that the caller began to speak.
func (h *hearing) began(at time.Time) {
	if at.After(h.spoke) {
		h.spoke = at
	}
}
