package simulator

import (
	"fmt"
	"slices"
	"sync"
	"time"

	machine "switchboard/servers/simulator"
)

// A Profile says what an agent can do, and how it behaves where agents differ.
type Profile struct {
	List, Load, Resume, Fork, Close, Steering bool

	Modes      []string // sessions begin in the first one
	ModeOption bool     // the mode is a config option
	Forgets    bool     // opening a session sets the first mode
	Deaf       bool     // setting a mode has no effect, and returns no error

	Names       bool          // messages have ids
	LateReplay  bool          // a history comes after the answer
	SlowList    time.Duration // how long it takes to list its sessions
	OneWriter   bool          // a session stays with the process that opened it until the process ends
	Branches    bool          // two processes lose each other's turns
	Elicits     bool          // it uses elicitation
	Output      Output
	TitleOnly   bool // a request for permission has a title only, and comes without a call before it
	RejectEnds  bool // a no ends the turn
	QuietFail   bool // a failed turn has the stop reason end_turn, and the error comes as a message without an id
	NeedsAnswer bool // a cancelled turn ends only when its open request is answered
	NoUsage     bool // the answer to a prompt has no usage
}

// Output is the way in which the output of a command is sent.
type Output int

// The ways.
const (
	OutputTerminal Output = iota // streamed, with the exit code, by an extension of the protocol
	OutputWhole                  // at the end, with the exit code
	OutputText                   // at the end, without the last newline and without the exit code
)

// A Config describes a world.
type Config struct {
	Profile Profile
	Script  func(machine.Prompt) []machine.Step
}

// A World is the state that processes share.
type World struct {
	cfg Config // Set once

	mu        sync.Mutex
	sessions  map[string]*stored // Guarded by mu
	processes []*process         // Guarded by mu
	ids       int                // Guarded by mu
	starts    int                // Guarded by mu: prompts that were begun
	pictures  int                // Guarded by mu
	prompts   []string           // Guarded by mu: the texts
	modes     []string           // Guarded by mu: the mode at the beginning of each prompt
	released  chan struct{}      // Guarded by mu: closed by Release
	fault     Fault              // Guarded by mu: of the next prompt
	now       time.Time          // Guarded by mu: of the newest change
}

// A Fault is what goes wrong with the next prompt.
type Fault int

// The faults.
const (
	FaultNone Fault = iota
	FaultLost       // the connection is lost, and the prompt with it
	FaultCut        // the connection is lost, but the prompt runs to its end
)

// stored is a session on disk.
type stored struct {
	id, cwd, title string
	updated        time.Time
	records        []record
	holder         *process
}

// A record is what the person or the agent said, or a tool call, and its id.
type record struct {
	id string
	*machine.Item
}

// NewWorld returns a world without sessions.
func NewWorld(cfg Config) *World {
	return &World{cfg: cfg, sessions: map[string]*stored{}, released: make(chan struct{})}
}

// Release ends all steps that hang, now and from now on.
func (w *World) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.released:
	default:
		close(w.released)
	}
}

// Starts returns the number of prompts that were begun.
func (w *World) Starts() int { return look(w, func() int { return w.starts }) }

// Pictures returns the number of pictures in prompts.
func (w *World) Pictures() int { return look(w, func() int { return w.pictures }) }

// Prompts returns the texts of all prompts and steers.
func (w *World) Prompts() []string {
	return look(w, func() []string { return slices.Clone(w.prompts) })
}

// Modes returns the mode at the beginning of each prompt.
func (w *World) Modes() []string { return look(w, func() []string { return slices.Clone(w.modes) }) }

// Processes returns the number of running processes.
func (w *World) Processes() int { return look(w, func() int { return len(w.processes) }) }

// do calls what with mu held.
func (w *World) do(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func look[T any](w *World, what func() T) (v T) {
	w.do(func() { v = what() })
	return v
}

// SetFault sets the fault of the next prompt.
func (w *World) SetFault(f Fault) {
	w.do(func() { w.fault = f })
}

// Drop ends all processes.
func (w *World) Drop() {
	for _, p := range look(w, func() []*process { return slices.Clone(w.processes) }) {
		p.kill()
	}
}

// Desk adds a prompt and its answer to a session, as a person does who works in it with another program.
func (w *World) Desk(session, prompt, answer string) {
	asked := record{w.name("user"), &machine.Item{Kind: machine.ItemUser, Text: prompt}}
	answered := record{w.name("msg"), &machine.Item{Kind: machine.ItemMessage, Text: answer}}
	w.do(func() {
		s := w.sessions[session]
		s.records = append(s.records, asked, answered)
		s.updated = w.tick()
	})
}

// SetModes changes the mode of every open session, and has the processes report it.
func (w *World) SetModes(mode string) {
	w.do(func() {
		for _, p := range w.processes {
			for id, l := range p.live {
				l.mode = mode
				p.work.Go(func() {
					p.update(id, object{"sessionUpdate": "current_mode_update", "currentModeId": mode})
				})
			}
		}
	})
}

// tick returns a time that is later than all it has returned before. The caller holds mu.
func (w *World) tick() time.Time {
	now := time.Now().Truncate(time.Millisecond)
	if !now.After(w.now) {
		now = w.now.Add(time.Millisecond)
	}
	w.now = now
	return now
}

// name returns a new id.
func (w *World) name(kind string) string {
	return fmt.Sprintf("%s_%04d", kind, look(w, func() int { w.ids++; return w.ids }))
}

// make makes a session. The caller holds mu.
func (w *World) make(cwd string, records []record) *stored {
	w.ids++
	s := &stored{id: fmt.Sprintf("5e550000-0000-4000-8000-%012d", w.ids), cwd: cwd, records: records}
	s.updated = w.tick()
	w.sessions[s.id] = s
	return s
}
