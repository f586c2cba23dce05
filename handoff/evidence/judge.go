package evidence

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/risk"
)

// A Ruling is what becomes of an answer that the voice model brings.
type Ruling int

// The rulings.
const (
	RulingWait     Ruling = iota // not yet: judge again at the next event and at [Judgment].Until
	RulingAccept                 // write the audit record, then accept
	RulingDecline                // decline
	RulingAskAgain               // announce the question again; nothing was decided
	RulingLater                  // they asked for time: say nothing, leave it open
	RulingTap                    // only the page can answer it
	RulingClosed                 // there is no such question any more
	RulingWords                  // write the audit record, then give the words to the agent
	RulingReword                 // the words are not the caller's: the voice model has to give theirs
	rulingCount
)

var rulingNames = [rulingCount]string{"wait", "accept", "decline", "ask again", "later", "needs a tap", "closed",
	"words", "reword"}

// String returns the ruling as tests and logs name it.
func (r Ruling) String() string { return rulingNames[r] }

// A Claim is what the voice model says the caller decided.
type Claim struct {
	Question handoff.QuestionID
	Hash     string           // [handoff.CommandHash] of the question as it is now
	Wants    handoff.Decision // what the voice model understood; it is never enough by itself
	Words    string           // instead of that, an answer in words
	Came     time.Time        // when the claim came
}

// A Judgment is the ruling on a claim, with what an audit record needs.
type Judgment struct {
	Ruling Ruling
	// What was decided, by which reply, with [RulingAccept], [RulingDecline] and [RulingWords].
	handoff.Decided
	// why not, with [RulingAskAgain], [RulingLater], [RulingTap] and [RulingClosed]; its Spoken can be said
	Fault *handoff.Error
	Again string    // the words that ask for a plain answer, with [RulingAskAgain] after a reply that was none
	Until time.Time // with [RulingWait]: when it is decided at the latest
	Tier  risk.Tier
}

// Why a claim is not enough, fit to be said after the phrase of its code.
const (
	whySession   = "allowing it for the whole session cannot be done by voice"
	whyChanged   = "it changed after I asked"
	whyTwice     = "I have asked twice"
	whyNotAccept = "it cannot simply be allowed"
	whyNotHeard  = "the question had not been heard to its end"
	whySilent    = "I heard no answer after the question"
	whySpeaking  = "I did not get all of what was said"
	whyWhich     = "more than one question is open"
	whyUnclear   = "the answer was not plain"
	whyMixed     = "I heard both a yes and a no"
	whyLater     = "they asked for time"
	whyLoose     = "in this call I can't tell who types"
	whyNotTheirs = "those are not the words that I heard"
)

// Judge rules on a claim. An accept stands on what the caller said, never on the claim: it says only
// which question is meant. A decline stands on less, as it does no harm: on a no into the question, or on
// words of which no transcript comes. Silence and a reply that is neither are asked again, for both. What
// decided once decides nothing again, and after [RulingAskAgain] only what is said after the next
// [Evidence.Announced] counts.
func (e *Evidence) Judge(c Claim, now time.Time) Judgment {
	q := e.find(c.Question)
	if q == nil {
		return Judgment{Ruling: RulingClosed, Fault: handoff.Fault(handoff.CodeNotPending, "", "")}
	}
	if c.Words != "" {
		return e.judgeWords(q, c, now)
	}
	if c.Wants == handoff.DecisionDecline || c.Wants == handoff.DecisionStop {
		return e.judgeDecline(q, c, now)
	}
	if why := q.tapOnly(c); why != "" {
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, why, "")}
	}
	return e.judgeAccept(q, c, now)
}

// tapOnly is why a question can only be allowed on the page, or "".
func (q *askedOf) tapOnly(c Claim) string {
	switch {
	case c.Hash != q.hash:
		return whyChanged
	case c.Wants == handoff.DecisionAcceptForSession:
		return whySession
	case !q.mayAccept || c.Wants != handoff.DecisionAccept:
		return whyNotAccept
	}
	if why := risk.WhyNotVoice(q.level, q.tier); why != "" || q.sayable {
		return why
	}
	return handoff.WhyLong
}

// comes reports whether something may still come: the question is being asked, or a transcript is due.
func (e *Evidence) comes(q *askedOf, said []*utterance) bool {
	switch {
	case !q.heardAt.IsZero():
		return len(said) == 0 && !e.lostTo(q) || e.isDue(q.heardAt)
	case len(said) > 0:
		return e.isDue(q.askedAt)
	}
	return q.given != "" && !e.typedInto(q)
}

func (e *Evidence) judgeAccept(q *askedOf, c Claim, now time.Time) Judgment {
	said := e.since(q, now)
	if due := c.Came.Add(transcriptWait); e.comes(q, said) && now.Before(due) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	if q.heardAt.IsZero() && len(said) == 0 {
		return e.again(q, whyNotHeard)
	}
	var last *utterance
	var final consent.Reply
	no := false
	for _, u := range said {
		if r := consent.Read(u.Text, q.about); r != consent.Nothing {
			no = no || r == consent.No || r == consent.Later
			last, final = u, r
		}
	}
	switch {
	case last == nil && e.lostTo(q):
		return e.again(q, whySpeaking)
	case last == nil:
		return e.again(q, whySilent)
	case e.isUnknown(last.Began): // their last word is not known
		return e.again(q, whySpeaking)
	case final == consent.Later:
		return e.later(q)
	case final == consent.Unclear:
		return e.unclear(q, last, whyUnclear)
	case !e.means(q, last, final):
		return e.again(q, whyWhich)
	case final == consent.No:
		return e.decide(q, last, said, RulingDecline, handoff.DecisionDecline, now)
	case no:
		return e.unclear(q, last, whyMixed)
	case now.Sub(last.Began) > handoff.YesFor:
		return e.again(q, handoff.WhyOld)
	case last.Loose:
		return e.again(q, whyLoose)
	}
	return e.allow(q, c, last, said, RulingAccept, handoff.DecisionAccept, now)
}

// allow decides for something, once nothing of the caller can be on its way that speaks against it.
func (e *Evidence) allow(
	q *askedOf, c Claim, by *utterance, said []*utterance, r Ruling, d handoff.Decision, now time.Time,
) Judgment {
	if until := c.Came.Add(lastWord); !by.Typed && now.Before(until) {
		return Judgment{Ruling: RulingWait, Until: until, Tier: q.tier}
	}
	return e.decide(q, by, said, r, d, now)
}

func (e *Evidence) judgeDecline(q *askedOf, c Claim, now time.Time) Judgment {
	said := e.since(q, now)
	if due := c.Came.Add(transcriptWait); now.Before(due) &&
		(len(said) == 0 && !e.lostTo(q) && (!q.heardAt.IsZero() || !e.typedInto(q)) || e.isDue(q.heardAt)) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	var no, last *utterance
	final := consent.Nothing
	for _, u := range said {
		switch r := consent.Read(u.Text, q.about); r {
		case consent.Nothing:
		case consent.No:
			no, last, final = u, u, r
		default:
			last, final = u, r
		}
	}
	if final == consent.Nothing {
		no = e.denied(q, now)
	}
	switch {
	case final == consent.Yes:
		return e.unclear(q, last, whyMixed)
	case final == consent.Later:
		return e.later(q)
	case no != nil && !e.means(q, no, consent.No):
		return e.again(q, whyWhich)
	case no != nil:
		return e.decide(q, no, said, RulingDecline, c.Wants, now)
	case final == consent.Unclear:
		return e.unclear(q, last, whyUnclear)
	case !q.heardAt.IsZero() && e.isUnknown(q.heardAt): // what they said cannot be had
		return e.decide(q, nil, said, RulingDecline, c.Wants, now)
	case q.heardAt.IsZero():
		return e.again(q, whyNotHeard)
	}
	return e.again(q, whySilent)
}

// denied returns the last no that may be for a question although it began before that had been heard to its end:
// into it, or before it was asked in this call, or nobody knows when.
func (e *Evidence) denied(q *askedOf, now time.Time) *utterance {
	for i := range slices.Backward(e.heard) {
		u := &e.heard[i]
		stale := !u.Began.IsZero() && (!u.Began.After(q.firstAt) || now.Sub(u.Began) > evidenceFresh)
		if !u.used && !stale && consent.Read(u.Text, q.about) == consent.No {
			return u
		}
	}
	return nil
}

// decide uses up what was said.
func (e *Evidence) decide(
	q *askedOf, by *utterance, said []*utterance, r Ruling, d handoff.Decision, now time.Time,
) Judgment {
	for _, u := range said {
		u.used = true
	}
	v := Judgment{Ruling: r, Tier: q.tier, Decided: handoff.Decided{Decision: d, By: handoff.ByVoice}}
	if by != nil {
		by.used = true
		v.Transcript, v.Said = by.Text, by.Began
		if by.Typed {
			v.By = handoff.ByTyping
		}
	}
	e.Closed(q.ID, now)
	return v
}

// again lets the question be asked anew, while it has not been asked too often.
func (e *Evidence) again(q *askedOf, why string) Judgment {
	q.given, q.askedAt, q.heardAt = "", time.Time{}, time.Time{}
	if q.asked >= maxAsked || q.cut > maxCut {
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyTwice, why)}
	}
	return Judgment{Ruling: RulingAskAgain, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, why, "")}
}

// unclear lets the question be asked once more in few words, in the language of the reply that was no answer. Where the
// reply may have been for another question, it is asked in full.
func (e *Evidence) unclear(q *askedOf, u *utterance, why string) Judgment {
	v := e.again(q, why)
	if v.Ruling == RulingAskAgain && len(e.rivals(q, u.Began)) == 0 {
		v.Again = q.about.Again(u.Text)
	}
	return v
}

// later leaves the question as it is: the reply that asked for time decides nothing, and the next one may.
func (e *Evidence) later(q *askedOf) Judgment {
	for i := range e.heard {
		e.heard[i].used = e.heard[i].used || e.heard[i].Began.After(q.heardAt)
	}
	return Judgment{Ruling: RulingLater, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, whyLater, "")}
}

// maxReworded is how often the voice model may bring words that the caller did not say.
const maxReworded = 2

// judgeWords rules on an answer in words: the agent gets what the caller said after they had heard the
// question, never what the voice model makes of it.
func (e *Evidence) judgeWords(q *askedOf, c Claim, now time.Time) Judgment {
	switch {
	case !q.words:
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, handoff.WhyNoWords, "")}
	case c.Hash != q.hash:
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyChanged, "")}
	}
	said := e.since(q, now)
	if due := c.Came.Add(transcriptWait); e.comes(q, said) && now.Before(due) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	if q.heardAt.IsZero() && len(said) == 0 {
		return e.again(q, whyNotHeard)
	}
	if len(said) == 0 && e.lostTo(q) {
		return e.again(q, whySpeaking)
	}
	if len(said) == 0 {
		return e.again(q, whySilent)
	}
	last := said[len(said)-1]
	final := consent.Read(last.Text, q.about)
	switch {
	case e.isUnknown(last.Began):
		return e.again(q, whySpeaking)
	case now.Sub(last.Began) > handoff.YesFor:
		return e.again(q, handoff.WhyOld)
	case final == consent.Later:
		return e.later(q)
	case e.wordsForAnother(q, last):
		return e.again(q, whyWhich)
	case !theirWords(c.Words, said):
		if q.reworded++; q.reworded > maxReworded {
			return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyNotTheirs, "")}
		}
		return Judgment{Ruling: RulingReword, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, whyNotTheirs, "")}
	}
	return e.allow(q, c, last, said, RulingWords, handoff.DecisionWords, now)
}

// wordsForAnother reports whether a reply could as well be meant for another open question: for another one
// that takes words, or for an approval if it is a yes or a no to that.
func (e *Evidence) wordsForAnother(q *askedOf, u *utterance) bool {
	return !q.about.Names(u.Text) && slices.ContainsFunc(e.rivals(q, u.Began), func(other *askedOf) bool {
		return other.words || consent.Read(u.Text, other.about) != consent.Unclear
	})
}

// theirWords reports whether words are the caller's.
func theirWords(words string, said []*utterance) bool {
	texts := make([]string, len(said))
	for i, u := range said {
		texts[i] = u.Text
	}
	return consent.Quotes(words, texts...)
}
