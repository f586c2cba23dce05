package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// How a sentence names several machines at once: "on bigpc and laptop", "on both machines".
var (
	reTogether = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(on|at|from|ask|tell|let|have|stop|cancel) ` + reName + `((?:, (?:on |at )?` + reName + `)*),? and (?:on |at )?` + reName + `(?:$|[ ,:;])`)
	})
	reBoth = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(on|at|from|ask|tell|let|have) (both|all|every|each)(?: of)?(?: (?:the|my|these|them|the two|my two))?(?: (?:machines?|servers?|computers?))?(?:$|[ ,:;])`)
	})
)

// spread writes a sentence that asks several machines for the same once for each of them; nil when it is none, or
// when what it says is not work for the machines it names.
func spread(s string, known map[string]string, both []string) []intent {
	from, to, names := together(s, known, both)
	var all []intent
	for _, name := range names {
		in := takeApart(s[:from]+name+s[to:], known)
		switch in.wish {
		case wishWork, wishNew, wishContinue, wishStop, wishRead:
		default:
			return nil
		}
		if in.server != name || in.wish == wishWork && !startsWork(in.work) {
			return nil
		}
		all = append(all, in)
	}
	return all
}

// together finds where a sentence names several machines, and which.
func together(s string, known map[string]string, both []string) (from, to int, names []string) {
	if m := reTogether().FindStringSubmatchIndex(s); m != nil {
		from, to = m[3]+1, m[len(m)-1]
		for name := range strings.FieldsFuncSeq(s[from:to], func(r rune) bool { return r == ' ' || r == ',' }) {
			switch lower := strings.ToLower(name); {
			case slices.Contains([]string{"and", "the", "my", "on", "at"}, lower):
			case !isKnown(name, known):
				return 0, 0, nil
			default:
				names = append(names, canonical(name, known))
			}
		}
		return from, to, names
	}
	m := reBoth().FindStringSubmatchIndex(s)
	if m == nil {
		return 0, 0, nil
	}
	from, to = m[3]+1, m[1]
	if to > from && strings.ContainsRune(" ,:;", rune(s[to-1])) {
		to--
	}
	if strings.EqualFold(s[m[4]:m[5]], "both") {
		return from, to, both
	}
	return from, to, everyName(known)
}
