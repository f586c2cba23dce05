package realtime

import (
	"slices"
	"strconv"

	"switchboard/handoff"
)

// A floor decides who may make the voice model speak in the default conversation, so that never two asks
// (response.create) are on the wire and nothing wanted is left unsaid. Asks of the client and ours share
// it. It is pure: what happens comes in as events, time too; what is to be done comes out as effects.
//
// Responses are told apart by the tag that every ask carries in its metadata, never by their order: a
// response without a tag was started by voice detection and satisfies nobody's ask.
type floor struct {
	active    string          // the response that runs, unknownResponse, or ""
	asked     *ask            // on the wire, neither created nor refused
	runs      map[string]*ask // created from an ask, by response id, until done
	late      *ask            // the newest that got no answer in time; it may still come
	held      []*ask          // of the client, that wait, in order
	wants     []*want         // of ours, in order
	calls     map[string]*carrier
	carriers  map[string]*carrier // by response id; forgotten once done and without open calls
	asks      int                 // ours so far
	strangers int                 // untagged responses that ended since the ask on the wire was sent
	stranger  *carrier            // the newest of them
	blind     bool                // the model does not echo tags: an untagged response is the one asked for
	echoes    bool                // it does: a response without a tag is never the one asked for

	ready    bool   // the client has set its session up, or had its time: a voice cannot change once heard
	manual   bool   // no turn detection: we never ask, our wants ride on the client's asks
	autoVAD  bool   // turn detection starts responses itself
	speaking bool   // the caller
	pending  bool   // the caller has stopped and the response of voice detection is due
	playing  bool   // the model's voice is still being heard
	waiting  bool   // requests of ours have their time to be answered together
	resting  bool   // after a failure; the model may be at a limit
	told     effect // of quiet, as last told

	armed [timerKinds]int // generation of each timer
	out   []effect        // of the step that runs
}

// A want is one utterance that needs the model to speak.
type want struct {
	id     string
	from   *carrier // holds the request that it answers, or those whose answers it is said with; nil: none
	unless bool     // resolved when sending: nothing is asked if from spoke
	fails  int
	cuts   int // cancelled before a word
}

// A carrier is a response: what it holds of our requests, and what it says for our wants.
type carrier struct {
	id     string
	spoke  bool
	ended  bool
	open   int
	waited bool // its open requests had their time: the others need not wait for them

	sounds bool // its sound is on its way to the caller
	over   bool // nothing more of its sound will be heard
	fate   fate // of its sound, once over
	ask    *ask // that it answered, ended and not heard to the end
	cut    bool // ended before it was whole
}

// An ask is one response.create.
type ask struct {
	id     string
	client bool
	apart  bool // it reads nothing of the conversation: our wants cannot ride on it
	wants  []*want
	pulled bool // we cancelled it: the caller was speaking, or it has nothing to say any more
	moot   bool // what it asks for is being said
}

const (
	// unknownResponse stands for a response that the model says is running and whose id we never saw.
	unknownResponse = "?"
	// maxHeld bounds the client's waiting asks. When full the client is told so: it has more questions
	// than answers.
	maxHeld = 64
	// maxFails is how often our ask may fail before its wants are given up: asked again after timerRest
	// and after timerLongRest.
	maxFails = 3
	// maxCuts is how often it may be cut before a word was heard; a client that cancels whatever it did
	// not ask for must not be asked for ever.
	maxCuts = 3
)

func newFloor() *floor {
	return &floor{
		runs: map[string]*ask{}, calls: map[string]*carrier{}, carriers: map[string]*carrier{}, autoVAD: true,
	}
}

// step takes an event and returns what is to be done. The result is valid until the next step.
func (f *floor) step(e floorEvent) []effect {
	f.out = f.out[:0]
	switch e := e.(type) {
	case uttered:
		f.uttered(e)
	case clientAsked:
		f.held = append(f.held, &ask{id: e.ask, client: true, apart: e.apart})
	case created:
		f.created(e)
	case ended:
		f.ended(e)
	case refused:
		f.refused(e.ask)
	case rejected:
		f.rejected(e.ask)
	case withdrawn:
		f.wants = slices.DeleteFunc(f.wants, func(w *want) bool { return w.id == e.id })
	case missed:
		f.missed(e.id)
	case called:
		f.called(e)
	case spoke:
		if c := f.carriers[e.response]; c != nil {
			c.spoke = true
		}
	case sounded:
		f.carrier(e.response).sounds = true
	case played:
		f.played(e)
	case speech:
		f.speech(e.on)
	case hushed:
		f.speaking, f.pending = false, false
	case sounding:
		f.playing = e.on
	case listening:
		f.manual, f.autoVAD = e.manual, e.auto
		if e.manual {
			f.speaking, f.pending = false, false
		}
	case opened:
		f.arm(timerOpen)
	case configured:
		f.ready = true
	case elapsed:
		f.elapsed(e)
	}
	f.decide()
	f.calm()
	return f.out
}

// calm tells when both sides became quiet, and when they no longer are.
func (f *floor) calm() {
	quiet := f.ready && f.active == "" && f.asked == nil && !f.playing && (f.manual || (!f.speaking && !f.pending))
	if x := (effect{kind: effectQuiet, on: quiet, invited: quiet && f.manual}); x.on != f.told.on || x.invited != f.told.invited {
		f.told = x
		f.out = append(f.out, x)
	}
}

// full tells whether the client must not ask more now.
func (f *floor) full() bool { return len(f.held) >= maxHeld }

func (f *floor) uttered(e uttered) {
	from := f.calls[e.call]
	if from != nil {
		delete(f.calls, e.call)
		from.open--
		f.forget(from)
	}
	if e.need == handoff.FloorUnlessSpoke || e.need == handoff.FloorAsk {
		f.wants = append(f.wants, &want{id: e.id, from: from, unless: from != nil && e.need == handoff.FloorUnlessSpoke})
	}
}

func (f *floor) created(e created) {
	f.active = e.response
	f.carrier(e.response)
	f.blind = f.blind && e.tag == ""
	f.echoes = f.echoes || e.tag != ""
	f.belated(e.response, e.tag)
	f.arm(timerRun)
	if e.tag == "" && !(f.blind && f.asked != nil) {
		f.speaking, f.pending = false, false
		return
	}
	if f.asked != nil && (f.asked.id == e.tag || f.blind) {
		f.runs[e.response] = f.asked
		f.asked = nil
	}
	if a := f.runs[e.response]; a != nil && !a.client && (f.speaking || a.moot) { // the caller began while it was on its way
		a.pulled = true
		f.out = append(f.out, effect{kind: effectCancel, response: e.response})
	}
}

func (f *floor) ended(e ended) {
	f.echoes = f.echoes || e.tag != ""
	f.belated(e.response, e.tag)
	if f.asked != nil && e.tag != "" && f.asked.id == e.tag { // done without created happens when interrupted
		f.runs[e.response] = f.asked
		f.asked = nil
	}
	c := f.carriers[e.response]
	if e.tag == "" && f.asked != nil {
		f.strangers++
		f.stranger = c
		f.arm(timerEcho)
	}
	if f.active == e.response || f.active == unknownResponse {
		f.active = ""
	}
	if c != nil {
		c.ended, c.cut = true, e.status != statusCompleted
		c.spoke = c.spoke || e.output
	}
	a := f.runs[e.response]
	delete(f.runs, e.response)
	f.answered(a, c, e)
	if c != nil {
		f.forget(c)
	}
}

// refused queues the ask again: the other response is done some time.
func (f *floor) refused(id string) {
	a := f.take(id)
	if a == nil {
		return
	}
	if f.active == "" {
		f.active = unknownResponse
		f.arm(timerUnknown)
	}
	if a.client {
		f.held = slices.Insert(f.held, 0, a)
	}
	f.wants = append(slices.Clone(a.wants), f.wants...)
	a.wants = nil
}

// take removes the ask from the wire, or from the response that was mistaken for its own.
func (f *floor) take(id string) *ask {
	if a := f.asked; a != nil && a.id == id {
		f.asked = nil
		return a
	}
	for response, a := range f.runs {
		if f.blind && a.id == id {
			delete(f.runs, response)
			return a
		}
	}
	return nil
}

func (f *floor) called(e called) {
	if f.calls[e.call] != nil {
		return
	}
	c := f.carrier(e.response)
	c.open++
	f.calls[e.call] = c
	if !f.waiting {
		f.waiting = true
		f.arm(timerSiblings)
	}
}

func (f *floor) speech(on bool) {
	f.speaking = on
	f.pending = !on && f.autoVAD && !f.manual
	switch {
	case on:
		f.arm(timerSpeech)
	case f.pending:
		f.arm(timerVAD)
	}
}

func (f *floor) elapsed(e elapsed) {
	if f.armed[e.timer] != e.gen {
		return
	}
	switch e.timer {
	case timerVAD:
		f.pending = false
	case timerSiblings:
		f.waiting = false
		for _, c := range f.carriers {
			c.waited = c.open > 0
		}
	case timerSpeech:
		f.speaking = false
	case timerRun:
		f.lost()
	case timerOpen:
		f.ready = true
	case timerRest, timerLongRest:
		f.resting = false
	case timerUnknown:
		if f.active == unknownResponse {
			f.active = ""
		}
	case timerAsk, timerEcho:
		f.overdue()
	}
}

// decide sends the next ask if it may be sent now.
func (f *floor) decide() {
	if f.active != "" || f.asked != nil {
		return
	}
	if len(f.held) > 0 {
		a := f.held[0]
		f.held = f.held[1:]
		if f.manual && !a.apart {
			a.wants = f.resolve()
		}
		f.send(effectForward, a)
		return
	}
	if !f.ready || f.manual || len(f.wants) == 0 || f.speaking || f.pending || f.playing || f.resting {
		return
	}
	if !slices.ContainsFunc(f.wants, (*want).due) {
		return
	}
	if wants := f.resolve(); len(wants) > 0 {
		f.asks++
		f.send(effectAsk, &ask{id: "a" + strconv.Itoa(f.asks), wants: wants})
	}
}

// due tells whether nothing more is waited for: requests of one response are answered together.
func (w *want) due() bool { return w.from == nil || w.from.open == 0 || w.from.waited }

// resolve takes all wants and drops those whose request came with words for the caller.
func (f *floor) resolve() []*want {
	var need, silent []*want
	for _, w := range f.wants {
		if w.unless && w.from.spoke {
			silent = append(silent, w)
		} else {
			need = append(need, w)
		}
	}
	f.wants = nil
	f.emit(effect{kind: effectSilent}, silent)
	return need
}

func (f *floor) send(kind effectKind, a *ask) {
	f.asked, f.strangers, f.stranger = a, 0, nil
	x := effect{kind: kind, ask: a.id}
	for _, w := range a.wants {
		x.wants = append(x.wants, w.id)
	}
	f.out = append(f.out, x)
	f.arm(timerAsk)
}

func (f *floor) arm(t floorTimer) {
	f.armed[t]++
	f.out = append(f.out, effect{kind: effectTimer, timer: t, gen: f.armed[t]})
}

func (f *floor) carrier(response string) *carrier {
	c := f.carriers[response]
	if c == nil {
		c = &carrier{id: response}
		f.carriers[response] = c
	}
	return c
}

// forget drops what is no longer asked about; wants keep their own pointer.
func (f *floor) forget(c *carrier) {
	if c.ended && c.open == 0 && (!c.sounds || c.over) {
		delete(f.carriers, c.id)
	}
}
