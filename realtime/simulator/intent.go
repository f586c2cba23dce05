package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
)

// wish is what a sentence asks for.
type wish int

const (
	wishUnknown  wish = iota
	wishGreeting      // hello
	wishAbility       // what can you do
	wishQuiet         // stop, thanks: nothing to do
	wishHearing       // can you hear me
	wishApproval      // yes or no to a question that no agent has asked
	wishAnswer        // answer_agent
	wishMachines      // list_servers
	wishSessions      // list_sessions
	wishRead          // list_sessions, then read_session
	wishContinue      // list_sessions, then codex in that session
	wishOpen          // list_sessions, then read_session; what comes next goes there
	wishOpened        // its session is being read
	wishNew           // codex in a fresh session
	wishWork          // codex, queue_next or run_on_server
	wishPaused        // codex or stop_work for work that was paused
	wishStop          // stop_work
	wishStatus        // status
	wishUpdates       // set_updates
)

// An intent is a sentence taken apart. Work stays in the caller's own words.
type intent struct {
	wish   wish
	server string // as the caller said it, or its known name; "" when none was named
	words  string // of the session's title
	work   string
	next   bool                // behind the work that runs
	aside  bool                // beside it: a quick side question
	level  handoff.SpeechLevel // of set_updates
}

// Pieces of the patterns(). A machine's name is one word, with a project behind a slash at most; longer
// aliases are replaced by names before.
const (
	reName    = `(?:the |my )?([a-z0-9][\w.-]*(?:/[\w.-]+)?)`
	reOn      = `(?: (?:on|at|from|over on) ` + reName + `)?`
	reSession = `(?:session|thread|conversation|chat)`
	reAbout   = `(?:` + reSession + `|one) (?:about|for|called|named|titled|with) (?:the |my )?(.+?)`
	reGoOn    = `(?:continue|resume|reopen|reuse|go on|carry on|keep going|pick up|go back|return|switch|use|open|proceed|work)(?: with| in| to| up)? (?:the |my |our |that |your )?`
	reThen    = `(?:(?:\s*,)?\s*(?:and then|and|then|to) |\s*[,:]\s*(?:and |then )*)(.+)`
)

// A grammar is the patterns that sentences are taken apart with.
type grammar struct {
	polite, asked, greeting, ability, quiet, hearing, approval    *regexp.Regexp
	machines, machinesShort, isUp, sessions, sessionsShort, about *regexp.Regexp
	readSession, happened, happenedOn, goOn, inSession, workIn    *regexp.Regexp
	readAbout, happenedAbout, goOnAbout, inAbout, workInAbout     *regexp.Regexp
	opens, clause, goOnThing, anew                                *regexp.Regexp
	fresh, inFresh, workInFresh                                   *regexp.Regexp
	onComma, onName, ask, let, nameComma, trailing, file          *regexp.Regexp
}

// patterns are compiled when the first sentence is read, since a start without this voice needs none of them.
var patterns = sync.OnceValue(func() *grammar {
	return &grammar{
		polite: pattern(`(?:hey|hi|hello|ok|okay|so|well|now|and|also|please|switchboard|alright|right|great|cool|good|perfect|thanks|thank you)[ ,.!]+`),
		asked:  pattern(`(?:(?:can|could|would|will) you (?:please |kindly )?|i(?: want|'d like| would like| need) (?:you )?to |(?:let's|lets) |go and |go ahead and |please |just |now )`),

		greeting: pattern(`(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|day)|greetings|hallo|moin)(?:,? (?:there|switchboard|computer|everyone|you))?$`),
		ability:  pattern(`(?:help|what can (?:you|i) (?:do|say|ask)(?: .*)?|who are you|what are you|are you (?:real|there|a .*)|how do(?:es)? (?:you|this|it) work)$`),
		quiet: pattern(`(?:stop|stop talking|hold on|wait|wait a (?:moment|minute|second)|quiet|be quiet|shh+|never ?mind|forget it|thanks|thank you(?: very much)?|ok|okay|good|great|cool|perfect|nice|bye|goodbye|no|no thanks` +
			`|(?:no,? )?(?:thanks,? |thank you,? )?that(?:'s| is| was| will be| would be) (?:all|it|enough)(?: for (?:now|today))?|(?:good|great|nice|excellent) (?:job|work)|well done|(?:we are|we're|i am|i'm) done|thanks a lot|drop it|leave it)$`),
		hearing:  pattern(`(?:can|do|could) you (?:still )?hear me|are you (?:still )?listening$`),
		approval: pattern(`(?:yes|approve|allow|accept|decline|deny|reject)(?: it| that| them| please|, (?:do it|go ahead|allow it|approve it))*$`),

		machines:      pattern(`(?:which|what|list|show|tell|name|how many|are|do|give|is|where|who)\b.*\b(?:machines?|servers?|computers?|hosts?|boxes|devices?|fleet)\b`),
		machinesShort: pattern(`(?:(?:my|the|all) )*(?:machines|servers|computers|fleet)$|(?:who|what)(?:'s| is) (?:online|up|connected)$`),
		isUp:          pattern(`(?:is|are) .+ (?:up|down|online|offline|reachable|alive|connected|available)$`),
		sessions: pattern(`(?:(?:list|show|which|what|tell|give|find|search|any|are there|do i have|how many)\b.*\bsessions\b` +
			`|(?:what|which)\b.*\b(?:i|we)\b.*\b(?:working|work|worked|doing|busy|up to)\b.*` +
			`|what did (?:i|we) (?:do|work on).*|where (?:was i|were we|did (?:i|we) (?:leave|stop)).*` +
			`|what(?:'s| is| are) (?:running|going on|open|active|in progress).*)`),
		sessionsShort: pattern(`(?:(?:my|the|all|recent|open|latest|last) )*sessions(?: .*)?$`),
		about:         pattern(`.*?\bsessions? (?:about|for|with|called|named|on the topic of) (?:the |my )?(.+)$`),

		readSession: pattern(`(?:read|summari[sz]e|recap|show(?: me)?|tell me about|look at|look into)(?: me)? (?:the |my |our |that )?(?:(.+?) )?` + reSession + reOn + `$`),
		happened:    pattern(`(?:what(?:'s| is| was| has)? ?(?:happened|happening|going on|went on|new|was done|been done|the (?:state|status))|what did (?:you|codex|the agent|it) (?:do|say)|what was the last thing|how(?:'s| is| did) .*?)(?: in| with| of| during) (?:the |my |our )?(?:(.+?) )?` + reSession + reOn + `(?: go| doing)?$`),
		happenedOn:  pattern(`what (?:happened|was happening|is happening|went on|was done|is new) (?:on|at) ` + reName + `$`),
		goOn:        pattern(reGoOn + `(?:(.+?) )?` + reSession + reOn + `(?:` + reThen + `)?$`),
		goOnThing:   pattern(`(?:continue|resume|go on|carry on|pick up|go back)(?: with| to)? (?:the |my |our |that )(.+?) (?:thing|stuff|work|task|one)` + reOn + `(?:` + reThen + `)?$`),
		anew:        pattern(`(?:start over|start (?:again )?(?:from scratch|anew|fresh)|begin (?:again|anew))` + reOn + `$`),
		inSession:   pattern(`in (?:the |my |our |that )?(?:(.+?) )?` + reSession + reOn + `[,:]? (.+)$`),
		workIn:      pattern(`(.+?) in (?:the |my |our |that )?(?:(.+?) )?` + reSession + reOn + `$`),
		fresh:       pattern(`(?:start|open|begin|make|create|use|do|launch)(?: me)? (?:a |an |some )?(?:new|fresh|clean|another|separate) (?:codex )?` + reSession + reOn + `(?:(?:\s*,)?\s*(?:and then|and|then|to|that|for) (.+)|\s*[,:]\s*(.+))?$`),
		inFresh:     pattern(`in a (?:new|fresh|clean|separate) ` + reSession + reOn + `[,:]? (.+)$`),
		workInFresh: pattern(`(.+) in a (?:new|fresh|clean|separate) ` + reSession + reOn + `$`),

		readAbout:     pattern(`(?:read|summari[sz]e|recap|show(?: me)?|tell me about|look at|look into)(?: me)? (?:the |my |our |that )?` + reAbout + reOn + `$`),
		happenedAbout: pattern(`what(?:'s| is| was| has)? ?(?:happened|happening|going on|went on|new|was done|been done)(?: in| with| of| during) (?:the |my |our )?` + reAbout + reOn + `$`),
		goOnAbout:     pattern(reGoOn + reAbout + reOn + `(?:(?:(?:\s*,)?\s*(?:and then|and|then) |\s*[,:]\s*(?:and |then )*)(.+))?$`),
		inAbout:       pattern(`in (?:the |my |our |that )?` + reAbout + reOn + `\s*[,:]\s*(.+)$`),
		workInAbout:   pattern(`(.+?) in (?:the |my |our |that )?` + reAbout + reOn + `$`),
		opens:         pattern(`(?:reopen|reuse|go back|return|switch|use|open)\b`),
		clause:        regexp.MustCompile(`(?i)(?:\s*[,;])?\s+and\s+|\s*[,;]\s+`),

		onComma:   pattern(`(?:on|at|over on) ` + reName + `\s*[,:;]\s*(.+)$`),
		onName:    pattern(`(?:on|at) ` + reName + ` (.+)$`),
		ask:       pattern(`(?:ask|tell|get|use|want) ` + reName + ` (to |if |whether |about |how |what |for )(.+)$`),
		let:       pattern(`(?:let|have|make) ` + reName + ` (.+)$`),
		nameComma: pattern(reName + `\s*[,:]\s*(.+)$`),
		trailing:  pattern(`(.+?),? (on|at|from|in|to|over on) ` + reName + `$`),
		file:      pattern(`.*\.(?:go|js|mjs|ts|tsx|py|md|json|ya?ml|toml|txt|css|html?|rs|c|h|cpp|java|sh|sql|rb)$`),
	}
})

// pattern matches from the start, in any case.
func pattern(p string) *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:` + p + `)`) }

// notMachines are words behind "on", "at" and "ask" that name no machine.
var notMachines = strings.Fields("it this that them these those me us you him her one main master develop trunk staging production prod " +
	"monday tuesday wednesday thursday friday saturday sunday today tomorrow top time page github gitlab windows linux mac macos ios android " +
	"branch network internet a an my the all everything everyone something someone hold average line purpose demand startup all both each github.com codex " +
	"first second third last next session sessions thread project repo repository machines servers machine server")

// verbs begin sentences that are work for an agent.
var verbs = strings.Fields("fix run rerun re-run push pull test commit build deploy try check write refactor update add remove delete merge rebase review rename " +
	"implement make create continue go do undo revert explain install uninstall upgrade downgrade clean start restart look find search show read " +
	"benchmark bench format lint document open investigate debug profile trace measure optimize optimise improve speed move copy split extract " +
	"replace change rewrite migrate port generate release publish tag bump finish complete retry repeat keep resume apply set configure enable " +
	"disable print count list summarize summarise describe diff stash fetch clone checkout switch draft prepare verify validate compile cover " +
	"scan audit close answer translate convert upload download back use stop cancel kill tell figure get give turn save")

// understand takes a sentence apart. Known maps machine names and aliases, lower case, to the names
// that the fleet uses. It never invents: what it does not understand is [wishUnknown].
func understand(text string, known map[string]string) intent {
	bare := strings.TrimRight(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "’", "'"), " .!?…")
	if in, ok := small(bare); ok {
		return in
	}
	if in, ok := takeControl(bare, known); ok {
		return in
	}
	sentence := plain(text, known)
	if in, ok := small(sentence); ok {
		return in
	}
	return takeApart(sentence, known)
}

// plain removes politeness, final points and odd quotes, and writes known aliases as names.
func plain(text string, known map[string]string) string {
	s := strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`).Replace(strings.Join(strings.Fields(text), " "))
	s = strings.TrimRight(s, " .!?…")
	s = strings.TrimSuffix(strings.TrimSuffix(s, " please"), ",")
	for {
		rest := s[len(patterns().polite.FindString(s)):]
		rest = rest[len(patterns().asked.FindString(rest)):]
		if rest == s || rest == "" {
			break
		}
		s = rest
	}
	for alias, name := range known {
		if strings.Contains(alias, " ") {
			re := regexp.MustCompile(`(?i)\b((?:on|at|from|ask|tell|to|let|have) (?:the |my )?)` + regexp.QuoteMeta(alias) + `\b`)
			s = re.ReplaceAllString(s, "${1}"+name)
		}
	}
	return s
}

// small takes sentences that ask for no work at all.
func small(s string) (intent, bool) {
	for _, c := range []struct {
		re   *regexp.Regexp
		wish wish
	}{
		{patterns().greeting, wishGreeting}, {patterns().ability, wishAbility},
		{patterns().hearing, wishHearing}, {patterns().quiet, wishQuiet}, {patterns().approval, wishApproval},
	} {
		if c.re.MatchString(s) {
			return intent{wish: c.wish}, true
		}
	}
	return intent{}, s == ""
}

// small reports whether a sentence asks for no work at all.
func (in intent) small() bool {
	return in.wish == wishGreeting || in.wish == wishQuiet || in.wish == wishHearing || in.wish == wishApproval || in.wish == wishAbility
}

// isMachine reports whether a word may name a machine: a known one, or one nobody has ruled out. The fleet
// tells callers when there is none of that name.
func isMachine(name string, known map[string]string) bool {
	lower := strings.ToLower(name)
	if isKnown(lower, known) {
		return true
	}
	return !slices.Contains(notMachines, lower) && !patterns().file.MatchString(lower)
}

func isKnown(name string, known map[string]string) bool {
	lower := strings.ToLower(name)
	if host, _, ok := strings.Cut(lower, "/"); ok {
		lower = host
	}
	_, ok := known[lower]
	return ok
}

// canonical writes a name as the fleet does, if it is known.
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

func startsWork(s string) bool {
	first, _, _ := strings.Cut(strings.ToLower(s), " ")
	return slices.Contains(verbs, strings.Trim(first, ",.:;"))
}
