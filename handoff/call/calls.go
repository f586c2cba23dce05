package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// Config configures calls. The first four fields are required.
type Config struct {
	Handoffs  handoff.Handoffs
	Attending Attending
	Questions Questions
	Tools     tools.Backend

	Levels Levels                     // stores speech levels beyond the process; nil: they are not stored
	Shown  func(g handoff.Grant) bool // reports whether a page shows a typing caller open questions; nil: no page does
	// Language is the language of speech and tools, unless the caller's grant names another; "": English.
	Language wording.Language
	Updates  handoff.SpeechLevel // the speech level of callers who have not chosen one; "": milestones
	// AskAgain is how long a question waits until it is asked once more, and then until a notice is sent; 0: 60 s.
	AskAgain time.Duration
	Life     string      // prefix of the ids of calls, unique to this life of the process, [a-z0-9]; "": random
	Log      *zap.Logger // nil: none
}

// Attending connects a call with the handoffs of its caller.
type Attending interface {
	// Attend lets l hear of the handoffs of the grant's caller until it leaves.
	Attend(g handoff.Grant, l handoff.Listener) (leave func())
	// Prefetch attaches the thread to which a request with this key will probably go.
	Prefetch(g handoff.Grant, key string, t handoff.Target)
	// NextID returns a new id.
	NextID() string
}

// Questions handles the questions of agents.
type Questions interface {
	// Answer gives the caller's answer to the agent.
	Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, a handoff.Decided) error
	// Unanswered sends a notice of a question outside of calls, because nobody answers it in the call.
	Unanswered(g handoff.Grant, id handoff.QuestionID)
}

// Levels stores how much callers want to hear of their work; "": they have not chosen.
type Levels interface {
	Level(ctx context.Context, c handoff.Caller) (handoff.SpeechLevel, error)
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// levelWithin bounds how long the beginning of a call waits for the caller's speech level.
const levelWithin = 2 * time.Second

// Calls serves voice calls. Its methods may be used from any goroutine.
type Calls struct {
	cfg    Config  // Set once
	counts *counts // Set once; safe by itself

	mu      sync.Mutex
	callers map[handoff.Caller]*callerState // Guarded by mu
}

// maxCallers bounds the callers whose speech level is remembered. When there are more, those in no call are forgotten.
const maxCallers = 1000

// A callerState is the state that all calls of one caller share.
type callerState struct {
	level handoff.SpeechLevel // Guarded by the mu of Calls: chosen in this life of the process; "": none was
	calls []*inbox            // Guarded by the mu of Calls: open calls
}

// New returns a Calls that serves no call yet.
func New(cfg Config) *Calls {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	cfg.Life = cmp.Or(cfg.Life, strings.ToLower(rand.Text()[:8]))
	cfg.Updates = cmp.Or(cfg.Updates, handoff.LevelMilestones)
	cfg.AskAgain = cmp.Or(cfg.AskAgain, handoff.AskAgainAfter)
	return &Calls{cfg: cfg, counts: newCounts(), callers: map[handoff.Caller]*callerState{}}
}

// settleWithin bounds how long the end of the process waits until open calls have passed on what they were told.
const settleWithin = 2 * time.Second

// Run waits until ctx ends, which is after the router has, and then until the open calls have passed on what it told
// them at its end: the outcomes are the answers to function calls.
func (c *Calls) Run(ctx context.Context) error {
	<-ctx.Done()
	var open []*inbox
	c.mu.Lock()
	for _, t := range c.callers {
		open = append(open, t.calls...)
	}
	c.mu.Unlock()
	var waiting sync.WaitGroup
	for _, box := range open {
		waiting.Add(1)
		if !box.post(func(*serving) { waiting.Done() }) { // that call has ended
			waiting.Done()
		}
	}
	settled := make(chan struct{})
	go func() { // a call that does not settle ends with the process
		waiting.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWithin):
	}
	return nil
}

// Serve is the loop of one call. It ends when the voice closes its events, or when ctx ends. It returns after the
// goroutines that it started have ended; the handoffs go on.
func (c *Calls) Serve(ctx context.Context, g *handoff.Grant, voice handoff.Voice) error {
	s := c.begin(ctx, g, voice)
	defer s.end()
	return s.loop(ctx, voice)
}

// begin sets a call up. It is not part of Serve, since the stack of Serve is kept as long as the call.
func (c *Calls) begin(ctx context.Context, g *handoff.Grant, voice handoff.Voice) *serving {
	box := newInbox(voice, &c.counts.reports)
	s := &serving{
		calls: c, cfg: &c.cfg, ID: c.cfg.Life + "-call-" + strconv.FormatUint(c.counts.calls.Add(1), 10),
		grant: *g, box: box,
		language: cmp.Or(wording.Language(g.Language), c.cfg.Language),
		filled:   map[handoff.QuestionID][][]string{},
		open:     map[string]*openHandoff{}, spans: spans{}, wakeTimer: newTimer(), judgeTimer: newTimer(), began: time.Now(),
	}
	s.schedule = speech.New(c.enter(ctx, g.Caller, box), c.cfg.AskAgain, s.language, c.counts.paced)
	s.lasting = context.WithoutCancel(ctx)
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.leave = c.cfg.Attending.Attend(*g, box)
	return s
}

// end hangs up, if the voice closed its events without [handoff.CallEnded], and waits for the goroutines of the call.
func (s *serving) end() {
	s.hangUp()
	s.judgeTimer.Stop()
	s.wakeTimer.Stop()
	for len(s.waiting) > 0 { // what was asked for is done, though nobody gets the answers
		s.carrying.Wait()
		s.stopping = 0
		s.proceed()
	}
	s.judgeLast() // an answer may have waited behind a stop
	s.cancel()
	s.carrying.Wait()
	s.background.Wait()
}

// enter adds a call of a caller, and returns the caller's speech level.
func (c *Calls) enter(ctx context.Context, caller handoff.Caller, box *inbox) handoff.SpeechLevel {
	level := c.Level(ctx, caller)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.callers[caller]
	if t == nil {
		c.makeRoomLocked()
		t = &callerState{}
		c.callers[caller] = t
	}
	t.calls = append(t.calls, box)
	return cmp.Or(t.level, level)
}

// Level returns the speech level of a caller.
func (c *Calls) Level(ctx context.Context, caller handoff.Caller) handoff.SpeechLevel {
	level := c.chosenLevel(caller)
	if level == "" && c.cfg.Levels != nil && !caller.Nameless() {
		ctx, cancel := context.WithTimeout(ctx, levelWithin)
		defer cancel()
		var err error
		if level, err = c.cfg.Levels.Level(ctx, caller); err != nil {
			c.cfg.Log.Warn("speech level not read", zap.String("principal", caller.Principal), zap.Error(err))
		}
	}
	return cmp.Or(level, c.cfg.Updates)
}

// chosenLevel returns the speech level that a caller has chosen in this life of the process, or "".
func (c *Calls) chosenLevel(caller handoff.Caller) handoff.SpeechLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.callers[caller]; t != nil {
		return t.level
	}
	return ""
}

// SetLevel sets the speech level of a caller, for their open calls and later ones. After an error the level holds only
// until the process ends.
func (c *Calls) SetLevel(ctx context.Context, caller handoff.Caller, level handoff.SpeechLevel) error {
	c.setLevel(caller, level)
	return c.storeLevel(ctx, caller)
}

// storeLevel stores the speech level of a caller. If the level changes meanwhile, it stores the new one, too, so that
// concurrent calls leave the newest in the store.
func (c *Calls) storeLevel(ctx context.Context, caller handoff.Caller) error {
	if c.cfg.Levels == nil || caller.Nameless() {
		return nil
	}
	for level := c.chosenLevel(caller); level != ""; {
		if err := c.cfg.Levels.SetLevel(ctx, caller, level); err != nil {
			c.cfg.Log.Warn("speech level not stored", zap.String("principal", caller.Principal), zap.Error(err))
			return err
		}
		now := c.chosenLevel(caller)
		if now == level {
			return nil
		}
		level = now
	}
	return nil
}

func (c *Calls) makeRoomLocked() {
	if len(c.callers) < maxCallers {
		return
	}
	for caller, t := range c.callers {
		if len(t.calls) == 0 {
			delete(c.callers, caller)
		}
	}
}

// exit removes a call. The state of its caller is kept only if they have chosen a speech level.
func (c *Calls) exit(caller handoff.Caller, box *inbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.callers[caller]
	if t == nil {
		return
	}
	t.calls = slices.DeleteFunc(t.calls, func(o *inbox) bool { return o == box })
	if len(t.calls) == 0 && (t.level == "" || caller.Nameless()) {
		delete(c.callers, caller)
	}
}

// setLevel sets the speech level of a caller, and tells their open calls.
func (c *Calls) setLevel(caller handoff.Caller, level handoff.SpeechLevel) {
	c.mu.Lock()
	t := c.callers[caller]
	if t == nil {
		t = &callerState{}
		if !caller.Nameless() {
			c.makeRoomLocked()
			c.callers[caller] = t
		}
	}
	t.level = level
	open := slices.Clone(t.calls)
	c.mu.Unlock()
	for _, box := range open {
		box.pace(speech.LevelSet{Level: level})
	}
}

// newTimer returns a timer that does not run until it is set.
func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
