package wording

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// ended says in one or two sentences how much ended and how, why the most failed, and what some of it was. rest: there
// is more to say of it.
func (l Language) ended(n News, d detail) (said []string, rest bool) {
	if n.When == WhenLately && len(n.Ended) <= d.names {
		var list []string
		for _, rec := range n.Ended {
			list = append(list, l.say("status.item", "title", l.TitleOf(rec), "server", rec.Server,
				"how", l.how(rec), "ago", l.Ago(n.Now, *rec.EndedAt)))
		}
		return []string{clause(l.say("status.ended", "n", l.things(len(list)), "list", l.join("list.clause", list)))}, false
	}
	counted, others := l.tally(n.Ended, d)
	switch n.When {
	case WhenAway:
		counted = l.say("away.gone", "counted", counted)
	case WhenMeanwhile:
		counted = l.say("away.meanwhile", "counted", counted)
	case WhenLately:
		counted = l.say("away.lately", "counted", counted)
	default:
		counted = capital(counted)
	}
	said = []string{clause(counted)}
	named := others[:min(len(others), d.names)]
	switch {
	case len(named) == 0, n.When == WhenLately: // open work has the other sentence
		return said, len(others) > 0
	case d.words && len(named) == len(others):
		var lines []string
		for _, rec := range named {
			said := firstSentence(l.reported(rec))
			if rec.Prompt != "" && (rec.NotBegun() || rec.Outcome == handoff.OutcomeInterrupted && rec.Text == "") {
				said = l.TitleOf(rec) // the line says already how it ended
			}
			lines = append(lines, l.line(rec, said))
		}
		return append(said, l.join("list.clause", lines)), false
	}
	var names []string
	for _, rec := range named {
		names = append(names, l.nameOf(rec))
	}
	if len(named) == len(n.Ended) {
		return append(said, l.all(names)), true
	}
	return append(said, capital(l.say("brief.among", "names", l.all(names)))), true
}

// tally says how many works ended in which way, and if the detail has it, the cause of most failures. others are those
// without that cause, failures first.
func (l Language) tally(ended []handoff.Record, d detail) (counted string, others []handoff.Record) {
	var failed, unbegun, stopped, done []handoff.Record
	for _, rec := range ended {
		switch {
		case rec.NotBegun():
			unbegun = append(unbegun, rec)
		case rec.Failed():
			failed = append(failed, rec)
		case rec.Outcome == handoff.OutcomeResult:
			done = append(done, rec)
		default:
			stopped = append(stopped, rec)
		}
	}
	var why cause
	var alike []handoff.Record
	if d.cause {
		why, alike, failed = l.mostFailed(failed)
	}
	var parts []string
	number := func(n int) string { // the first has a noun
		if len(parts) == 0 {
			return l.things(n)
		}
		return l.number(n)
	}
	if n := len(done); n > 0 {
		parts = append(parts, l.plural("tally.result", n, "n", number(n)))
	}
	if n := len(stopped); n > 0 && d.idle {
		parts = append(parts, l.plural("tally.interrupted", n, "n", number(n)))
	}
	if n := len(unbegun); n > 0 && d.idle {
		parts = append(parts, l.plural("tally.unbegun", n, "n", number(n)))
	}
	if n := len(failed); n > 0 {
		parts = append(parts, l.plural("tally.failed", n, "n", number(n)))
	}
	if n := len(alike); n > 0 {
		parts = append(parts, l.because(l.plural("tally.failed", n, "n", number(n)), why))
	}
	return l.commas(parts), slices.Concat(failed, unbegun, stopped, done)
}

// A cause is why work failed. Works with an equal one are counted together.
type cause struct {
	server string // that the words do not name; "": they do, or no server is the cause
	words  string // a clause
}

// because adds a cause to a count.
func (l Language) because(counted string, why cause) string {
	if why.server == "" {
		return l.say("brief.cause", "counted", counted, "cause", why.words)
	}
	return l.say("brief.cause_on", "counted", counted, "server", why.server, "cause", why.words)
}

func (l Language) causeOf(rec handoff.Record) cause {
	e := rec.Fault
	switch {
	case rec.Outcome == handoff.OutcomeResult: // its tests failed
		return cause{words: l.how(rec)}
	case e == nil:
		return cause{words: firstSentence(l.OutcomeSentence(rec))}
	case e.Why != "" && (l.IsEnglish() || l.Why(e.Why) != e.Why):
		return cause{rec.Server, l.Why(e.Why)}
	}
	bare := *e
	bare.Choices = nil
	return cause{words: firstSentence(l.Fault(&bare))}
}

// mostFailed returns the cause that most of the failures have, those that have it, and the others. There is none if it
// would be said of only one of several, or of a report that says more, or if it is too long.
func (l Language) mostFailed(failed []handoff.Record) (most cause, alike, others []handoff.Record) {
	groups := map[cause][]handoff.Record{}
	for _, rec := range failed {
		why := l.causeOf(rec)
		if groups[why] = append(groups[why], rec); len(groups[why]) > len(groups[most]) {
			most = why
		}
	}
	alike = groups[most]
	lone := len(alike) == 1 && (len(failed) > 1 || alike[0].Outcome == handoff.OutcomeResult)
	if lone || SayTime(most.words) > mostCause {
		return cause{}, nil, failed
	}
	return most, alike, slices.DeleteFunc(failed, func(rec handoff.Record) bool { return l.causeOf(rec) == most })
}

// line says what came of one of several works: "bigpc, done: All pass."
func (l Language) line(rec handoff.Record, said string) string {
	if said == "" { // no words of it are kept
		return l.nameOf(rec)
	}
	return l.say("tally.line", "server", rec.Server, "how", l.how(rec), "said", said)
}

// reported returns what a work reported, as it can be said; "": nothing of it is kept.
func (l Language) reported(rec handoff.Record) string {
	if rec.Spoken == "" && rec.Text == "" && rec.Fault == nil {
		return ""
	}
	return l.OutcomeSentence(rec)
}

// TitleOf names work for speech: by what was asked for.
func (l Language) TitleOf(rec handoff.Record) string { return l.Asked(cmp.Or(rec.Prompt, rec.Title)) }

// Asked returns the beginning of what was asked for, in whole words, as a name of the work.
func (l Language) Asked(text string) string {
	name := firstSentence(l.SayTitle(text))
	for SayTime(name) > mostName {
		i := strings.LastIndexByte(name, ' ')
		r, _ := utf8.DecodeRuneInString(name)
		switch {
		case i > 0:
			name = strings.TrimRight(name[:i], " ,;:…") + "…"
		case unicode.In(r, syllabic...):
			return handoff.ClipRunes(name, int(mostName/syllable))
		default: // a part of it is no word
			return l.say("untitled")
		}
	}
	return name
}

// some joins the first names, at most so many, and the number of the others.
func (l Language) some(names []string, most int) string {
	if n := len(names) - most; n > 0 {
		names = append(slices.Clone(names[:most]), l.say("list.more", "n", l.number(n)))
	}
	return l.all(names)
}

// works names open works.
func (l Language) works(list []Open) []string {
	var names []string
	for _, w := range list {
		names = append(names, l.name(w.Server, w.Asked))
	}
	return names
}

func (l Language) nameOf(rec handoff.Record) string {
	return l.name(rec.Server, cmp.Or(rec.Prompt, rec.Title))
}

// name names work by what was asked for and its machine, or if that is not known, by its machine.
func (l Language) name(server, asked string) string {
	if asked == "" {
		return server
	}
	return l.say("stop.work", "title", l.Asked(asked), "server", server)
}

// syllable is how long a character of a script takes that writes whole syllables.
const syllable = 180 * time.Millisecond

var syllabic = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul} // Set once

// SayTime estimates how long it takes to say a text.
func SayTime(text string) time.Duration {
	var d time.Duration
	for _, r := range text {
		switch {
		case unicode.In(r, syllabic...):
			d += syllable
		case unicode.IsDigit(r):
			d += 200 * time.Millisecond
		case !unicode.Is(unicode.Mn, r):
			d += 65 * time.Millisecond
		}
	}
	return d
}

// sentence ends a sentence.
func (l Language) sentence(s string) string {
	if last, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune("?!…？！؟", last) {
		return s
	}
	return l.say("tally.all", "counted", s)
}

// clause returns a sentence without its stop.
func clause(s string) string { return strings.TrimRight(s, " .。।") }

// innerStops makes one sentence of several. Set once.
var innerStops = strings.NewReplacer(". ", ", ", "! ", ", ", "? ", ", ", "。", "、", "！", "、", "？", "、")

// firstSentence returns the first sentence that says something, as a clause.
func firstSentence(text string) string {
	return innerStops.Replace(clause(cmp.Or(speakable.FirstSentence(text), text)))
}

// LeadsIn reports whether a sentence of the voice model says nothing of what came of the work in a message of one
// outcome: it only says that the work is done, or has the beginning that [Language.ResumeMessage] asks for.
func (l Language) LeadsIn(a Answer, sentence string) bool {
	sentence = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(sentence), l.say("resume")))
	return sentence == "" || strings.Contains(a.lead, sentence)
}

// OutcomeMessage returns a message with an outcome, for a request that was answered before.
func (l Language) OutcomeMessage(rec handoff.Record) Answer {
	a := Answer{Status: OutcomeWord(rec), Server: rec.Server, Session: session(rec),
		Result: handoff.Clip(rec.Text, maxQuote)}
	switch {
	case rec.Outcome == handoff.OutcomeResult && rec.Fault == nil:
		a.Say, a.lead = l.withReport(rec)
		a.Note = "Tell the caller now, once, in one or two sentences."
		if rec.From != nil {
			a.Note += " It was done " + English.place(rec) + ": say that, too, unless you did."
		}
		return a
	case rec.Outcome == handoff.OutcomeInterrupted && rec.Fault == nil:
		a.Say, a.Note = l.stopped(rec), "Tell the caller once."
		if words := l.unheardWords(rec); words != "" {
			a.Say += " " + l.say("outcome.unheard_they", "words", words)
		}
		return a
	}
	a.Say, a.Note = l.OutcomeSentence(rec), "Tell the caller once, with what to do next."
	if rec.Fault != nil {
		a.Next = rec.Fault.NextStep()
	}
	if rec.NotBegun() {
		a.Paused = paused([]handoff.Record{rec})
		a.Note += " " + beginPaused
	}
	return a
}

// withReport says that a work is done, and up to two sentences of its report, as far as they are said in ten seconds.
// lead is the part before the report; "" if there is none.
func (l Language) withReport(rec handoff.Record) (said, lead string) {
	lead = l.done(rec)
	if rec.Text == "" {
		return lead, ""
	}
	report := strings.TrimSpace(strings.TrimSuffix(l.OutcomeSentence(rec), speakable.RestOnPage))
	one := cmp.Or(speakable.FirstSentence(report), report)
	two := one + cmp.Or(speakable.FirstSentence(report[len(one):]), report[len(one):])
	short := l.say("outcome.done", "server", rec.Server)
	for _, way := range [][2]string{{lead, two}, {short, two}, {lead, one}, {short, one}} {
		if said, lead = way[0]+" "+way[1], way[0]; SayTime(said) <= mostSaid {
			return said, lead
		}
	}
	for SayTime(said) > mostSaid && strings.LastIndexByte(said, ' ') > len(lead) {
		said = strings.TrimRight(said[:strings.LastIndexByte(said, ' ')], " ,;:…") + "…"
	}
	return said, lead
}
