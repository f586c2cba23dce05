package simulator

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// recordings are people who name cards, from Debian's package pocketsphinx-testdata: WAV of 16 kHz, mono, 16 bit.
const recordings = "/usr/share/pocketsphinx/test/data/cards"

// recorded returns the sound of a recording.
func recorded(t *testing.T, name string) []int16 {
	t.Helper()
	wav, err := os.ReadFile(filepath.Join(recordings, name))
	if err != nil {
		t.Fatalf("no recorded speech: install Debian's package pocketsphinx-testdata, or run .ci/tools: %v", err)
	}
	const head = 44
	pcm := make([]int16, (len(wav)-head)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(wav[head+2*i:]))
	}
	return pcm
}

// detected plays sound, and a second of silence after it, to voice detection as it is by default. It returns when
// speech was noticed first, and how often.
func detected(sound []int16, rate int) (first time.Duration, times int) {
	sound = append(sound[:len(sound):len(sound)], make([]int16, rate)...)
	set := vadSettings{level: 0.5 * quietRMS, silence: 500 * time.Millisecond}
	var d detector
	for at := 0; at < len(sound); {
		n, change := d.samples(sound[at:], rate, set)
		at += n
		if change != vadStarted {
			continue
		}
		if times++; times == 1 {
			first = time.Duration(at) * time.Second / time.Duration(rate)
		}
	}
	return first, times
}

// loudest returns where the loudest stretch of so many samples begins.
func loudest(sound []int16, n int) (at int) {
	best, sum := 0.0, 0.0
	for i, v := range sound {
		sum += float64(v) * float64(v)
		if i < n {
			continue
		}
		gone := float64(sound[i-n])
		if sum -= gone * gone; sum > best {
			best, at = sum, i-n+1
		}
	}
	return at
}

// TestRecordedSpeech holds voice detection to what people sound like: speech is noticed half a second after its loudest
// word at the latest, what is as short as a cough never is, nor what is murmured far from the microphone.
func TestRecordedSpeech(t *testing.T) {
	const rate, cough = 16000, 16000 * 150 / 1000
	for _, name := range []string{"001.wav", "002.wav", "003.wav", "004.wav", "005.wav"} {
		sound := recorded(t, name)
		loud := time.Duration(loudest(sound, rate/5)) * time.Second / rate
		if first, times := detected(sound, rate); times == 0 || first > loud+500*time.Millisecond {
			t.Errorf("%s is noticed %d times, first after %v; it is loudest after %v", name, times, first, loud)
		}
		at := loudest(sound, cough)
		if _, times := detected(sound[at:at+cough], rate); times != 0 {
			t.Errorf("150 ms of %s are noticed", name)
		}
		murmur := make([]int16, len(sound))
		for i, v := range sound {
			murmur[i] = v / 32 // 30 dB less
		}
		if _, times := detected(murmur, rate); times != 0 {
			t.Errorf("%s is noticed from afar", name)
		}
	}
}
