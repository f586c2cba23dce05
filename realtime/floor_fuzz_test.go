package realtime

import (
	"fmt"
	"math/rand/v2"
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
	log   []string

	up   []string     // tags of asks on their way to the model
	down []floorEvent // on their way to the floor

	active, tag string // of the model's running response
	hasOutput   bool
	activeCalls int
	speaking    bool // as the model hears
	vadDue      bool
	responses   int

	seenActive   string // as the floor was told
	seenSpeaking bool
	seenPending  bool
	seenPlaying  bool
	manual       bool
	outstanding  string // ask on the wires
	clientAsks   []string
	forwarded    []string     // those that began, in order
	late         []floorEvent // ends that come only after the next response began
	timers       [timerKinds]int

	wants    map[string]string // id → open, given, silent, lost
	bad      map[string]int    // wants' failed or cut-short asks
	riding   map[string][]string
	calls    []string // open, oldest first
	callOf   map[string]string
	spokeIn  map[string]bool
	unlessOf map[string]string // want → response
	n        int
}

func newVoiceModel(t *testing.T) *voiceModel {
	m := &voiceModel{
		t: t, floor: newFloor(), wants: map[string]string{}, bad: map[string]int{}, riding: map[string][]string{},
		callOf: map[string]string{}, spokeIn: map[string]bool{}, unlessOf: map[string]string{},
	}
	m.tell(configured{})
	return m
}

func (m *voiceModel) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// tell hands an event to the floor and checks every effect against the invariants.
func (m *voiceModel) tell(e floorEvent) {
	m.t.Helper()
	m.log = append(m.log, fmt.Sprintf("%T%+v", e, e))
	m.account(e)
	for _, x := range slices.Clone(m.floor.step(e)) {
		m.log = append(m.log, fmt.Sprintf("    → %+v", x))
		switch x.kind {
		case effectAsk, effectForward:
			m.sent(x)
		case effectTimer:
			m.timers[x.timer] = x.gen
		case effectGiven, effectSilent, effectLost:
			m.resolved(x, e)
		}
	}
}

// account follows what the floor was told, apart from its own books.
func (m *voiceModel) account(e floorEvent) {
	switch e := e.(type) {
	case created:
		m.seenActive = e.response
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
			if e, ok := cause.(ended); !ok || e.tag == "" || e.status == statusFailed {
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

func (m *voiceModel) askTag(e floorEvent) string {
	switch e := e.(type) {
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
	m.active, m.tag, m.hasOutput, m.vadDue, m.activeCalls = fmt.Sprintf("r%d", m.responses), tag, false, false, 0
	m.down = append(m.down, created{m.active, tag})
	m.down = append(m.down, m.late...)
	m.late = nil
}

func (m *voiceModel) end(status string) {
	if m.active == "" {
		return
	}
	if status == statusFailed || status == statusCancelled {
		m.bad[m.tag]++
	}
	if status == statusCompleted && m.activeCalls == 0 {
		m.hasOutput = true
	}
	m.spokeIn[m.active] = m.spokeIn[m.active] || m.hasOutput
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

// play does one thing of the world.
func (m *voiceModel) play(b byte) {
	switch b % 19 {
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
		m.tell(clientAsked{id})
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
		m.end([]string{statusCancelled, statusFailed, statusIncomplete}[int(b)/19%3])
	case 13:
		m.speech(true)
	case 14:
		m.speech(false)
	case 15:
		m.tell(sounding{!m.seenPlaying})
	case 16:
		m.tell(elapsed{floorTimer(b/19) % 2, m.timers[floorTimer(b/19)%2]})
	case 17:
		m.call()
	case 18:
		if m.active != "" {
			m.hasOutput = true
			m.spokeIn[m.active] = true
			m.down = append(m.down, spoke{m.active})
		}
	}
}

// settle lets the world come to rest; everything wanted must then be resolved.
func (m *voiceModel) settle() {
	if m.manual {
		m.manual = false
		m.tell(listening{false, true})
	}
	for range 200 + 8*len(m.clientAsks) {
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
		m.tell(elapsed{timerVAD, m.timers[timerVAD]})
		m.tell(elapsed{timerSiblings, m.timers[timerSiblings]})
		m.hear(false)
		m.end(statusCompleted)
	}
	for id, state := range m.wants {
		if state == "open" {
			m.fail("want %s is left unsaid", id)
		}
	}
	if len(m.forwarded) != len(m.clientAsks) {
		m.fail("client asked %v, forwarded %v", m.clientAsks, m.forwarded)
	}
	if f := m.floor; len(f.calls)+len(f.runs)+len(f.carriers)+f.open > 0 || f.asked != nil || f.active != "" {
		m.fail("floor remembers too much: %+v", f)
	}
}

func FuzzFloor(f *testing.F) {
	f.Add([]byte{0, 10, 5, 8, 8, 11, 7, 7, 7})
	f.Add([]byte{4, 0, 13, 8, 14, 8, 10, 5, 8, 8, 11, 7, 7})
	f.Add([]byte{4, 5, 17, 17, 18, 11, 7, 7, 7, 7, 7, 1, 16, 35, 2, 5, 12, 7, 7, 7, 7})
	f.Add([]byte{200, 0, 5, 31, 7, 7, 7, 5, 12, 7, 7, 0xf5, 7})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			script = script[:400]
		}
		m := newVoiceModel(t)
		for i, b := range script {
			if i == 0 && b >= 200 {
				m.manual = true
				m.tell(listening{true, false})
				continue
			}
			m.play(b)
		}
		m.settle()
	})
}

// TestFloorAtRandom plays many worlds on every run, so that the invariants do not wait for a fuzzer.
func TestFloorAtRandom(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 7))
		m := newVoiceModel(t)
		if seed%5 == 0 {
			m.manual = true
			m.tell(listening{true, false})
		}
		for range 60 + random.IntN(200) {
			m.play(byte(random.IntN(256)))
		}
		m.settle()
	}
}
