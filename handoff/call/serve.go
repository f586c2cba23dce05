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

// serving is the state of one call, which its loop owns.
type serving struct {
	calls *Calls        // Set once
	cfg   *Config       // Set once: that of calls
	ID    string        // Set once: of the call, in the ledger and the audit
	grant handoff.Grant // Set once
	box   *inbox        // Set once; safe by itself
	leave func()        // Set once
	began time.Time     // Set once

	language wording.Language // Set once: of speech

	background sync.WaitGroup  // goroutines beside the loop
	carrying   sync.WaitGroup  // goroutines of stops that are carried out
	ctx        context.Context // Set once: ends with the call
	cancel     func()          // Set once: ends ctx
	lasting    context.Context // Set once: for what is finished although the call has ended

	over        bool                    // Owned by the loop: the call has ended
	speaking    bool                    // Owned by the loop: somebody speaks, or is about to
	hearing     hearing                 // Owned by the loop
	seen        handoff.IDSet           // Owned by the loop: ids of function calls, to ignore repeated deliveries
	open        map[string]*openHandoff // Owned by the loop: open handoffs whose events this call gets
	spans       spans                   // Owned by the loop
	schedule    *speech.Schedule        // Owned by the loop
	evidence    evidence.Evidence       // Owned by the loop: what the caller said to which question
	stops       sync.Map                // safe by itself: ids of what this call stops or drops, until it gets that event
	sure        sync.Map                // safe by itself: after which words the caller was asked whether to stop watched work
	utterances  atomic.Int64            // safe by itself: how often the caller began to say something
	claims      []*claim                // Owned by the loop: answers that wait for the caller's words
	judgeTimer  *time.Timer             // Owned by the loop: the latest time at which the claims are judged again
	wakeTimer   *time.Timer             // Owned by the loop: of the schedule
	toldUnasked time.Time               // Owned by the loop: when a call that nobody asked for was refused last
	waiting     []waiting               // Owned by the loop: oldest first, at most maxWaiting
	stopping    int                     // Owned by the loop: stops that are carried out now

	filled map[handoff.QuestionID][][]string // Owned by the loop: answers to the first fields of questions
}

// log returns a logger that names the principal. It is not kept: a call writes few lines, and a logger takes 2 KB.
func (s *serving) log() *zap.Logger {
	return s.cfg.Log.With(zap.String("principal", s.grant.Caller.Principal))
}

// openHandoff is an open handoff whose events a call gets.
type openHandoff struct {
	call     handoff.FunctionCall // that began it; zero: an earlier call did
	req      handoff.Request
	began    time.Time
	answered bool // the function call has its output
	noted    bool // the ledger has an entry
	// overtaken: the caller did something else since, to the handoff or on its server. The same words again may undo
	// that.
	overtaken bool
	lastAdded handoff.Request // the last words that were added to it; zero once the caller did something else
	rec       handoff.Record
}

// overtake notes that the caller did something else to the handoff.
func (o *openHandoff) overtake() { o.overtaken, o.lastAdded = true, handoff.Request{} }

func (s *serving) loop(ctx context.Context, voice handoff.Voice) error {
	for {
		select {
		case e, open := <-voice.Events():
			if !open {
				return nil
			}
			s.event(e)
		case <-s.box.ready:
			for _, do := range s.box.take() {
				do(s)
			}
		case <-s.wakeTimer.C:
			s.pace(speech.Wake{})
		case <-s.judgeTimer.C:
			s.judge(time.Now())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// event handles an event of the voice.
func (s *serving) event(e handoff.VoiceEvent) {
	switch e := e.(type) {
	case handoff.FunctionCall:
		s.request(e)
		return
	case handoff.Hint:
		s.hint(e)
		return
	case handoff.Spoke:
		s.utterances.Add(1)
		s.hearing.begins(e.At, s.speaking)
		s.evidence.Spoke(e)
	case handoff.Quiet:
		s.speaking = !e.On
	case handoff.Heard:
		if e.Typed && e.Began.IsZero() {
			e.Began = time.Now()
		}
		if e.Typed {
			s.utterances.Add(1)
			e.Shown = s.cfg.Shown != nil && s.cfg.Shown(s.grant)
		}
		s.hearing.add(e, time.Now())
		s.evidence.Heard(e)
		s.pace(meaning(e))
		s.proceed()
		s.judgeAll()
		return
	case handoff.Said:
		s.evidence.Said(e)
	case handoff.Voiced:
		s.evidence.Voiced(e)
		s.judgeAll()
		return
	case handoff.CallEnded:
		s.hangUp()
		return
	}
	s.pace(e)
	s.judgeAll()
}

// meaning returns the event for the schedule of something that the caller said. Typed words, and words without a
// transcript, are never a backchannel. A "stop" that is typed while nobody speaks is not for the voice.
func meaning(e handoff.Heard) speech.Event {
	switch {
	case e.Lost:
	case !e.Typed && consent.Backchannel(e.Text):
		return speech.Backchannel{}
	case consent.Hush(e.Text) && (e.Into || !e.Typed):
		return speech.Hush{Began: e.Began, Typed: e.Typed}
	}
	return e
}

// welcomeBack tells what ended while nobody listened.
func (s *serving) welcomeBack(records []handoff.Record) {
	s.pace(speech.Unheard{Recs: records, Away: slices.ContainsFunc(records, func(rec handoff.Record) bool {
		return rec.EndedAt == nil || rec.EndedAt.Before(s.began)
	})})
}

// answer gives a function call that began no handoff its output. It may be called from any goroutine.
func (s *serving) answer(id string, req handoff.FunctionCall, text string, floor handoff.Floor) {
	s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID, Text: text, Floor: floor})
	s.box.pace(speech.AnsweredEvent{ID: id})
}

// answerPlainly is answer for a text without words of agents.
func (s *serving) answerPlainly(id string, req handoff.FunctionCall, text string, floor handoff.Floor) {
	s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID, Text: text, Floor: floor, Plain: true})
	s.box.pace(speech.AnsweredEvent{ID: id})
}

// refuse answers a function call with an error. It may be called from any goroutine.
func (s *serving) refuse(id string, req handoff.FunctionCall, e *handoff.Error) {
	s.refuseFor(id, req, e, handoff.FloorAsk)
}

func (s *serving) refuseFor(id string, req handoff.FunctionCall, e *handoff.Error, floor handoff.Floor) {
	s.log().Info("request refused", zap.String("tool", handoff.Clip(req.Tool, 64)), zap.String("code", string(e.Code)))
	s.calls.counts.refused.Add(e.Code)
	s.answerPlainly(id, req, s.language.Refusal(e).Encode(), floor)
}

// hangUp ends the call. Outcomes that were not said go to another call.
func (s *serving) hangUp() {
	if s.over {
		return
	}
	s.over = true
	s.calls.exit(s.grant.Caller, s.box)
	for _, do := range s.box.end() {
		do(s)
	}
	s.proceed() // a hang-up is no wish for quiet; nobody gets the answer
	s.pace(handoff.CallEnded{})
	s.spans.endAll()
	s.leave()
	s.judgeLast()
}

// pace gives the schedule an event and carries out its effects.
func (s *serving) pace(e speech.Event) {
	for _, x := range s.schedule.Step(time.Now(), e) {
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
		for _, id := range x.Works {
			s.spans.end(id, true)
			_ = s.cfg.Handoffs.Heard(context.Background(), s.grant, handoff.ID(id)) // an error: the record was removed
		}
	case speech.DoNotify:
		s.cfg.Questions.Unanswered(s.grant, x.Question)
	case speech.DoWake:
		s.wakeTimer.Reset(time.Until(x.At))
	}
}
