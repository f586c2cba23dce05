package call

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
)

// spokenContext tells the agent how its answer will be used.
const spokenContext = "This request was spoken on a call and may have been misheard. " +
	"The answer is read to the caller: end it with one short sentence that can be said aloud."

// asideContext is added to spokenContext for a side question.
const asideContext = " It is a quick side question: answer it shortly, and change nothing for it."

// asideWithin is how long the function call of a side question waits for the result. A later result is a message.
const asideWithin = 20 * time.Second

// request handles a function call. A repeated delivery is ignored.
func (s *serving) request(req handoff.FunctionCall) {
	if !s.seen.Add(req.CallID) {
		return
	}
	if !req.Asked.IsZero() {
		s.pace(speech.Sentence{At: req.Asked})
	}
	tool, err := tools.Find(s.grant, req.Tool)
	var args tools.Arguments
	if err == nil {
		args, err = tool.Parse(req.Arguments)
	}
	switch {
	case err != nil:
		s.refuse(s.cfg.Attending.NextID(), req, handoff.AsError(err))
	case !tool.ReadOnly && req.Asked.IsZero():
		s.unasked(req)
	default:
		s.inOrder(req, tool, args)
	}
}

// unasked refuses a function call for which nobody asked: its response came from words of an agent, or from nothing.
// The model is told to ask the caller, once until they speak again: one that calls the tool again is not asked to
// speak.
func (s *serving) unasked(req handoff.FunctionCall) {
	floor := handoff.FloorAsk
	if !s.hearing.spoke.After(s.toldUnasked) {
		floor = handoff.FloorNone
	}
	s.toldUnasked = time.Now()
	s.refuseFor(s.cfg.Attending.NextID(), req, handoff.Fault(handoff.CodeNotAsked, "", ""), floor)
}

// perform does what a function call asks for: at once, or in the background if the tool is slow.
func (s *serving) perform(req handoff.FunctionCall, tool tools.Tool, args tools.Arguments) {
	front := &functionCall{s, req}
	switch {
	case tool.Slow: // it is finished also if the call ends
		id := s.cfg.Attending.NextID()
		run := func() {
			result, err := args.Do(s.lasting, s.backend(req.Asked), front, s.grant)
			s.result(id, req, tool, result, err)
		}
		if tool.Name != tools.StopWork {
			s.inBackground(id, run)
			return
		}
		s.stopping++
		s.pace(speech.Lookup{ID: id})
		s.carrying.Go(func() {
			run()
			s.box.post((*serving).stopped)
		})
	default:
		result, err := args.Do(s.ctx, s.backend(req.Asked), front, s.grant)
		if result != nil || err != nil { // else front answers
			s.result(s.cfg.Attending.NextID(), req, tool, result, err)
		}
	}
}

// result answers a function call with the result of its tool. It may be called from any goroutine.
func (s *serving) result(id string, req handoff.FunctionCall, tool tools.Tool, result tools.Result, err error) {
	switch {
	case err != nil:
		s.refuse(id, req, handoff.AsError(err))
	case tool.Silence:
		s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID, Plain: true})
	default:
		floor := handoff.FloorAsk
		if a, ok := result.(tools.Answer); ok && a.Status != tools.StatusUnclear { // the model may have said so already
			floor = handoff.FloorUnlessSpoke
		}
		answer := s.answer
		if tool.Plain {
			answer = s.answerPlainly
		}
		answer(id, req, tool.Output(result), floor)
	}
}

// inBackground calls do, which answers a function call after I/O, in a goroutine of its own.
func (s *serving) inBackground(id string, do func()) {
	s.pace(speech.Lookup{ID: id})
	s.background.Go(do)
}

// functionCall is one function call as a [tools.Front]. Its methods belong to the loop.
type functionCall struct {
	s    *serving
	call handoff.FunctionCall
}

// Give implements [tools.Front]: it starts a handoff, whose events answer the function call. If the voice model repeats
// words that a handoff is still working on, that handoff's state is the answer.
func (f *functionCall) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (tools.Result, error) {
	s := f.s
	if id := s.repeated(req); id != "" && req.Instead == "" {
		s.answerRepeat(s.cfg.Attending.NextID(), f.call, id)
		return nil, nil
	}
	now := time.Now()
	req.Key, req.Context, req.By = s.key(f.call.CallID), s.context(req.Mode), s.box
	req.Within = s.schedule.Within(now)
	if req.Mode == handoff.ModeAside {
		req.Within = asideWithin
	}
	ctx, span := handoff.BeginSpan(ctx, "request")
	id, err := s.cfg.Handoffs.Start(ctx, g, req)
	s.spans.begin(string(id), f.call.Tool, span, err)
	switch {
	case err == nil:
		s.overtake(req)
		s.open[string(id)] = &openHandoff{call: f.call, req: req, began: now}
		s.pace(speech.Began{ID: string(id), Server: req.Target.Server, Asked: handoff.InputText(req.Input)})
		if req.Mode == handoff.ModeAside { // its answer may take a while, which the caller is told
			s.pace(speech.Lookup{ID: string(id), Server: req.Target.Server})
		}
	case id != "" && handoff.AsError(err).Code == handoff.CodeJoined: // it was begun earlier
		s.answerRepeat(s.cfg.Attending.NextID(), f.call, string(id))
		err = nil
	}
	return nil, err
}

// key returns the idempotency key of a function call.
func (s *serving) key(callID string) string { return s.ID + " " + callID }

// context returns what the agent is told beside the prompt.
func (s *serving) context(mode handoff.Mode) []handoff.Context {
	text := spokenContext
	if mode == handoff.ModeAside {
		text += asideContext
	}
	all := []handoff.Context{{Key: "switchboard", Value: text, Trusted: true}}
	if words := s.hearing.texts; len(words) > 0 {
		all = append(all, handoff.Context{Key: "caller_words", Value: strings.Join(words, "\n")})
	}
	return all
}

// hint prefetches the thread of a function call, once its target is readable. A hint comes with every piece of the
// arguments.
func (s *serving) hint(h handoff.Hint) {
	aside := h.Tool == tools.RunOnServer
	if h.Tool != tools.Codex && h.Tool != tools.QueueNext && !aside {
		return
	}
	if args, ok := tools.ReadTarget(h.Partial); ok && (!aside || args.Thread != "") { // else it gets a new thread
		s.cfg.Attending.Prefetch(s.grant, s.key(h.CallID), args.Target())
	}
}

// answerRepeat answers a function call that repeats another one, whose run is given. It promises the same as that
// handoff's early answer does, so it also waits until the handoff is noted.
func (s *serving) answerRepeat(id string, req handoff.FunctionCall, run string) {
	if o := s.open[run]; o != nil && o.noted {
		s.answerPlainly(id, req, s.language.RepeatedAnswer(s.current(o.rec)).Encode(), handoff.FloorUnlessSpoke)
		return
	}
	s.inBackground(id, func() {
		var rec handoff.Record
		for e, err := range s.cfg.Handoffs.Follow(s.ctx, s.grant, handoff.ID(run), 0) {
			if err != nil {
				s.refuse(id, req, handoff.AsError(err))
				return
			}
			if rec = e.Record; e.Noted {
				break
			}
		}
		s.answerPlainly(id, req, s.language.RepeatedAnswer(rec).Encode(), handoff.FloorUnlessSpoke)
	})
}

// current returns the newest state of a record.
func (s *serving) current(rec handoff.Record) handoff.Record {
	all, _ := s.cfg.Tools.Work.Handoffs(s.grant) // an error concerns only work of an earlier life
	if i := slices.IndexFunc(all, func(k handoff.Record) bool { return k.ID == rec.ID }); i >= 0 {
		return all[i]
	}
	return rec
}

// repeated returns the open handoff that was begun with the same words, or got them last; "": there is none. A caller
// who says the same words again means the running work, whether or not they spoke in between; to have the work done
// once more there is queue_next. So a model that hears old words again in a new session starts nothing twice. The words
// are a new request only if the caller has spoken since the handoff began, and if they did something else in between
// ("push it", "wait, don't", "push it"), or the handoff was for the queue and its work has begun.
func (s *serving) repeated(req handoff.Request) string {
	for id, o := range s.open {
		_, stopped := s.stops.Load(id)
		begun := func() bool {
			return o.req.Mode == handoff.ModeNext && o.noted && s.current(o.rec).State != handoff.StatusAccepted
		}
		switch {
		case sameWords(o.lastAdded, req) && !stopped:
			return id
		case o.call.CallID == "" || !sameWords(o.req, req):
		case !(o.overtaken || stopped || begun()) || !s.hearing.spoke.After(o.began):
			return id
		}
	}
	return ""
}

// overtake notes on the handoffs of a server that the caller gives it other words than these handoffs have.
func (s *serving) overtake(req handoff.Request) {
	if req.Mode == handoff.ModeAside {
		return
	}
	server := func(r handoff.Request) string {
		name, _, _ := strings.Cut(r.Target.Server, "/")
		return normalName(name)
	}
	for _, o := range s.open {
		if server(o.req) != server(req) {
			continue
		}
		o.overtaken = o.overtaken || !sameWords(o.req, req)
		if !sameWords(o.lastAdded, req) {
			o.lastAdded = handoff.Request{}
		}
	}
}

// normalName returns a name in lower case, without the punctuation that transcripts add or leave out, words separated
// by one space. A name of other signs alone is as it is.
func normalName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	words := strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r) && !strings.ContainsRune("+#", r)
	})
	return cmp.Or(strings.Join(words, " "), s)
}

// innerHyphen is a hyphen inside a word. Transcripts may have it or not: "re-run".
var innerHyphen = regexp.MustCompile(`(\pL)[-‐‑](\pL)`)

// normalWords returns the words of an input in lower case, without the punctuation of sentences. Other signs are part
// of the words: "C++" is not "C", and "-1" is not "1".
func normalWords(input []handoff.Part) string {
	text := innerHyphen.ReplaceAllString(strings.ToLower(handoff.InputText(input)), "$1 $2")
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("。，、！？¿¡…–—\"“”„«»()", r)
	})
	for i, w := range words {
		words[i] = strings.Trim(strings.TrimRight(strings.ReplaceAll(w, "’", "'"), ".,;:!?'"), "'")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" || w == "-" }), " ")
}

// sameWords reports whether two requests have the same words for the same target.
func sameWords(a, b handoff.Request) bool {
	return normalName(a.Target.Server) == normalName(b.Target.Server) &&
		normalName(a.Target.Thread) == normalName(b.Target.Thread) &&
		normalName(a.From.Server) == normalName(b.From.Server) && normalName(a.From.Thread) == normalName(b.From.Thread) &&
		a.Mode == b.Mode && a.Goal == b.Goal && a.Worktree == b.Worktree && normalWords(a.Input) == normalWords(b.Input)
}

// backend returns what the tools of this call work on, for a function call whose words ended at asked. Its Work notes
// which runs the call itself stops: the model needs no note of these.
func (s *serving) backend(asked time.Time) tools.Backend {
	b := s.cfg.Tools
	b.Work, b.Language, b.Levels = spokenWork{b.Work, s, asked}, s.language, s
	return b
}

// SetLevel implements [tools.Levels]: the level holds at once, and is stored beside the loop.
func (s *serving) SetLevel(_ context.Context, caller handoff.Caller, level handoff.SpeechLevel) error {
	s.calls.setLevel(caller, level)
	s.background.Go(func() { _ = s.calls.storeLevel(s.lasting, caller) }) // it counts in this life either way
	return nil
}

// spokenWork is the caller's work, for one function call.
type spokenWork struct {
	tools.Work
	s     *serving
	asked time.Time // when the words of the caller ended that the function call follows
}

// sureFor is how long after the question the caller's second word counts. A later stop is a first one again.
const sureFor = time.Minute

// Stop implements [tools.Work]. [handoff.StopTheirs] is for who was asked whether watched work shall stop, and has
// spoken since: the model cannot be sure for them.
func (w spokenWork) Stop(ctx context.Context, g handoff.Grant, id string, of handoff.StopOf) error {
	first, _ := w.s.sure.Load(id)
	askedAfter, _ := first.(time.Time)
	again := w.asked.Sub(askedAfter)
	if of == handoff.StopTheirs && (again <= 0 || again > sureFor) {
		if again > sureFor {
			w.s.sure.Store(id, w.asked)
		}
		return handoff.Fault(handoff.CodeNoConsent, handoff.WhyTheirs, "the caller has not said so again")
	}
	w.s.stops.Store(id, true)
	err := w.Work.Stop(ctx, g, id, of)
	if err != nil {
		w.s.stops.Delete(id)
	}
	if handoff.CodeOf(err) == handoff.CodeNoConsent && again > sureFor {
		w.s.sure.Store(id, w.asked)
	}
	return err
}
