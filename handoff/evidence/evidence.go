package evidence

import (
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/risk"
)

// Bounds of evidence.
const (
	// evidenceFresh is how long after a question was heard a reply to it counts, and how long a reply weighs
	// against a later one. Later nobody remembers what it was for.
	evidenceFresh = 2 * time.Minute
	// readIn is how long a question has been on the page, at least, when somebody who types has read it.
	readIn = 1500 * time.Millisecond
	// transcriptWait is how long an answer waits for the transcript of what the caller just said.
	transcriptWait = 4 * time.Second
	// lastWord is how long after a claim a yes is held: a voice tells so late that the caller speaks again, and
	// what they say may be "wait, don't".
	lastWord = 300 * time.Millisecond
	// maxAsked is how often a question is heard; then it waits on the page.
	maxAsked = 2
	// maxCut is how often it is begun again because the caller spoke into it.
	maxCut = 2
	// maxUtterances is how many utterances of the caller are kept; the oldest is of no use any more.
	maxUtterances = 16
	// maxGone is how many closed questions are remembered as what a reply may have been for.
	maxGone = 16
	// maxEvidence is how many open questions one call can answer; further ones are answered on the page.
	maxEvidence = 64
)

// Evidence holds which questions the caller of one call has heard, and what they have said since. A yes
// counts only when it began after the whole question had been heard, or was typed by somebody to whom a page shows it,
// for one question, once.
//
// The loop of a call owns it and drives it, in the order of its events:
//
//	Open      an agent asks (update [handoff.Question]); level is [handoff.Attached].VoiceApprovals
//	Announced an utterance that names act and machine went to the voice model; each time it is asked
//	Said      every [handoff.Said]
//	Spoke     every [handoff.Spoke]
//	Heard     every [handoff.Heard], before anything else is made of it
//	Closed    [handoff.QuestionClosed], or it was answered, by a tap or anybody else; a yes is then for nothing
//	Judge     the voice model calls answer_agent, and again while the ruling is [RulingWait]: at the next
//	          event, and at [Judgment].Until
//
// It knows no clock: times come with the events. The zero value is ready.
type Evidence struct {
	open  []*askedOf
	gone  []*askedOf  // closed lately, oldest first: what is said before they closed may be for them
	heard []utterance // oldest first
	due   []time.Time // when the caller began to speak and no transcript has come, oldest first
	lost  []time.Time // when they began to say what could not be transcribed, oldest first
}

// askedOf is an open question.
type askedOf struct {
	ID        handoff.QuestionID
	words     bool // it is answered in words
	hash      string
	about     consent.Question
	tier      risk.Tier
	level     string
	given     string    // the utterance that asks now
	firstAt   time.Time // when it first went to the voice model; zero: not asked yet
	askedAt   time.Time // when it last went there
	heardAt   time.Time // when it had been heard to the end; zero: not yet
	asked     int       // times it was heard
	cut       int       // times the caller spoke into it
	closed    time.Time // when it was; zero: it is open
	reworded  int       // answers in words that were not the caller's
	mayAccept bool      // the agent offers it
	sayable   bool      // a voice can say all of it
	named     bool      // it was heard with machine and act
}

// utterance is what the caller said.
type utterance struct {
	handoff.Heard
	used bool // it has decided a question
}

// Open adds a question. One that is known already, or one too many, changes nothing. One that was closed is
// Open again, because its answer could not be given: it has to be heard anew, and a yes may be for it. text is how we
// ask it.
func (e *Evidence) Open(o handoff.OpenQuestion, text string) {
	if e.find(o.Question.ID) != nil || len(e.open) >= maxEvidence {
		return
	}
	hash := handoff.CommandHash(o.Question, o.Shown.Server)
	if i := slices.IndexFunc(e.gone, func(q *askedOf) bool { return q.ID == o.Question.ID && q.hash == hash }); i >= 0 {
		q := e.gone[i]
		e.gone = slices.Delete(e.gone, i, i+1)
		q.given, q.askedAt, q.heardAt, q.closed, q.named = "", time.Time{}, time.Time{}, time.Time{}, false
		e.open = append(e.open, q)
		return
	}
	e.open = append(e.open, &askedOf{
		ID: o.Question.ID, words: o.Shown.Words && o.Shown.Tap == "", hash: hash,
		about: AskedAbout(o.Question, o.Names, o.Project, text), tier: risk.Of(o.Question, o.Workspace), level: o.Level,
		mayAccept: slices.Contains(o.Question.Decisions, handoff.DecisionAccept), sayable: o.Question.Sayable(),
	})
}

// Announced notes that an utterance asks the question. What was said before it no longer counts for it.
func (e *Evidence) Announced(id handoff.QuestionID, utterance string, at time.Time) {
	if q := e.find(id); q != nil {
		q.given, q.askedAt, q.heardAt = utterance, at, time.Time{}
		if q.firstAt.IsZero() {
			q.firstAt = at
		}
	}
}

// Said notes that an utterance was heard, or cut by the caller.
func (e *Evidence) Said(s handoff.Said) {
	for _, q := range e.open {
		if q.given == "" || q.given != s.ID || !q.heardAt.IsZero() {
			continue
		}
		if s.Cut || s.At.IsZero() { // or the voice model chose to say nothing
			q.cut++
			q.given = ""
			continue
		}
		q.asked++
		if !q.isAskedBy(s.Text) { // something else was asked, whatever it was
			q.given = ""
			continue
		}
		q.heardAt, q.named = s.At, true
		if s.Text != "" {
			q.about.Said = s.Text // what the microphone may have heard back
		}
	}
}

// isAskedBy reports whether what the voice said asks the question: it names machine and act, or asks once more for a
// plain answer after they had been named. A voice of which the words are not known is believed.
func (q *askedOf) isAskedBy(said string) bool {
	return q.words || said == "" || q.about.NamesMachine(said) && q.about.NamesAct(said) ||
		q.named && consent.AsksAgain(said)
}

// Spoke notes that the caller began to speak.
func (e *Evidence) Spoke(s handoff.Spoke) {
	e.due = newest(append(e.due, s.At), maxUtterances)
}

// Heard notes what the caller said. Where nobody knows when they began, it is the earliest time that is due; where none
// is, the beginning stays unknown, and the utterance is no evidence: it may be from before the question was heard.
func (e *Evidence) Heard(h handoff.Heard) {
	switch {
	case h.Typed:
	case !h.Began.IsZero(): // the last that is due: a begin is told once more with its transcript, perhaps a little later
		for i, at := range slices.Backward(e.due) {
			if !at.After(h.Began) {
				e.due = slices.Delete(e.due, i, i+1)
				break
			}
		}
	case len(e.due) > 0:
		h.Began = e.due[0]
		e.due = slices.Delete(e.due, 0, 1)
	}
	if h.Lost {
		if h.Began.IsZero() { // it may take back what they began last
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

// newest keeps at most so many of a list, the last ones.
func newest[T any](list []T, most int) []T { return slices.Delete(list, 0, max(0, len(list)-most)) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lostTo reports whether something that may be the reply to a question could not be transcribed: it began after that
// had been heard, or was asked last.
func (e *Evidence) lostTo(q *askedOf) bool {
	from := latest(q.heardAt, q.askedAt)
	return !from.IsZero() && e.isLost(from)
}

// isLost reports whether something that began after a time could not be transcribed.
func (e *Evidence) isLost(after time.Time) bool {
	return slices.ContainsFunc(e.lost, func(at time.Time) bool { return at.After(after) })
}

// isUnknown reports whether nobody knows yet, or ever will, all that the caller began to say after a time.
func (e *Evidence) isUnknown(after time.Time) bool { return e.isDue(after) || e.isLost(after) }

// isDue reports whether the transcript of something that began after a time has not come.
func (e *Evidence) isDue(after time.Time) bool {
	return slices.ContainsFunc(e.due, func(at time.Time) bool { return at.After(after) })
}

// Closed ends a question. What the caller said before may have been for it, so it alone decides no other.
func (e *Evidence) Closed(id handoff.QuestionID, at time.Time) {
	q := e.find(id)
	if q == nil {
		return
	}
	q.closed = at
	e.open = slices.DeleteFunc(e.open, func(o *askedOf) bool { return o == q })
	e.gone = newest(append(e.gone, q), maxGone)
}

// Knows reports whether a question is open in this call.
func (e *Evidence) Knows(id handoff.QuestionID) bool { return e.find(id) != nil }

func (e *Evidence) find(id handoff.QuestionID) *askedOf {
	if i := slices.IndexFunc(e.open, func(q *askedOf) bool { return q.ID == id }); i >= 0 {
		return e.open[i]
	}
	return nil
}

// since returns the utterances that may answer a question, in the order in which they were spoken: they
// began after it had been heard, or read by somebody who typed them, soon, and decided nothing yet. Echoes of the
// question are none.
func (e *Evidence) since(q *askedOf, now time.Time) []*utterance {
	known := e.known(q)
	if known.IsZero() {
		return nil
	}
	var out []*utterance
	for i := range e.heard {
		u := &e.heard[i]
		if u.used || !u.Began.After(known) || u.Began.Sub(known) > evidenceFresh || now.Sub(u.Began) > evidenceFresh {
			continue
		}
		if consent.Read(u.Text, q.about) != consent.Echo {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(x, y *utterance) int { return x.Began.Compare(y.Began) })
	return out
}

// known returns from when on the caller knew a question: when it had been heard, or just before the first words of
// somebody who typed them and had read it on the page. Zero: they do not know it.
func (e *Evidence) known(q *askedOf) time.Time {
	from := q.heardAt
	for i := range e.heard {
		u := &e.heard[i]
		read := u.Typed && u.Shown && !u.used && !q.askedAt.IsZero() && u.Began.After(q.askedAt.Add(readIn))
		if read && (from.IsZero() || u.Began.Before(from)) {
			from = u.Began.Add(-1)
		}
	}
	return from
}

// typedInto reports whether something was typed since the question was last asked. It came at once and as a whole, so
// where it is no answer there is nothing to wait for.
func (e *Evidence) typedInto(q *askedOf) bool {
	return slices.ContainsFunc(e.heard, func(u utterance) bool {
		return u.Typed && !u.used && !q.askedAt.IsZero() && u.Began.After(q.askedAt)
	})
}

// rivals are the other questions that a reply could be for: first asked before it began, heard not long
// ago, and open then. That one is asked again later changes nothing of what the reply may have meant.
func (e *Evidence) rivals(q *askedOf, began time.Time) []*askedOf {
	var out []*askedOf
	if began.IsZero() { // nobody knows when: it may be for any that is open
		return slices.DeleteFunc(slices.Clone(e.open), func(other *askedOf) bool {
			return other == q || other.firstAt.IsZero()
		})
	}
	for _, other := range slices.Concat(e.open, e.gone) {
		if other == q || other.firstAt.IsZero() || !other.firstAt.Before(began) ||
			!other.closed.IsZero() && other.closed.Before(began) {
			continue
		}
		if other.heardAt.IsZero() || began.Sub(other.heardAt) <= evidenceFresh {
			out = append(out, other)
		}
	}
	return out
}

// means reports whether a reply is for this question and for no other one that is open.
func (e *Evidence) means(q *askedOf, u *utterance, reply consent.Reply) bool {
	rivals := e.rivals(q, u.Began)
	if len(rivals) == 0 {
		return true
	}
	if !q.about.Names(u.Text) {
		return false
	}
	return !slices.ContainsFunc(rivals, func(other *askedOf) bool {
		return other.about.Names(u.Text) && (reply == consent.No || consent.Read(u.Text, other.about) == consent.Yes)
	})
}

// Bounds of what a question is known by.
const (
	maxAskedActs = 8 // words of a command that a yes may repeat
	keyWords     = 2 // words of each of its parts that have to be heard: the program and its first operand
)

// AskedAbout returns what a question asks, for [consent.Read]: the words of its command or files, the
// machine's names, those of the project, and the text with which we asked.
func AskedAbout(q handoff.Question, machines []string, project, text string) consent.Question {
	asked := consent.Question{Machines: machines, Text: text}
	if project != "" {
		asked.Projects = []string{project}
	}
	switch q.Kind {
	case handoff.QuestionCommand:
		asked.Acts, asked.Key = commandActs(q.Command)
	case handoff.QuestionFileChange:
		asked.Acts = []string{"edit", "files"}
		for _, c := range q.Changes {
			asked.Files = append(asked.Files, path.Base(c))
		}
	case handoff.QuestionCopy:
		asked.Acts, asked.Key = []string{"copy"}, []string{"copy"}
	}
	return asked
}

// wrappers are programs that run another one: nobody names them when they say what is run.
var wrappers = strings.Fields("sh bash zsh dash fish env sudo doas nohup nice time exec command lc c xargs cmd " +
	"powershell pwsh cd")

// commandActs returns the words of a command that name what it does, and those without which nobody has said what it
// does: of each of its parts the program and the first operand.
func commandActs(command string) (acts, key []string) {
	part := 0
	for field := range strings.FieldsSeq(handoff.Clip(command, 400)) {
		if strings.Trim(field, ";&|") == "" {
			part = 0
			continue
		}
		word := path.Base(strings.Trim(field, `"'();&|`))
		words := strings.FieldsFunc(strings.ToLower(word), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if len(words) > 0 && !strings.HasPrefix(field, "-") && !strings.Contains(field, "=") &&
			!slices.Contains(wrappers, words[0]) {
			if part < keyWords {
				key = append(key, word)
			}
			part++
			if len(acts) < maxAskedActs {
				acts = append(acts, word)
			}
		}
		if strings.HasSuffix(field, ";") {
			part = 0
		}
	}
	return acts, key
}
