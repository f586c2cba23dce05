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
	held      []string        // asks of the client that wait, in order
	wants     []*want         // of ours, in order
	calls     map[string]*carrier
	carriers  map[string]*carrier // by response id; forgotten once done and without open calls
	asks      int                 // ours so far
	strangers int                 // untagged responses that ended since the ask on the wire was sent
	blind     bool                // the model does not echo tags: an untagged response is the one asked for

	ready    bool // the client has set its session up, or had its time: a voice cannot change once heard
	manual   bool // no turn detection: we never ask, our wants ride on the client's asks
	autoVAD  bool // turn detection starts responses itself
	speaking bool // the caller
	pending  bool // the caller has stopped and the response of voice detection is due
	playing  bool // the model's voice is still being heard
	open     int  // requests of ours without an answer
	waiting  bool // for siblings
	waited   bool // siblings had their time

	armed [timerKinds]int // generation of each timer
	out   []effect        // of the step that runs
}

// A want is one utterance that needs the model to speak.
type want struct {
	id     string
	unless *carrier // resolved when sending: nothing is asked if this response spoke
	fails  int
	cuts   int // cancelled before a word
}

// A carrier is a response that held requests of ours.
type carrier struct {
	id    string
	spoke bool
	ended bool
	open  int
}

// An ask is one response.create.
type ask struct {
	id     string
	client bool
	wants  []*want
}

const (
	// unknownResponse stands for a response that the model says is running and whose id we never saw.
	unknownResponse = "?"
	// maxHeld bounds the client's waiting asks. When full the client is told so: it has more questions
	// than answers.
	maxHeld = 64
	// maxFails is how often our ask may fail before its wants are given up: asked again once.
	maxFails = 2
	// maxCuts is how often it may be cancelled before a word was heard; a client that cancels whatever
	// it did not ask for must not be asked for ever.
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
		f.held = append(f.held, e.ask)
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
	case called:
		f.called(e)
	case spoke:
		if c := f.carriers[e.response]; c != nil {
			c.spoke = true
		}
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
	return f.out
}

// full tells whether the client must not ask more now.
func (f *floor) full() bool { return len(f.held) >= maxHeld }

func (f *floor) uttered(e uttered) {
	from := f.calls[e.call]
	if from != nil {
		delete(f.calls, e.call)
		from.open--
		f.open--
		f.waiting = f.waiting && f.open > 0
		f.waited = f.waited && f.open > 0
		f.forget(from)
	}
	switch e.need {
	case handoff.FloorUnlessSpoke:
		f.wants = append(f.wants, &want{id: e.id, unless: from})
	case handoff.FloorAsk:
		f.wants = append(f.wants, &want{id: e.id})
	}
}

func (f *floor) created(e created) {
	f.active = e.response
	f.carrier(e.response)
	f.blind = f.blind && e.tag == ""
	if e.tag == "" && !(f.blind && f.asked != nil) {
		f.speaking, f.pending = false, false
		return
	}
	if f.asked != nil && (f.asked.id == e.tag || f.blind) {
		f.runs[e.response] = f.asked
		f.asked = nil
	}
}

func (f *floor) ended(e ended) {
	if f.asked != nil && e.tag != "" && f.asked.id == e.tag { // done without created happens when interrupted
		f.runs[e.response] = f.asked
		f.asked = nil
	}
	if e.tag == "" && f.asked != nil {
		f.strangers++
		f.arm(timerEcho)
	}
	if f.active == e.response || f.active == unknownResponse {
		f.active = ""
	}
	if c := f.carriers[e.response]; c != nil {
		c.ended = true
		c.spoke = c.spoke || e.output
		f.forget(c)
	}
	a := f.runs[e.response]
	delete(f.runs, e.response)
	if a == nil {
		return
	}
	switch {
	case e.status == statusFailed:
		f.again(a, func(w *want) bool { w.fails++; return a.client || w.fails < maxFails })
	case e.status == statusCancelled && !e.output:
		f.again(a, func(w *want) bool { w.cuts++; return a.client || w.cuts < maxCuts })
	default:
		f.emitWants(effectGiven, a.wants)
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
		f.held = slices.Insert(f.held, 0, a.id)
	}
	f.wants = append(slices.Clone(a.wants), f.wants...)
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

func (f *floor) rejected(id string) {
	a := f.take(id)
	if a == nil {
		return
	}
	f.again(a, func(w *want) bool { w.fails++; return a.client || w.fails < maxFails })
}

// again puts back the wants of an ask that keep allows, in front, and gives up the others.
func (f *floor) again(a *ask, keep func(*want) bool) {
	var back, lost []*want
	for _, w := range a.wants {
		if keep(w) {
			back = append(back, w)
		} else {
			lost = append(lost, w)
		}
	}
	f.wants = append(back, f.wants...)
	f.emitWants(effectLost, lost)
}

func (f *floor) called(e called) {
	if f.calls[e.call] != nil {
		return
	}
	c := f.carrier(e.response)
	c.open++
	f.open++
	f.calls[e.call] = c
}

func (f *floor) speech(on bool) {
	f.speaking = on
	f.pending = !on && f.autoVAD && !f.manual
	if f.pending {
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
		f.waited = true
	case timerOpen:
		f.ready = true
	case timerUnknown:
		if f.active == unknownResponse {
			f.active = ""
		}
	case timerAsk, timerEcho:
		f.overdue()
	}
}

// overdue ends an ask that nobody answered: the model never echoes tags (then an untagged response was
// the one asked for), or it lost the ask.
func (f *floor) overdue() {
	a := f.asked
	switch {
	case a == nil:
	case f.active != "":
		f.arm(timerAsk)
	case f.strangers > 0:
		f.asked, f.blind = nil, true
		f.emitWants(effectGiven, a.wants)
	default:
		f.rejected(a.id)
	}
}

// decide sends the next ask if it may be sent now.
func (f *floor) decide() {
	if f.active != "" || f.asked != nil {
		return
	}
	if len(f.held) > 0 {
		a := &ask{id: f.held[0], client: true}
		f.held = f.held[1:]
		if f.manual {
			a.wants = f.resolve()
		}
		f.send(effectForward, a)
		return
	}
	if !f.ready || f.manual || len(f.wants) == 0 || f.speaking || f.pending || f.playing {
		return
	}
	if f.open > 0 && !f.waited {
		if !f.waiting {
			f.waiting = true
			f.arm(timerSiblings)
		}
		return
	}
	if wants := f.resolve(); len(wants) > 0 {
		f.asks++
		f.send(effectAsk, &ask{id: "a" + strconv.Itoa(f.asks), wants: wants})
	}
}

// resolve takes all wants and drops those whose request came with words for the caller.
func (f *floor) resolve() []*want {
	var need, silent []*want
	for _, w := range f.wants {
		if w.unless != nil && w.unless.spoke {
			silent = append(silent, w)
		} else {
			need = append(need, w)
		}
	}
	f.wants = nil
	f.emitWants(effectSilent, silent)
	return need
}

func (f *floor) send(kind effectKind, a *ask) {
	f.asked, f.strangers = a, 0
	f.waiting, f.waited = false, false
	f.out = append(f.out, effect{kind: kind, ask: a.id})
	f.arm(timerAsk)
}

func (f *floor) arm(t floorTimer) {
	f.armed[t]++
	f.out = append(f.out, effect{kind: effectTimer, timer: t, gen: f.armed[t]})
}

func (f *floor) emitWants(kind effectKind, wants []*want) {
	if len(wants) == 0 {
		return
	}
	ids := make([]string, len(wants))
	for i, w := range wants {
		ids[i] = w.id
	}
	f.out = append(f.out, effect{kind: kind, wants: ids})
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
	if c.ended && c.open == 0 {
		delete(f.carriers, c.id)
	}
}
