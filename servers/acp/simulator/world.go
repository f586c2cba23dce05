package simulator

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Profile says what an agent can do and how it behaves where agents differ.
type Profile struct {
	List, Load, Resume, Fork, Close, Steering bool

	Modes      []string // the first is where sessions begin
	ModeOption bool     // modes are a setting, not modes
	Forgets    bool     // a session that is opened is in the first mode again
	Deaf       bool     // a mode that is set is not taken, without an error

	Names       bool          // messages have ids
	LateReplay  bool          // a history comes after the answer
	SlowList    time.Duration // how long it takes to list its sessions
	OneWriter   bool          // a session stays with the process that opened it until that ends
	Branches    bool          // two processes lose each other's turns
	Elicits     bool          // it asks for words
	Output      Output
	TitleOnly   bool // a permission is asked with a title alone, and no call before it
	RejectEnds  bool // a no ends the turn
	QuietFail   bool // a failed turn ends well, with words that are not the agent's
	NeedsAnswer bool // a cancelled turn ends once its open request is answered
	NoUsage     bool // an answer tells no usage
}

// Output is how what a command printed is told.
type Output int

// The ways.
const (
	OutputTerminal Output = iota // as it comes, with its exit code, beside the protocol
	OutputWhole                  // whole, with its exit code
	OutputText                   // without its last line end and exit code
)

// Later is a step after which the agent talks by itself: once the prompt was answered.
type Later struct{ Text string }

// Stray is a step: words without an id, which are not the agent's.
type Stray struct{ Text string }

// A Config describes a world.
type Config struct {
	Profile Profile
	Script  func(prompt string) []any // steps of package servers/simulator and of this one
}

// A World is what processes share.
type World struct {
	cfg Config // Set once

	mu        sync.Mutex
	sessions  map[string]*stored // Guarded by mu
	processes []*process         // Guarded by mu
	ids       int                // Guarded by mu
	starts    int                // Guarded by mu: prompts that were begun
	pictures  int                // Guarded by mu
	prompts   []string           // Guarded by mu: as they came
	modes     []string           // Guarded by mu: in which prompts began
	released  chan struct{}      // Guarded by mu: closed by Release
	fault     Fault              // Guarded by mu: of the next prompt
	now       time.Time          // Guarded by mu: of the newest change
}

// A Fault is what becomes of the next prompt.
type Fault int

// The faults.
const (
	FaultNone Fault = iota
	FaultLost       // it is lost with the connection
	FaultCut        // it runs, and the connection is lost before anything is heard of it
)

// stored is a session on disk.
type stored struct {
	id, cwd, title string
	updated        time.Time
	records        []record
	holder         *process
}

// A record is a prompt, a message or a tool call.
type record struct {
	user bool
	id   string
	text []string       // pieces
	call map[string]any // an update
}

// NewWorld returns a world without sessions.
func NewWorld(cfg Config) *World {
	return &World{cfg: cfg, sessions: map[string]*stored{}, released: make(chan struct{})}
}

// Release lets every agent that hangs go on, and every one that would hang from now on.
func (w *World) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.released:
	default:
		close(w.released)
	}
}

// Starts counts the prompts that were begun.
func (w *World) Starts() int { return look(w, func() int { return w.starts }) }

// Pictures counts the pictures that came.
func (w *World) Pictures() int { return look(w, func() int { return w.pictures }) }

// Prompts returns the words that came, whole.
func (w *World) Prompts() []string {
	return look(w, func() []string { return slices.Clone(w.prompts) })
}

// Modes returns the modes in which prompts began.
func (w *World) Modes() []string { return look(w, func() []string { return slices.Clone(w.modes) }) }

// Processes counts the processes that run.
func (w *World) Processes() int { return look(w, func() int { return len(w.processes) }) }

func look[T any](w *World, what func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return what()
}

// SetFault decides about the next prompt.
func (w *World) SetFault(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// Drop ends every process.
func (w *World) Drop() {
	for _, p := range look(w, func() []*process { return slices.Clone(w.processes) }) {
		p.kill()
	}
}

// Desk is somebody at the machine who works in a session with another program: a prompt and its answer are added.
func (w *World) Desk(session, prompt, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[session]
	s.records = append(s.records, record{user: true, id: w.nameLocked("user"), text: []string{prompt}},
		record{id: w.nameLocked("msg"), text: []string{answer}})
	s.updated = w.tickLocked()
}

// SetModes changes the mode of every open session, which its process tells.
func (w *World) SetModes(mode string) {
	for _, p := range look(w, func() []*process { return slices.Clone(w.processes) }) {
		p.mu.Lock()
		for id, l := range p.live {
			l.mode = mode
			p.work.Go(func() {
				p.update(id, object{"sessionUpdate": "current_mode_update", "currentModeId": mode})
			})
		}
		p.mu.Unlock()
	}
}

// tickLocked is a time that is later than all before.
func (w *World) tickLocked() time.Time {
	now := time.Now().Truncate(time.Millisecond)
	if !now.After(w.now) {
		now = w.now.Add(time.Millisecond)
	}
	w.now = now
	return now
}

func (w *World) nameLocked(kind string) string {
	w.ids++
	return fmt.Sprintf("%s_%04d", kind, w.ids)
}

func (w *World) name(kind string) string {
	return look(w, func() string { return w.nameLocked(kind) })
}

// make makes a session.
func (w *World) make(cwd string, records []record) *stored {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	s := &stored{id: fmt.Sprintf("5e550000-0000-4000-8000-%012d", w.ids), cwd: cwd, records: records}
	s.updated = w.tickLocked()
	w.sessions[s.id] = s
	return s
}
