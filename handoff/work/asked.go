package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// Bounds of a request, in bytes.
const (
	maxKey  = 512 // its idempotency key
	maxName = 256 // a name of a server or thread
)

// ArgsOf returns the hash of what a request asks for: two requests with one key must have the same.
func ArgsOf(req handoff.Request) string {
	if req.Args != "" {
		return req.Args
	}
	if req.Instead != "" {
		return ledger.Hash(handoff.Encode([]any{"begin", req.Instead}))
	}
	words := []any{Trimmed(req.Target), req.Mode, req.After, req.Input}
	if req.From != (handoff.Target{}) {
		words = append(words, Trimmed(req.From))
	}
	if req.Worktree {
		words = append(words, "worktree")
	}
	if req.Goal {
		words = append(words, "goal")
	}
	return ledger.Hash(handoff.Encode(words))
}

// KeyOf returns the key of a request's document; key is the idempotency key of the request.
func KeyOf(c handoff.Caller, key string) string { return ledger.Key("runs of "+c.String(), key) }

// Asked is a request. ID and Err are results: the handoff that it is or repeats, or why it was refused. With
// [handoff.CodeJoined] comes the handoff that was begun earlier in place of the same one.
type Asked struct {
	Grant   handoff.Grant
	Request handoff.Request
	Args    string        // from [ArgsOf]
	Former  *ledger.Entry // the past entry of its key, which is free; nil: there is none
	Span    handoff.Span

	ID  handoff.ID
	New bool
	Err error
}

func (a *Asked) apply(s *State) {
	if e := s.asked(a); e != nil {
		a.Err = e
	}
}

func (s *State) asked(a *Asked) *handoff.Error {
	g, req := a.Grant, a.Request
	if s.over {
		return handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if err := mayGive(g, req); err != nil {
		return handoff.AsError(err)
	}
	var e *handoff.Error
	if a.ID, e = s.fillInstead(g, &req); e != nil {
		return e
	}
	if e := checkRequest(g, &req); e != nil {
		return e
	}
	parent, e := s.parentOf(req.Origin)
	if e != nil {
		return e
	}
	id := s.cfg.NextID()
	if req.Key == "" {
		req.Key = id
	}
	key := KeyOf(s.cfg.Caller, req.Key)
	same, e := s.same(key, a.Args)
	if same == "" && e == nil && !req.First {
		var unbegun string
		if same, unbegun = s.repeated(req.Print, req.Again); unbegun != "" {
			req.Instead = handoff.ID(unbegun)
		}
	}
	if same != "" || e != nil {
		a.ID = handoff.ID(same)
		return e
	}
	former := s.find(s.byKey[key])
	if former != nil && former.NotBegun() {
		req.Instead = handoff.ID(former.ID)
	}
	if e := s.cfg.Room(g, s.now); e != nil {
		return e
	}
	h := &Handoff{
		Record: handoff.Record{
			ID: id, Server: req.Target.Server, Prompt: handoff.InputText(req.Input), State: handoff.StatusAccepted,
			Unkept: req.Unkept, CreatedAt: s.now, Key: g.Key, Client: req.Origin.Client, Parent: parent,
		},
		open: true, run: Run{Grant: g, Request: req, AskedAt: s.now}, span: a.Span,
		key: key, args: a.Args, print: req.Print, asking: req.Waits,
	}
	never := !s.cfg.Stored || req.Unkept && req.Key == id && req.Print == "" // nothing could ask for it again
	h.doc = document{never: never, print: req.Print, free: true}
	if a.Former != nil {
		h.doc.clear, h.doc.free = true, false
	}
	s.add(h)
	s.byKey[key] = id
	s.closePaused(s.find(string(req.Instead)), id)
	if by := s.attendance(req.By); by != nil {
		h.offered, h.listener = true, by
	}
	if req.Within > 0 {
		h.wait.within = s.now.Add(req.Within)
	}
	if req.Instead != "" && req.By == nil {
		s.byHand(string(req.Instead), handoff.EventByHand{Deed: handoff.DeedContinue})
	}
	a.ID, a.New = handoff.ID(id), true
	s.act(h, h.state.First())
	return nil
}

// mayGive returns why a grant does not allow a request, or nil. Paused work is begun as other work is, whatever its
// mode was.
func mayGive(g handoff.Grant, req handoff.Request) error {
	act := handoff.ActGive
	switch {
	case req.Instead != "":
	case req.Mode == handoff.ModeNext:
		act = handoff.ActGiveNext
	case req.Mode == handoff.ModeAside:
		act = handoff.ActAside
	case req.Mode == handoff.ModeWatch:
		act = handoff.ActWatch
	}
	err := g.May(act)
	if err == nil && req.From != (handoff.Target{}) {
		err = g.May(handoff.ActTranscript)
	}
	return err
}

// checkRequest trims the names of a request, and returns what is wrong with it.
func checkRequest(g handoff.Grant, req *handoff.Request) *handoff.Error {
	req.Target, req.From = Trimmed(req.Target), Trimmed(req.From)
	continues := req.From != (handoff.Target{}) // with a session of another machine
	if (continues || req.Worktree) && req.Target.Thread == "" {
		req.Target.Thread = handoff.NewThread
	}
	t := req.Target
	size, empty := 0, true
	for _, p := range req.Input {
		text, words := p.(handoff.Text)
		size += len(text)
		empty = empty && words && strings.TrimSpace(string(text)) == ""
	}
	switch {
	case empty && req.Mode != handoff.ModeWatch:
		return handoff.Fault(handoff.CodeMalformed, "the prompt is empty", "")
	case size > handoff.MaxPrompt:
		return handoff.Fault(handoff.CodeTooLarge, "the prompt", "")
	case continues && (t.Thread != handoff.NewThread || req.Mode == handoff.ModeAside):
		return handoff.Fault(handoff.CodeMalformed, "only a new session can go on from another one", "")
	case req.Worktree && (t.Thread != handoff.NewThread || req.Mode == handoff.ModeAside):
		return handoff.Fault(handoff.CodeMalformed, "only a new session can have a worktree of its own", "")
	case req.Goal && req.Mode != handoff.ModeNow && req.Mode != handoff.ModeNext:
		return handoff.Fault(handoff.CodeMalformed, "only work can have a goal", "")
	case max(len(t.Server), len(t.Thread), len(req.From.Server), len(req.From.Thread)) > maxName:
		return handoff.Fault(handoff.CodeTooLarge, "a name", "")
	case max(len(req.Key), len(req.Print)) > maxKey:
		return handoff.Fault(handoff.CodeTooLarge, "the key of the request", "")
	case g.Caller.Nameless() && req.By == nil: // nobody could ever hear its outcome
		return handoff.Fault(handoff.CodeNotGranted, "work outside of a call needs a named caller", "")
	}
	return nil
}

// Trimmed returns a target with trimmed names, its project written behind the server: "bigpc/api".
func Trimmed(t handoff.Target) handoff.Target {
	t.Server, t.Thread = strings.TrimSpace(t.Server), strings.TrimSpace(t.Thread)
	if t.Project != "" {
		t.Server, t.Project = t.Server+"/"+t.Project, ""
	}
	return t
}

// fillInstead completes a request that begins a handoff which was not begun (req.Instead): it takes over that handoff's
// target and words. If it was begun meanwhile, fillInstead returns the id of the new one and [handoff.CodeJoined].
func (s *State) fillInstead(by handoff.Grant, req *handoff.Request) (handoff.ID, *handoff.Error) {
	if req.Instead == "" {
		return "", nil
	}
	h := s.find(string(req.Instead))
	if h == nil || !h.NotBegun() || !h.Shown(by) {
		return "", handoff.Fault(handoff.CodeNotFound, "such work", "")
	}
	if begun := h.begunAs; begun != "" {
		if other := s.find(begun); other != nil && other.open {
			return handoff.ID(begun), handoff.Fault(handoff.CodeJoined, h.Server, "it was begun already")
		}
		return "", handoff.Fault(handoff.CodeWorkEnded, "", "")
	}
	req.Target = handoff.Target{Server: h.Server, Project: h.Project, Thread: h.ThreadID}
	restoreRequest(req, h.request, h.Prompt)
	switch h.Why {
	case handoff.WhyContinued: // the session that is in use there now
		req.Target.Thread = ""
	case handoff.WhyCopy:
		req.Target.Thread = CopyOf + h.ThreadID
	case handoff.WhyAside:
		req.Mode = handoff.ModeAside
	case handoff.WhyWatched:
		req.Mode = handoff.ModeWatch
	}
	if req.From != (handoff.Target{}) || req.Worktree { // the session that was made for it has never run
		req.Target.Thread = handoff.NewThread
	}
	return "", nil
}

// same returns the id of the handoff that has a key, or "" if the key is free. It is a conflict if that handoff has
// other arguments.
func (s *State) same(key, args string) (string, *handoff.Error) {
	h := s.find(s.byKey[key])
	switch {
	case h == nil, h.free():
		return "", nil
	case h.args != args:
		return "", handoff.Fault(handoff.CodeConflict, "", "")
	}
	return h.ID, nil
}

// repeated returns the id of the newest handoff with a print, or the one that was begun in its place. If such a handoff
// was not begun, and may be begun by a repetition, repeated returns its id as unbegun. Both are "" if there is none.
func (s *State) repeated(print string, surely bool) (same, unbegun string) {
	for _, h := range slices.Backward(s.all) {
		switch {
		case print == "" || h.print != print || !s.repeatable(h, surely):
			continue
		case !h.free():
			return cmp.Or(h.begunAs, h.ID), ""
		case h.NotBegun():
			return "", h.ID
		}
		break
	}
	return "", ""
}

// repeatable reports whether the request of a handoff can be repeated by its print. surely is for an equal request that
// is known to repeat one.
func (s *State) repeatable(h *Handoff, surely bool) bool {
	may := h.until.IsZero() && !h.asking || surely && (h.until.IsZero() || s.now.Before(h.until))
	return may && h.print != "" && s.now.Sub(h.CreatedAt) < ledger.KeyFor
}

// Repeats asks whether a request is one that is known, by its key or its print. ID and Err are results.
type Repeats struct {
	Key, Args, Print string // Key is from [KeyOf]; "": the request has no key of its own
	Surely           bool   // it repeats a request, if there is one with its print
	First            bool   // it repeats none: who asked for equal ones has their answer
	ID               string
	Err              *handoff.Error
}

func (r *Repeats) apply(s *State) {
	if r.First {
		s.received(r.Print)
		return
	}
	if r.Key != "" {
		r.ID, r.Err = s.same(r.Key, r.Args)
	}
	if r.ID == "" && r.Err == nil {
		r.ID, _ = s.repeated(r.Print, r.Surely)
	}
}

// received notes that the answers to requests with a print were not lost: whoever got them asks for other work now.
func (s *State) received(print string) {
	for _, h := range s.all {
		if h.print == print && s.now.Before(h.until) {
			s.hasAnswer(h, s.now)
		}
	}
}

// Gone says that whoever asked for work does not wait for an answer any more.
type Gone struct{ ID string }

func (g *Gone) apply(s *State) {
	if h := s.find(g.ID); h != nil {
		h.asking = false
	}
}

// Answered says that who asked for work has the answer, whatever that is, or wants none: the same request is new work
// then. The answer may be lost on its way: for a time, a request that certainly repeats this one is the same work.
type Answered struct {
	ID   string
	Lost time.Duration
}

func (a *Answered) apply(s *State) {
	if h := s.find(a.ID); h != nil && h.print != "" && h.until.IsZero() {
		s.hasAnswer(h, s.now.Add(a.Lost))
	}
}

// hasAnswer notes until when the answer to the request of a handoff may be lost.
func (s *State) hasAnswer(h *Handoff, until time.Time) {
	h.until = until
	h.doc.print = ledger.Answered(h.print, until)
	if h.doc.known && !h.doc.closed && h.doc.status != handoff.StatusDelivered {
		s.mark(h)
	}
}

// maxWaiting bounds all requests of a caller that wait or are paused, in bytes, pictures included. More are refused.
const maxWaiting = 32 << 20

// note writes to the store that words were accepted and not sent yet. The caller is promised that they will be, also if
// this process is killed.
func (s *State) note(h *Handoff) {
	whole := encodeRequest(h.run.Request)
	if e := s.roomFor(h, whole); e != nil {
		s.apply(h, phase.FactUnnoted, e)
		return
	}
	h.request = whole
	switch {
	case h.doc.closed: // other work has its key
		s.notFree(h)
		return
	case !s.write(h, handoff.StatusAccepted):
		s.apply(h, phase.FactNoted, nil)
		return
	}
	h.wait.store = pending{notes, s.now.Add(notedWithin), h.doc.seq}
}

// notedWithin bounds how long the store may take to note words; after that the caller is told that it cannot. Together
// with the 1.5 s in which a result would be the answer, the caller hears nothing for 3.5 s at most.
const notedWithin = 2 * time.Second

// roomFor returns why a request cannot wait, or nil.
func (s *State) roomFor(h *Handoff, whole string) *handoff.Error {
	sum := len(whole)
	for _, other := range s.all {
		if other != h {
			sum += len(other.request)
		}
	}
	switch {
	case len(whole) > ledger.MaxRequest:
		return tooMuchWaits("one request that waits", ledger.MaxRequest)
	case sum > maxWaiting:
		return tooMuchWaits("all that waits", maxWaiting)
	}
	return nil
}

func tooMuchWaits(what string, most int) *handoff.Error {
	what = fmt.Sprintf("%s has at most %d megabytes, pictures included", what, most>>20)
	return handoff.Fault(handoff.CodeTooLarge, what, "")
}
