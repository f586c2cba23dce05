package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	asking   *errand           // what a question to the caller is about
	open     []question        // what agents have asked the caller, newest last
	paused   []pausedWork      // what was not begun and waits for a word, newest last
	busy     map[string]bool   // machines whose work has not been told to have ended
	lastWork string            // the words of the last work
	failed   string            // the machine where something failed last
	said     string            // what it said last
	news     string            // the last result that it said
	opened   listedSession     // the session that the next work on its machine goes to; none has no id
	greeted  bool              // it has said what it is
	noticed  bool              // it has said that it does not understand sound
}

// An errand is a wish on its way, while something is missing.
type errand struct {
	intent
	choices  []listedSession // asked: which of these
	question question        // answered: this one
	session  listedSession   // opened: this one
	paused   []pausedWork    // asked: which of these
	drop     bool            // what is paused is to be dropped, not begun
}

// listedSession is an entry of list_sessions as the brain reads it.
type listedSession struct{ id, title, server string }

func newBrain() *brain { return &brain{machines: map[string]string{}, busy: map[string]bool{}} }

// What the brain says of itself. The first is said once a connection, and in full; a greeting without a word of the
// caller is one sentence.
const (
	saySimulated = "This voice is simulated: it understands typed sentences and those on the page. " +
		"Set OPENAI_API_KEY to talk to a real one. Ask me which machines you have, or what you were working on."
	sayGreeting = "Hello, I am a simulated voice: press the sentences on the page from top to bottom, or type your own."
	sayHello    = "Hello again. Which machine shall I give work to?"
	sayAbility  = "I can list your machines and sessions, read or continue a session, give work to a machine, queue or stop it, tell what is running, " +
		"and pass on your answer to an agent that asks: try one of the sentences on the page. " +
		"I am simulated; with OPENAI_API_KEY set, a real voice model takes over."
	sayNoWords   = "I hear that you are speaking, but this simulated voice understands only typed sentences. Please type it, or set OPENAI_API_KEY for a real voice."
	sayNoWords2  = "I only understand typed sentences."
	sayQuiet     = "All right."
	sayApproval  = "Questions of an agent are answered on the page."
	sayNobody    = "No agent waits for an answer in this call."
	sayOpened    = "What you ask for next goes there."
	sayWhatToDo  = "What should be done there?"
	sayNoTool    = "I cannot do that in this call: it has no tool called %s."
	sayNoSession = "I found no session about %s%s."
)

// reply speaks what is new and does what the caller asked for.
func (b *brain) reply(h Heard) []Move {
	if h.nothing() && h.Nth == 1 && !h.OutOfBand && !b.greeted {
		return b.chosen(h, says(sayGreeting))
	}
	var done []Move
	var plain Heard // what needs no more than being said
	plain.Messages = h.Messages
	for _, o := range h.Outputs {
		switch {
		case o.errand != nil && o.Tool == tools.ListSessions:
			done = append(done, b.found(h, *o.errand, o)...)
		case o.errand != nil && o.Tool == tools.ReadSession:
			done = append(done, b.wasOpened(o.errand.session, o)...)
		case o.errand != nil && o.Tool == tools.AnswerAgent:
			done = append(done, b.answerGiven(o.errand.question, o)...)
		case b.overtaken(h, o): // the question is what counts
		default:
			b.unclear(o)
			plain.Outputs = append(plain.Outputs, o)
		}
	}
	for _, text := range h.Texts { // they cannot answer what is not asked yet
		done = append(done, b.sentence(h, text)...)
	}
	for _, m := range h.Messages {
		b.told(m)
	}
	if h.Sound && len(h.Texts) == 0 {
		done = append(done, says(b.noWords())...)
	}
	moves := b.chosen(h, joined(done, says(spokenNews(plain))))
	b.keep(moves, h)
	return moves
}

func (b *brain) noWords() string {
	if b.noticed {
		return sayNoWords2
	}
	b.noticed, b.greeted = true, true
	return sayNoWords
}

// joined puts what answers the caller before the news, as one message. Speech comes before calls, but for
// news alone: who interrupts them must not lose what they asked for.
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
	return append(slices.DeleteFunc(moves, func(m Move) bool { _, call := m.(Call); return call }), Call{Tool: name, Arguments: "{}"})
}

// sentence does what one sentence asks for.
func (b *brain) sentence(h Heard, text string) []Move {
	if asking := b.asking; asking != nil {
		b.asking = nil
		if moves, ok := b.answered(h, *asking, text); ok {
			return moves
		}
	}
	all := understandAll(text, b.machines, b.both())
	in := all[0]
	for _, take := range []func() ([]Move, bool){
		func() ([]Move, bool) { return b.resumed(h, text) },
		func() ([]Move, bool) { return b.replied(h, text, in) },
		func() ([]Move, bool) { return b.pausedReply(h, text) },
		func() ([]Move, bool) { return b.followed(h, text) },
	} {
		if moves, ok := take(); ok {
			return moves
		}
	}
	if rest := startsOver(text); rest != "" && !in.small() && understand(rest, b.machines).wish != wishUnknown {
		return b.sentence(h, rest)
	}
	switch in.wish {
	case wishGreeting:
		if b.greeted {
			return says(sayHello)
		}
		b.greeted = true
		return says(saySimulated)
	case wishQuiet:
		return says(sayQuiet)
	case wishHearing:
		return says(sayNoWords2)
	case wishApproval:
		return says(noQuestion(h))
	case wishUnknown, wishAbility:
		if in.wish == wishUnknown && decisionIn(text) != "" {
			return says(noQuestion(h))
		}
		return says(sayAbility)
	}
	var moves []Move
	for _, in := range all {
		moves = append(moves, b.pursue(h, errand{intent: in})...)
	}
	return moves
}

// pursue takes the next step of an errand: a call, or a question to the caller.
func (b *brain) pursue(h Heard, e errand) []Move {
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

// work gives work to a machine, or asks for what is missing.
func (b *brain) work(h Heard, e errand) []Move {
	if !slices.Contains(h.Tools, e.tool()) {
		return says(fmt.Sprintf(sayNoTool, e.tool()))
	}
	if e.server == "" && strings.HasPrefix(strings.ToLower(e.work), "fix ") {
		e.server = b.failed
	}
	if e.server == "" {
		e.server = b.lastMachine()
	}
	if e.server == "" {
		b.asking = &e
		return says(b.whichMachine())
	}
	if e.work == "" {
		b.asking = &e
		return says(sayWhatToDo)
	}
	args := tools.CodexArguments{Server: e.server, Prompt: asSentence(e.work)}
	if e.server == b.opened.server && !e.aside {
		args.Thread, b.opened = b.opened.id, listedSession{} // from now on it is the machine's session
	}
	if e.wish == wishNew {
		args.Thread = handoff.NewThread
	}
	return call(h, e.tool(), args, nil)
}

// asSentence begins work with a capital letter: it is shown as what the caller wants, and names new
// sessions.
func asSentence(work string) string {
	if !startsWork(work) {
		return work
	}
	return strings.ToUpper(work[:1]) + work[1:] // verbs are ASCII
}

// lastMachine is where work without a machine goes.
func (b *brain) lastMachine() string {
	names := b.names()
	if b.last == "" && len(names) == 1 {
		return names[0]
	}
	return b.last
}

func (b *brain) whichMachine() string {
	if names := b.names(); len(names) > 0 {
		return "On which machine? I know " + handoff.ListWords(names) + "."
	}
	return "On which machine?"
}

func (b *brain) names() []string { return everyName(b.machines) }

func everyName(known map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(known)))
}

// both are the machines that "both" means: the only two, else the two that were used last; nil: not clear.
func (b *brain) both() []string {
	if names := b.names(); len(names) == 2 {
		return names
	}
	if b.before == "" || b.before == b.last {
		return nil
	}
	return []string{b.before, b.last}
}

// answered takes a sentence as the answer to a question of ours, if it is one.
func (b *brain) answered(h Heard, e errand, text string) ([]Move, bool) {
	switch e.wish {
	case wishPaused:
		return b.pausedChosen(h, e, text)
	case wishStop:
		return b.stopChosen(h, e, text)
	}
	if len(e.choices) > 0 {
		found := pick(e.choices, text)
		if len(found) != 1 {
			return nil, false
		}
		return b.use(h, e, found[0]), true
	}
	in := understand(text, b.machines)
	if e.server == "" {
		name, ok := machineAlone(text, b.machines)
		if !ok || in.wish != wishUnknown && !isKnown(name, b.machines) {
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

// machineAlone reads an answer that is nothing but a machine's name.
func machineAlone(text string, known map[string]string) (string, bool) {
	s := plain("on "+strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "on "), known)
	words := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(s, "on "), "the "), "my "))
	if len(words) != 1 || !isMachine(words[0], known) {
		return "", false
	}
	return words[0], true
}

// found goes on with an errand when its sessions are known.
func (b *brain) found(h Heard, e errand, o Output) []Move {
	list, ok := readSessions(o.Text)
	if !ok {
		return says(spokenOutput(o))
	}
	list = slices.DeleteFunc(list, func(s listedSession) bool {
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
		return says(noSession(e))
	case 1:
		return b.use(h, e, list[0])
	}
	e.choices = list
	b.asking = &e
	var titles []string
	for _, s := range list[:min(len(list), 4)] {
		titles = append(titles, s.title+" on "+s.server)
	}
	return says(fmt.Sprintf("There are %d: %s. Which one do you mean?", len(list), handoff.ListWords(titles)))
}

func noSession(e errand) string {
	where, words := "", e.words
	if e.server != "" {
		where = " on " + e.server
	}
	if words == "" {
		words = "that"
	}
	return fmt.Sprintf(sayNoSession, words, where)
}

// use does the errand in a session.
func (b *brain) use(h Heard, e errand, s listedSession) []Move {
	server := s.server
	if e.server != "" && server == "" {
		server = e.server
	}
	if e.wish == wishRead {
		return call(h, tools.ReadSession, tools.ReadArguments{Server: server, Thread: s.id}, nil)
	}
	if e.wish == wishOpen {
		e.wish, e.session = wishOpened, listedSession{id: s.id, title: s.title, server: server}
		return call(h, tools.ReadSession, tools.ReadArguments{Server: server, Thread: s.id}, &e)
	}
	if server == b.opened.server {
		b.opened = listedSession{}
	}
	if e.work == "" {
		e.work = "Go on where you left off."
	}
	return call(h, e.tool(), tools.CodexArguments{Server: server, Thread: s.id, Prompt: asSentence(e.work)}, nil)
}

// wasOpened tells what stands in a session that the caller opened. What they ask for next goes there.
func (b *brain) wasOpened(s listedSession, o Output) []Move {
	said := spokenOutput(o)
	if out := gjson.Parse(o.Text); !out.IsObject() || out.Get("code").Exists() || out.Get("status").String() == "failed" {
		return says(said)
	}
	b.before, b.last, b.lastCall, b.opened = b.last, s.server, "", s
	return says(said + " " + sayOpened)
}

// pick returns the sessions whose title and machine have all the words.
func pick(list []listedSession, words string) []listedSession {
	var found []listedSession
	for i, s := range list {
		if ordinal(words) == i+1 || hasWords(s.title+" "+s.server, words) {
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

// call calls a tool if the session has it, else says that it has not.
func call(h Heard, name string, arguments tools.Arguments, e *errand) []Move {
	if !slices.Contains(h.Tools, name) {
		return says(fmt.Sprintf(sayNoTool, name))
	}
	raw, err := json.Marshal(arguments)
	if err != nil { // plain structs of strings
		return nil
	}
	return []Move{Call{Tool: name, Arguments: string(raw), errand: e}}
}

// transcribe never finds words: that is what a real model is for.
func (b *brain) transcribe() string { return "" }
