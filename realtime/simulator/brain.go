package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// A brain decides what a response says and does, from what came and from what the conversation has taught
// it. It has no time, no socket and no randomness. Owned by the session of its connection.
type brain struct {
	machines map[string]string // names and aliases, lower case, to names
	last     string            // the machine that work went to last
	lastCall string            // the call_id that gave it the work
	before   string            // the one before that, for when the last turns out not to exist
	asking   *pendingIntent    // what a question to the caller is about
	open     []question        // what agents have asked the caller, newest last
	paused   []option          // work that was not begun and waits for a word, newest last
	said     string            // what it said last
	opened   option            // the session that the next work on its machine goes to; none has no id
	met      *atomic.Bool      // Set once: somebody was told that it is simulated; of all calls
	noticed  bool              // it has said that it does not understand sound
}

// A pendingIntent is what the caller asked for, while something is missing.
type pendingIntent struct {
	intent
	choices  []option // asked: which of these
	question question // answered: this one
	session  option   // opened: this one
}

// An option is one of several that a sentence may mean: a session, work that runs, or work that was paused.
type option struct {
	id     string // of the session, or by which paused work is begun; "" for work that runs
	title  string // or the words of the work
	label  string // of a session: what tells it from others of its title
	server string
}

func newBrain(met *atomic.Bool) *brain { return &brain{machines: map[string]string{}, met: met} }

// What the brain says of itself. Whoever calls first is told what it is: in full, or in one sentence where they have
// said nothing.
const (
	saySimulated = "This voice is simulated: it understands typed sentences and those on the page. " +
		"Set OPENAI_API_KEY to talk to a real one. Ask me which machines you have, or what you were working on."
	sayGreeting = "Hello, I am a simulated voice: press the sentences on the page from top to bottom, or type your own."
	sayHello    = "Hello again. Which machine shall I give work to?"
	sayAbility  = "I am simulated and only know a few sentences, such as those on the page: which machines do I have, " +
		"what was I working on, continue or read the auth session on a machine, on that machine do this, then do that, " +
		"continue this on another machine, stop the work, what is running. " +
		"With OPENAI_API_KEY set, a real voice model understands the rest."
	sayUnknown = "I only know a few sentences, and not this one. Try those on the page, or ask what I can do."
	sayNoWords = "I hear that you are speaking, but this simulated voice understands only typed sentences. Please " +
		"type it, or set OPENAI_API_KEY for a real voice."
	sayNoWords2    = "I only understand typed sentences."
	sayQuiet       = "All right."
	sayApproval    = "Questions of an agent are answered on the page."
	sayAnswer      = "If it was an answer to %s, say it in a few plain words, or answer on the page."
	sayNobody      = "No agent waits for an answer in this call."
	sayOpened      = "What you ask for next goes there."
	sayWhatToDo    = "What should be done there?"
	sayNoTool      = "I cannot do that in this call: it has no tool called %s."
	sayNoSession   = "I found no session about %s%s."
	sayNothingYet  = "Nothing was worked on in this call yet. Say on which machine something should be done, as on the page."
	saySaidNothing = "I have said nothing yet."
)

// reply speaks what is new and does what the caller asked for.
func (b *brain) reply(h Heard) []Move {
	if h.nothing() && h.Nth == 1 && !h.OutOfBand {
		return b.chosen(h, b.greets(sayGreeting))
	}
	b.recall(h.past)
	var done []Move
	var plain Heard // what needs no more than being said
	plain.Messages = h.Messages
	if h.cut != nil && slices.ContainsFunc(h.Messages, goesOn) {
		done = says(rest(h.cut()))
	}
	for _, o := range h.Outputs {
		switch {
		case o.pending != nil && o.Tool == tools.ListSessions:
			done = append(done, b.found(h, *o.pending, o)...)
		case o.pending != nil && o.Tool == tools.ReadSession:
			done = append(done, b.wasOpened(o.pending.session, o)...)
		case o.pending != nil && o.Tool == tools.AnswerAgent:
			done = append(done, b.answerGiven(o.pending.question, o)...)
		case b.overtaken(h, o): // the question is what counts
		default:
			b.stopUnclear(o)
			plain.Outputs = append(plain.Outputs, o)
		}
	}
	for _, text := range h.Texts { // they cannot answer a question of these messages
		done = append(done, b.sentence(h, text)...)
	}
	for _, m := range h.Messages {
		b.told(m)
	}
	if h.Sound && len(h.Texts) == 0 {
		said := sayNoWords
		if b.noticed {
			said = sayNoWords2
		}
		b.noticed = true
		b.met.Store(true)
		done = append(done, says(said)...)
	}
	moves := b.chosen(h, joined(done, says(spokenNews(plain))))
	if len(moves) == 0 && slices.ContainsFunc(h.Messages, saysAgain) {
		words := b.said
		if words == "" && h.cut != nil { // it was said in another session
			_, of := h.cut()
			words = spokenNews(of)
		}
		moves = says(words)
	}
	for _, m := range moves {
		if say, ok := m.(Say); ok {
			b.said = say.Text
		}
	}
	return moves
}

// joined puts what answers the caller before the news, as one message. Speech comes before calls, but for
// news alone: an interruption of news must not lose the caller's request.
func joined(moves, news []Move) []Move {
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

// chosen obeys a tool choice that wants a call. The brain has no arguments for a function it was not
// asked for, so it calls with none.
func (b *brain) chosen(h Heard, moves []Move) []Move {
	if h.Choice == "auto" || h.Choice == "none" || h.Choice == "" || len(h.Tools) == 0 {
		return moves
	}
	for _, m := range moves {
		if c, ok := m.(Call); ok && (h.Choice == "required" || c.Tool == h.Choice) {
			return moves
		}
	}
	name := h.Choice
	if name == "required" {
		name = h.Tools[0]
	}
	return append(slices.DeleteFunc(moves, func(m Move) bool { _, call := m.(Call); return call }),
		Call{Tool: name, Arguments: "{}"})
}

// greets says what answers here, unless somebody was told.
func (b *brain) greets(first string) []Move {
	if b.met.Swap(true) {
		return says(sayHello)
	}
	return says(first)
}

// sentence does what one sentence asks for.
func (b *brain) sentence(h Heard, text string) []Move {
	if asking := b.asking; asking != nil {
		b.asking = nil
		if moves, ok := b.answered(h, *asking, text); ok {
			return moves
		}
	}
	in := understand(text, b.machines)
	if moves, ok := b.resumed(h, text); ok {
		return moves
	}
	if moves, ok := b.replied(h, text, in); ok {
		return moves
	}
	if moves, ok := b.pausedReply(h, text); ok {
		return moves
	}
	switch in.wish {
	case wishGreeting:
		return b.greets(saySimulated)
	case wishQuiet:
		return says(sayQuiet)
	case wishHearing:
		return says(sayNoWords2)
	case wishAgain:
		if b.said == "" {
			return says(saySaidNothing)
		}
		return says(b.said)
	case wishAbility:
		return says(sayAbility)
	case wishUnknown:
		switch {
		case decisionIn(text) == "" && len(b.open) > 0:
			return says(sayUnknown + " " + fmt.Sprintf(sayAnswer, b.open[len(b.open)-1].server))
		case decisionIn(text) == "":
			return says(sayUnknown)
		case slices.Contains(h.Tools, tools.AnswerAgent):
			return says(sayNobody)
		}
		return says(sayApproval)
	}
	return b.pursue(h, pendingIntent{intent: in})
}

// pursue takes the next step of an intent: a call, or a question to the caller.
func (b *brain) pursue(h Heard, e pendingIntent) []Move {
	switch e.wish {
	case wishMachines:
		return call(h, tools.ListServers, tools.ServersArguments{}, nil)
	case wishSessions:
		return call(h, tools.ListSessions, tools.SessionsArguments{Server: e.server, Query: e.words}, nil)
	case wishStop:
		return call(h, tools.StopWork, tools.StopArguments{Server: e.server}, nil)
	case wishStatus:
		return call(h, tools.Status, tools.StatusArguments{}, nil)
	case wishUpdates:
		return call(h, tools.SetUpdates, tools.UpdatesArguments{Level: e.level}, nil)
	case wishRead, wishContinue, wishOpen:
		if e.wish == wishContinue && !slices.Contains(h.Tools, e.tool()) {
			return says(fmt.Sprintf(sayNoTool, e.tool()))
		}
		return call(h, tools.ListSessions, tools.SessionsArguments{Server: e.server, Query: e.words}, &e)
	}
	return b.work(h, e)
}

// work gives work to a machine, or asks for the missing part.
func (b *brain) work(h Heard, e pendingIntent) []Move {
	if !slices.Contains(h.Tools, e.tool()) {
		return says(fmt.Sprintf(sayNoTool, e.tool()))
	}
	names := slices.Compact(slices.Sorted(maps.Values(b.machines)))
	if e.server == "" {
		if e.server = b.last; e.server == "" && len(names) == 1 {
			e.server = names[0]
		}
	}
	if e.server == "" {
		b.asking = &e
		if len(names) == 0 {
			return says("On which machine?")
		}
		return says("On which machine? I know " + handoff.ListWords(names) + ".")
	}
	switch {
	case e.wish == wishMove && b.last == "":
		return says(sayNothingYet)
	case e.wish == wishMove:
		e.work = cmp.Or(e.work, "Continue this here.")
	case e.work == "":
		b.asking = &e
		return says(sayWhatToDo)
	}
	args := tools.CodexArguments{Server: e.server, Prompt: asSentence(e.work)}
	if e.wish == wishMove && e.server != b.last {
		args.FromServer = b.last
	}
	if e.server == b.opened.server && !e.aside {
		args.Thread, b.opened = b.opened.id, option{} // from now on it is the machine's session
	}
	if e.wish == wishNew {
		args.Thread = handoff.NewThread
	}
	return call(h, e.tool(), args, nil)
}

// asSentence begins work with a capital letter: it is shown as what the caller wants, and names new
// sessions.
func asSentence(work string) string {
	if !startsWithVerb().MatchString(work) {
		return work
	}
	return strings.ToUpper(work[:1]) + work[1:] // verbs are ASCII
}

// answered takes a sentence as the answer to a question of ours, if it is one.
func (b *brain) answered(h Heard, e pendingIntent, text string) ([]Move, bool) {
	if len(e.choices) > 0 {
		return b.chose(h, e, text)
	}
	if decisionIn(text) != "" {
		return nil, false
	}
	in := understand(text, b.machines)
	if e.server == "" {
		name := strings.TrimPrefix(plain(text, b.machines), "on ")
		if strings.Contains(name, " ") || in.wish != wishUnknown || !isMachine(name, b.machines) {
			return nil, false
		}
		e.server = canonical(name, b.machines)
		return b.pursue(h, e), true
	}
	if in.wish != wishWork && in.wish != wishUnknown || in.server != "" && in.server != e.server {
		return nil, false
	}
	e.work = strings.TrimSpace(text)
	return b.pursue(h, e), true
}

// found goes on with an intent when its sessions are known.
func (b *brain) found(h Heard, e pendingIntent, o Output) []Move {
	list, ok := readSessions(o.Text)
	if !ok {
		return says(spokenOutput(o))
	}
	list = slices.DeleteFunc(list, func(s option) bool {
		host, _, _ := strings.Cut(e.server, "/")
		return host != "" && s.server != "" && !strings.EqualFold(s.server, canonical(host, b.machines))
	})
	if len(list) > 1 {
		if e.words == "" {
			list = list[:1] // newest first: "the last session"
		} else if exact := pick(list, e.words); len(exact) == 1 {
			list = exact
		}
	}
	switch len(list) {
	case 0:
		where, words := "", cmp.Or(e.words, "that")
		if e.server != "" {
			where = " on " + e.server
		}
		return says(fmt.Sprintf(sayNoSession, words, where))
	case 1:
		return b.use(h, e, list[0])
	}
	return b.ask(e, list)
}

// ask asks which of several is meant.
func (b *brain) ask(e pendingIntent, choices []option) []Move {
	e.choices = choices
	b.asking = &e
	var names []string
	for _, o := range choices[:min(len(choices), 4)] {
		name := o.title
		if slices.ContainsFunc(choices, func(c option) bool {
			return c.id != o.id && c.title == o.title && c.server == o.server
		}) {
			name = cmp.Or(o.label, name)
		}
		names = append(names, strings.TrimRight(name, ".!? ")+" on "+o.server)
	}
	return says(fmt.Sprintf("There are %d: %s. Which one do you mean?", len(choices), handoff.ListWords(names)))
}

// chose takes the answer to which one is meant.
func (b *brain) chose(h Heard, e pendingIntent, text string) ([]Move, bool) {
	found := pick(e.choices, text)
	switch {
	case decisionIn(text) == handoff.DecisionDecline:
		return says(sayQuiet), true
	case len(found) == 1:
		return b.use(h, e, found[0]), true
	}
	return nil, false
}

// use does what the caller asked for, with the session or work that they meant.
func (b *brain) use(h Heard, e pendingIntent, s option) []Move {
	server := cmp.Or(s.server, e.server)
	switch e.wish {
	case wishStop:
		return call(h, tools.StopWork, tools.StopArguments{Server: server}, nil)
	case wishBegin:
		b.forgetPaused(s.id)
		return call(h, tools.Codex, tools.CodexArguments{Server: server, Prompt: s.title, Begin: s.id}, nil)
	case wishDrop:
		b.forgetPaused(s.id)
		return call(h, tools.StopWork, tools.StopArguments{Drop: s.id}, nil)
	case wishRead:
		return call(h, tools.ReadSession, tools.ReadArguments{Server: server, Thread: s.id}, nil)
	case wishOpen:
		e.wish, e.session = wishOpened, option{id: s.id, title: s.title, server: server}
		return call(h, tools.ReadSession, tools.ReadArguments{Server: server, Thread: s.id}, &e)
	}
	if server == b.opened.server {
		b.opened = option{}
	}
	e.work = cmp.Or(e.work, "Go on where you left off.")
	return call(h, e.tool(), tools.CodexArguments{Server: server, Thread: s.id, Prompt: asSentence(e.work)}, nil)
}

// wasOpened says the last words of a session that the caller opened. Their next work goes there.
func (b *brain) wasOpened(s option, o Output) []Move {
	said := spokenOutput(o)
	if out := gjson.Parse(o.Text); !out.IsObject() || out.Get("code").Exists() || out.Get("status").String() == "failed" {
		return says(said)
	}
	b.before, b.last, b.lastCall, b.opened = b.last, s.server, "", s
	return says(said + " " + sayOpened)
}

// pick returns the sessions whose title and machine have all the words.
func pick(list []option, words string) []option {
	var found []option
	for i, s := range list {
		if ordinal(words) == i+1 || hasWords(s.title+" "+s.label+" "+s.server, words) {
			found = append(found, s)
		}
	}
	return found
}

// ordinal reads "the second one"; 0 is none.
func ordinal(text string) int {
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		if n := slices.Index([]string{"first", "second", "third", "fourth"}, strings.Trim(w, ".,!?")); n >= 0 {
			return n + 1
		}
	}
	return 0
}

// hasWords reports whether text has every word that says something.
func hasWords(text, words string) bool {
	text = strings.ToLower(text)
	any := false
	for w := range strings.FieldsSeq(strings.ToLower(words)) {
		w = strings.Trim(w, ".,!?'\"")
		if w == "" || slices.Contains([]string{"the", "my", "one", "on", "in", "session", "please", "a", "i", "mean"}, w) {
			continue
		}
		if !strings.Contains(text, w) {
			return false
		}
		any = true
	}
	return any
}

// stopUnclear remembers that stop_work asks which work is meant.
func (b *brain) stopUnclear(o Output) {
	out := gjson.Parse(o.Text)
	if o.Tool != tools.StopWork || !readable(o.Text) || out.Get("status").String() != tools.StatusUnclear {
		return
	}
	e := pendingIntent{intent: intent{wish: wishStop}}
	for _, choice := range out.Get("choices").Array() {
		server, title, _ := strings.Cut(choice.String(), ", ")
		e.choices = append(e.choices, option{title: title, server: server})
	}
	b.asking = &e
}

// call calls a tool if the session has it, else says that it has not.
func call(h Heard, name string, arguments tools.Arguments, e *pendingIntent) []Move {
	if !slices.Contains(h.Tools, name) {
		return says(fmt.Sprintf(sayNoTool, name))
	}
	return []Move{Call{Tool: name, Arguments: handoff.Encode(arguments), pending: e}}
}

// transcribe never finds words: that is what a real model is for.
func (b *brain) transcribe() string { return "" }
