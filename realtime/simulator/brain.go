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

// A brain decides what a response says and does, from the new items and from what it has learned from earlier ones. It
// uses no time, no socket and no randomness. Owned by the session of its connection.
type brain struct {
	machines        map[string]string // names and aliases, lower case, to names
	lastMachine     string            // the machine that was last given work
	lastCall        string            // the call_id of that work
	previousMachine string            // the machine before that, in case the last does not exist
	pending         *pendingIntent    // what the brain has asked the caller about; nil: nothing
	questions       []question        // open questions of agents, newest last
	paused          []option          // paused work, newest last
	lastSaid        string            // the last words that it said
	openedSession   option            // the session for the next work on its machine; no id: none
	introduced      *atomic.Bool      // Set once, shared by all calls: a caller was told that the voice is simulated
	saidNoWords     bool              // it has said that it understands no sound
}

// A pendingIntent is what the caller asked for, while an answer is missing: the caller's, or a tool's.
type pendingIntent struct {
	intent
	choices  []option // the caller was asked which of these
	question question // the agent's question that is being answered
	session  option   // the session that is being opened
}

// An option is one of several that a sentence may mean: a session, work that runs, or work that was paused.
type option struct {
	id     string // of the session or the paused work; "": running work
	title  string // of the session, or the words of the work
	label  string // of a session: distinguishes it from others with its title
	server string
}

func newBrain(met *atomic.Bool) *brain { return &brain{machines: map[string]string{}, introduced: met} }

// Sentences of the brain. The first caller is told that it is simulated: in full, or in one sentence if they have said
// nothing yet.
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

// reply implements [mind]: it says what is new and does what the caller asked for.
func (b *brain) reply(h Heard) []Move {
	if h.nothing() && h.Nth == 1 && !h.OutOfBand {
		return b.obeyChoice(h, b.greets(sayGreeting))
	}
	b.recall(h.past)
	var done []Move
	var plain Heard // outputs and messages that only have to be said
	plain.Messages = h.Messages
	if h.cut != nil && slices.ContainsFunc(h.Messages, asksToGoOn) {
		done = says(unsaid(h.cut()))
	}
	for _, o := range h.Outputs {
		switch {
		case o.pending != nil && o.Tool == tools.ListSessions:
			done = append(done, b.useFound(h, *o.pending, o)...)
		case o.pending != nil && o.Tool == tools.ReadSession:
			done = append(done, b.wasOpened(o.pending.session, o)...)
		case o.pending != nil && o.Tool == tools.AnswerAgent:
			done = append(done, b.answerGiven(o.pending.question, o)...)
		case b.overtaken(h, o): // the question is said instead
		default:
			b.stopUnclear(o)
			plain.Outputs = append(plain.Outputs, o)
		}
	}
	for _, text := range h.Texts { // before the messages: a text cannot answer a question that comes with it
		done = append(done, b.sentence(h, text)...)
	}
	for _, m := range h.Messages {
		b.noteMessage(m)
	}
	if h.Sound && len(h.Texts) == 0 {
		said := sayNoWords
		if b.saidNoWords {
			said = sayNoWords2
		}
		b.saidNoWords = true
		b.introduced.Store(true)
		done = append(done, says(said)...)
	}
	moves := b.obeyChoice(h, joinMoves(done, says(spokenNews(plain))))
	if len(moves) == 0 && slices.ContainsFunc(h.Messages, asksToRepeat) {
		words := b.lastSaid
		if words == "" && h.cut != nil { // it was said in another session
			_, of := h.cut()
			words = spokenNews(of)
		}
		moves = says(words)
	}
	for _, m := range moves {
		if say, ok := m.(Say); ok {
			b.lastSaid = say.Text
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

// obeyChoice adds a call if the tool choice forces one. The brain has no arguments for a function that nobody asked
// for, so it passes none.
func (b *brain) obeyChoice(h Heard, moves []Move) []Move {
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

// greets says first to the first caller of this process, and a short greeting to all others.
func (b *brain) greets(first string) []Move {
	if b.introduced.Swap(true) {
		return says(sayHello)
	}
	return says(first)
}

// sentence handles one sentence of the caller.
func (b *brain) sentence(h Heard, text string) []Move {
	if asking := b.pending; asking != nil {
		b.pending = nil
		if moves, ok := b.answerPending(h, *asking, text); ok {
			return moves
		}
	}
	in := understand(text, b.machines)
	if moves, ok := b.resumePaused(h, text); ok {
		return moves
	}
	if moves, ok := b.answerAgent(h, text, in); ok {
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
		if b.lastSaid == "" {
			return says(saySaidNothing)
		}
		return says(b.lastSaid)
	case wishAbility:
		return says(sayAbility)
	case wishUnknown:
		switch {
		case decisionIn(text) == "" && len(b.questions) > 0:
			return says(sayUnknown + " " + fmt.Sprintf(sayAnswer, b.questions[len(b.questions)-1].server))
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
		if e.server = b.lastMachine; e.server == "" && len(names) == 1 {
			e.server = names[0]
		}
	}
	if e.server == "" {
		b.pending = &e
		if len(names) == 0 {
			return says("On which machine?")
		}
		return says("On which machine? I know " + handoff.ListWords(names) + ".")
	}
	switch {
	case e.wish == wishMove && b.lastMachine == "":
		return says(sayNothingYet)
	case e.wish == wishMove:
		e.work = cmp.Or(e.work, "Continue this here.")
	case e.work == "":
		b.pending = &e
		return says(sayWhatToDo)
	}
	args := tools.CodexArguments{Server: e.server, Prompt: asSentence(e.work)}
	if e.wish == wishMove && e.server != b.lastMachine {
		args.FromServer = b.lastMachine
	}
	if e.server == b.openedSession.server && !e.aside {
		args.Thread, b.openedSession = b.openedSession.id, option{} // from now on it is the machine's session
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

// answerPending handles a sentence as the answer to a question of the brain; false: it is none.
func (b *brain) answerPending(h Heard, e pendingIntent, text string) ([]Move, bool) {
	if len(e.choices) > 0 {
		return b.answerChoice(h, e, text)
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

// useFound continues an intent with the output of list_sessions.
func (b *brain) useFound(h Heard, e pendingIntent, o Output) []Move {
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

// ask asks the caller which of several choices is meant.
func (b *brain) ask(e pendingIntent, choices []option) []Move {
	e.choices = choices
	b.pending = &e
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

// answerChoice handles the answer to ask; false: the sentence is none.
func (b *brain) answerChoice(h Heard, e pendingIntent, text string) ([]Move, bool) {
	found := pick(e.choices, text)
	switch {
	case decisionIn(text) == handoff.DecisionDecline:
		return says(sayQuiet), true
	case len(found) == 1:
		return b.use(h, e, found[0]), true
	}
	return nil, false
}

// use does what the caller asked for, with the chosen session or work.
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
	if server == b.openedSession.server {
		b.openedSession = option{}
	}
	e.work = cmp.Or(e.work, "Go on where you left off.")
	return call(h, e.tool(), tools.CodexArguments{Server: server, Thread: s.id, Prompt: asSentence(e.work)}, nil)
}

// wasOpened says the last words of the session that was opened. The caller's next work goes there.
func (b *brain) wasOpened(s option, o Output) []Move {
	said := spokenOutput(o)
	out := gjson.Parse(o.Text)
	if !out.IsObject() || out.Get("code").Exists() || out.Get("status").String() == "failed" {
		return says(said)
	}
	b.previousMachine, b.lastMachine, b.lastCall, b.openedSession = b.lastMachine, s.server, "", s
	return says(said + " " + sayOpened)
}

// pick returns the options whose title, label and machine contain all the words, or that the words number.
func pick(list []option, words string) []option {
	var found []option
	for i, s := range list {
		if ordinal(words) == i+1 || hasWords(s.title+" "+s.label+" "+s.server, words) {
			found = append(found, s)
		}
	}
	return found
}

// ordinal returns the number in a text such as "the second one"; 0: there is none.
func ordinal(text string) int {
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		if n := slices.Index([]string{"first", "second", "third", "fourth"}, strings.Trim(w, ".,!?")); n >= 0 {
			return n + 1
		}
	}
	return 0
}

// hasWords reports whether text contains every word, apart from filler words.
func hasWords(text, words string) bool {
	text = strings.ToLower(text)
	any := false
	fillers := []string{"the", "my", "one", "on", "in", "session", "please", "a", "i", "mean"}
	for w := range strings.FieldsSeq(strings.ToLower(words)) {
		w = strings.Trim(w, ".,!?'\"")
		if w == "" || slices.Contains(fillers, w) {
			continue
		}
		if !strings.Contains(text, w) {
			return false
		}
		any = true
	}
	return any
}

// stopUnclear remembers the choices if stop_work has answered that it is unclear which work is meant.
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
	b.pending = &e
}

// call calls a tool, or says that the session does not have it.
func call(h Heard, name string, arguments tools.Arguments, e *pendingIntent) []Move {
	if !slices.Contains(h.Tools, name) {
		return says(fmt.Sprintf(sayNoTool, name))
	}
	return []Move{Call{Tool: name, Arguments: handoff.Encode(arguments), pending: e}}
}

// transcribe implements [mind]: the brain understands no sound.
func (b *brain) transcribe() string { return "" }
