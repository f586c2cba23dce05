package wording

import (
	"cmp"
	"strings"
	"time"

	"switchboard/handoff"
)

// News is what a caller is to hear in one go: work that is open, and work that ended.
type News struct {
	Asking []string         // machines whose agents wait for the caller's answer
	Open   []Open           // oldest first
	Paused []handoff.Record // it begins when the caller says so
	Ended  []handoff.Record // the first ones are named first
	When   When
	Now    time.Time // with [WhenLately]
	Unread bool      // there may be more from before a restart: that is said instead of Ended
}

// Open is work that has not ended.
type Open struct {
	Server string
	Asked  string        // what was asked for; "": not known
	Age    time.Duration // since it began; while it waits, since it was asked for
	Waits  bool          // it has not begun
	Named  bool          // it is named by what was asked for, and else by its machine
	Doing  string        // what it does now, in words of the language; "": not known
	Beats  bool          // it is said as a sign of life, with the age
	Remark string        // what its agent said, as it can be said: data
}

// When says when the ended work of [News] ended.
type When int

// The times.
const (
	WhenNow       When = iota // a moment ago, in this call
	WhenMeanwhile             // during this call, and nobody was told
	WhenAway                  // before this call
	WhenLately                // within the last hour, whether told or not
)

// Bounds of what is said.
const (
	mostSaid  = 10 * time.Second        // of news
	mostCause = 5 * time.Second         // of why work failed
	mostName  = 3500 * time.Millisecond // of what was asked for
)

// A detail is how much [Language.Brief] says.
type detail struct {
	names int  // of works, or of machines that wait for an answer
	words bool // what the named works report, if all others are counted with their cause
	cause bool // why the most failed
	ended bool // what ended, beside what is open
	idle  bool // what waits for its turn, is paused, or was stopped
}

// The ways to say [News], the fullest first: of work that ended only, and of open work. Set once.
var (
	endedDetails = []detail{
		{2, true, true, true, true}, {2, false, true, true, true}, {1, false, true, true, true},
		{0, false, true, true, true}, {0, false, false, true, true}, {0, false, false, true, false},
	}
	openDetails = []detail{
		{2, false, true, true, true}, {1, false, true, true, true}, {1, false, false, true, true},
		{0, false, false, true, true}, {0, false, false, false, true}, {0, false, false, false, false},
	}
)

// Brief says news in at most two sentences and ten seconds: how many works there are, why the most failed, and at most
// two names. Names and texts are whole words; what has no room is left out, and the end says that it is on the page.
// "": there is nothing to say.
func (l Language) Brief(n News) string {
	said, details := "", endedDetails
	if len(n.Asking)+len(n.Open)+len(n.Paused) > 0 {
		details = openDetails
	}
	for _, d := range details {
		if said = l.brief(n, d); SayTime(said) <= mostSaid {
			break
		}
	}
	return said
}

func (l Language) brief(n News, d detail) string {
	var said []string
	open, rest := l.open(n, d)
	if len(open) > 0 {
		said = append(said, l.join("list.clause", open))
	}
	switch {
	case n.Unread:
		said = append(said, clause(l.say("status.unread")))
	case len(n.Ended) == 0:
	case d.ended || len(open) == 0:
		ended, more := l.ended(n, d)
		said, rest = append(said, ended...), rest || more
	default:
		rest = true
	}
	if last := len(said) - 1; rest {
		said[last] = l.say("list.clause", "a", said[last], "b", l.say("brief.rest"))
	}
	for i, s := range said {
		said[i] = l.sentence(s)
	}
	return strings.Join(said, " ")
}

// open says in clauses what waits for the caller, what runs, and what waits for its turn. rest: some of it is only
// counted.
func (l Language) open(n News, d detail) (said []string, rest bool) {
	count := func(counted string) {
		if len(said) == 0 {
			counted = capital(counted)
		}
		said = append(said, counted)
	}
	if len(n.Asking) > 0 {
		said = append(said, clause(l.plural("status.waits", len(n.Asking), "names", l.some(n.Asking, max(d.names, 1)))))
	}
	var runs, waits []Open
	for _, w := range n.Open {
		if w.Waits {
			waits = append(waits, w)
		} else {
			runs = append(runs, w)
		}
	}
	if len(runs) <= d.names {
		for _, w := range runs {
			said = append(said, clause(l.does(w)))
		}
	} else {
		rest = true
		count(l.plural("brief.running", len(runs), "n", l.things(len(runs))))
		if d.names > 0 {
			last := len(said) - 1
			said[last] = l.commas([]string{said[last], l.say("brief.among", "names", l.all(l.works(runs[:d.names])))})
		}
	}
	if !d.idle {
		return said, true
	}
	switch {
	case len(waits) == 0:
	case len(runs) > 0:
		count(l.plural("brief.waiting", len(waits), "n", l.say("list.more", "n", l.number(len(waits)))))
	case len(waits) == 1 && d.names > 0:
		said = append(said, clause(l.does(waits[0])))
	default:
		count(l.plural("brief.waiting", len(waits), "n", l.things(len(waits))))
	}
	switch {
	case len(n.Paused) == 0:
	case len(n.Paused) == 1 && d.names > 0:
		said = append(said, clause(l.say("status.paused", "server", n.Paused[0].Server, "title", l.TitleOf(n.Paused[0]))))
	default:
		count(l.plural("brief.paused", len(n.Paused), "n", l.things(len(n.Paused))))
	}
	if len(said) == 0 && n.When == WhenLately && !n.Unread {
		said = append(said, clause(l.say("status.nothing")))
	}
	return said, rest
}

// does says what one work does, or that it has not begun.
func (l Language) does(w Open) string {
	switch title := l.Asked(w.Asked); {
	case w.Waits:
		asked := time.Unix(0, 0)
		return l.say("status.accepted", "title", capital(title), "server", w.Server, "ago", l.Ago(asked.Add(w.Age), asked))
	case w.Remark != "" && w.Named:
		return l.say("brief.cause", "counted", l.works([]Open{w})[0], "cause", firstSentence(w.Remark))
	case w.Remark != "":
		return l.say("brief.cause", "counted", w.Server, "cause", firstSentence(w.Remark))
	case w.Named && w.Age < justNow:
		return l.say("status.begun", "server", w.Server, "title", title)
	case w.Named:
		return l.say("status.running", "server", w.Server, "title", title, "age", l.AgeWords(w.Age))
	}
	doing := cmp.Or(w.Doing, l.say("doing"))
	if w.Beats {
		return l.say("news.still", "name", w.Server, "doing", doing, "age", l.AgeWords(w.Age))
	}
	return l.say("news.now", "name", w.Server, "doing", doing)
}
