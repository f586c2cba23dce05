package floor

import (
	"slices"
	"strconv"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// A Floor decides who may make the voice model speak in the default conversation, so that never two asks
// (response.create) are on the wire and nothing wanted is left unsaid. Asks of the client and ours share
// it. It is pure: what happens comes in as events, time too; what is to be done comes out as effects.
//
// Responses are told apart by the tag that every ask carries in its metadata, never by their order: a
// response without a tag was started by voice detection and satisfies nobody's ask.
type Floor struct {
	wire    // what the model was asked for, and which response answers it
	effects // of the step that runs

	held     []*ask              // the client's asks that wait, in order
	pending  []*pendingSpeech    // ours, in order
	calls    map[string]*carrier // responses with requests of ours that have no answer, by call id
	theirs   map[string]*carrier // responses with requests of ours, by the client's calls without an output
	carriers carriers            // forgotten once done and without open calls

	ready    bool   // the client has set its session up, or had its time: a voice cannot change once heard
	manual   bool   // no turn detection: we never ask, our speech rides on the client's asks
	autoVAD  bool   // turn detection starts responses itself
	speaking bool   // the caller
	turns    int    // how often the caller began to speak
	due      bool   // the caller has stopped and the response of voice detection is due
	playing  bool   // the model's voice is still being heard
	away     bool   // nobody is there to hear anything
	absent   bool   // there is no session of the model
	waiting  bool   // requests of ours have their time to be answered together
	resting  bool   // after a failure; the model may be at a limit
	told     Effect // the last EffectQuiet
}

// A pendingSpeech is one utterance that needs the model to speak.
type pendingSpeech struct {
	id     string
	from   *carrier // holds the request that it answers, or those whose answers it is said with; nil: none
	unless bool     // resolved when sending: nothing is asked if from spoke
	fails  int
	starts int      // cancelled before a word
	cuts   int      // of them, those since the caller last began to speak
	turn   int      // the Floor's turns when cuts were counted
	taken  bool     // the model has it
	mute   bool     // asked for it, the model called a function of the client, which must not be called once more
	beside *carrier // a response to something else that began with it in the conversation, and may tell it; nil: none
}

// A carrier is a response that holds requests of ours, or says speech of ours.
type carrier struct {
	id     string
	spoke  bool
	words  bool // the caller got something to hear or read
	ended  bool
	open   int
	waited bool // its open requests had their time: the answers to the others need not wait for theirs
	theirs int  // of the client's calls in it that have no output
	shared bool // the client is expected to ask for what follows on it

	sounds bool  // its sound is on its way to the caller
	over   bool  // nothing more of its sound will be heard
	heard  Heard // of its sound, once over
	ask    *ask  // that it answered, ended and not heard to the end
	cut    bool  // ended before it was whole
}

// carriers are those that are remembered, by response id.
type carriers map[string]*carrier

// of returns the carrier of a response; one that is not known begins.
func (all carriers) of(response string) *carrier {
	c := all[response]
	if c == nil {
		c = &carrier{id: response}
		all[response] = c
	}
	return c
}

// forget drops a response that no event can concern any more; pending speech keeps its own pointer.
func (all carriers) forget(c *carrier) {
	if c.ended && c.open == 0 && c.theirs == 0 && (!c.sounds || c.over) {
		delete(all, c.id)
	}
}

const (
	// oursPrefix begins the ids of our asks; the client's begin otherwise.
	oursPrefix = "a"
	// unknownResponse stands for a response that the model says is running and whose id we never saw.
	unknownResponse = "?"
	// MaxHeld bounds the client's waiting asks. When full the client is told so: it has more questions
	// than answers.
	MaxHeld = 64
	// maxFails is how often our ask may fail before its speech is given up: asked again after timerRest
	// and after timerLongRest.
	maxFails = 3
	// MaxCuts is how often it may be cut before a word was heard while the caller says nothing; a client that cancels
	// whatever it did not ask for must not be asked for ever.
	MaxCuts = 3
	// MaxStarts is how often it may be cut so in all. Who speaks into its beginning gets it at the next quiet: "mm-hmm"
	// is no wish not to hear it. But a voice that hears itself as the caller must come to an end.
	MaxStarts = 10
)

// New returns the floor of a call whose session does not exist yet.
func New() *Floor {
	return &Floor{
		wire: wire{runs: map[string]*ask{}}, carriers: carriers{}, calls: map[string]*carrier{},
		theirs: map[string]*carrier{}, autoVAD: true,
	}
}

// Step takes an event and returns what is to be done. The result is valid until the next step.
func (f *Floor) Step(e Event) []Effect {
	f.out = f.out[:0]
	switch e := e.(type) {
	case Uttered:
		f.uttered(e)
	case ClientAsked:
		f.held = append(f.held, &ask{ID: e.Ask, client: true, apart: e.Apart, instructed: e.Instructed})
	case Created:
		f.created(e)
	case Ended:
		f.ended(e)
	case Refused:
		f.refused(e.Ask)
	case Rejected:
		f.rejected(e.Ask)
	case Withdrawn:
		f.pending = slices.DeleteFunc(f.pending, func(w *pendingSpeech) bool { return w.id == e.ID })
	case Missed:
		f.missed(e.ID)
	case Taken:
		f.took(e.ID)
	case Called:
		f.called(e)
	case Mixed:
		f.mixed(e)
	case Output:
		f.output(e.Call)
	case Cancelled: // of the client's asks those that wait
		for _, a := range f.held {
			f.out = append(f.out, Effect{Kind: EffectTakenBack, Ask: a.ID})
		}
		f.held = nil
		f.alone(false)
	case Spoke:
		if c := f.carriers[e.Response]; c != nil {
			c.spoke, c.words = true, c.words || !e.Silence
		}
	case Sounded:
		c := f.carriers.of(e.Response)
		c.sounds, c.words = true, true
	case Played:
		f.played(e)
	case Speech:
		f.speaking = e.On
		f.due = !e.On && f.autoVAD && !f.manual
		if e.On {
			f.turns++
			f.arm(TimerSpeech)
		} else if f.due {
			f.arm(TimerVAD)
		}
	case Hushed:
		f.speaking, f.due = false, false
	case Sounding:
		f.playing = e.On
	case Listening:
		f.manual, f.autoVAD = e.Manual, e.Auto
		if e.Manual {
			f.speaking, f.due = false, false
		}
	case Opened:
		f.arm(TimerOpen)
	case Configured:
		f.ready = true
	case Away:
		if f.away = e.On; e.On {
			f.speaking = false // what the caller was saying has no end
			f.pull()
		}
	case Lost:
		f.sessionLost()
	case Renewed:
		f.absent = false
	case Elapsed:
		f.elapsed(e)
	}
	f.decide()
	f.calm()
	return f.out
}

// calm adds the effect of both sides having become quiet, and of their no longer being so.
func (f *Floor) calm() {
	quiet := f.ready && !f.away && !f.absent && f.active == "" && f.asked == nil && !f.playing &&
		(f.manual || (!f.speaking && !f.due))
	x := Effect{Kind: EffectQuiet, On: quiet, Invited: quiet && f.manual}
	if x.On != f.told.On || x.Invited != f.told.Invited {
		f.told = x
		f.out = append(f.out, x)
	}
}

// Full reports whether the client must not ask more now.
func (f *Floor) Full() bool { return len(f.held) >= MaxHeld }

func (f *Floor) uttered(e Uttered) {
	from := f.calls[e.Call]
	if from != nil {
		delete(f.calls, e.Call)
		from.open--
		f.carriers.forget(from)
	}
	if e.Need == handoff.FloorUnlessSpoke || e.Need == handoff.FloorAsk {
		unless := from != nil && e.Need == handoff.FloorUnlessSpoke
		f.pending = append(f.pending, &pendingSpeech{id: e.ID, from: from, unless: unless})
	}
}

func (f *Floor) created(e Created) {
	f.active = e.Response
	f.carriers.of(e.Response)
	f.blind = f.blind && e.Tag == ""
	f.echoes = f.echoes || e.Tag != ""
	f.belated(e.Response, e.Tag)
	f.arm(TimerRun)
	if e.Tag == "" && !(f.blind && f.asked != nil) {
		f.speaking, f.due = false, false
		f.besides(e.Response)
		return
	}
	if f.asked != nil && (f.asked.ID == e.Tag || f.blind) {
		f.runs[e.Response] = f.asked
		f.asked = nil
	}
	f.besides(e.Response)
	// The caller may have begun to speak, or gone, while it was on its way.
	if a := f.runs[e.Response]; a != nil && (f.speaking || f.away || a.moot) {
		f.pull()
	}
}

// pull cancels the response that runs, if it answers an ask of ours.
func (f *Floor) pull() {
	if a := f.runs[f.active]; a != nil && !a.client && !a.pulled {
		a.pulled = true
		f.out = append(f.out, Effect{Kind: EffectCancel, Response: f.active})
	}
}

func (f *Floor) ended(e Ended) {
	f.echoes = f.echoes || e.Tag != ""
	f.belated(e.Response, e.Tag)
	if f.asked != nil && e.Tag != "" && f.asked.ID == e.Tag { // done without created happens when interrupted
		f.runs[e.Response] = f.asked
		f.asked = nil
	}
	c := f.carriers[e.Response]
	if e.Tag == "" && f.asked != nil {
		f.untagged++
		f.lastUntagged = c
		f.arm(timerEcho)
	}
	if f.active == e.Response || f.active == unknownResponse {
		f.active = ""
	}
	if c != nil {
		c.ended, c.cut = true, e.Status != events.StatusCompleted
		c.spoke = c.spoke || e.Output
	}
	a := f.runs[e.Response]
	delete(f.runs, e.Response)
	f.answered(a, c, e)
	if c != nil {
		f.carriers.forget(c)
	}
}

// refused queues the ask again: the other response is done some time.
func (f *Floor) refused(id string) {
	a := f.take(id)
	if a == nil {
		return
	}
	if f.active == "" {
		f.active = unknownResponse
		f.arm(timerUnknown)
	}
	f.backOff(a)
}

func (f *Floor) called(e Called) {
	if f.calls[e.Call] != nil {
		return
	}
	c := f.carriers.of(e.Response)
	c.open++
	f.calls[e.Call] = c
	if !f.waiting {
		f.waiting = true
		f.arm(timerSiblings)
	}
}

func (f *Floor) elapsed(e Elapsed) {
	if f.armed[e.Timer] != e.Gen {
		return
	}
	switch e.Timer {
	case TimerVAD:
		f.due = false
	case timerSiblings:
		f.waiting = false
		for _, c := range f.carriers {
			c.waited = c.open > 0
		}
	case TimerSpeech:
		f.speaking = false
	case TimerRun:
		f.lost()
	case TimerOpen:
		f.ready = true
	case TimerRest, timerLongRest:
		f.resting = false
	case timerUnknown:
		if f.active == unknownResponse {
			f.active = ""
		}
	case timerAsk, timerEcho:
		f.overdue()
	case timerTheirs, timerTheirAsk:
		f.alone(e.Timer == timerTheirs)
	}
}

// decide sends the next ask if it may be sent now.
func (f *Floor) decide() {
	if f.active != "" || f.asked != nil || f.away || f.absent {
		return
	}
	if len(f.held) > 0 {
		a := f.held[0]
		if !a.apart && f.shares() {
			return
		}
		f.held = f.held[1:]
		if !a.apart {
			a.speech = f.resolve(func(w *pendingSpeech) bool { return f.manual || !a.instructed && w.from.joined() })
		}
		if f.send(EffectForward, a); !a.apart {
			f.alone(false) // the client has asked for what it owed
		}
		return
	}
	if !f.ready || f.manual || len(f.pending) == 0 || f.speaking || f.due || f.playing || f.resting {
		return
	}
	if !slices.ContainsFunc(f.pending, (*pendingSpeech).due) {
		return
	}
	if speech := f.resolve(func(w *pendingSpeech) bool { return w.from == nil || !w.from.shared }); len(speech) > 0 {
		f.asks++
		f.send(EffectAsk, &ask{ID: oursPrefix + f.naming + strconv.Itoa(f.asks), speech: speech})
	}
}

// due reports whether nothing more has to come before the speech: requests of one response are answered together.
func (w *pendingSpeech) due() bool {
	return w.from == nil || !w.from.shared && (w.from.open == 0 || w.from.waited)
}

// resolve takes the pending speech that which picks, and drops speech that is not needed: the response that holds its
// request said something to the caller.
func (f *Floor) resolve(which func(*pendingSpeech) bool) []*pendingSpeech {
	var need, silent, rest []*pendingSpeech
	for _, w := range f.pending {
		switch {
		case !which(w):
			rest = append(rest, w)
		case w.unless && w.from.spoke:
			silent = append(silent, w)
		default:
			need = append(need, w)
		}
	}
	f.pending = rest
	f.emit(Effect{Kind: EffectSilent}, silent)
	return need
}

func (f *Floor) send(kind EffectKind, a *ask) {
	f.asked, f.untagged, f.lastUntagged = a, 0, nil
	x := Effect{Kind: kind, Ask: a.ID}
	for _, w := range a.speech {
		x.Utterances, x.Mute = append(x.Utterances, w.id), x.Mute || w.mute
	}
	f.out = append(f.out, x)
	f.arm(timerAsk)
}

// Speaking reports whether the caller speaks.
func (f *Floor) Speaking() bool { return f.speaking }

// Due reports whether the caller has spoken and the model has not begun to answer, as it is about to by itself.
func (f *Floor) Due() bool { return f.due }

// Quiet reports whether nobody speaks, and nobody is about to.
func (f *Floor) Quiet() bool { return f.told.On }

// Open returns how many responses are remembered.
func (f *Floor) Open() int { return len(f.carriers) }
