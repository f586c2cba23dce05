package realtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// voiceModel plays the far end of the floor: two ordered wires, one response at a time, voice detection,
// refusals, cancels and failures. Beside it stands an own account of what the floor may know.
type voiceModel struct {
	t     *testing.T
	floor *floor
	log   []any // events and effects, written out when something is wrong

	up   []string     // tags of asks on their way to the model, and "!" with a response to cancel
	down []floorEvent // on their way to the floor

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
	seenQuiet    effect
	resting      effect // the timer that our asks wait for; zero: none
	manual       bool
	outstanding  string // ask on the wires
	cancelled    string // response, newest
	clientAsks   []string
	forwarded    []string     // those that began, in order
	late         []floorEvent // ends that come only after the next response began
	timers       [timerKinds]int

	wants    map[string]string // id → open, given, silent, lost
	bad      map[string]int    // wants' failed or cut-short asks
	riding   map[string][]string
	calls    []string // open, oldest first
	callOf   map[string]string
	tagOf    map[string]string // response → ask
	spokeIn  map[string]bool
	unlessOf map[string]string // want → response
	n        int
}

// voiceOf is the sound of a response.
type voiceOf struct {
	response string
	ended    bool
}

func newVoiceModel(t *testing.T) *voiceModel {
	m := &voiceModel{
		t: t, floor: newFloor(), wants: map[string]string{}, bad: map[string]int{}, riding: map[string][]string{},
		callOf: map[string]string{}, tagOf: map[string]string{}, spokeIn: map[string]bool{}, unlessOf: map[string]string{},
	}
	m.tell(configured{})
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

// tell hands an event to the floor and checks every effect against the invariants.
func (m *voiceModel) tell(e floorEvent) {
	m.t.Helper()
	m.log = append(m.log, e)
	m.account(e)
	for _, x := range slices.Clone(m.floor.step(e)) {
		m.log = append(m.log, x)
		switch x.kind {
		case effectAsk, effectForward:
			m.sent(x)
		case effectCancel:
			m.cancels(x, e)
		case effectTimer:
			m.timers[x.timer] = x.gen
			if x.timer == timerRest || x.timer == timerLongRest {
				m.resting = x
			}
		case effectQuiet:
			if x.on == m.seenQuiet.on && x.invited == m.seenQuiet.invited {
				m.fail("told twice that quiet is %v", x.on)
			}
			m.seenQuiet = x
		case effectGiven, effectSilent, effectLost:
			m.resolved(x, e)
		}
	}
	if c, ok := e.(created); ok && strings.HasPrefix(c.tag, "a") && m.seenSpeaking && m.cancelled != c.response {
		m.fail("%s begins over the caller", c.response)
	}
	quiet := m.seenActive == "" && m.outstanding == "" && !m.seenPlaying && (m.manual || (!m.seenSpeaking && !m.seenPending))
	if quiet != m.seenQuiet.on || m.seenQuiet.invited != (quiet && m.manual) {
		m.fail("quiet is %v, told %+v", quiet, m.seenQuiet)
	}
}

// cancels takes a response.cancel of ours: only our own, and only where it would be over the caller.
func (m *voiceModel) cancels(x effect, cause floorEvent) {
	if c, ok := cause.(created); !ok || c.response != x.response || !strings.HasPrefix(c.tag, "a") || !m.seenSpeaking {
		m.fail("%s cancelled by %+v", x.response, cause)
	}
	m.cancelled = x.response
	m.up = append(m.up, "!"+x.response)
}

// account follows what the floor was told, apart from its own books.
func (m *voiceModel) account(e floorEvent) {
	switch e := e.(type) {
	case created:
		m.seenActive = e.response
		m.tagOf[e.response] = e.tag
		if e.tag == "" {
			m.seenPending = false
		}
		if e.tag == m.outstanding {
			m.outstanding = ""
		}
		if strings.HasPrefix(e.tag, "c") {
			m.began(e.tag)
		}
	case ended:
		if m.seenActive == e.response {
			m.seenActive = ""
		}
		for i := range m.voice {
			m.voice[i].ended = m.voice[i].ended || m.voice[i].response == e.response
		}
	case sounded:
		m.voice = append(m.voice, voiceOf{response: e.response})
	case refused:
		m.outstanding = ""
	case rejected:
		m.outstanding = ""
		if strings.HasPrefix(e.ask, "c") {
			m.began(e.ask)
		}
	case speech:
		m.seenSpeaking, m.seenPending = e.on, !e.on && !m.manual
	case sounding:
		m.seenPlaying = e.on
	case elapsed:
		if e.timer == timerVAD {
			m.seenPending = false
		}
		if m.resting.kind == effectTimer && m.resting.timer == e.timer {
			m.resting = effect{}
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

func (m *voiceModel) sent(x effect) {
	if m.outstanding != "" {
		m.fail("two asks on the wire: %s and %s", m.outstanding, x.ask)
	}
	if m.seenActive != "" {
		m.fail("%s asked while %s runs", x.ask, m.seenActive)
	}
	m.outstanding = x.ask
	m.up = append(m.up, x.ask)
	if x.kind == effectForward {
		return
	}
	if m.resting.kind == effectTimer {
		m.fail("%s asked without a rest", x.ask)
	}
	if m.manual || m.seenSpeaking || m.seenPending || m.seenPlaying {
		m.fail("asked out of place: manual %v, speaking %v, due %v, playing %v", m.manual, m.seenSpeaking, m.seenPending, m.seenPlaying)
	}
}

func (m *voiceModel) resolved(x effect, cause floorEvent) {
	for _, id := range x.wants {
		if m.wants[id] != "open" {
			m.fail("want %s is %s already", id, m.wants[id])
		}
		switch x.kind {
		case effectGiven:
			m.wants[id] = "given"
			if !m.gives(x, cause) {
				m.fail("want %s given by %+v", id, cause)
			}
		case effectSilent:
			m.wants[id] = "silent"
			if r := m.unlessOf[id]; r == "" || !m.spokeIn[r] {
				m.fail("want %s dropped, but %q said nothing", id, r)
			}
		case effectLost:
			m.wants[id] = "lost"
			if m.bad[m.askTag(cause)] == 0 {
				m.fail("want %s lost without a failure", id)
			}
		}
	}
}

// gives tells whether an event may give wants: the end of a response that does not sound, or the end of
// the sound of one that ended.
func (m *voiceModel) gives(x effect, cause floorEvent) bool {
	sounding := slices.ContainsFunc(m.voice, func(v voiceOf) bool { return v.response == x.response })
	switch e := cause.(type) {
	case ended:
		return e.response == x.response && e.tag != "" && e.status != statusFailed && e.output && !sounding
	case played:
		return e.response == x.response && m.tagOf[e.response] != "" && e.fate != heardNothing && m.seenActive != e.response &&
			(x.cut || e.fate == heardWhole)
	}
	return false
}

func (m *voiceModel) askTag(e floorEvent) string {
	switch e := e.(type) {
	case played:
		return m.tagOf[e.response]
	case ended:
		return e.tag
	case rejected:
		return e.ask
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
			m.end(statusCancelled)
		}
	case reject:
		m.bad[tag]++
		m.down = append(m.down, rejected{tag})
	case m.active != "":
		m.down = append(m.down, refused{tag})
	default:
		m.begin(tag)
	}
}

func (m *voiceModel) begin(tag string) {
	m.responses++
	m.active, m.tag, m.hasOutput, m.hasSound, m.vadDue, m.activeCalls = fmt.Sprintf("r%d", m.responses), tag, false, false, false, 0
	m.down = append(m.down, created{m.active, tag})
	m.down = append(m.down, m.late...)
	m.late = nil
}

func (m *voiceModel) end(status string) {
	if m.active == "" {
		return
	}
	empty := !m.hasOutput && !m.hasSound
	if status == statusFailed || status == statusCancelled || empty && (status == statusIncomplete || m.activeCalls > 0) {
		m.bad[m.tag]++
	}
	if status == statusCompleted && m.activeCalls == 0 {
		m.hasOutput = true
	}
	m.spokeIn[m.active] = m.spokeIn[m.active] || m.hasOutput
	if m.hasSound {
		m.hasOutput = true
	}
	done := ended{m.active, m.tag, status, m.hasOutput}
	if status == statusCancelled && m.responses%3 == 0 {
		m.late = append(m.late, done)
	} else {
		m.down = append(m.down, done)
	}
	m.active, m.tag = "", ""
}

func (m *voiceModel) deliver() {
	if len(m.down) == 0 {
		return
	}
	e := m.down[0]
	m.down = m.down[1:]
	if c, ok := e.(called); ok {
		m.calls = append(m.calls, c.call)
	}
	m.tell(e)
}

func (m *voiceModel) speech(on bool) {
	if on == m.speaking {
		return
	}
	m.speaking, m.vadDue = on, !on && !m.manual
	if on {
		m.end(statusCancelled)
	}
	m.down = append(m.down, speech{on})
}

func (m *voiceModel) want(need handoff.Floor, call string) {
	m.n++
	id := fmt.Sprintf("w%d", m.n)
	if need != handoff.FloorNone {
		m.wants[id] = "open"
		m.unlessOf[id] = ""
	}
	if need == handoff.FloorUnlessSpoke {
		m.unlessOf[id] = m.callOf[call]
	}
	m.tell(uttered{id, call, need})
}

func (m *voiceModel) answer(need handoff.Floor) {
	if len(m.calls) == 0 {
		return
	}
	call := m.calls[0]
	m.calls = m.calls[1:]
	m.want(need, call)
}

func (m *voiceModel) call() {
	if m.active == "" || m.activeCalls > 3 {
		return
	}
	m.n++
	m.activeCalls++
	id := fmt.Sprintf("k%d", m.n)
	m.callOf[id] = m.active
	m.down = append(m.down, called{m.active, id})
}

// sound lets the caller hear the running response.
func (m *voiceModel) sound() {
	if m.active != "" && !m.hasSound {
		m.hasSound = true
		m.spokeIn[m.active] = true
		m.down = append(m.down, sounded{m.active}, spoke{m.active})
	}
}

// hears lets sound end: the oldest that is made was heard whole, or whatever there is is cut.
func (m *voiceModel) hears(f fate) {
	for i, v := range m.voice {
		if f == heardWhole && !v.ended {
			continue
		}
		m.voice = slices.Delete(m.voice, i, i+1)
		if f == heardNothing {
			m.bad[m.tagOf[v.response]]++
		}
		m.tell(played{v.response, f})
		return
	}
}

// elapse lets a timer run out that was ever armed.
func (m *voiceModel) elapse(t floorTimer) {
	if m.timers[t] > 0 {
		m.tell(elapsed{t, m.timers[t]})
	}
}

// patientTimers are those that the world lets run out at any time; it answers every ask itself.
var patientTimers = []floorTimer{timerVAD, timerSiblings, timerRest, timerLongRest}

// worldMoves is how many things play can do.
const worldMoves = 22

// play does one thing of the world.
func (m *voiceModel) play(b byte) {
	switch b % worldMoves {
	case 0:
		m.want(handoff.FloorAsk, "")
	case 1:
		m.answer(handoff.FloorUnlessSpoke)
	case 2:
		m.answer(handoff.FloorAsk)
	case 3:
		m.answer(handoff.FloorNone)
	case 4:
		id := fmt.Sprintf("c%d", len(m.clientAsks)+1)
		m.clientAsks = append(m.clientAsks, id)
		m.tell(clientAsked{ask: id})
	case 5, 6:
		m.hear(b >= 0xf0)
	case 7, 8, 9:
		m.deliver()
	case 10:
		if m.active == "" && m.vadDue {
			m.begin("")
		}
	case 11:
		m.end(statusCompleted)
	case 12:
		m.end([]string{statusCancelled, statusFailed, statusIncomplete}[int(b)/worldMoves%3])
	case 13:
		m.speech(true)
	case 14:
		m.speech(false)
	case 15:
		m.tell(sounding{!m.seenPlaying})
	case 16:
		m.elapse(patientTimers[int(b)/worldMoves%len(patientTimers)])
	case 17:
		m.call()
	case 18:
		if m.active != "" {
			m.hasOutput = true
			m.spokeIn[m.active] = true
			m.down = append(m.down, spoke{m.active})
		}
	case 19:
		m.sound()
	case 20:
		m.hears(heardWhole)
	case 21:
		m.hears([]fate{heardNothing, heardPart}[int(b)/worldMoves%2])
	}
}

// settle lets the world come to rest; everything wanted must then be resolved.
func (m *voiceModel) settle() {
	if m.manual {
		m.manual = false
		m.tell(listening{false, true})
	}
	for range 200 + 8*len(m.clientAsks) { // more than enough
		m.speech(false)
		m.down = append(m.down, m.late...)
		m.late = nil
		for len(m.down) > 0 {
			m.deliver()
		}
		for len(m.calls) > 0 {
			m.answer(handoff.FloorNone)
		}
		m.tell(sounding{false})
		for range len(m.voice) {
			m.hears(heardWhole)
		}
		for _, t := range patientTimers {
			m.elapse(t)
		}
		m.hear(false)
		m.end(statusCompleted)
		if m.rests() {
			break
		}
	}
	for id, state := range m.wants {
		if state == "open" {
			m.fail("want %s is left unsaid", id)
		}
	}
	if len(m.forwarded) != len(m.clientAsks) {
		m.fail("client asked %v, forwarded %v", m.clientAsks, m.forwarded)
	}
	if f := m.floor; len(f.calls)+len(f.runs)+len(f.carriers) > 0 || f.asked != nil || f.active != "" {
		m.fail("floor remembers too much: %+v", f)
	}
}

// rests tells that nothing is left to happen.
func (m *voiceModel) rests() bool {
	for _, state := range m.wants {
		if state == "open" {
			return false
		}
	}
	return len(m.up)+len(m.down)+len(m.late)+len(m.calls)+len(m.voice) == 0 && m.active == "" && m.outstanding == "" && len(m.forwarded) == len(m.clientAsks)
}
