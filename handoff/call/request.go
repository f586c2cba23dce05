package call

import (
	"context"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// spokenContext tells the agent how its answer will be used.
const spokenContext = "This request was spoken on a call and may have been misheard. The answer is read to the caller: " +
	"end it with one short sentence that can be said aloud."

// asideContext is what it is told besides of a side question.
const asideContext = " It is a quick side question: answer it shortly, and change nothing for it."

// asideWithin is how long the answer to a side question is waited for. What takes longer comes as a message.
const asideWithin = 20 * time.Second

// request answers or starts one function call. Delivered twice, it counts once.
func (s *serving) request(req handoff.FunctionCall) {
	if !s.seen.Add(req.CallID) {
		return
	}
	if !req.Asked.IsZero() {
		s.pace(speech.Sentence{At: req.Asked})
	}
	tool, args, err := s.asked(req)
	if work, mode, ok := asWork(args); err == nil && ok {
		s.codex(req, work, mode)
		return
	}
	id := s.cfg.Attending.NextID()
	if err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	switch args := args.(type) {
	case tools.AnswerArguments:
		s.answerAgent(id, req, args)
	case tools.UpdatesArguments:
		s.setUpdates(id, req, args)
	case tools.SilenceArguments:
		s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID})
	case tools.Doer:
		s.do(id, req, tool, args)
	}
}

// asWork returns the arguments of a tool that gives work, and how it meets work that runs.
func asWork(args tools.Arguments) (work tools.CodexArguments, mode handoff.Mode, ok bool) {
	switch args := args.(type) {
	case tools.CodexArguments:
		return args, handoff.ModeNow, true
	case tools.NextArguments:
		return args.CodexArguments, handoff.ModeNext, true
	case tools.AsideArguments:
		return args.CodexArguments, handoff.ModeAside, true
	}
	return tools.CodexArguments{}, 0, false
}

// asked returns the tool that a function call names, and its arguments.
func (s *serving) asked(req handoff.FunctionCall) (tools.Tool, tools.Arguments, error) {
	tool, err := tools.Find(s.grant, req.Tool)
	if err != nil {
		return tool, nil, err
	}
	args, err := tool.Parse(req.Arguments)
	return tool, args, err
}

// beside answers a function call in a goroutine of its own, because it has to ask somebody.
func (s *serving) beside(id string, do func()) {
	s.pace(speech.Lookup{ID: id})
	s.besides.Go(do)
}

// do answers a function call that needs no call. It is done also when the call ends meanwhile.
func (s *serving) do(id string, req handoff.FunctionCall, tool tools.Tool, args tools.Doer) {
	s.beside(id, func() {
		result, err := args.Do(s.lasting, s.cfg.Tools, s.grant)
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

// setUpdates takes how much the caller wants to hear.
func (s *serving) setUpdates(id string, req handoff.FunctionCall, args tools.UpdatesArguments) {
	s.pace(speech.LevelSet{Level: args.Level})
	for _, other := range s.calls.setLevel(s.grant.Caller, args.Level, s.box) {
		other.tell(speech.LevelSet{Level: args.Level})
	}
	s.besides.Go(func() { _ = s.calls.keepLevel(s.lasting, s.grant.Caller) }) // it counts in this life either way
	s.answer(id, req, handoff.Encode(wording.Answer{Status: "done", Say: "Okay."}), handoff.FloorUnlessSpoke)
}

// codex begins work. The same words again, while the first are still being worked on and the caller has
// said nothing since, are the voice model repeating itself.
func (s *serving) codex(req handoff.FunctionCall, args tools.CodexArguments, mode handoff.Mode) {
	if id := s.repeated(args); id != "" && args.Begin == "" {
		s.again(s.cfg.Attending.NextID(), req, id)
		return
	}
	now := time.Now()
	within := s.schedule.Within(now)
	if mode == handoff.ModeAside {
		within = asideWithin
	}
	id, err := s.cfg.Runs.Start(s.open, s.grant, handoff.Request{
		Key: s.key(req.CallID), Target: target(args), Input: handoff.TextInput(args.Prompt), Context: s.context(mode), Mode: mode,
		Within: within, By: s.box, Instead: handoff.RunID(args.Begin),
	})
	switch {
	case err == nil:
		s.runs[string(id)] = &owed{req: req, args: args, began: now}
		s.pace(speech.Began{ID: string(id), Server: args.Server})
		if mode == handoff.ModeAside { // its answer may take a while: until then the caller is not left in silence
			s.pace(speech.Lookup{ID: string(id), Server: args.Server})
		}
	case id != "" && handoff.AsError(err).Code == handoff.CodeJoined: // it was begun before
		s.again(s.cfg.Attending.NextID(), req, string(id))
	default:
		s.refuse(s.cfg.Attending.NextID(), req, handoff.AsError(err))
	}
}

// key names a function call to whoever does the work.
func (s *serving) key(callID string) string { return s.ID + " " + callID }

func target(args tools.CodexArguments) handoff.Target {
	return handoff.Target{Server: args.Server, Thread: args.Thread}
}

// context is what an agent is told beside the words.
func (s *serving) context(mode handoff.Mode) []handoff.Context {
	told := spokenContext
	if mode == handoff.ModeAside {
		told += asideContext
	}
	all := []handoff.Context{{Key: "switchboard", Value: told, Trusted: true}}
	if words := s.heard.words; len(words) > 0 {
		all = append(all, handoff.Context{Key: "caller_words", Value: strings.Join(words, "\n")})
	}
	return all
}

// hint makes ready what a function call needs once its target is readable. It is repeated with every piece of the
// arguments.
func (s *serving) hint(h handoff.Hint) {
	aside := h.Tool == tools.RunOnServer
	if h.Tool != tools.Codex && h.Tool != tools.QueueNext && !aside {
		return
	}
	if args, ok := tools.ReadTarget(h.Partial); ok && (!aside || args.Thread != "") { // else it gets a thread of its own
		s.cfg.Attending.Prefetch(s.grant, s.key(h.CallID), target(args))
	}
}

// again answers a function call that was made twice: what is said of the run is promised as by its own early answer,
// so it waits until the run is noted, too.
func (s *serving) again(id string, req handoff.FunctionCall, run string) {
	if o := s.runs[run]; o != nil && o.noted {
		s.answer(id, req, wording.RepeatedAnswer(s.record(o.rec)), handoff.FloorUnlessSpoke)
		return
	}
	s.beside(id, func() {
		rec, err := s.noted(s.open, handoff.RunID(run))
		if err != nil {
			s.refuse(id, req, handoff.AsError(err))
			return
		}
		s.answer(id, req, wording.RepeatedAnswer(rec), handoff.FloorUnlessSpoke)
	})
}

// record returns a record as it is now.
func (s *serving) record(old handoff.Record) handoff.Record {
	known, _ := s.cfg.Tools.Work.Handoffs(s.grant) // it was begun in this life
	for _, rec := range known {
		if rec.ID == old.ID {
			return rec
		}
	}
	return old
}

// noted waits until the ledger has a run, or it is over.
func (s *serving) noted(ctx context.Context, run handoff.RunID) (rec handoff.Record, err error) {
	for e, err := range s.cfg.Runs.Follow(ctx, s.grant.Caller, run, 0) {
		if err != nil {
			return rec, err
		}
		if rec = e.Record; e.Noted {
			break
		}
	}
	return rec, nil
}

// repeated returns the run that goes on and was asked for with the same words, if the caller has not spoken since.
func (s *serving) repeated(args tools.CodexArguments) string {
	for id, o := range s.runs {
		if o.req.CallID != "" && sameWords(o.args, args) && !s.heard.spokeSince(o.began) {
			return id
		}
	}
	return ""
}

// sameWords compares what was asked, but for case, spaces and punctuation.
func sameWords(a, b tools.CodexArguments) bool {
	norm := func(s string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
	}
	return norm(a.Server) == norm(b.Server) && norm(a.Thread) == norm(b.Thread) && norm(a.Prompt) == norm(b.Prompt)
}
