package consent

import (
	"slices"
	"strconv"
	"strings"
)

// maxNames bounds the words and the names of a question that are used.
const maxNames = 16

// topic is the subject of a question, folded. Set once.
type topic struct {
	machines []string        // names of the machine and the project
	act      string          // the act in the word files; "": none
	words    map[string]bool // the words of the command
	files    []string        // the files that would be edited
}

func topicOf(q Question) topic {
	a := topic{words: map[string]bool{}}
	for _, name := range slices.Concat(q.Machines[:min(len(q.Machines), maxNames)], q.Projects) {
		h := hear(name)
		a.machines = append(a.machines, h.joined)
		for len(h.tokens) > 1 { // "the desktop" is also "desktop"
			if does, _ := english().phrases.find(h.tokens[0]); does&kindLink == 0 {
				break
			}
			h.tokens = h.tokens[1:]
			a.machines = append(a.machines, h.join().joined)
		}
	}
	for _, file := range q.Files[:min(len(q.Files), maxNames)] {
		a.files = append(a.files, hear(file).joined)
	}
	for _, word := range q.Acts[:min(len(q.Acts), maxNames)] {
		for _, t := range hear(word).tokens {
			a.words[t] = true
			if means := english().means[t]; a.act == "" && means != remoteMeaning {
				a.act = means
			}
		}
	}
	return a
}

// A reading is a text as it is understood in one language, together with English.
type reading struct {
	heard
	l     *language
	about topic
	names []string // names of the act beside the words of the command: other names of these, the files, their number
}

// read returns the reading of a text in a language.
func read(h heard, a topic, l *language) reading {
	count := strconv.Itoa(len(a.files))
	r := reading{heard: h, l: l, about: a, names: slices.Concat(l.numbers[count], english().numbers[count])}
	if !slices.ContainsFunc(a.files, func(file string) bool { return !h.has(file) }) {
		r.names = append(r.names, a.files...) // a reply that names only some of them would allow only these
	}
	for word := range a.words {
		r.names = append(r.names, l.names[word]...)
	}
	return r
}

// mayName reports whether a name counts as one in a reply: a machine called "no" or "stop" cannot be named.
func (r reading) mayName(name string) bool {
	h := hear(name)
	does, _ := r.does(h.spaced)
	veto, _, _ := reading{heard: h, l: r.l}.scan()
	return does == 0 && veto == 0
}

// does returns the kinds of a phrase, in the language and in English, and reports whether a longer phrase begins with
// it.
func (r reading) does(words string) (does kind, more bool) {
	for _, t := range r.tables() {
		d, m := t.find(words)
		does, more = does|d, more || m
	}
	return does, more
}

// tables returns the tables for a reply: first those of the language, then the English ones.
func (r reading) tables() [4]table {
	return [4]table{r.l.phrases, r.l.acts[r.about.act], english().phrases, english().acts[r.about.act]}
}

// scan goes through a text by the longest listed phrases. It returns the vetoes among them, the number of tokens that
// are listed or named, and the number of those that the language itself lists and that do more than lead to others. A
// phrase that the language lists is not read as English.
func (r reading) scan() (veto kind, covered, own int) {
	for at := 0; at < len(r.tokens); {
		named := r.named(at)
		length, does, mine := r.longest(at)
		veto |= does & kindVeto
		covered += max(named, length)
		if mine && does&^kindLink != 0 {
			own += length
		}
		at += max(named, length, 1)
	}
	return veto, covered, own
}

// longest returns the length and the kinds of the longest listed phrase that begins at a token, and whether the
// language itself lists it.
func (r reading) longest(at int) (length int, does kind, own bool) {
	tables := r.tables()
	for end := at + 1; end <= len(r.tokens); end++ {
		words, more := r.span(at, end), false
		var by [2]kind
		for i, t := range tables {
			d, m := t.find(words)
			by[i/2], more = by[i/2]|d, more || m
		}
		if by[0] != 0 {
			length, does, own = end-at, by[0], true
		} else if by[1] != 0 {
			length, does, own = end-at, by[1], false
		}
		if !more {
			break
		}
	}
	return length, does, own
}

// named returns the number of tokens, from an index on, that name the machine or the act by the question's own words;
// 0: none do.
func (r reading) named(at int) int {
	n := 0
	if r.tokens[at] == machineMark || r.about.words[r.tokens[at]] {
		n = 1
	}
	for _, name := range r.names {
		n = max(n, r.spells(at, name))
	}
	for _, ending := range r.l.endings {
		if word, ok := strings.CutSuffix(r.tokens[at], ending); ok && r.about.words[word] {
			n = max(n, 1)
		}
	}
	return n
}

// marked returns the reading with the machine's names replaced by a mark, as in the phrases of the word files.
func (r reading) marked() reading {
	calls := r.calls()
	if len(calls) == 0 {
		return r
	}
	var tokens []string
	for at := 0; at < len(r.tokens); {
		n := r.calledAt(at, calls)
		if n == 0 {
			tokens = append(tokens, r.tokens[at])
			at++
			continue
		}
		tokens = append(tokens, machineMark)
		at += n
	}
	r.tokens = tokens
	r.heard = r.join()
	return r
}

// calls returns the names of the machine in this language that the text has.
func (r reading) calls() []string {
	var out []string
	for _, name := range r.about.machines {
		for _, called := range append([]string{name}, r.l.names[name]...) {
			if strings.Contains(r.joined, called) && r.mayName(called) {
				out = append(out, called)
			}
		}
	}
	return out
}

// calledAt returns the number of tokens, from an index on, that are a name of the machine, with an ending of the
// language if it has one; 0: none are.
func (r reading) calledAt(at int, calls []string) int {
	n := 0
	for _, name := range calls {
		n = max(n, r.spells(at, name))
		for _, ending := range r.l.endings {
			n = max(n, r.spells(at, name+ending))
		}
	}
	return n
}

// kindOpen is set for a part of a reply that cannot be its end.
const kindOpen kind = 1 << 15

// covers returns, for each way to cut the whole text into listed phrases and names, the kinds of the parts. It is empty
// if there is no such way.
func (r reading) covers() []kind {
	reached := make([][]kind, len(r.tokens)+1)
	reached[0] = []kind{0}
	for at := range r.tokens {
		add := func(n int, does kind) {
			if does&^(kindHum|kindLink) == 0 {
				does |= kindOpen
			}
			for _, was := range reached[at] {
				if next := was&^kindOpen | does; !slices.Contains(reached[at+n], next) {
					reached[at+n] = append(reached[at+n], next)
				}
			}
		}
		if len(reached[at]) == 0 {
			continue
		}
		for end, more := at+1, true; more && end <= len(r.tokens); end++ {
			does := kind(0)
			if does, more = r.does(r.span(at, end)); does&^(kindVeto|kindAlone) != 0 {
				add(end-at, does&^(kindVeto|kindAlone))
			}
		}
		if r.tokens[at] == machineMark {
			add(1, kindOther)
		} else if n := r.named(at); n > 0 {
			add(n, kindNamed)
		}
	}
	return reached[len(r.tokens)]
}

// decide returns the meaning of a marked reply in one language; see the package comment.
func (r reading) decide() Reply {
	veto, _, _ := r.scan()
	switch {
	case veto&kindNo != 0:
		return No
	case veto&kindWait != 0:
		return Later
	case veto != 0, r.asks, r.odd, r.open, r.doubled(), r.words() > maxWords:
		return Unclear
	}
	if whole, _ := r.does(r.spaced); whole&kindAlone != 0 {
		return Yes
	}
	got := Unclear
	for _, does := range r.covers() {
		switch {
		case does&kindYes != 0 && does&(kindThanks|kindOpen) == 0:
			return Yes
		case does&^(kindFill|kindThanks|kindHum|kindOpen) == 0:
			got = Nothing
		}
	}
	return got
}

// doubled reports whether a listed phrase comes twice in a row, unless both are listed as one: "yeah yeah" shows that
// somebody listens, or is impatient.
func (r reading) doubled() bool {
	for at := range r.tokens {
		for n := 1; at+2*n <= len(r.tokens); n++ {
			if !slices.Equal(r.tokens[at:at+n], r.tokens[at+n:at+2*n]) {
				continue
			}
			once, _ := r.does(r.span(at, at+n))
			if both, _ := r.does(r.span(at, at+2*n)); once != 0 && both == 0 {
				return true
			}
		}
	}
	return false
}
