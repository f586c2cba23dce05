package floor

import (
	"math/rand/v2"
	"testing"
)

func FuzzFloor(f *testing.F) {
	f.Add([]byte{0, 10, 5, 8, 8, 11, 7, 7, 7})
	f.Add([]byte{4, 0, 13, 8, 14, 8, 10, 5, 8, 8, 11, 7, 7})
	f.Add([]byte{4, 5, 17, 17, 18, 11, 7, 7, 7, 7, 7, 1, 16, 16 + worldMoves, 2, 5, 12, 7, 7, 7, 7})
	f.Add([]byte{200, 0, 5, 12 + worldMoves, 7, 7, 7, 5, 12, 7, 7, 17 + 10*worldMoves, 7})
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
		m.settle()
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
		m.settle()
	}
}
