package evidence

import (
	"path"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/risk"
)

// Bounds of evidence.
const (
	// freshFor is how long after a question was heard a reply to it may begin, and how long a reply counts. After that
	// nobody remembers what it was for.
	freshFor = 2 * time.Minute
	// readingTime is how long a question must have been on the page before typed words count as a reply to it.
	readingTime = 1500 * time.Millisecond
	// transcriptWait is how long a claim waits for the transcript of what the caller just said.
	transcriptWait = 4 * time.Second
	// lastWord is how long after a claim a spoken yes is held: the voice may report only then that the caller speaks
	// again, and they may say "wait, don't".
	lastWord = 300 * time.Millisecond
	// echoLag is how much too early the beginning of what the microphone picked up may be taken for.
	echoLag = 500 * time.Millisecond
	// maxAsked is how often a question is said; then it waits on the page.
	maxAsked = 2
	// maxCut is how often a question is said again because the caller interrupted it.
	maxCut = 2
	// maxUtterances bounds the utterances of the caller, and of the voice, that are kept, the newest.
	maxUtterances = 16
	// maxClosed bounds the closed questions that are kept, since a reply may have been for one of them.
	maxClosed = 16
	// maxEvidence bounds the open questions of one call; further ones are answered on the page.
	maxEvidence = 64
)

// Evidence has the questions that the caller of one call has heard, and what they have said since. A yes counts for one
// question, once, and only if it began after the whole question was heard, or was typed by somebody to whom a page
// shows the question.
//
// The loop of a call owns it, and calls it for each event, in order:
//
//	Open      an agent asks (update [handoff.Question]); level is [handoff.Attached].VoiceApprovals
//	Announced an utterance that names act and machine went to the voice model; each time it is asked
//	Said      every [handoff.Said]
//	Voiced    every [handoff.Voiced]
//	Spoke     every [handoff.Spoke]
//	Heard     every [handoff.Heard], before it is used otherwise
//	Closed    [handoff.QuestionClosed], or the question was answered, by a tap or by anybody else
//	Judge     the voice model calls answer_agent; and again while the ruling is [RulingWait]: at the next
//	          event, and at [Judgment].Until
//
// It knows no clock: times come with the events. The zero value is ready.
type Evidence struct {
	open          []*question
	closed        []*question      // closed lately, oldest first: earlier replies may be for them
	heard         []utterance      // oldest first
	untranscribed []time.Time      // when the caller began to speak, without a transcript so far, oldest first
	lost          []time.Time      // when they began to say something that has no transcript, oldest first
	voiced        []handoff.Voiced // what the voice said, oldest first
}

// question is an open question, or one that was closed lately.
type question struct {
	ID         handoff.QuestionID
	takesWords bool // it is answered in words
	picks      bool // and these choose among acts
	fields     []handoff.Ask
	field      int // the one that is asked, of fields
	hash       string
	asks       consent.Question
	tier       risk.Tier
	level      string
	utterance  string         // id of the utterance that asks it now; "": none
	firstAsked time.Time      // when it first went to the voice model; zero: it has not
	lastAsked  time.Time      // when it last went there
	heardAt    time.Time      // when it was heard to the end; zero: it was not
	timesHeard int            // how often it was said to the end
	timesCut   int            // how often the caller interrupted it
	closed     time.Time      // when it was closed; zero: it is open
	reworded   int            // claims of words that were not the caller's
	mayAccept  bool           // the agent offers to accept
	elsewhere  *handoff.Error // why a yes counts only on the machine itself; nil: it counts here
	sayable    bool           // a voice can say all of it
	named      bool           // it was heard with machine and act
}

// utterance is what the caller said.
type utterance struct {
	handoff.Heard
	used bool // it has decided a question
}

// Open adds a question; text is how we ask it. A question that is open already, or one too many, is ignored. A question
// that was closed opens again, since its answer could not be given: it has to be heard again before an answer counts.
func (e *Evidence) Open(o handoff.OpenQuestion, text string) {
	if e.find(o.Question.ID) != nil || len(e.open) >= maxEvidence {
		return
	}
	hash := handoff.CommandHash(o.Question, o.Shown.Server)
	if i := slices.IndexFunc(e.closed, func(q *question) bool { return q.ID == o.Question.ID && q.hash == hash }); i >= 0 {
		q := e.closed[i]
		e.closed = slices.Delete(e.closed, i, i+1)
		q.utterance, q.lastAsked, q.heardAt, q.closed, q.named = "", time.Time{}, time.Time{}, time.Time{}, false
		q.field = 0
		e.open = append(e.open, q)
		return
	}
	e.closed = slices.DeleteFunc(e.closed, func(q *question) bool { return q.ID == o.Question.ID }) // it asks anew
	e.open = append(e.open, &question{
		ID: o.Question.ID, takesWords: o.Shown.Words && o.Shown.Tap == "", hash: hash,
		asks: AskedAbout(o, text), tier: risk.Of(o.Question, o.Workspace), level: o.Level,
		mayAccept: slices.Contains(o.Question.Decisions, handoff.DecisionAccept), sayable: o.Question.Sayable(),
		elsewhere: o.Shown.Elsewhere(), picks: o.Question.Picks(), fields: o.Question.Fields(),
	})
}

// Next opens a question again that was closed by an answer in words, to ask for one of its fields.
func (e *Evidence) Next(id handoff.QuestionID, field int) {
	i := slices.IndexFunc(e.closed, func(q *question) bool { return q.ID == id && field < len(q.fields) })
	if i < 0 {
		return
	}
	q := e.closed[i]
	e.closed = slices.Delete(e.closed, i, i+1)
	q.utterance, q.lastAsked, q.heardAt, q.closed, q.named = "", time.Time{}, time.Time{}, time.Time{}, false
	if q.field != field { // another one, which was not asked before
		q.field, q.timesHeard, q.timesCut, q.reworded = field, 0, 0, 0
	}
	e.open = append(e.open, q)
}

// Announced notes that an utterance asks the question. Earlier replies no longer count for it.
func (e *Evidence) Announced(id handoff.QuestionID, utterance string, at time.Time) {
	if q := e.find(id); q != nil {
		q.utterance, q.lastAsked, q.heardAt = utterance, at, time.Time{}
		if q.firstAsked.IsZero() {
			q.firstAsked = at
		}
	}
}

// Said notes that an utterance was heard, or cut by the caller.
func (e *Evidence) Said(s handoff.Said) {
	for _, q := range e.open {
		if q.utterance == "" || q.utterance != s.ID || !q.heardAt.IsZero() {
			continue
		}
		if s.Cut || s.At.IsZero() { // or the voice model chose to say nothing
			q.timesCut++
			q.utterance = ""
			continue
		}
		q.timesHeard++
		if !q.isAskedBy(s.Text) { // the voice said something else
			q.utterance = ""
			continue
		}
		q.heardAt, q.named = s.At, true
		q.asks.Said = s.Text // the microphone may have picked it up
	}
}

// isAskedBy reports whether what the voice said asks the question: it names machine and act, or, if these were named
// before, asks once more for a plain answer. If the voice's words are not known, they do not.
func (q *question) isAskedBy(said string) bool {
	return q.takesWords && !q.picks || q.asks.AskedBy(said) || q.named && consent.AsksAgain(said)
}

// Voiced notes what the voice said.
func (e *Evidence) Voiced(v handoff.Voiced) { e.voiced = newest(append(e.voiced, v), maxUtterances) }

// read returns what an utterance says to a question. Spoken words that the voice said between the two are its echo.
func (e *Evidence) read(q *question, u *utterance) consent.Reply {
	asked := q.asks
	for _, v := range e.voiced {
		if !u.Typed && !v.From.Before(q.heardAt) && v.From.Before(u.Began.Add(echoLag)) {
			asked.Since = append(asked.Since, v.Text)
		}
	}
	return consent.Read(u.Text, asked)
}

// Spoke notes that the caller began to speak.
func (e *Evidence) Spoke(s handoff.Spoke) {
	e.untranscribed = newest(append(e.untranscribed, s.At), maxUtterances)
}

// Heard notes what the caller said. If it is not known when they began, that is the earliest beginning without a
// transcript. Without such a beginning, the time stays unknown, and the utterance is no evidence: it may be from before
// the question was heard.
func (e *Evidence) Heard(h handoff.Heard) {
	switch {
	case h.Typed:
	case !h.Began.IsZero(): // Spoke may have given the same beginning a little earlier: the last one before it
		for i, at := range slices.Backward(e.untranscribed) {
			if !at.After(h.Began) {
				e.untranscribed = slices.Delete(e.untranscribed, i, i+1)
				break
			}
		}
	case len(e.untranscribed) > 0:
		h.Began = e.untranscribed[0]
		e.untranscribed = slices.Delete(e.untranscribed, 0, 1)
	}
	if h.Lost {
		if h.Began.IsZero() { // it may take back their last utterance
			for _, u := range e.heard {
				h.Began = latest(h.Began, u.Began.Add(1))
			}
		}
		e.lost = newest(append(e.lost, h.Began), maxUtterances)
	}
	if h.Text == "" {
		return
	}
	e.heard = newest(append(e.heard, utterance{Heard: h}), maxUtterances)
}

// newest returns the last elements of a list, limit at most.
func newest[T any](list []T, limit int) []T { return slices.Delete(list, 0, max(0, len(list)-limit)) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replyLost reports whether something that may be the reply to a question has no transcript: it began after the
// question was heard, or was last asked.
func (e *Evidence) replyLost(q *question) bool {
	from := latest(q.heardAt, q.lastAsked)
	return !from.IsZero() && e.isLost(from)
}

// isLost reports whether something that began after a time has no transcript, and will have none.
func (e *Evidence) isLost(after time.Time) bool {
	return slices.ContainsFunc(e.lost, func(at time.Time) bool { return at.After(after) })
}

// isUnknown reports whether something that the caller began to say after a time has no transcript, yet or at all.
func (e *Evidence) isUnknown(after time.Time) bool {
	return e.isUntranscribed(after) || e.isLost(after)
}

// isUntranscribed reports whether something that began after a time has no transcript so far.
func (e *Evidence) isUntranscribed(after time.Time) bool {
	return slices.ContainsFunc(e.untranscribed, func(at time.Time) bool { return at.After(after) })
}

// Closed closes a question. Earlier replies may have been for it, so they need more to decide another one, see rivals.
func (e *Evidence) Closed(id handoff.QuestionID, at time.Time) {
	q := e.find(id)
	if q == nil {
		return
	}
	q.closed = at
	e.open = slices.DeleteFunc(e.open, func(o *question) bool { return o == q })
	e.closed = newest(append(e.closed, q), maxClosed)
}

// Knows reports whether a question is open in this call.
func (e *Evidence) Knows(id handoff.QuestionID) bool { return e.find(id) != nil }

func (e *Evidence) find(id handoff.QuestionID) *question {
	if i := slices.IndexFunc(e.open, func(q *question) bool { return q.ID == id }); i >= 0 {
		return e.open[i]
	}
	return nil
}

// replies returns the utterances that may answer a question, in the order in which they were spoken. They began after
// the question was known, not too long after that, and decided nothing yet. Echoes of the question are left out.
func (e *Evidence) replies(q *question, now time.Time) []*utterance {
	known := e.knownFrom(q)
	if known.IsZero() {
		return nil
	}
	var out []*utterance
	for i := range e.heard {
		u := &e.heard[i]
		if u.used || !u.Began.After(known) || u.Began.Sub(known) > freshFor || now.Sub(u.Began) > freshFor {
			continue
		}
		if e.read(q, u) != consent.Echo {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(x, y *utterance) int { return x.Began.Compare(y.Began) })
	return out
}

// knownFrom returns the time from which the caller knew a question: when it was heard, or right before their first
// typed words after they could read it on the page. Zero: they do not know it.
func (e *Evidence) knownFrom(q *question) time.Time {
	from := q.heardAt
	for i := range e.heard {
		u := &e.heard[i]
		read := u.Typed && u.Shown && !u.used && !q.lastAsked.IsZero() && u.Began.After(q.lastAsked.Add(readingTime))
		if read && (from.IsZero() || u.Began.Before(from)) {
			from = u.Began.Add(-1)
		}
	}
	return from
}

// typedSince reports whether something was typed since the question was last asked. Typed text comes as a whole, so if
// it is no answer, none is to be waited for.
func (e *Evidence) typedSince(q *question) bool {
	return slices.ContainsFunc(e.heard, func(u utterance) bool {
		return u.Typed && !u.used && !q.lastAsked.IsZero() && u.Began.After(q.lastAsked)
	})
}

// rivals returns the other questions that a reply could be for: those that were open when it began, were first asked
// before, and were heard not long ago. Whether one is asked again later does not matter.
func (e *Evidence) rivals(q *question, began time.Time) []*question {
	var out []*question
	if began.IsZero() { // it may be for any open question that was asked
		return slices.DeleteFunc(slices.Clone(e.open), func(other *question) bool {
			return other == q || other.firstAsked.IsZero()
		})
	}
	for _, other := range slices.Concat(e.open, e.closed) {
		if other == q || other.firstAsked.IsZero() || !other.firstAsked.Before(began) ||
			!other.closed.IsZero() && other.closed.Before(began) {
			continue
		}
		if other.heardAt.IsZero() || began.Sub(other.heardAt) <= freshFor {
			out = append(out, other)
		}
	}
	return out
}

// isFor reports whether a reply is for this question, and for no other open one.
func (e *Evidence) isFor(q *question, u *utterance, reply consent.Reply) bool {
	rivals := e.rivals(q, u.Began)
	if len(rivals) == 0 {
		return true
	}
	if !q.asks.Names(u.Text) {
		return false
	}
	return !slices.ContainsFunc(rivals, func(other *question) bool {
		return other.asks.Names(u.Text) && (reply == consent.No || consent.Read(u.Text, other.asks) == consent.Yes)
	})
}

// AskedAbout returns what a question asks, for [consent.Read]: the words of its command or files, the names of the
// machine and the project, and the text with which we ask.
func AskedAbout(o handoff.OpenQuestion, text string) consent.Question {
	q := o.Question
	asked := consent.Question{Machines: o.Names, Others: o.Others, Text: text,
		Paths: append([]string{q.Cwd, o.Workspace}, q.Changes...)}
	if o.Project != "" {
		asked.Projects = []string{o.Project}
	}
	switch q.Kind {
	case handoff.QuestionCommand:
		asked.Acts, _ = risk.Named(q.Command)
	case handoff.QuestionFileChange:
		asked.Acts = []string{"edit", "files"}
		for _, c := range q.Changes {
			asked.Files = append(asked.Files, nameOf(c, q.Changes))
		}
	case handoff.QuestionCopy:
		asked.Acts = []string{"copy"}
	}
	return asked
}

// nameOf returns the name of a file, with its directory if another one of all has the same name.
func nameOf(file string, all []string) string {
	name := path.Base(file)
	for _, other := range all {
		if other != file && path.Base(other) == name {
			return path.Join(path.Base(path.Dir(file)), name)
		}
	}
	return name
}
