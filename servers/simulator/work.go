package simulator

import (
	"slices"
	"strings"
	"time"
)

// A Work is what an agent has to do in a turn. It knows the steps, how long they take, what follows from an answer, and
// what the person says meanwhile; it knows no protocol and no clock. A protocol's simulator takes one [Act] after the
// other, waits where it says so, and tells its client what happens. It is not safe for concurrent use.
type Work struct {
	plan  func(Prompt) []Step // Set once
	learn func(Fact)          // Set once
	steps []Step              // not begun
	acts  []Act               // of the step that was begun
	open  []*Item             // items that have begun and not ended
	asked Act                 // the open question; without a step: none
}

// NewWork returns work without steps. plan returns the steps for a prompt, and learn makes a fact true.
func NewWork(plan func(Prompt) []Step, learn func(Fact)) *Work {
	return &Work{plan: plan, learn: learn}
}

// An Act is the next thing that an agent does.
type Act struct {
	Does Verb
	For  time.Duration // of a pause
	Item *Item         // that begins, goes on or ends; or that a question is about
	Text string        // that is added to the item
	Step Step          // what is asked or told
}

// A Verb is a kind of act.
type Verb int

// The kinds of acts.
const (
	Waits  Verb = iota // for a time
	Begins             // the item
	Adds               // a text to the item
	Ends               // the item
	Asks               // an [Ask], [Input] or [Permit]; nothing follows before [Work.Answer]
	Tells              // a [Stray], [Later] or [Fail]
	Rests              // until it is released: a [Hang]
)

// An Item is an entry of a turn: what the agent says or does, or what the person said.
type Item struct {
	Kind    string // as the app-server calls it
	Text    string // of a message or a thought that has ended
	Command string
	Output  string // of a command that has ended
	Exit    *int   // of a command that has ended
	Changes []Change
	Status  string // of a command or an edit; "": it has not begun. Who begins it at a question sets it

	said strings.Builder // what was added
	exit int             // of a command
}

// Kinds of items.
const (
	ItemUser    = "userMessage"
	ItemMessage = "agentMessage"
	ItemThought = "reasoning"
	ItemCommand = "commandExecution"
	ItemEdit    = "fileChange"
)

// Statuses of commands and edits.
const (
	ItemRunning   = "inProgress"
	ItemCompleted = "completed"
	ItemFailed    = "failed"
	ItemDeclined  = "declined"
)

// acts reports whether the agent does something on its machine, rather than to say or to think.
func (it *Item) acts() bool { return it.Kind == ItemCommand || it.Kind == ItemEdit }

// Hear has the agent work on a prompt, and leave what it did before.
func (w *Work) Hear(p Prompt) {
	w.Leave()
	w.steps = w.plan(p)
}

// Leave drops all that is left. Items that are open never end.
func (w *Work) Leave() { w.steps, w.acts, w.open, w.asked = nil, nil, nil, Act{} }

// Open reports whether an item has begun and not ended.
func (w *Work) Open() bool { return len(w.open) > 0 }

// Busy reports whether a command or an edit runs, or a question is open: the agent listens only after that.
func (w *Work) Busy() bool { return w.asked.Step != nil || slices.ContainsFunc(w.open, (*Item).acts) }

// Next takes the next act. It returns false at the end, and while a question is open.
func (w *Work) Next() (Act, bool) {
	for len(w.acts) == 0 {
		step, ok := w.Step()
		if !ok {
			return Act{}, false
		}
		w.acts = actsOf(step)
	}
	act := w.acts[0]
	w.acts = w.acts[1:]
	w.apply(act)
	return act, true
}

// Step takes the next step as a whole, for a protocol in which somebody else does it. What the steps before it made
// true is learnt. It returns false at the end, and while a question is open.
func (w *Work) Step() (Step, bool) {
	for w.asked.Step == nil && len(w.steps) > 0 {
		step := w.steps[0]
		w.steps = w.steps[1:]
		switch s := step.(type) {
		case Effect:
			w.learn(s.Fact)
			continue
		case Ask, Input, Permit:
			w.asked.Step = step
		}
		return step, true
	}
	return nil, false
}

// Acts reports whether a command, an edit or a request for approval is among the steps that are left.
func (w *Work) Acts() bool {
	return slices.ContainsFunc(w.steps, func(s Step) bool {
		switch s.(type) {
		case Run, Both, Edit, Ask:
			return true
		}
		return false
	})
}

// Answer answers the open question: with a yes or a no, or with words to an [Input]. After a yes, what was asked for is
// done. After a no, whoever began the item of the question ends it.
func (w *Work) Answer(yes bool, words ...string) {
	asked, then := w.asked, []Step(nil)
	w.asked = Act{}
	choose := func(accepted, declined []Step) {
		if then = declined; yes {
			then = accepted
		}
	}
	switch s := asked.Step.(type) {
	case Ask:
		if choose(s.Accepted, s.Declined); yes && asked.Item != nil {
			w.goOn(asked.Item, s.Lines)
		}
	case Permit:
		choose(s.Granted, s.Refused)
	case Input:
		then = s.Answered(words)
	}
	w.steps = slices.Concat(then, w.steps)
}

// goOn has the item of a question begin, if it has not begun, and end.
func (w *Work) goOn(it *Item, lines []Line) {
	w.acts = it.outputs(lines)
	if it.Status == "" {
		w.acts = slices.Insert(w.acts, 0, Act{Does: Begins, Item: it})
	} else {
		w.open = append(w.open, it)
	}
}

// apply notes what an act changes.
func (w *Work) apply(a Act) {
	it := a.Item
	switch a.Does {
	case Begins:
		w.open = append(w.open, it)
		if it.acts() {
			it.Status = ItemRunning
		}
	case Adds:
		it.said.WriteString(a.Text)
	case Ends:
		w.open = slices.DeleteFunc(w.open, func(have *Item) bool { return have == it })
		it.end()
	case Asks:
		w.asked = a
	}
}

// end says of an item what is known at its end.
func (it *Item) end() {
	switch it.Kind {
	case ItemCommand:
		it.Output, it.Exit = it.said.String(), &it.exit
	case ItemEdit:
	default:
		it.Text = it.said.String()
		return
	}
	if it.Status = ItemCompleted; it.exit != 0 {
		it.Status = ItemFailed
	}
}

// actsOf returns the acts of a step.
func actsOf(step Step) []Act {
	switch s := step.(type) {
	case Think:
		it := &Item{Kind: ItemThought}
		return []Act{{Does: Begins, Item: it}, {Does: Adds, Item: it, Text: s.Text}, {For: s.For}, {Does: Ends, Item: it}}
	case Say:
		it := &Item{Kind: ItemMessage}
		all := []Act{{Does: Begins, Item: it}}
		for word := range strings.SplitAfterSeq(s.Text, " ") {
			if word != "" {
				all = append(all, Act{Does: Adds, Item: it, Text: word}, Act{For: s.Every})
			}
		}
		return append(all, Act{Does: Ends, Item: it})
	case Run:
		return s.acts()
	case Both:
		return s.acts()
	case Edit:
		it := &Item{Kind: ItemEdit, Changes: s.Changes}
		return []Act{{Does: Begins, Item: it}, {For: s.For}, {Does: Ends, Item: it}}
	case Ask:
		return []Act{{Does: Asks, Item: s.item(), Step: s}}
	case Input, Permit:
		return []Act{{Does: Asks, Step: s}}
	case Pause:
		return []Act{{For: s.For}}
	case Hang:
		return []Act{{Does: Rests}}
	}
	return []Act{{Does: Tells, Step: step}}
}

func (s Run) acts() []Act {
	it := &Item{Kind: ItemCommand, Command: s.Command, exit: s.Exit}
	return append([]Act{{Does: Begins, Item: it}}, it.outputs(s.Lines)...)
}

// outputs returns the acts by which a command prints lines and ends.
func (it *Item) outputs(lines []Line) []Act {
	var all []Act
	for _, line := range lines {
		all = append(all, Act{For: line.After},
			Act{Does: Adds, Item: it, Text: strings.TrimSuffix(line.Text, "\n") + "\n"})
	}
	return append(all, Act{Does: Ends, Item: it})
}

// acts returns the acts of commands that run side by side.
func (s Both) acts() (all []Act) {
	for i, run := range s {
		acts := run.acts()
		all = append(slices.Insert(all, i, acts[0]), acts[1:]...)
	}
	return all
}

// item returns the item that a question is about.
func (s Ask) item() *Item {
	if len(s.Changes) > 0 {
		return &Item{Kind: ItemEdit, Changes: s.Changes}
	}
	return &Item{Kind: ItemCommand, Command: s.Command, exit: s.Exit}
}
