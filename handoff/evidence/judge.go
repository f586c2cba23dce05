package evidence

import (
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/risk"
)

// A Ruling is the decision about a [Claim].
type Ruling int

// The rulings.
const (
	RulingWait     Ruling = iota // not yet: judge again at the next event and at [Judgment].Until
	RulingAccept                 // write the audit record, then accept
	RulingDecline                // decline
	RulingAskAgain               // ask the question again; nothing was decided
	RulingLater                  // the caller asked for time: say nothing, and leave the question open
	RulingTap                    // the question can only be answered on the page
	RulingClosed                 // the question is not open any more
	RulingWords                  // write the audit record, then give the words to the agent
	RulingReword                 // the words are not the caller's: the voice model has to give the caller's
	rulingCount
)

var rulingNames = [rulingCount]string{"wait", "accept", "decline", "ask again", "later", "needs a tap", "closed",
	"words", "reword"}

// String returns the ruling as tests and logs name it.
func (r Ruling) String() string { return rulingNames[r] }

// A Claim is an answer of the caller, as the voice model reports it.
type Claim struct {
	Question handoff.QuestionID
	Hash     string           // [handoff.CommandHash] of the question as it is now
	Wants    handoff.Decision // the decision that the voice model understood, which is never enough by itself
	Words    string           // or an answer in words; "": none
	Came     time.Time        // when the claim came
}

// A Judgment is the ruling on a claim, with the data for an audit record.
type Judgment struct {
	Ruling Ruling
	// With [RulingAccept], [RulingDecline] and [RulingWords]: the decision, and the reply that made it.
	handoff.Decided
	// With [RulingAskAgain], [RulingLater], [RulingTap] and [RulingClosed]: the reason; its Spoken can be said.
	Fault *handoff.Error
	Again string    // with [RulingAskAgain] after an unclear reply: words that ask for a plain answer; "": ask in full
	Until time.Time // with [RulingWait]: when it is decided at the latest
	Tier  risk.Tier
}

// Reasons why a claim is not enough. They can be said after the phrase of their code.
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
	whyNotNamed  = "it takes one of the answers that were offered, by its name"
)

// Judge rules on a claim. To accept, it needs the caller's own words; the claim says only which question is meant. To
// decline it needs less, since that does no harm: a no while the question was still being said, or words without a
// transcript. After silence or an unclear reply the question is asked again, whatever was claimed. A reply decides one
// question only, and after [RulingAskAgain] only replies after the next [Evidence.Announced] count.
func (e *Evidence) Judge(c Claim, now time.Time) Judgment {
	q := e.find(c.Question)
	if q == nil {
		return Judgment{Ruling: RulingClosed, Fault: handoff.Fault(handoff.CodeNotPending, "", "")}
	}
	declines := c.Words == "" && (c.Wants == handoff.DecisionDecline || c.Wants == handoff.DecisionStop)
	switch {
	case declines:
		return e.judgeDecline(q, c, now)
	case q.elsewhere != nil:
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: q.elsewhere}
	case c.Words == "" && c.Wants == handoff.DecisionAccept && q.takesWords && q.yesOrNo():
		c.Words = "yes"
		return e.judgeWords(q, c, now)
	case c.Words != "":
		return e.judgeWords(q, c, now)
	case c.Wants == handoff.DecisionAccept && q.takesWords && q.fields[q.field].Only:
		return e.askAgain(q, whyNotNamed)
	}
	if why := q.tapOnly(c); why != "" {
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, why, "")}
	}
	return e.judgeAccept(q, c, now)
}

// tapOnly returns why a question can only be allowed on the page; "": it can be allowed by voice.
func (q *question) tapOnly(c Claim) string {
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

// mayStillCome reports whether a reply may still come: the question is being asked, or a transcript is missing.
func (e *Evidence) mayStillCome(q *question, said []*utterance) bool {
	switch {
	case !q.heardAt.IsZero():
		return len(said) == 0 && !e.replyLost(q) || e.isUntranscribed(q.heardAt)
	case len(said) > 0:
		return e.isUntranscribed(q.lastAsked)
	}
	return q.utterance != "" && !e.typedSince(q)
}

func (e *Evidence) judgeAccept(q *question, c Claim, now time.Time) Judgment {
	said := e.replies(q, now)
	if due := c.Came.Add(transcriptWait); e.mayStillCome(q, said) && now.Before(due) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	if q.heardAt.IsZero() && len(said) == 0 {
		return e.askAgain(q, whyNotHeard)
	}
	var last *utterance
	var final consent.Reply
	no := false
	for _, u := range said {
		if r := e.read(q, u); r != consent.Nothing {
			no = no || r == consent.No || r == consent.Later
			last, final = u, r
		}
	}
	switch {
	case last == nil && e.replyLost(q):
		return e.askAgain(q, whySpeaking)
	case last == nil:
		return e.askAgain(q, whySilent)
	case e.isUnknown(last.Began): // what they said after that is not known
		return e.askAgain(q, whySpeaking)
	case final == consent.Later:
		return e.later(q)
	case final == consent.Unclear:
		return e.unclear(q, last, whyUnclear)
	case !e.isFor(q, last, final):
		return e.askAgain(q, whyWhich)
	case final == consent.No:
		return e.decide(q, last, said, RulingDecline, handoff.DecisionDecline, now)
	case no:
		return e.unclear(q, last, whyMixed)
	case now.Sub(last.Began) > handoff.YesFor:
		return e.askAgain(q, handoff.WhyOld)
	case last.Loose:
		return e.askAgain(q, whyLoose)
	case q.isEarly(last):
		return e.askAgain(q, whyNotHeard)
	}
	return e.allow(q, c, last, said, RulingAccept, handoff.DecisionAccept, now)
}

// isEarly reports whether an utterance was spoken before the question was heard to its end. It may deny then, and
// allows nothing.
func (q *question) isEarly(u *utterance) bool {
	return !u.Typed && (q.heardAt.IsZero() || !u.Began.After(q.heardAt))
}

// allow decides to allow something, after [lastWord], in which the caller may take a spoken yes back.
func (e *Evidence) allow(
	q *question, c Claim, by *utterance, said []*utterance, r Ruling, d handoff.Decision, now time.Time,
) Judgment {
	if until := c.Came.Add(lastWord); !by.Typed && now.Before(until) {
		return Judgment{Ruling: RulingWait, Until: until, Tier: q.tier}
	}
	return e.decide(q, by, said, r, d, now)
}

func (e *Evidence) judgeDecline(q *question, c Claim, now time.Time) Judgment {
	said := e.replies(q, now)
	if due := c.Came.Add(transcriptWait); now.Before(due) &&
		(len(said) == 0 && !e.replyLost(q) && (!q.heardAt.IsZero() || !e.typedSince(q)) || e.isUntranscribed(q.heardAt)) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	var no, last *utterance
	final := consent.Nothing
	for _, u := range said {
		switch r := e.read(q, u); r {
		case consent.Nothing:
		case consent.No:
			no, last, final = u, u, r
		default:
			last, final = u, r
		}
	}
	if final == consent.Nothing {
		no = e.earlyNo(q, now)
	}
	switch {
	case final == consent.Yes:
		return e.unclear(q, last, whyMixed)
	case final == consent.Later:
		return e.later(q)
	case no != nil && !e.isFor(q, no, consent.No):
		return e.askAgain(q, whyWhich)
	case no != nil:
		return e.decide(q, no, said, RulingDecline, c.Wants, now)
	case final == consent.Unclear:
		return e.unclear(q, last, whyUnclear)
	case !q.heardAt.IsZero() && e.isUnknown(q.heardAt): // there is no transcript of what they said
		return e.decide(q, nil, said, RulingDecline, c.Wants, now)
	case q.heardAt.IsZero():
		return e.askAgain(q, whyNotHeard)
	}
	return e.askAgain(q, whySilent)
}

// earlyNo returns the last no that may be for a question although it began before the question was heard to its end:
// after the question was first asked in this call, at any time if it was not asked here, or at an unknown time.
func (e *Evidence) earlyNo(q *question, now time.Time) *utterance {
	for i := range slices.Backward(e.heard) {
		u := &e.heard[i]
		stale := !u.Began.IsZero() && (!u.Began.After(q.firstAsked) || now.Sub(u.Began) > freshFor)
		if !u.used && !stale && e.read(q, u) == consent.No {
			return u
		}
	}
	return nil
}

// decide decides a question, and marks the replies as used.
func (e *Evidence) decide(
	q *question, by *utterance, said []*utterance, r Ruling, d handoff.Decision, now time.Time,
) Judgment {
	for _, u := range said {
		u.used = true
	}
	v := Judgment{Ruling: r, Tier: q.tier, Decided: handoff.Decided{Decision: d, By: handoff.ByVoice}}
	if by != nil {
		by.used = true
		v.Transcript, v.Said = by.Text, by.Began
		if !q.heardAt.IsZero() {
			v.Asked, v.Heard = q.asks.Said, q.heardAt
		}
		if by.Typed {
			v.By = handoff.ByTyping
		}
	}
	e.Closed(q.ID, now)
	return v
}

// askAgain has the question asked again, unless it was asked too often.
func (e *Evidence) askAgain(q *question, why string) Judgment {
	q.utterance, q.lastAsked, q.heardAt = "", time.Time{}, time.Time{}
	if q.timesHeard >= maxAsked || q.timesCut > maxCut {
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyTwice, why)}
	}
	return Judgment{Ruling: RulingAskAgain, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, why, "")}
}

// unclear has the question asked again in few words, in the language of the unclear reply. If the reply may have been
// for another question, this one is asked in full.
func (e *Evidence) unclear(q *question, u *utterance, why string) Judgment {
	v := e.askAgain(q, why)
	if v.Ruling == RulingAskAgain && len(e.rivals(q, u.Began)) == 0 {
		v.Again = q.asks.Again(u.Text)
	}
	return v
}

// later leaves the question open after a reply that asked for time. All replies so far are used up.
func (e *Evidence) later(q *question) Judgment {
	for i := range e.heard {
		e.heard[i].used = e.heard[i].used || e.heard[i].Began.After(q.heardAt)
	}
	return Judgment{Ruling: RulingLater, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, whyLater, "")}
}

// maxReworded bounds how often the voice model may report words that the caller did not say.
const maxReworded = 2

// judgeWords rules on an answer in words. It must quote what the caller said after they had heard the question.
func (e *Evidence) judgeWords(q *question, c Claim, now time.Time) Judgment {
	switch {
	case !q.takesWords:
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, handoff.WhyNoWords, "")}
	case c.Hash != q.hash:
		return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyChanged, "")}
	}
	said := e.replies(q, now)
	if due := c.Came.Add(transcriptWait); e.mayStillCome(q, said) && now.Before(due) {
		return Judgment{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	if q.heardAt.IsZero() && len(said) == 0 {
		return e.askAgain(q, whyNotHeard)
	}
	if len(said) == 0 && e.replyLost(q) {
		return e.askAgain(q, whySpeaking)
	}
	if len(said) == 0 {
		return e.askAgain(q, whySilent)
	}
	last := said[len(said)-1]
	final := e.read(q, last)
	switch {
	case e.isUnknown(last.Began):
		return e.askAgain(q, whySpeaking)
	case now.Sub(last.Began) > handoff.YesFor:
		return e.askAgain(q, handoff.WhyOld)
	case final == consent.Later:
		return e.later(q)
	case slices.ContainsFunc(said, func(u *utterance) bool { return u.Loose }):
		return e.askAgain(q, whyLoose)
	case slices.ContainsFunc(said, q.isEarly):
		return e.askAgain(q, whyNotHeard)
	case e.wordsForAnother(q, last):
		return e.askAgain(q, whyWhich)
	case q.yesOrNo():
		return e.judgeYesOrNo(q, c, last, said, final, now)
	case !q.isNamed(c.Words, last):
		return e.askAgain(q, whyNotNamed)
	case !theirWords(c.Words, said):
		if q.reworded++; q.reworded > maxReworded {
			return Judgment{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyNotTheirs, "")}
		}
		return Judgment{Ruling: RulingReword, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, whyNotTheirs, "")}
	}
	return e.allow(q, c, last, said, RulingWords, handoff.DecisionWords, now)
}

// yesOrNo reports whether the field takes a yes or a no, and nothing else.
func (q *question) yesOrNo() bool {
	return slices.Equal(q.fields[q.field].Options, []string{"yes", "no"})
}

// judgeYesOrNo rules on an answer to such a field: it is what the caller's reply says, whatever its language.
func (e *Evidence) judgeYesOrNo(
	q *question, c Claim, last *utterance, said []*utterance, final consent.Reply, now time.Time,
) Judgment {
	words := map[consent.Reply]string{consent.Yes: "yes", consent.No: "no"}[final]
	claimed, err := q.fields[q.field].Read(c.Words)
	own, unread := q.fields[q.field].Read(last.Text)
	skips, skipped := err == nil && len(claimed) == 0, unread == nil && len(own) == 0
	switch {
	case skips && (skipped || theirWords(c.Words, said)): // it is left out
		words = c.Words
	case words == "":
		return e.unclear(q, last, whyUnclear)
	case err == nil && !slices.Equal(claimed, []string{words}):
		return e.unclear(q, last, whyMixed)
	}
	v := e.allow(q, c, last, said, RulingWords, handoff.DecisionWords, now)
	v.Reply.Words = words
	return v
}

// isNamed reports whether words name what the field offers, where nothing else counts. A choice among acts is all that
// the caller's reply may say: "not in the sandbox" chooses nothing.
func (q *question) isNamed(words string, u *utterance) bool {
	field := q.fields[q.field]
	if !field.Only || strings.Contains(words, "\n") {
		return !q.picks
	}
	chosen, err := field.Read(words)
	if err != nil || !q.picks {
		return err == nil
	}
	return len(chosen) == 1 && consent.Quotes(chosen[0], u.Text) && consent.Quotes(u.Text, chosen[0]) &&
		consent.Read(u.Text, consent.Question{}) != consent.Yes
}

// wordsForAnother reports whether a reply may be for another open question: one that takes words, too, or an approval,
// if the reply is a yes or a no to that.
func (e *Evidence) wordsForAnother(q *question, u *utterance) bool {
	return !q.asks.Names(u.Text) && slices.ContainsFunc(e.rivals(q, u.Began), func(other *question) bool {
		return other.takesWords || consent.Read(u.Text, other.asks) != consent.Unclear
	})
}

// theirWords reports whether the words quote the caller.
func theirWords(words string, said []*utterance) bool {
	texts := make([]string, len(said))
	for i, u := range said {
		texts[i] = u.Text
	}
	return consent.Quotes(words, texts...)
}
