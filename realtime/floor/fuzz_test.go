package floor

import (
	"math/rand/v2"
	"testing"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

func FuzzFloor(f *testing.F) {
	f.Add([]byte{0, 10, 5, 8, 8, 11, 7, 7, 7})
	f.Add([]byte{4, 0, 13, 8, 14, 8, 10, 5, 8, 8, 11, 7, 7})
	f.Add([]byte{4, 5, 17, 17, 18, 11, 7, 7, 7, 7, 7, 1, 16, 16 + worldMoves, 2, 5, 12, 7, 7, 7, 7})
	f.Add([]byte{200, 0, 5, 12 + worldMoves, 7, 7, 7, 5, 12, 7, 7, 17 + 8*worldMoves, 7})
	f.Add([]byte{0, 5, 19, 7, 7, 11, 7, 7, 20, 0, 5, 19, 7, 7, 21, 13, 7, 7, 14, 7, 16})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			script = script[:400]
		}
		m := newVoiceModel(t)
		for i, b := range script {
			if i == 0 && b >= 200 {
				m.manual = true
				m.tell(Listening{true, false})
				continue
			}
			m.play(b)
		}
		m.finish()
	})
}

// TestFloorAtRandom plays many worlds on every run, so that the invariants do not wait for a fuzzer. There
// are few enough of them for a loaded machine.
func TestFloorAtRandom(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		m := newVoiceModel(t)
		if seed%5 == 0 {
			m.manual = true
			m.tell(Listening{true, false})
		}
		for range 60 + random.IntN(200) {
			m.play(byte(random.IntN(256)))
		}
		m.finish()
	}
}

// finish lets the world come to rest; everything wanted must then be resolved.
func (m *voiceModel) finish() {
	if m.manual {
		m.manual = false
		m.tell(Listening{false, true})
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
		m.tell(Sounding{false})
		for range len(m.voice) {
			m.hears(HeardWhole)
		}
		for _, t := range patientTimers {
			m.elapse(t)
		}
		m.hear(false)
		m.end(events.StatusCompleted)
		if m.rests() {
			break
		}
	}
	for id, state := range m.utterances {
		if state == "open" {
			m.fail("utterance %s is left unsaid", id)
		}
	}
	if len(m.forwarded) != len(m.clientAsks) {
		m.fail("client asked %v, forwarded %v", m.clientAsks, m.forwarded)
	}
	if f := m.floor; len(f.calls)+len(f.runs)+len(f.responses) > 0 || f.asked != nil || f.active != "" {
		m.fail("floor remembers too much: %+v", f)
	}
}

// rests reports whether nothing is left to happen.
func (m *voiceModel) rests() bool {
	for _, state := range m.utterances {
		if state == "open" {
			return false
		}
	}
	return len(m.up)+len(m.down)+len(m.late)+len(m.calls)+len(m.voice) == 0 && m.active == "" && m.outstanding == "" &&
		len(m.forwarded) == len(m.clientAsks)
}
