package evidence

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// maxReworded is how often the voice model may bring words that the caller did not say.
const maxReworded = 2

// judgeWords rules on an answer in words: the agent gets what the caller said after they had heard the
// question, never what the voice model makes of it.
func (e *Evidence) judgeWords(q *askedOf, c Claim, now time.Time) Verdict {
	switch {
	case !q.words:
		return Verdict{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, handoff.WhyNoWords, "")}
	case c.Hash != q.hash:
		return Verdict{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyChanged, "")}
	}
	said := e.since(q, now)
	if due := c.Came.Add(transcriptWait); e.comes(q, said) && now.Before(due) {
		return Verdict{Ruling: RulingWait, Until: due, Tier: q.tier}
	}
	if q.heardAt.IsZero() && len(said) == 0 {
		return e.again(q, whyNotHeard)
	}
	if len(said) == 0 {
		return e.again(q, whySilent)
	}
	last := said[len(said)-1]
	final := consent.Read(last.Text, q.about)
	switch {
	case e.isDue(last.Began):
		return e.again(q, whySpeaking)
	case now.Sub(last.Began) > handoff.YesFor:
		return e.again(q, handoff.WhyOld)
	case final == consent.Later:
		return e.later(q)
	case e.wordsForAnother(q, last):
		return e.again(q, whyWhich)
	case !theirWords(c.Words, said):
		if q.reworded++; q.reworded > maxReworded {
			return Verdict{Ruling: RulingTap, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNeedsTap, whyNotTheirs, "")}
		}
		return Verdict{Ruling: RulingReword, Tier: q.tier, Fault: handoff.Fault(handoff.CodeNoConsent, whyNotTheirs, "")}
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
