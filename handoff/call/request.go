package call

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// spokenContext tells the agent how its answer will be used.
const spokenContext = "This request was spoken on a call and may have been misheard. " +
	"The answer is read to the caller: end it with one short sentence that can be said aloud."

// asideContext is added to it for a side question.
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
	tool, err := tools.Find(s.grant, req.Tool)
	var args tools.Arguments
	if err == nil {
		args, err = tool.Parse(req.Arguments)
	}
	switch {
	case err != nil:
		s.refuse(s.cfg.Attending.NextID(), req, handoff.AsError(err))
	case tool.Name == tools.StopWork && s.heard.over && s.heard.wordless && len(s.halts) < maxHalts:
		s.halts = append(s.halts, func() { s.perform(req, tool, args) })
		s.heard.due = time.Now().Add(haltWait)
		time.AfterFunc(haltWait, func() { s.box.post((*serving).wordless) })
	default:
		s.perform(req, tool, args)
	}
}

const (
	// haltWait is how long a wish to stop work waits for what the caller said while somebody spoke: a plain "stop" is
	// none. Where no words come it counts.
	haltWait = 1500 * time.Millisecond
	// maxHalts bounds such wishes; one more is carried out at once.
	maxHalts = 8
)

// halt carries out what waited for the caller's words.
func (s *serving) halt() {
	halts := s.halts
	s.halts = nil
	for _, do := range halts {
		do()
	}
}

// wordless carries it out where the words were waited for long enough.
func (s *serving) wordless() {
	if !time.Now().Before(s.heard.due) {
		s.halt()
	}
}

// perform does what a function call asks for, or begins it.
func (s *serving) perform(req handoff.FunctionCall, tool tools.Tool, args tools.Arguments) {
	front := &functionCall{s, req}
	switch {
	case tool.Name == tools.StopWork && s.heard.hushed:
		s.answer(s.cfg.Attending.NextID(), req, wording.HushAnswer().Encode(), handoff.FloorNone)
	case tool.Slow: // it is done also when the call ends meanwhile
		id := s.cfg.Attending.NextID()
		s.beside(id, func() {
			result, err := args.Do(s.lasting, s.backend(), front, s.grant)
			s.result(id, req, tool, result, err)
		})
	default:
		result, err := args.Do(s.open, s.backend(), front, s.grant)
		if result != nil || err != nil { // else the front answers
			s.result(s.cfg.Attending.NextID(), req, tool, result, err)
		}
	}
}

// result answers a function call with what its tool returned. It may be used from any goroutine.
func (s *serving) result(id string, req handoff.FunctionCall, tool tools.Tool, result tools.Result, err error) {
	switch {
	case err != nil:
		s.refuse(id, req, handoff.AsError(err))
	case tool.Silence:
		s.box.say(handoff.Utterance{ID: id + "-a", CallID: req.CallID})
	default:
		floor := handoff.FloorAsk
		if a, ok := result.(tools.Answer); ok && a.Status != tools.StatusUnclear { // the model may have said so already
			floor = handoff.FloorUnlessSpoke
		}
		s.answer(id, req, tool.Output(result), floor)
	}
}

// beside answers a function call in a goroutine of its own, because it has to ask somebody.
func (s *serving) beside(id string, do func()) {
	s.pace(speech.Lookup{ID: id})
	s.besides.Go(do)
}

// functionCall is one function call as a [tools.Front]. Its methods belong to the loop.
type functionCall struct {
	s   *serving
	req handoff.FunctionCall
}

// SetLevel implements [tools.Front]: the level holds at once, in all calls of the caller.
func (f *functionCall) SetLevel(_ context.Context, g handoff.Grant, level handoff.SpeechLevel) error {
	s := f.s
	s.pace(speech.LevelSet{Level: level})
	for _, other := range s.calls.setLevel(g.Caller, level, s.box) {
		other.tell(speech.LevelSet{Level: level})
	}
	s.besides.Go(func() { _ = s.calls.keepLevel(s.lasting, g.Caller) }) // it counts in this life either way
	return nil
}

// Give implements [tools.Front]: it begins the work, and what happens to the run answers the function call. The same
// words again, while the first are still being worked on, are the voice model repeating itself.
func (f *functionCall) Give(ctx context.Context, g handoff.Grant, req handoff.Request) (tools.Result, error) {
	s := f.s
	if id := s.repeated(req); id != "" && req.Instead == "" {
		s.again(s.cfg.Attending.NextID(), f.req, id)
		return nil, nil
	}
	now := time.Now()
	req.Key, req.Context, req.By = s.key(f.req.CallID), s.context(req.Mode), s.box
	req.Within = s.schedule.Within(now)
	if req.Mode == handoff.ModeAside {
		req.Within = asideWithin
	}
	ctx, span := handoff.BeginSpan(ctx, "request")
	id, err := s.cfg.Runs.Start(ctx, g, req)
	s.spans.begin(string(id), f.req.Tool, span, err)
	switch {
	case err == nil:
		s.overtake(req)
		s.runs[string(id)] = &owed{req: f.req, asked: req, began: now}
		s.pace(speech.Began{ID: string(id), Server: req.Target.Server})
		if req.Mode == handoff.ModeAside { // its answer may take a while: until then the caller is not left in silence
			s.pace(speech.Lookup{ID: string(id), Server: req.Target.Server})
		}
	case id != "" && handoff.AsError(err).Code == handoff.CodeJoined: // it was begun before
		s.again(s.cfg.Attending.NextID(), f.req, string(id))
		err = nil
	}
	return nil, err
}

// key names a function call to whoever does the work.
func (s *serving) key(callID string) string { return s.ID + " " + callID }

// context is what an agent is told beside the prompt.
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

// hint attaches the thread of a function call ahead, once its target is readable. It comes with every piece of the
// arguments.
func (s *serving) hint(h handoff.Hint) {
	aside := h.Tool == tools.RunOnServer
	if h.Tool != tools.Codex && h.Tool != tools.QueueNext && !aside {
		return
	}
	if args, ok := tools.ReadTarget(h.Partial); ok && (!aside || args.Thread != "") { // else it gets its own
		s.cfg.Attending.Prefetch(s.grant, s.key(h.CallID), args.Target())
	}
}

// again answers a function call that was made twice. It says of the run what the run's own early answer promises, so it
// waits until the run is noted, too.
func (s *serving) again(id string, req handoff.FunctionCall, run string) {
	if o := s.runs[run]; o != nil && o.noted {
		s.answer(id, req, s.language.RepeatedAnswer(s.known(o.rec)).Encode(), handoff.FloorUnlessSpoke)
		return
	}
	s.beside(id, func() {
		var rec handoff.Record
		for e, err := range s.cfg.Runs.Follow(s.open, s.grant.Caller, handoff.RunID(run), 0) {
			if err != nil {
				s.refuse(id, req, handoff.AsError(err))
				return
			}
			if rec = e.Record; e.Noted {
				break
			}
		}
		s.answer(id, req, s.language.RepeatedAnswer(rec).Encode(), handoff.FloorUnlessSpoke)
	})
}

// known returns a record as it is by now.
func (s *serving) known(rec handoff.Record) handoff.Record {
	all, _ := s.cfg.Tools.Work.Handoffs(s.grant) // it was begun in this life
	if i := slices.IndexFunc(all, func(k handoff.Record) bool { return k.ID == rec.ID }); i >= 0 {
		return all[i]
	}
	return rec
}

// repeated returns the run that goes on and was asked for with the same words, or was given them last. A caller who
// says them once more means the work that runs; for once more after it there is queue_next. So it does not matter
// whether they have spoken since, and a model that goes on in another session, and hears again what it heard before,
// starts nothing twice. Only when something else came in between, and the caller has spoken, are they new ones:
// "push it", "wait, don't", "push it". So they are for the queue when what was queued with them has begun.
func (s *serving) repeated(req handoff.Request) string {
	for id, o := range s.runs {
		_, stopped := s.stops.Load(id)
		begun := func() bool {
			return o.asked.Mode == handoff.ModeNext && o.noted && s.known(o.rec).State != handoff.StatusAccepted
		}
		switch {
		case sameWords(o.added, req) && !stopped:
			return id
		case o.req.CallID == "" || !sameWords(o.asked, req):
		case !(o.overtaken || stopped || begun()) || !s.heard.spoke.After(o.began):
			return id
		}
	}
	return ""
}

// overtake notes at the runs of a server that the caller gives it something else than these were given.
func (s *serving) overtake(req handoff.Request) {
	if req.Mode == handoff.ModeAside {
		return
	}
	server := func(r handoff.Request) string {
		name, _, _ := strings.Cut(r.Target.Server, "/")
		return normal(name)
	}
	for _, o := range s.runs {
		if server(o.asked) != server(req) {
			continue
		}
		o.overtaken = o.overtaken || !sameWords(o.asked, req)
		if !sameWords(o.added, req) {
			o.added = handoff.Request{}
		}
	}
}

// normal is a name without case, spaces and punctuation.
func normal(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}), " ")
}

// joint is a hyphen inside a word, which one writes and another leaves out: "re-run".
var joint = regexp.MustCompile(`(\pL)[-‐‑](\pL)`)

// essence is what was asked without case and the punctuation of sentences. All other signs are part of the words: "C++"
// is not "C", and "-1" is not "1".
func essence(input []handoff.Part) string {
	text := joint.ReplaceAllString(strings.ToLower(handoff.InputText(input)), "$1 $2")
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("。，、！？¿¡…–—\"“”„«»()", r)
	})
	for i, w := range words {
		words[i] = strings.Trim(strings.TrimRight(strings.ReplaceAll(w, "’", "'"), ".,;:!?'"), "'")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" || w == "-" }), " ")
}

// sameWords compares what was asked, and of whom.
func sameWords(a, b handoff.Request) bool {
	return normal(a.Target.Server) == normal(b.Target.Server) && normal(a.Target.Thread) == normal(b.Target.Thread) &&
		normal(a.From.Server) == normal(b.From.Server) && normal(a.From.Thread) == normal(b.From.Thread) &&
		a.Mode == b.Mode && essence(a.Input) == essence(b.Input)
}

// backend is what the tools work on. The call notes what it stops itself: that is no news to it.
func (s *serving) backend() tools.Backend {
	b := s.cfg.Tools
	b.Work, b.Language = spokenWork{b.Work, s}, s.language
	return b
}

// spokenWork is the caller's work, for tools of one call.
type spokenWork struct {
	tools.Work
	s *serving
}

// Stop implements [tools.Work].
func (w spokenWork) Stop(ctx context.Context, g handoff.Grant, id string) error {
	w.s.stops.Store(id, true)
	err := w.Work.Stop(ctx, g, id)
	if err != nil {
		w.s.stops.Delete(id)
	}
	return err
}
