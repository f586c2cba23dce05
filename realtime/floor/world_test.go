package floor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// voiceModel plays the far end of the floor: two ordered wires, one response at a time, voice detection,
// refusals, cancels and failures. Beside it stands an own account of what the floor may know.
type voiceModel struct {
	t     *testing.T
	floor *Floor
	log   []any // events and effects, written out when something is wrong

	up   []string // tags of asks on their way to the model, and "!" with a response to cancel
	down []Event  // on their way to the floor

	active, tag string // of the model's running response
	hasOutput   bool
	hasSound    bool
	activeCalls int
	voice       []voiceOf // responses whose sound is on its way, as the floor was told
	speaking    bool      // as the model hears
	vadDue      bool
	responses   int

	seenActive   string // as the floor was told
	seenSpeaking bool
	seenPending  bool
	seenPlaying  bool
	seenQuiet    Effect
	resting      Effect // the timer that our asks wait for; zero: none
	manual       bool
	outstanding  string // ask on the wires
	cancelled    string // response, newest
	clientAsks   []string
	forwarded    []string // those that began, in order
	late         []Event  // ends that come only after the next response began
	timers       [TimerKinds]int

	utterances map[string]string // id → open, given, silent, lost
	bad        map[string]int    // failed or cut-short asks of each
	riding     map[string][]string
	calls      []string // open, oldest first
	callOf     map[string]string
	tagOf      map[string]string // response → ask
	spokeIn    map[string]bool
	unlessOf   map[string]string   // utterance → response
	taken      []string            // utterances that the model has
	reads      map[string][]string // response → those of them that it began with
	whole      map[string]bool     // responses that said something and were made to their end; not those in partly
	partly     map[string]bool     // responses of whose sound not all was heard
	theirCalls []string            // the client's without an output, oldest first
	n          int
}

// voiceOf is the sound of a response.
type voiceOf struct {
	response string
	ended    bool
}

func newVoiceModel(t *testing.T) *voiceModel {
	m := &voiceModel{
		t: t, floor: New(), utterances: map[string]string{}, bad: map[string]int{}, riding: map[string][]string{},
		callOf: map[string]string{}, tagOf: map[string]string{}, spokeIn: map[string]bool{}, unlessOf: map[string]string{},
		reads: map[string][]string{}, whole: map[string]bool{}, partly: map[string]bool{},
	}
	m.tell(Configured{})
	return m
}

func (m *voiceModel) fail(format string, args ...any) {
	m.t.Helper()
	var log strings.Builder
	for _, x := range m.log {
		fmt.Fprintf(&log, "%T%+v\n", x, x)
	}
	m.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), log.String())
}

// tell hands an event to the floor and checks every Effect against the invariants.
func (m *voiceModel) tell(e Event) {
	m.t.Helper()
	m.log = append(m.log, e)
	m.account(e)
	for _, x := range slices.Clone(m.floor.Step(e)) {
		m.log = append(m.log, x)
		switch x.Kind {
		case EffectAsk, EffectForward:
			m.sent(x)
		case EffectCancel:
			m.cancels(x, e)
		case EffectTimer:
			m.timers[x.Timer] = x.Gen
			if x.Timer == TimerRest || x.Timer == timerLongRest {
				m.resting = x
			}
		case EffectQuiet:
			if x.On == m.seenQuiet.On && x.Invited == m.seenQuiet.Invited {
				m.fail("told twice that quiet is %v", x.On)
			}
			m.seenQuiet = x
		case EffectGiven, EffectSilent, EffectLost:
			m.resolved(x, e)
		}
	}
	if c, ok := e.(Created); ok && strings.HasPrefix(c.Tag, "a") && m.seenSpeaking && m.cancelled != c.Response {
		m.fail("%s begins over the caller", c.Response)
	}
	quiet := m.seenActive == "" && m.outstanding == "" && !m.seenPlaying &&
		(m.manual || (!m.seenSpeaking && !m.seenPending))
	if quiet != m.seenQuiet.On || m.seenQuiet.Invited != (quiet && m.manual) {
		m.fail("quiet is %v, told %+v", quiet, m.seenQuiet)
	}
}

// cancels takes a response.cancel of ours: only our own, and only where it would be over the caller.
func (m *voiceModel) cancels(x Effect, cause Event) {
	if c, ok := cause.(Created); !ok || c.Response != x.Response || !strings.HasPrefix(c.Tag, "a") || !m.seenSpeaking {
		m.fail("%s cancelled by %+v", x.Response, cause)
	}
	m.cancelled = x.Response
	m.up = append(m.up, "!"+x.Response)
}

// account follows what the floor was told, apart from its own books.
func (m *voiceModel) account(e Event) {
	switch e := e.(type) {
	case Created:
		m.seenActive = e.Response
		m.reads[e.Response] = slices.Clone(m.taken)
		m.tagOf[e.Response] = e.Tag
		if e.Tag == "" {
			m.seenPending = false
		}
		if e.Tag == m.outstanding {
			m.outstanding = ""
		}
		if strings.HasPrefix(e.Tag, "c") {
			m.began(e.Tag)
		}
	case Ended:
		if m.seenActive == e.Response {
			m.seenActive = ""
		}
		for i := range m.voice {
			m.voice[i].ended = m.voice[i].ended || m.voice[i].response == e.Response
		}
		m.whole[e.Response] = e.Status == events.StatusCompleted && m.spokeIn[e.Response] && !m.partly[e.Response]
	case Played:
		m.partly[e.Response] = e.Heard != HeardWhole
		m.whole[e.Response] = m.whole[e.Response] && !m.partly[e.Response]
	case Sounded:
		m.voice = append(m.voice, voiceOf{response: e.Response})
	case Refused:
		m.outstanding = ""
	case Rejected:
		m.outstanding = ""
		if strings.HasPrefix(e.Ask, "c") {
			m.began(e.Ask)
		}
	case Speech:
		m.seenSpeaking, m.seenPending = e.On, !e.On && !m.manual
	case Sounding:
		m.seenPlaying = e.On
	case Elapsed:
		if e.Timer == TimerVAD {
			m.seenPending = false
		}
		if m.resting.Kind == EffectTimer && m.resting.Timer == e.Timer {
			m.resting = Effect{}
		}
	}
}

// began holds the order of the client's asks; refused ones keep their place.
func (m *voiceModel) began(tag string) {
	m.forwarded = append(m.forwarded, tag)
	if n := len(m.forwarded); n > len(m.clientAsks) || m.clientAsks[n-1] != tag {
		m.fail("order of the client's asks: %v of %v", m.forwarded, m.clientAsks)
	}
}

func (m *voiceModel) sent(x Effect) {
	if m.outstanding != "" {
		m.fail("two asks on the wire: %s and %s", m.outstanding, x.Ask)
	}
	if m.seenActive != "" {
		m.fail("%s asked while %s runs", x.Ask, m.seenActive)
	}
	m.outstanding = x.Ask
	m.up = append(m.up, x.Ask)
	if x.Kind == EffectForward {
		return
	}
	if m.resting.Kind == EffectTimer {
		m.fail("%s asked without a rest", x.Ask)
	}
	if m.manual || m.seenSpeaking || m.seenPending || m.seenPlaying {
		m.fail("asked out of place: manual %v, speaking %v, due %v, playing %v", m.manual, m.seenSpeaking, m.seenPending,
			m.seenPlaying)
	}
}

func (m *voiceModel) resolved(x Effect, cause Event) {
	for _, id := range x.Utterances {
		if m.utterances[id] != "open" {
			m.fail("%s is %s already", id, m.utterances[id])
		}
		switch x.Kind {
		case EffectGiven:
			m.utterances[id] = "given"
			if !m.gives(x, cause) && !m.beside(id, x, cause) {
				m.fail("utterance %s given by %+v", id, cause)
			}
		case EffectSilent:
			m.utterances[id] = "silent"
			if r := m.unlessOf[id]; r == "" || !m.spokeIn[r] {
				m.fail("utterance %s dropped, but %q said nothing", id, r)
			}
		case EffectLost:
			m.utterances[id] = "lost"
			if m.bad[m.askTag(cause)] == 0 {
				m.fail("utterance %s lost without a failure", id)
			}
		}
	}
}

// gives reports whether an event may give speech: the end of a response that does not sound, or the end of
// the sound of one that ended.
func (m *voiceModel) gives(x Effect, cause Event) bool {
	sounding := slices.ContainsFunc(m.voice, func(v voiceOf) bool { return v.response == x.Response })
	switch e := cause.(type) {
	case Ended:
		return e.Response == x.Response && e.Tag != "" && e.Status != events.StatusFailed && e.Output && !sounding
	case Played:
		return e.Response == x.Response && m.tagOf[e.Response] != "" && e.Heard != HeardNothing &&
			m.seenActive != e.Response &&
			(x.Cut || e.Heard == HeardWhole)
	}
	return false
}

// beside reports whether the end of a response that holds nothing may give speech of another one: that had it in the
// conversation, and was heard.
func (m *voiceModel) beside(id string, x Effect, cause Event) bool {
	e, ok := cause.(Ended)
	sounds := slices.ContainsFunc(m.voice, func(v voiceOf) bool { return v.response == x.Response })
	return ok && !sounds && e.Status == StatusEmpty && e.Tag != "" &&
		m.whole[x.Response] && slices.Contains(m.reads[x.Response], id)
}

func (m *voiceModel) askTag(e Event) string {
	switch e := e.(type) {
	case Played:
		return m.tagOf[e.Response]
	case Ended:
		return e.Tag
	case Rejected:
		return e.Ask
	}
	return ""
}

// hear lets the model take the next ask.
func (m *voiceModel) hear(reject bool) {
	if len(m.up) == 0 {
		return
	}
	tag := m.up[0]
	m.up = m.up[1:]
	switch {
	case tag[0] == '!':
		if m.active == tag[1:] {
			m.end(events.StatusCancelled)
		}
	case reject:
		m.bad[tag]++
		m.down = append(m.down, Rejected{tag})
	case m.active != "":
		m.down = append(m.down, Refused{tag})
	default:
		m.begin(tag)
	}
}

func (m *voiceModel) begin(tag string) {
	m.responses++
	m.active, m.tag, m.hasOutput, m.hasSound, m.vadDue, m.activeCalls = fmt.Sprintf("r%d",
		m.responses), tag, false, false, false, 0
	m.down = append(m.down, Created{m.active, tag})
	m.down = append(m.down, m.late...)
	m.late = nil
}

func (m *voiceModel) end(status string) {
	if m.active == "" {
		return
	}
	empty := !m.hasOutput && !m.hasSound
	if status == events.StatusFailed || status == events.StatusCancelled || empty &&
		(status == events.StatusIncomplete || m.activeCalls > 0) {
		m.bad[m.tag]++
	}
	if status == events.StatusCompleted && m.activeCalls == 0 {
		m.hasOutput = true
	}
	m.spokeIn[m.active] = m.spokeIn[m.active] || m.hasOutput
	if m.hasSound {
		m.hasOutput = true
	}
	done := Ended{m.active, m.tag, status, m.hasOutput}
	if status == events.StatusCancelled && m.responses%3 == 0 {
		m.late = append(m.late, done)
	} else {
		m.down = append(m.down, done)
	}
	m.active, m.tag = "", ""
}

// empty ends the running response with nothing in it.
func (m *voiceModel) empty() {
	if m.active != "" && !m.hasOutput && !m.hasSound && m.activeCalls == 0 {
		m.bad[m.tag]++
		m.down = append(m.down, Ended{m.active, m.tag, StatusEmpty, false})
		m.active, m.tag = "", ""
	}
}

// take lets the model have the next utterance.
func (m *voiceModel) take() {
	for n := range m.n {
		id := fmt.Sprintf("w%d", n+1)
		if m.utterances[id] == "open" && !slices.Contains(m.taken, id) {
			m.taken = append(m.taken, id)
			m.tell(Taken{id})
			return
		}
	}
}

func (m *voiceModel) deliver() {
	if len(m.down) == 0 {
		return
	}
	e := m.down[0]
	m.down = m.down[1:]
	if c, ok := e.(Called); ok {
		m.calls = append(m.calls, c.Call)
	}
	m.tell(e)
}

func (m *voiceModel) speech(on bool) {
	if on == m.speaking {
		return
	}
	m.speaking, m.vadDue = on, !on && !m.manual
	if on {
		m.end(events.StatusCancelled)
	}
	m.down = append(m.down, Speech{on})
}

func (m *voiceModel) utter(need handoff.Floor, call string) {
	m.n++
	id := fmt.Sprintf("w%d", m.n)
	if need != handoff.FloorNone {
		m.utterances[id] = "open"
		m.unlessOf[id] = ""
	}
	if need == handoff.FloorUnlessSpoke {
		m.unlessOf[id] = m.callOf[call]
	}
	m.tell(Uttered{id, call, need})
}

func (m *voiceModel) answer(need handoff.Floor) {
	if len(m.calls) == 0 {
		return
	}
	call := m.calls[0]
	m.calls = m.calls[1:]
	m.utter(need, call)
}

func (m *voiceModel) call() {
	if m.active == "" || m.activeCalls > 3 {
		return
	}
	m.n++
	m.activeCalls++
	id := fmt.Sprintf("k%d", m.n)
	m.callOf[id] = m.active
	m.down = append(m.down, Called{m.active, id})
}

// sound lets the caller hear the running response.
func (m *voiceModel) sound() {
	if m.active != "" && !m.hasSound {
		m.hasSound = true
		m.spokeIn[m.active] = true
		m.down = append(m.down, Sounded{m.active}, Spoke{Response: m.active})
	}
}

// hears lets sound end: the oldest that is made was heard whole, or whatever there is is cut.
func (m *voiceModel) hears(f Heard) {
	for i, v := range m.voice {
		if f == HeardWhole && !v.ended {
			continue
		}
		m.voice = slices.Delete(m.voice, i, i+1)
		if f == HeardNothing {
			m.bad[m.tagOf[v.response]]++
		}
		m.tell(Played{v.response, f})
		return
	}
}

// elapse lets a timer run out, once for each time it was armed.
func (m *voiceModel) elapse(t Timer) {
	if m.timers[t] > 0 {
		gen := m.timers[t]
		m.timers[t] = 0 // it elapses once
		m.tell(Elapsed{t, gen})
	}
}

// patientTimers are those that the world lets run out at any time; it answers every ask itself.
var patientTimers = []Timer{TimerVAD, timerSiblings, TimerRest, timerLongRest, timerTheirs, timerTheirAsk}

// worldMoves is how many things play can do.
const worldMoves = 29

// play does one thing of the world.
func (m *voiceModel) play(b byte) {
	switch b % worldMoves {
	case 0:
		m.utter(handoff.FloorAsk, "")
	case 1:
		m.answer(handoff.FloorUnlessSpoke)
	case 2:
		m.answer(handoff.FloorAsk)
	case 3:
		m.answer(handoff.FloorNone)
	case 4:
		id := fmt.Sprintf("c%d", len(m.clientAsks)+1)
		m.clientAsks = append(m.clientAsks, id)
		m.tell(ClientAsked{Ask: id, Instructed: b > 0xe0})
	case 5, 6:
		m.hear(b >= 0xf0)
	case 7, 8, 9:
		m.deliver()
	case 10:
		if m.active == "" && m.vadDue {
			m.begin("")
		}
	case 11:
		m.end(events.StatusCompleted)
	case 12:
		m.end([]string{events.StatusCancelled, events.StatusFailed, events.StatusIncomplete}[int(b)/worldMoves%3])
	case 13:
		m.speech(true)
	case 14:
		m.speech(false)
	case 15:
		m.tell(Sounding{!m.seenPlaying})
	case 16:
		m.elapse(patientTimers[int(b)/worldMoves%len(patientTimers)])
	case 17:
		m.call()
	case 18:
		if m.active != "" {
			m.hasOutput = true
			m.spokeIn[m.active] = true
			m.down = append(m.down, Spoke{Response: m.active})
		}
	case 19:
		m.sound()
	case 20:
		m.hears(HeardWhole)
	case 21:
		m.hears([]Heard{HeardNothing, HeardPart}[int(b)/worldMoves%2])
	case 22, 23:
		m.empty()
	case 24, 25, 26:
		m.take()
	case 27, 28:
		m.theirs(b > 0x80)
	}
}
