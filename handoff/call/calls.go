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

// Config is what calls need. The first four are required.
type Config struct {
	Runs      handoff.Runs
	Attending Attending
	Questions Questions
	Tools     tools.Backend

	Levels Levels                     // nil: what callers want to hear ends with the process
	Shown  func(g handoff.Grant) bool // reports whether a page shows a typing caller what is open; nil: no page does
	// Language is that in which callers are told and asked, also by the tools, unless their grant names another; "":
	// English.
	Language wording.Language
	Updates  handoff.SpeechLevel // what callers hear of work until they say otherwise; "": milestones
	// how long a question waits before it is asked once more, and again before it is told elsewhere; 0: 60 s
	AskAgain time.Duration
	Life     string      // names this life of the process in the names of calls, [a-z0-9]; "": random
	Log      *zap.Logger // nil: none
}

// Attending is how a call comes to hear of runs.
type Attending interface {
	// Attend lets l hear of the runs of the grant's caller until it leaves.
	Attend(g handoff.Grant, l handoff.Listener) (leave func())
	// Prefetch attaches the thread to which a request with this key will probably go.
	Prefetch(g handoff.Grant, key string, t handoff.Target)
	// NextID returns an id that was never given.
	NextID() string
}

// Questions takes what is said of an agent's questions.
type Questions interface {
	// Answer gives the caller's answer to the agent.
	Answer(ctx context.Context, g handoff.Grant, id handoff.QuestionID, a handoff.Decided) error
	// Unanswered says that nobody answers a question in the call where it was asked.
	Unanswered(g handoff.Grant, id handoff.QuestionID)
}

// Levels keeps how much callers want to hear of work; "" is what they never said.
type Levels interface {
	Level(ctx context.Context, c handoff.Caller) (handoff.SpeechLevel, error)
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// levelWithin bounds how long a call waits at its beginning to know what its caller wants to hear.
const levelWithin = 2 * time.Second

// Calls serves voice calls. Its methods may be used from any goroutine.
type Calls struct {
	cfg    Config  // Set once
	counts *counts // Set once; safe by itself

	mu      sync.Mutex
	talkers map[handoff.Caller]*talker // Guarded by mu
}

// maxTalkers is how many callers are remembered with what they want to hear. When there are more, those who are in no
// call are forgotten.
const maxTalkers = 1000

// A talker is what the calls of one caller share.
type talker struct {
	level handoff.SpeechLevel // Guarded by the mu of Calls: what they want to hear; "": as set up
	calls []*inbox            // Guarded by the mu of Calls
}

// New returns a Calls that serves no call yet.
func New(cfg Config) *Calls {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	cfg.Life = cmp.Or(cfg.Life, strings.ToLower(rand.Text()[:8]))
	cfg.Updates = cmp.Or(cfg.Updates, handoff.LevelMilestones)
	cfg.AskAgain = cmp.Or(cfg.AskAgain, handoff.AskAgainAfter)
	return &Calls{cfg: cfg, counts: newCounts(), talkers: map[handoff.Caller]*talker{}}
}

// Serve is the loop of one call. It ends when the voice closes its events, or when ctx ends. It returns after the
// goroutines that it started have ended; the runs go on.
func (c *Calls) Serve(ctx context.Context, g *handoff.Grant, voice handoff.Voice) error {
	s := c.begin(ctx, g, voice)
	defer s.end()
	return s.loop(ctx, voice)
}

// begin is not part of Serve, whose stack is kept for as long as the call.
func (c *Calls) begin(ctx context.Context, g *handoff.Grant, voice handoff.Voice) *serving {
	box := newInbox(voice, &c.counts.reports)
	s := &serving{
		calls: c, cfg: &c.cfg, ID: c.cfg.Life + "-call-" + strconv.FormatUint(c.counts.calls.Add(1), 10),
		grant: *g, box: box,
		language: cmp.Or(wording.Language(g.Language), c.cfg.Language),
		runs:     map[string]*owed{}, spans: spans{}, wake: newTimer(), rule: newTimer(), began: time.Now(),
	}
	s.schedule = speech.New(c.enter(ctx, g.Caller, box), c.cfg.AskAgain, s.language)
	s.lasting = context.WithoutCancel(ctx)
	s.open, s.shut = context.WithCancel(ctx)
	s.leave = c.cfg.Attending.Attend(*g, box)
	return s
}

// end returns after the goroutines of the call have ended. The voice may have closed its events without saying goodbye.
func (s *serving) end() {
	s.hangUp()
	s.rule.Stop()
	s.wake.Stop()
	s.shut()
	s.besides.Wait()
}

// enter adds a call of a caller, and returns what they want to hear.
func (c *Calls) enter(ctx context.Context, caller handoff.Caller, box *inbox) handoff.SpeechLevel {
	level := c.Level(ctx, caller)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.talkers[caller]
	if t == nil {
		c.makeRoomLocked()
		t = &talker{}
		c.talkers[caller] = t
	}
	t.calls = append(t.calls, box)
	return cmp.Or(t.level, level)
}

// Level returns what a caller wants to hear of work.
func (c *Calls) Level(ctx context.Context, caller handoff.Caller) handoff.SpeechLevel {
	level := c.wanted(caller)
	if level == "" && c.cfg.Levels != nil && !caller.Nameless() {
		ctx, cancel := context.WithTimeout(ctx, levelWithin)
		defer cancel()
		var err error
		if level, err = c.cfg.Levels.Level(ctx, caller); err != nil {
			c.cfg.Log.Warn("not known how much a caller wants to hear", zap.String("principal", caller.Principal),
				zap.Error(err))
		}
	}
	return cmp.Or(level, c.cfg.Updates)
}

// wanted returns what a caller said in this life of the process, or "".
func (c *Calls) wanted(caller handoff.Caller) handoff.SpeechLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.talkers[caller]; t != nil {
		return t.level
	}
	return ""
}

// SetLevel sets what a caller wants to hear of work, in their present calls and in later ones. With an error it counts
// until the process ends.
func (c *Calls) SetLevel(ctx context.Context, caller handoff.Caller, level handoff.SpeechLevel) error {
	c.mu.Lock()
	if c.talkers[caller] == nil && !caller.Nameless() {
		c.makeRoomLocked()
		c.talkers[caller] = &talker{}
	}
	c.mu.Unlock()
	for _, box := range c.setLevel(caller, level, nil) {
		box.tell(speech.LevelSet{Level: level})
	}
	return c.keepLevel(ctx, caller)
}

// keepLevel stores what a caller wants to hear. Of several at once, the last wish is the one that stays.
func (c *Calls) keepLevel(ctx context.Context, caller handoff.Caller) error {
	if c.cfg.Levels == nil || caller.Nameless() {
		return nil
	}
	for level := c.wanted(caller); level != ""; {
		if err := c.cfg.Levels.SetLevel(ctx, caller, level); err != nil {
			c.cfg.Log.Warn("not kept how much a caller wants to hear", zap.String("principal", caller.Principal), zap.Error(err))
			return err
		}
		now := c.wanted(caller)
		if now == level {
			return nil
		}
		level = now
	}
	return nil
}

func (c *Calls) makeRoomLocked() {
	if len(c.talkers) < maxTalkers {
		return
	}
	for caller, t := range c.talkers {
		if len(t.calls) == 0 {
			delete(c.talkers, caller)
		}
	}
}

// exit takes a call away. Of who has said nothing else nothing is kept.
func (c *Calls) exit(caller handoff.Caller, box *inbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.talkers[caller]
	if t == nil {
		return
	}
	t.calls = slices.DeleteFunc(t.calls, func(o *inbox) bool { return o == box })
	if len(t.calls) == 0 && (t.level == "" || caller.Nameless()) {
		delete(c.talkers, caller)
	}
}

// setLevel notes what a caller wants to hear, and returns their other calls: it is the caller's wish, whichever
// call they made it in.
func (c *Calls) setLevel(caller handoff.Caller, level handoff.SpeechLevel, box *inbox) []*inbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.talkers[caller]
	if t == nil {
		return nil
	}
	t.level = level
	return slices.DeleteFunc(slices.Clone(t.calls), func(o *inbox) bool { return o == box })
}

// newTimer returns a timer that does not run until it is set.
func newTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
