package simulator

import (
	"regexp"
	"strings"
)

// maxClauses bounds the parts of a sentence that are tried as a wish of their own. A longer one is one wish.
const maxClauses = 9

// understandAll takes a sentence apart that may ask several machines for something: "on X do this and on Y do
// that", or "on X and Y do this". One that does not is one wish. Both are the machines of "on both", nil where that
// is not clear.
func understandAll(text string, known map[string]string, both []string) []intent {
	s := plain(text, known)
	if all := spread(s, known, both); len(all) > 1 {
		return all
	}
	cuts := patterns().clause.FindAllStringIndex(s, maxClauses)
	if len(cuts) > 0 && len(cuts) < maxClauses {
		if all := clauses(s, cuts, known); len(all) > 1 {
			return all
		}
	}
	return []intent{understand(text, known)}
}

// clauses splits a sentence at some of the cuts, so that each part asks another machine than the one before it;
// nil when that is not so.
func clauses(s string, cuts [][]int, known map[string]string) []intent {
	for i, cut := range cuts {
		first, ok := clause(s[:cut[0]], known)
		if !ok {
			continue
		}
		var later [][]int
		for _, c := range cuts[i+1:] {
			later = append(later, []int{c[0] - cut[1], c[1] - cut[1]})
		}
		if rest := clauses(s[cut[1]:], later, known); rest != nil && rest[0].server != first.server {
			return append([]intent{first}, rest...)
		}
	}
	if whole, ok := clause(s, known); ok {
		return []intent{whole}
	}
	return nil
}

// clause reads a part of a sentence that asks a machine, by its name, for something.
func clause(s string, known map[string]string) (intent, bool) {
	in := takeApart(plain(s, known), known)
	switch {
	case in.server == "":
		return intent{}, false
	case in.wish == wishWork, in.wish == wishNew, in.wish == wishContinue:
		return in, startsWork(in.work)
	}
	return in, in.wish == wishStop
}

// takeApart takes a sentence that asks for something, now or behind what runs.
func takeApart(s string, known map[string]string) intent {
	if in, ok := takeQueue(s, known); ok {
		return in
	}
	return takeNow(s, known)
}

// takeNow takes a sentence that asks for something: questions about work, sessions and machines first,
// since they are the narrower patterns, then work.
func takeNow(s string, known map[string]string) intent {
	for _, take := range []func(string, map[string]string) (intent, bool){
		takeControl, takeFresh, takeAddressed, takeRead, takeContinue, takeSessions, takeMachines, takeTrailing,
	} {
		if in, ok := take(s, known); ok {
			return in
		}
	}
	if startsWork(s) {
		return intent{wish: wishWork, work: s}
	}
	return intent{}
}

// takeFresh is "start a new session on X and do this".
func takeFresh(s string, known map[string]string) (intent, bool) {
	if m := patterns().fresh.FindStringSubmatch(s); m != nil {
		return intent{wish: wishNew, server: canonical(m[1], known), work: m[2] + m[3]}, true
	}
	if m := patterns().anew.FindStringSubmatch(s); m != nil {
		return intent{wish: wishNew, server: canonical(m[1], known)}, true
	}
	if m := patterns().inFresh.FindStringSubmatch(s); m != nil {
		return intent{wish: wishNew, server: canonical(m[1], known), work: m[2]}, true
	}
	if m := patterns().workInFresh.FindStringSubmatch(s); m != nil {
		in := intent{wish: wishNew, server: canonical(m[2], known), work: m[1]}
		if t := patterns().trailing.FindStringSubmatch(in.work); t != nil && in.server == "" && isMachine(t[3], known) {
			in.work, in.server = t[1], canonical(t[3], known)
		}
		return in, true
	}
	return intent{}, false
}

// takeAddressed is "on X, do this", "ask X to do this", "X, do this". What follows may be any sentence.
func takeAddressed(s string, known map[string]string) (intent, bool) {
	name, rest := "", ""
	if m := patterns().onComma.FindStringSubmatch(s); m != nil && isMachine(m[1], known) {
		name, rest = m[1], m[2]
	} else if m := patterns().onName.FindStringSubmatch(s); m != nil && (isKnown(m[1], known) || isMachine(m[1], known) && startsWork(m[2])) {
		name, rest = m[1], m[2]
	} else if m := patterns().ask.FindStringSubmatch(s); m != nil && isMachine(m[1], known) {
		if name, rest = m[1], m[3]; !strings.EqualFold(m[2], "to ") {
			rest = m[2] + m[3]
		}
		if in, ok := takeControlOn(canonical(name, known), rest, known); ok {
			return in, true
		}
		return intent{wish: wishWork, server: canonical(name, known), work: rest}, true
	} else if m := patterns().let.FindStringSubmatch(s); m != nil && isKnown(m[1], known) {
		name, rest = m[1], m[2]
	} else if m := patterns().nameComma.FindStringSubmatch(s); m != nil && isKnown(m[1], known) {
		name, rest = m[1], m[2]
	}
	if name == "" {
		return intent{}, false
	}
	server := canonical(name, known)
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "please "), "can you ")
	if in, ok := takeControlOn(server, rest, known); ok {
		return in, true
	}
	for _, take := range []func(string, map[string]string) (intent, bool){takeFresh, takeRead, takeContinue, takeSessions} {
		if in, ok := take(rest, known); ok && (in.server == "" || in.server == server) {
			in.server = server
			return in, true
		}
	}
	return intent{wish: wishWork, server: server, work: rest}, true
}

// takeRead is "what happened in the auth session on X".
func takeRead(s string, known map[string]string) (intent, bool) {
	if m := patterns().happenedOn.FindStringSubmatch(s); m != nil && isMachine(m[1], known) {
		return intent{wish: wishRead, server: canonical(m[1], known)}, true
	}
	for _, re := range []*regexp.Regexp{patterns().readSession, patterns().happened, patterns().readAbout, patterns().happenedAbout} {
		if m := re.FindStringSubmatch(s); m != nil {
			return intent{wish: wishRead, words: titleWords(m[1]), server: canonical(m[2], known)}, true
		}
	}
	return intent{}, false
}

// takeContinue is "continue the auth session on X and do this", in any order.
func takeContinue(s string, known map[string]string) (intent, bool) {
	for _, re := range []*regexp.Regexp{patterns().goOn, patterns().goOnAbout, patterns().goOnThing, patterns().inAbout, patterns().inSession} {
		m := re.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		in := intent{wish: wishContinue, words: titleWords(m[1]), server: canonical(m[2], known), work: m[3]}
		if in.work == "" && patterns().opens.MatchString(s) {
			in.wish = wishOpen
		}
		return in, true
	}
	for _, re := range []*regexp.Regexp{patterns().workInAbout, patterns().workIn} {
		if m := re.FindStringSubmatch(s); m != nil && startsWork(m[1]) {
			return intent{wish: wishContinue, words: titleWords(m[2]), server: canonical(m[3], known), work: m[1]}, true
		}
	}
	return intent{}, false
}

// titleWords drops words that name no title: "the last session" is the newest.
func titleWords(words string) string {
	switch strings.ToLower(words) {
	case "last", "latest", "newest", "current", "same", "previous", "most recent", "existing", "old":
		return ""
	}
	return words
}

// takeSessions is "what was I working on" and "which sessions are on X".
func takeSessions(s string, known map[string]string) (intent, bool) {
	if !patterns().sessions.MatchString(s) && !patterns().sessionsShort.MatchString(s) {
		return intent{}, false
	}
	in := intent{wish: wishSessions}
	m := patterns().trailing.FindStringSubmatch(s)
	if m != nil && m[2] != "to" && (isKnown(m[3], known) || isMachine(m[3], known) && !strings.HasSuffix(m[1], "working")) {
		s, in.server = m[1], canonical(m[3], known)
	}
	if m := patterns().about.FindStringSubmatch(s); m != nil {
		in.words = m[1]
	}
	return in, true
}

// takeMachines is "which machines do I have". A question about one known machine's insides is work.
func takeMachines(s string, known map[string]string) (intent, bool) {
	if m := patterns().trailing.FindStringSubmatch(s); m != nil && isKnown(m[3], known) {
		return intent{}, false
	}
	if patterns().machines.MatchString(s) && !strings.HasPrefix(strings.ToLower(s), "do the ") || patterns().machinesShort.MatchString(s) {
		return intent{wish: wishMachines}, true
	}
	if patterns().isUp.MatchString(s) {
		for word := range strings.FieldsSeq(strings.ToLower(s)) {
			if isKnown(strings.Trim(word, ","), known) || len(strings.Fields(s)) == 3 && !isThing(word) {
				return intent{wish: wishMachines}, true
			}
		}
	}
	return intent{}, false
}

// isThing tells the words around a name in "is X up" from the name.
func isThing(word string) bool {
	switch word {
	case "is", "are", "up", "down", "online", "offline", "reachable", "alive", "connected", "available", "it", "that", "this":
		return true
	}
	return false
}

// takeTrailing is "do this on X". An unknown name counts only behind "on" and "at", or behind "from" in a
// short sentence ("push it from X"), where it can hardly be anything else.
func takeTrailing(s string, known map[string]string) (intent, bool) {
	m := patterns().trailing.FindStringSubmatch(s)
	if m == nil || !isMachine(m[3], known) {
		return intent{}, false
	}
	work, how, name := m[1], strings.ToLower(m[2]), m[3]
	in := intent{wish: wishWork, server: canonical(name, known), work: work}
	switch {
	case isKnown(name, known) && how != "to":
		return in, true
	case !startsWork(work):
		return intent{}, false
	case how == "on", how == "over on", how == "at":
		return in, true
	case how == "from" && len(strings.Fields(work)) <= 3:
		return in, true
	}
	return intent{}, false
}
