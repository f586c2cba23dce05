package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// wish is what a sentence asks for.
type wish int

const (
	wishUnknown   wish = iota
	wishGreeting       // hello
	wishAbility        // what can you do
	wishQuiet          // stop, thanks: nothing to do
	wishHearing        // can you hear me
	wishAgain          // say that again
	wishAnswer         // answer_agent
	wishMachines       // list_servers
	wishSessions       // list_sessions
	wishRead           // list_sessions, then read_session
	wishContinue       // list_sessions, then codex in that session
	wishOpen           // list_sessions, then read_session; the next work goes there
	wishOpened         // its session is being read
	wishMove           // codex on another machine, from the session of the last
	wishNew            // codex in a fresh session
	wishWork           // codex, queue_next or run_on_server
	wishBegin          // codex for paused work
	wishDrop           // stop_work for paused work
	wishStop           // stop_work
	wishStatus         // status
	wishUpdates        // set_updates
	wishAddressed      // a machine, and a sentence for it
	wishThen           // a sentence for after the work that runs
)

// An intent is what a sentence asks for. Work stays in the caller's own words.
type intent struct {
	wish   wish
	server string // as the caller said it, or its known name; "" when none was named
	words  string // of the session's title
	work   string
	next   bool                // after the work that runs
	aside  bool                // a quick side question, beside that work
	level  handoff.SpeechLevel // of set_updates
}

// tool returns the function that is given the work.
func (in intent) tool() string {
	switch {
	case in.next:
		return tools.QueueNext
	case in.aside:
		return tools.RunOnServer
	}
	return tools.Codex
}

// A phrase is one kind of sentence that the voice knows. The named groups of its form are the parts of an [intent]: on
// and known (the machine), about and topic (the words), work.
type phrase struct {
	intent
	form *regexp.Regexp
}

// Pieces of the forms. A machine's name is one word, and may have a project after a slash.
const (
	formMachine = `(?:the |my )?(?P<on>[a-z0-9][\w.-]*(?:/[\w.-]+)?)`
	formKnown   = `(?:the |my )?(?P<known>[a-z0-9][\w.-]*(?:/[\w.-]+)?)` // one that the conversation has named
	formOn      = `(?: (?:on|at|from) ` + formMachine + `)?`
	formSession = `(?:the |my |that )?(?:(?:session|thread) (?:about|called) (?:the |my )?(?P<topic>.+?)|` +
		`(?:(?P<about>.+?) )?(?:session|thread))` + formOn
	formDo   = `(?:(?:,? and(?: then)?|,|:) (?P<work>.+))?`
	formVerb = `(?:fix|run|push|pull|test|build|check|write|add|remove|update|refactor|review|merge|commit|explain|` +
		`find|show|make|do|try|install|draft|bump|publish|profile|format|tell|compare|revert|use)\b`
)

// phrases are the sentences that the voice knows; the first that matches counts, so narrow ones come first. They are
// compiled when the first sentence is read, since a process without this voice needs none of them.
var phrases = sync.OnceValue(func() []phrase {
	known := func(w wish, form string) phrase { return phrase{intent{wish: w}, whole(form)} }
	level := func(l handoff.SpeechLevel, form string) phrase {
		return phrase{intent{wish: wishUpdates, level: l}, whole(form)}
	}
	return []phrase{
		known(wishGreeting, `(?:hi|hello|hey)(?:,? (?:there|switchboard))?`),
		known(wishAbility, `help|what can (?:you|i) (?:do|say)|what is this|(?:what|who) are you|how does (?:this|it) work`),
		known(wishHearing, `(?:(?:can|do) you )?hear me`),
		known(wishAgain, `(?:say|repeat) (?:that|it)(?: again)?|what was that`),
		known(wishQuiet, `stop(?: talking)?|wait|hold on|(?:a|one) (?:moment|minute|second)|never ?mind|forget it|drop it|`+
			`thanks|thank you|ok|okay|good|great|that's all|bye|goodbye`),
		known(wishStatus, `status|what(?:'s| is) (?:still )?(?:running|going on|waiting|paused|new)(?: for me| now)?|`+
			`how far (?:is|are) .+|how is it going|what did i miss`),
		level(handoff.LevelQuiet, `(?:tell me )?less(?: updates)?|(?:tell me )?(?:only|just) the results`),
		level(handoff.LevelChatty, `(?:tell me )?more(?: updates)?|keep me posted`),
		level(handoff.LevelMilestones, `(?:tell me )?as usual|the usual updates`),
		known(wishMachines, `(?:(?:which|what|list|show(?: me)?) )?(?:the |my |all (?:my )?)?`+
			`(?:machines|servers|computers)(?: .*)?`),
		known(wishSessions, `(?:what (?:was|were|am|are) (?:i|we) working on|`+
			`(?:(?:which|list|find|show(?: me)?) )?(?:the |my |all (?:my )?)?sessions(?: are)?)`+
			`(?: about (?:the |my )?(?P<about>.+?))?`+formOn),
		known(wishRead, `(?:read|what happened in) `+formSession),
		known(wishNew, `(?:start|begin|open) a (?:new|fresh) session`+formOn+formDo),
		known(wishNew, `in a (?:new|fresh) session`+formOn+`[,:] (?P<work>.+)`),
		known(wishOpen, `(?:open|switch to|go back to) `+formSession+formDo),
		known(wishContinue, `(?:continue|resume) `+formSession+formDo),
		known(wishContinue, `in `+formSession+`[,:] (?P<work>.+)`),
		known(wishMove, `(?:continue|go on with) (?:this|it|that) (?:on|at) `+formMachine+formDo),
		known(wishNew, `(?P<work>`+formVerb+`.*?) in a (?:new|fresh) session`+formOn),
		known(wishContinue, `(?P<work>`+formVerb+`.*?) in `+formSession),
		known(wishStop, `(?:stop|cancel) (?:it|that|(?:all )?(?:the )?(?:work|tests|benchmarks|build))`+formOn),
		{intent{wish: wishStop, server: "all"}, whole(`(?:stop|cancel) everything`)},
		known(wishStop, `(?:stop|cancel) `+formKnown),
		{intent{wish: wishWork, aside: true}, whole(`(?:a )?quick question` +
			`(?: (?:for|to) ` + formMachine + `)?[,:] (?P<work>.+)`)},
		known(wishThen, `(?:and )?(?:then|after that),? (?P<work>.+)`),
		known(wishAddressed, `(?:on|at) `+formMachine+`[,:]? (?P<work>.+)`),
		known(wishAddressed, `(?:ask|tell) `+formMachine+` (?:to )?(?P<work>.+)`),
		known(wishAddressed, formKnown+`[,:] (?P<work>.+)`),
		known(wishWork, `(?P<work>`+formVerb+`.*?) (?:on|at|from) `+formMachine),
		known(wishWork, `(?P<work>`+formVerb+`.*)`),
	}
})

// whole matches a whole sentence, in any case.
func whole(form string) *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:` + form + `)$`) }

// Polite words before a sentence, and the verbs that begin work.
var (
	polite = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:(?:please|ok|okay|now|so|and|thanks|thank you|no|wait|sorry|actually)[, ]+|` +
			`(?:can|could) you |let's |i'd like you to )+`)
	})
	startsWithVerb = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^` + formVerb) })
)

// notMachines are words that may come after "on" or "tell" and are no machine's name.
var notMachines = strings.Fields("a an it that this them me us main master develop staging production github")

// understand returns what a sentence asks for, or [wishUnknown]. known maps machine names and aliases, in lower case,
// to the names that the fleet uses.
func understand(text string, known map[string]string) intent {
	s := plain(text, known)
	for _, p := range phrases() {
		parts := p.form.FindStringSubmatch(s)
		if parts == nil {
			continue
		}
		in, can := p.intent, true
		for i, name := range p.form.SubexpNames() {
			switch part := parts[i]; name {
			case "on":
				in.server += canonical(part, known)
				can = can && (part == "" || isMachine(part, known))
			case "known":
				in.server = canonical(part, known)
				can = can && isKnown(part, known)
			case "about", "topic":
				in.words += part
			case "work":
				in.work += part
			}
		}
		if can {
			return in.completed(known)
		}
	}
	return intent{}
}

// completed completes an intent whose work is a sentence of its own, and drops words that only mean the newest session.
func (in intent) completed(known map[string]string) intent {
	switch in.wish {
	case wishThen:
		inner := understand(in.work, known)
		inner.next = inner.isWork()
		return inner
	case wishAddressed:
		return in.addressed(understand(in.work, known))
	case wishOpen:
		if in.work != "" {
			in.wish = wishContinue
		}
	}
	if slices.Contains([]string{"last", "latest", "same"}, strings.ToLower(in.words)) {
		in.words = "" // the newest
	}
	return in
}

// addressed returns the intent of a sentence for a machine: the inner one if that can be about the machine, else work
// in the caller's words.
func (in intent) addressed(inner intent) intent {
	about := inner.isWork() || slices.Contains([]wish{wishStop, wishSessions, wishRead, wishOpen}, inner.wish)
	switch {
	case strings.EqualFold(in.work, "stop"):
		return intent{wish: wishStop, server: in.server}
	case about && (inner.server == "" || inner.server == in.server):
		inner.server = in.server
		return inner
	}
	in.wish = wishWork
	return in
}

// isWork reports whether a sentence gives work to an agent.
func (in intent) isWork() bool {
	return slices.Contains([]wish{wishWork, wishNew, wishMove, wishContinue}, in.wish)
}

// plain removes polite words and final punctuation, and replaces known aliases of several words by names.
func plain(text string, known map[string]string) string {
	s := strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "’", "'")
	s = strings.TrimRight(s, " .!?…")
	s = strings.TrimRight(strings.TrimSuffix(s, " please"), ",")
	if rest := s[len(polite().FindString(s)):]; rest != "" {
		s = rest
	}
	for alias, name := range known {
		if strings.Contains(alias, " ") {
			said := regexp.MustCompile(`(?i)\b(?:the |my )?` + regexp.QuoteMeta(strings.TrimPrefix(alias, "the ")) + `\b`)
			s = said.ReplaceAllLiteralString(s, name)
		}
	}
	return s
}

// isMachine reports whether a word may be a machine's name: a known one, or any word that is not in notMachines and has
// no point. The fleet's answer says if there is no such machine.
func isMachine(name string, known map[string]string) bool {
	return isKnown(name, known) || !slices.Contains(notMachines, strings.ToLower(name)) && !strings.Contains(name, ".")
}

func isKnown(name string, known map[string]string) bool {
	host, _, _ := strings.Cut(strings.ToLower(name), "/")
	_, ok := known[host]
	return ok
}

// canonical returns a known name or alias as the fleet writes it, and another name unchanged.
func canonical(name string, known map[string]string) string {
	host, project, ok := strings.Cut(name, "/")
	if full := known[strings.ToLower(host)]; full != "" {
		host = full
	}
	if ok {
		return host + "/" + project
	}
	return host
}
