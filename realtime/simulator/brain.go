package simulator

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// A brain decides what a response says and does. It knows a few [sentences], the tools by their names, and how to say
// what Switchboard tells it. It uses no time, no socket and no randomness. Owned by the session of its connection.
type brain struct {
	machine    string       // was given work last
	questions  []question   // open questions of agents, newest last
	paused     []paused     // paused work, newest last
	said       string       // the last words that it said
	introduced *atomic.Bool // Set once, shared by all calls: a caller was told that the voice is simulated
	noWords    bool         // it has said that it understands no sound
}

func newBrain(met *atomic.Bool) *brain { return &brain{introduced: met} }

// What the brain says of itself. The first caller is told that it is simulated: in full, or in one sentence if they
// have said nothing yet.
const (
	saySimulated = "This voice is simulated: it understands typed sentences and those on the page. " +
		"Set OPENAI_API_KEY to talk to a real one. Ask me which machines you have, or what you were working on."
	sayGreeting = "Hello, I am a simulated voice: press the sentences on the page from top to bottom, or type your own."
	sayHello    = "Hello again. Which machine shall I give work to?"
	sayAbility  = "I am simulated and only know sentences like these: which machines do I have; what was I working " +
		"on; continue the auth session on bigpc and run the tests; on bigpc, run the tests; fix it; push it from " +
		"bigpc; after that, run the tests; continue this on laptop; what is running; stop the work; yes and no; and " +
		"the name of a tool. With OPENAI_API_KEY set, a real voice model understands the rest."
	sayUnknown = "I only know a few sentences, and not this one."
	sayOthers  = " I know “Which machines do I have?”, “What was I working on?” and what I say when you ask “What " +
		"can you do?”"
	sayNoWords = "I hear that you are speaking, but this simulated voice understands only typed sentences. Please " +
		"type it, or set OPENAI_API_KEY for a real voice."
	sayNoWords2   = "I only understand typed sentences."
	sayQuiet      = "All right."
	sayApproval   = "Questions of an agent are answered on the page."
	sayAnswer     = " If it was an answer to %s, say it in a few plain words, or answer on the page."
	sayNobody     = "No agent waits for an answer in this call."
	sayNoTool     = "I cannot do that in this call: it has no tool called %s."
	sayWhich      = " Say it again with the whole name of the session."
	sayOnWhich    = "On which machine? Say it again with its name, as in the sentences on the page."
	sayNotPaused  = "Nothing is paused."
	sayNothingYet = "Nothing was worked on in this call yet. Say on which machine something should be done, as on " +
		"the page."
)

// reply says what is new and does what the caller asked for.
func (b *brain) reply(h Heard) []Move {
	if h.nothing() && h.Nth == 1 && !h.OutOfBand {
		return b.greets(sayGreeting)
	}
	for _, m := range h.past.Messages {
		b.note(m)
	}
	for _, o := range h.past.Outputs {
		b.learn(o)
	}
	for _, o := range h.Outputs {
		b.learn(o)
	}
	var done []Move
	if slices.ContainsFunc(h.Messages, asksToGoOn) {
		done = says(h.cut.unsaid())
	}
	for _, text := range h.Texts { // before the messages: a text cannot answer a question that comes with it
		done = append(done, b.sentence(h, text)...)
	}
	for _, m := range h.Messages {
		b.note(m)
	}
	fresh := news{Messages: h.Messages}
	for _, o := range h.Outputs {
		switch {
		case o.then != nil:
			done = append(done, o.then(h, o)...)
		case !b.asksInstead(o):
			fresh.Outputs = append(fresh.Outputs, o)
		}
	}
	if h.Sound && len(h.Texts) == 0 {
		done = append(done, says(b.hearsNoWords())...)
	}
	moves := joinMoves(done, says(fresh.spoken()))
	if len(moves) == 0 && slices.ContainsFunc(h.Messages, asksToRepeat) {
		moves = says(cmp.Or(b.said, h.cut.answered.spoken())) // it may have been said in another session
	}
	for _, m := range moves {
		if say, ok := m.(Say); ok {
			b.said = say.Text
		}
	}
	return moves
}

// joinMoves joins the answer to the caller and the news to one message. Speech comes before calls, unless there is only
// news: if the caller interrupts news, their request must not be lost.
func joinMoves(moves, news []Move) []Move {
	var words []string
	var calls []Move
	for _, m := range append(moves, news...) {
		if say, ok := m.(Say); ok {
			words = append(words, say.Text)
			continue
		}
		calls = append(calls, m)
	}
	said := says(strings.Join(words, " "))
	if len(words) > 0 && len(words) == len(news) {
		return append(calls, said...)
	}
	return append(said, calls...)
}

func says(text string) []Move {
	if text == "" {
		return nil
	}
	return []Move{Say{Text: text}}
}

// greets says first to the first caller of this process, and a short greeting to all others.
func (b *brain) greets(first string) []Move {
	if b.introduced.Swap(true) {
		return says(sayHello)
	}
	return says(first)
}

func (b *brain) hearsNoWords() string {
	b.introduced.Store(true)
	if b.noWords {
		return sayNoWords2
	}
	b.noWords = true
	return sayNoWords
}

// A sentence is one that the brain knows. The named groups of its form are: next (the work comes after what runs), on
// (the machine, as the caller names it), about (words of a session's title), work (what to do, in the caller's words).
type sentence struct {
	form *regexp.Regexp
	do   func(*brain, Heard, groups) []Move
}

// groups are the words of the groups of a sentence.
type groups map[string]string

// sentences are those that the brain knows, narrow ones first. They are compiled when the first sentence is read.
var sentences = sync.OnceValue(func() []sentence {
	const (
		machine = `(?:the |my )?(?P<on>[\w-]+(?:/[\w.-]+)?)`
		next    = `(?P<next>(?:and )?(?:then|after that),? )?`
		work    = `(?P<work>(?:fix|run|push|write|publish|check|test|tell|do|add|make|change|remove|review|explain|` +
			`show)\b.*)`
		andWork = `(?:,? and (?P<work>.+))?`
	)
	know := func(form string, do func(*brain, Heard, groups) []Move) sentence {
		return sentence{regexp.MustCompile(`(?i)^(?:` + form + `)$`), do}
	}
	return []sentence{
		know(`hi|hello`, func(b *brain, _ Heard, _ groups) []Move { return b.greets(saySimulated) }),
		know(`help|what can (?:you do|i say)`, func(*brain, Heard, groups) []Move { return says(sayAbility) }),
		know(`stop|wait|hold on|okay|ok|okay, wait|thanks|thank you`, func(*brain, Heard, groups) []Move {
			return says(sayQuiet)
		}),
		know(`which (?:machines|servers).*`, func(_ *brain, h Heard, _ groups) []Move {
			return call(h, tools.ListServers, tools.ServersArguments{}, nil)
		}),
		know(`what was i working on(?: on `+machine+`)?`, func(_ *brain, h Heard, s groups) []Move {
			return call(h, tools.ListSessions, tools.SessionsArguments{Server: s["on"]}, nil)
		}),
		know(`what(?:'s| is) (?:running|waiting|paused|new)`, func(_ *brain, h Heard, _ groups) []Move {
			return call(h, tools.Status, tools.StatusArguments{}, nil)
		}),
		know(`stop (?:it|the work)(?: on `+machine+`)?`, func(_ *brain, h Heard, s groups) []Move {
			return call(h, tools.StopWork, tools.StopArguments{Server: s["on"]}, nil)
		}),
		know(`(?:on `+machine+`,? )?continue (?:the|my) (?P<about>.+?) session(?: on `+machine+`)?`+andWork,
			(*brain).resume),
		know(`continue this on `+machine+andWork, (*brain).move),
		know(`go on(?: on `+machine+`)?`, func(b *brain, h Heard, s groups) []Move {
			return b.pausedWork(h, s["on"], false)
		}),
		know(`drop it(?: on `+machine+`)?`, func(b *brain, h Heard, s groups) []Move {
			return b.pausedWork(h, s["on"], true)
		}),
		know(next+`on `+machine+`,? (?P<work>.+)`, (*brain).work),
		know(next+`ask `+machine+` to (?P<work>.+)`, (*brain).work),
		know(next+work+` (?:on|from) `+machine, (*brain).work),
		know(next+work, (*brain).work),
	}
})

// understand returns the sentence that a text is, and its words; nil for none.
func understand(text string) (*sentence, groups) {
	for _, s := range sentences() {
		m := s.form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		words := groups{}
		for i, name := range s.form.SubexpNames() {
			words[name] += m[i]
		}
		return &s, words
	}
	return nil, nil
}

// sentence handles one sentence of the caller: an answer to an agent, the name of a tool with its arguments, or a
// sentence that the brain knows.
func (b *brain) sentence(h Heard, text string) []Move {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "’", "'")
	if name, arguments, _ := strings.Cut(text, " "); slices.Contains(h.Tools, name) &&
		(arguments == "" || arguments[0] == '{') {
		return []Move{Call{Tool: name, Arguments: cmp.Or(arguments, "{}")}}
	}
	known, words := understand(strings.TrimRight(text, " .!?"))
	if q, ok := b.questionFor(text, known != nil); ok {
		return b.answer(h, q, text)
	}
	switch decided := decisionIn(text) != ""; {
	case known != nil:
		return known.do(b, h, words)
	case decided && slices.Contains(h.Tools, tools.AnswerAgent):
		return says(sayNobody)
	case decided:
		return says(sayApproval)
	case len(b.questions) > 0:
		return says(sayUnknown + fmt.Sprintf(sayAnswer, b.questions[len(b.questions)-1].server))
	}
	return says(sayUnknown + sayOthers)
}

// work gives work to the machine that the caller names, or to that of the last work.
func (b *brain) work(h Heard, s groups) []Move {
	tool := tools.Codex
	if s["next"] != "" {
		tool = tools.QueueNext
	}
	server := cmp.Or(s["on"], b.machine)
	if server == "" {
		return says(sayOnWhich)
	}
	return call(h, tool, tools.CodexArguments{Server: server, Prompt: asSentence(s["work"])}, nil)
}

// move goes on with the last work on another machine.
func (b *brain) move(h Heard, s groups) []Move {
	if b.machine == "" {
		return says(sayNothingYet)
	}
	from := b.machine
	if s["on"] == from {
		from = ""
	}
	return call(h, tools.Codex, tools.CodexArguments{Server: s["on"], FromServer: from,
		Prompt: asSentence(cmp.Or(s["work"], "continue this here."))}, nil)
}

// resume looks for the session that the caller means, and gives the work to it.
func (b *brain) resume(h Heard, s groups) []Move {
	if !slices.Contains(h.Tools, tools.Codex) {
		return says(fmt.Sprintf(sayNoTool, tools.Codex))
	}
	return call(h, tools.ListSessions, tools.SessionsArguments{Server: s["on"], Query: s["about"]},
		func(h Heard, o Output) []Move {
			list := gjson.Get(o.Text, "items")
			if !readable(o.Text) || !list.IsArray() {
				return says(spokenOutput(o))
			}
			found := list.Array()
			exact := slices.DeleteFunc(slices.Clone(found), func(e gjson.Result) bool {
				return !strings.Contains(strings.ToLower(e.Get("title").String()), strings.ToLower(s["about"]))
			})
			if len(exact) == 1 {
				found = exact
			}
			if len(found) != 1 {
				return says(spokenOutput(o) + sayWhich)
			}
			return call(h, tools.Codex, tools.CodexArguments{
				Server: cmp.Or(found[0].Get("server").String(), s["on"]), Thread: found[0].Get("id").String(),
				Prompt: asSentence(cmp.Or(s["work"], "go on where you left off."))}, nil)
		})
}

// asSentence begins work with a capital letter: it is shown as what the caller wants, and names new sessions.
func asSentence(work string) string {
	first := true
	return strings.Map(func(r rune) rune {
		if first {
			r, first = unicode.ToUpper(r), false
		}
		return r
	}, work)
}

// call calls a tool, or says that the session does not have it. then decides when its answer comes; nil: it is said.
func call(h Heard, name string, arguments tools.Arguments, then func(Heard, Output) []Move) []Move {
	if !slices.Contains(h.Tools, name) {
		return says(fmt.Sprintf(sayNoTool, name))
	}
	return []Move{Call{Tool: name, Arguments: handoff.Encode(arguments), then: then}}
}

// learn learns from the answer to a call: where work went, which question it closed, and what is paused.
func (b *brain) learn(o Output) {
	if !readable(o.Text) {
		return
	}
	out := gjson.Parse(o.Text)
	switch o.Tool {
	case tools.Codex, tools.QueueNext:
		if server := out.Get("server").String(); server != "" && !out.Get("code").Exists() {
			b.machine = server
		}
	case tools.AnswerAgent:
		closed := out.Get("status").String() == "done" || out.Get("code").String() == string(handoff.CodeNotPending)
		if closed && readable(o.Arguments) {
			b.close(gjson.Get(o.Arguments, "question").String())
		}
	case tools.Status:
		for _, p := range out.Get("paused").Array() {
			b.pause(paused{p.Get("begin").String(), p.Get("said").String(), p.Get("server").String()})
		}
	}
}
