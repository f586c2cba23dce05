package router

import (
	"context"
	"maps"
	"slices"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/evidence"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
	"sync/atomic"
	"time"
	"unicode"

	"go.uber.org/zap"
)

// serving is what the loop of one call owns.
type serving struct {
	r      *Router        // Set once
	ID     string         // Set once: names the call in the ledger
	grant  handoff.Grant  // Set once
	caller handoff.Caller // Set once: the grant's
	book   *book          // Set once
	call   *call          // Set once
	log    *zap.Logger

	seen     idSet             // Owned by Serve: call ids of requests, to tell one that is delivered twice
	works    map[string]*work  // Owned by Serve: works whose outcome this call hears
	heard    *hearing          // Set once; safe by itself
	schedule *speech.Schedule  // Owned by Serve
	evidence evidence.Evidence // Owned by Serve: what the caller said to which question
	words    atomic.Int64      // safe by itself: how often the caller began to say something
	claims   []*claim          // Owned by Serve: answers that wait for what the caller said
	rule     timer             // Owned by Serve: when the claims are judged at the latest
	guesses  map[string]*guess // Owned by Serve: threads attached ahead, by call id
	wake     timer             // Owned by Serve: the schedule's
}

// Serve is the loop of one call. It returns after the voice closed its events, or when ctx ends; the works
// go on under Run. Who ends the process ends Run first, so that open requests are answered, and the calls
// after it.
func (r *Router) Serve(ctx context.Context, g handoff.Grant, voice handoff.Voice) error {
	book := r.book(g.Caller)
	s := &serving{
		r: r, ID: r.callID(), grant: g, caller: g.Caller, book: book, log: r.log.With(zap.String("principal", g.Caller.Principal)),
		call: newCall(voice, &r.counts.reports), works: map[string]*work{}, guesses: map[string]*guess{}, schedule: speech.New(book.updates(r.level), r.askAgain), wake: newTimer(), rule: newTimer(), heard: newHearing(),
	}
	defer s.wake.Stop()
	defer s.rule.Stop()
	s.book.enter(s.call)
	r.start(s.preload)
	s.takeUp()
	if r.ledger == nil || !r.start(s.catchUp) {
		s.welcomeBack()
	}
	defer s.hangUp() // also for a voice that closes its events without saying goodbye
	for {
		select {
		case e, open := <-voice.Events():
			if !open {
				return nil
			}
			s.take(e)
		case <-s.call.posted:
			for _, fn := range s.call.take() {
				fn(s)
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
	case handoff.Request:
		s.request(e)
		return
	case handoff.Hint:
		s.hint(e)
		return
	case handoff.Spoke:
		s.words.Add(1)
		s.heard.began(e.At)
		s.evidence.Spoke(e)
	case handoff.Heard:
		if e.Typed && e.Began.IsZero() {
			e.Began = time.Now()
		}
		if e.Typed {
			s.words.Add(1)
		}
		s.heard.add(e, time.Now())
		s.evidence.Heard(e)
	case handoff.Said:
		s.evidence.Said(e)
	case handoff.CallEnded:
		s.hangUp()
		return
	}
	s.pace(e)
	if len(s.claims) > 0 {
		s.judge(time.Now())
	}
}

// preload reads the stickies, so that no request has to wait for the store.
func (s *serving) preload(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.r.loadStickies(ctx, s.caller, s.book); err != nil {
		s.log.Warn("sticky sessions not read", zap.Error(err))
	}
}

// takeUp lets the call hear of works that run since an earlier one and that nobody hears any more.
func (s *serving) takeUp() {
	for _, w := range s.book.orphans() {
		s.adopt(w)
	}
}

// adopt makes this call hear of a work.
func (s *serving) adopt(w *work) {
	rec, _ := s.book.find(w.ID)
	if !rec.Shown(s.grant) || !s.book.claimOrphan(w.ID) {
		return
	}
	s.works[w.ID] = w
	s.pace(speech.Began{ID: w.ID, Server: rec.Server, Title: rec.Title, Answered: true})
	w.order(order{fact: phase.FactCallBack, call: s.call})
	for _, q := range s.book.questionsOf(w.ID) {
		s.opened(q)
	}
}

// welcomeBack tells what ended while nobody listened, once, as one message.
func (s *serving) welcomeBack() {
	records := s.book.takeUnheard()
	if len(records) == 0 {
		return
	}
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = rec.ID
	}
	u := handoff.Utterance{ID: s.r.nextID() + "-w", Text: wording.AwaySummary(records), Floor: handoff.FloorAsk, Tells: ids}
	s.call.say(u)
	s.pace(speech.Gave{Utterance: u.ID, Text: u.Text, Works: ids})
}

// request answers or starts one function call. Delivered twice, it counts once.
func (s *serving) request(req handoff.Request) {
	if !s.seen.add(req.CallID) {
		return
	}
	id := s.r.nextID()
	if !req.Asked.IsZero() {
		s.pace(speech.Sentence{At: req.Asked})
	}
	tool, args, err := s.asked(req)
	if err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	switch args := args.(type) {
	case tools.CodexArguments:
		s.codex(id, req, args)
	case tools.NextArguments:
		s.codex(id, req, args.CodexArguments)
	case tools.AnswerArguments:
		s.answerAgent(id, req, args)
	case tools.UpdatesArguments:
		s.setUpdates(id, req, args)
	case tools.SilenceArguments:
		s.call.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID})
	case tools.Doer:
		s.do(id, req, tool, args)
	}
}

// asked returns the tool that a request names, and its arguments.
func (s *serving) asked(req handoff.Request) (tools.Tool, tools.Arguments, error) {
	tool, err := tools.Find(s.grant, req.Tool)
	if err != nil {
		return tool, nil, err
	}
	args, err := tool.Parse(req.Arguments)
	return tool, args, err
}

// beside answers a request in a goroutine of its own, because it has to ask somebody.
func (s *serving) beside(id string, req handoff.Request, do func(ctx context.Context)) {
	s.pace(speech.Lookup{ID: id})
	if !s.r.start(do) {
		s.refuse(id, req, handoff.Fault(handoff.CodeShutdown, "", ""))
	}
}

// do answers a request that needs no call.
func (s *serving) do(id string, req handoff.Request, tool tools.Tool, args tools.Doer) {
	s.beside(id, req, func(ctx context.Context) {
		result, err := args.Do(ctx, tools.Backend{Directory: s.r.directory, Resolver: s.r.fleet, Work: s.r}, s.grant)
		if err != nil {
			s.refuse(id, req, handoff.AsError(err))
			return
		}
		floor := handoff.FloorAsk
		if a, ok := result.(tools.Answer); ok && a.Status != tools.StatusUnclear { // the model may have said so already
			floor = handoff.FloorUnlessSpoke
		}
		s.answer(id, req, tool.Output(result), floor)
	})
}

// codex begins work. The same words again, while the first are still being worked on and the caller has
// said nothing since, are the voice model repeating itself.
func (s *serving) codex(id string, req handoff.Request, args tools.CodexArguments) {
	earlier := args.Begin
	if earlier != "" {
		var running *work
		var err error
		if args, running, err = s.unbegun(args); err != nil {
			s.refuse(id, req, handoff.AsError(err))
			return
		}
		if running != nil {
			s.again(id, req, running)
			return
		}
	}
	if w := s.repeated(args); w != nil {
		s.again(id, req, w)
		return
	}
	if e := s.r.rates.take(s.grant, time.Now()); e != nil {
		s.refuse(id, req, e)
		return
	}
	s.begin(id, req, args)
	s.book.began(earlier, id)
}

// unbegun returns what the caller asked for in a request that was not begun, or the work that it has become.
func (s *serving) unbegun(args tools.CodexArguments) (tools.CodexArguments, *work, error) {
	rec, begun := s.book.unbegun(args.Begin)
	switch {
	case rec.ID == "" || !rec.Shown(s.grant):
		return args, nil, handoff.Fault(handoff.CodeNotFound, "such work", "")
	case begun != "":
		if _, w := s.book.find(begun); w != nil {
			return args, w, nil
		}
		return args, nil, handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	args.Server, args.Thread, args.Prompt = keyOf(handoff.Target{Server: rec.Server, Project: rec.Project}).String(), rec.ThreadID, rec.Prompt
	switch rec.Why {
	case handoff.WhyContinued: // what they use there now
		args.Thread = ""
	case handoff.WhyCopy:
		args.Thread = copyOf + rec.ThreadID
	}
	return args, nil, nil
}

// again answers a request that was made twice: what is said of the work is promised as by its own early answer,
// so it waits until the work is noted, too.
func (s *serving) again(id string, req handoff.Request, w *work) {
	tell := func() {
		rec, _ := s.book.find(w.ID)
		s.answer(id, req, wording.RepeatedAnswer(rec), handoff.FloorUnlessSpoke)
	}
	select {
	case <-w.entry:
		tell()
		return
	default:
	}
	s.beside(id, req, func(ctx context.Context) {
		select {
		case <-w.entry:
			tell()
		case <-w.over:
			tell()
		case <-ctx.Done():
			s.refuse(id, req, handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	})
}

// repeated returns the open work that was asked for with the same words, if the caller has not spoken since.
func (s *serving) repeated(args tools.CodexArguments) *work {
	for id, w := range s.works {
		if !sameWords(w.args, args) || s.heard.spokeSince(w.began) {
			continue
		}
		if _, running := s.book.find(id); running == w {
			return w
		}
	}
	return nil
}

// sameWords compares what was asked, but for case, spaces and punctuation.
func sameWords(a, b tools.CodexArguments) bool {
	norm := func(s string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
	}
	return norm(a.Server) == norm(b.Server) && norm(a.Thread) == norm(b.Thread) && norm(a.Prompt) == norm(b.Prompt)
}

// begin accepts a codex request: from here on it has exactly one outcome.
func (s *serving) begin(id string, req handoff.Request, args tools.CodexArguments) {
	now := time.Now()
	rec := handoff.Record{ID: id, Server: args.Server, Prompt: args.Prompt, State: handoff.StatusAccepted, CreatedAt: now}
	w := s.r.newWork(id, s.caller, s.book, s.call)
	w.grant, w.guess = s.grant, s.claim(req.CallID, args)
	w.req, w.args, w.words, w.began, w.asked = req, args, s.heard.last(), now, now
	w.line = s.r.newLine(ledger.Key(s.ID, req.CallID), s.caller, id, ledger.Hash(req.Arguments))
	s.book.open(rec, w)
	maps.DeleteFunc(s.works, func(old string, w *work) bool { // those that ended need not be told anything any more
		_, running := s.book.find(old)
		return running != w
	})
	s.works[id] = w
	s.pace(speech.Began{ID: id, Server: args.Server})
	if !s.r.start(w.run) {
		s.refuse(id, req, handoff.Fault(handoff.CodeShutdown, "", ""))
		s.r.cancelUnrun(s.book, id)
	}
}

// answer gives a request that is no work its output. It may be used from any goroutine.
func (s *serving) answer(id string, req handoff.Request, text string, floor handoff.Floor) {
	s.call.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID, Text: text, Floor: floor})
	s.call.tell(speech.AnsweredEvent{ID: id})
}

// refuse answers a request that was not accepted.
func (s *serving) refuse(id string, req handoff.Request, e *handoff.Error) {
	s.log.Info("request refused", zap.String("tool", handoff.Clip(req.Tool, 64)), zap.String("code", string(e.Code)))
	s.r.counts.refused.Add(e.Code)
	s.answer(id, req, wording.Refusal(e), handoff.FloorAsk)
}

// hangUp tells the works that nobody listens any more, keeps what was not said, and leaves the works to
// another call of the same caller, if there is one.
func (s *serving) hangUp() {
	if s.works == nil {
		return
	}
	s.book.leave(s.call)
	for _, fn := range s.call.end() {
		fn(s)
	}
	s.pace(handoff.CallEnded{})
	for id, w := range s.works {
		w.order(order{fact: phase.FactCallEnded})
		s.book.orphan(id)
	}
	works := slices.SortedFunc(maps.Values(s.works), func(a, b *work) int { return strings.Compare(a.ID, b.ID) })
	s.works = nil
	adopt := func(o *serving) {
		for _, w := range works {
			o.adopt(w)
		}
	}
	if other := s.book.live(); other != nil && other.post(adopt) {
		return // it asks what is open
	}
	for _, w := range works {
		for _, q := range s.book.questionsOf(w.ID) {
			s.r.notifyQuestion(s.caller, s.book, q.shown.ID)
		}
	}
}
