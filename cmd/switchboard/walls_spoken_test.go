package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/realtime/simulator"
)

// TestSpokenYesOverALostSession: the session of the voice is lost after a question was heard, or in the middle of the
// caller's "yes". Either way the yes, which they say once, is heard by the next session and is evidence.
func TestSpokenYesOverALostSession(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		lost time.Duration // in the course of the yes, of whose sound there is a second; 0: before it
	}{{"before the yes", 0}, {"in the yes", 880 * time.Millisecond}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			now, state := make(chan simulator.Event), t.TempDir()
			words := make(chan string, 1)
			words <- "yes"
			voice := runsVoice(t, simulator.Config{Hurry: 5, Events: now, Words: words})
			r := start(t, func(p *plan) {
				p.Hurry, p.StateDir, p.Model = 5, state, voice
			})
			p := r.call()
			p.say(`codex {"server":"bigpc","thread_id":"auth refactor","prompt":"push it"}`)
			p.listen("git push origin auth-refactor")
			lose := func() {
				now <- simulator.Close{}
				until(t, "another session", func() bool { return strings.Contains(r.logs.String(), "voice model's session renewed") })
			}
			if row.lost == 0 {
				lose()
			}
			for spoken := time.Duration(0); spoken < 2*time.Second; spoken += 40 * time.Millisecond {
				p.send(fmt.Sprintf(`{"type":"input_audio_buffer.append","audio":%q}`, sound(40*time.Millisecond, spoken < time.Second)))
				if row.lost != 0 && spoken == row.lost {
					lose()
				}
				time.Sleep(40 * time.Millisecond)
			}
			if rec := r.ended("push it"); !strings.Contains(rec.Text, "is pushed") {
				t.Errorf("it ended with %+v", rec)
			}
			if got := audited(t, state); !slices.Equal(got, []string{"accept by voice, medium, on bigpc"}) {
				t.Errorf("audit %q", got)
			}
		})
	}
}

// sound is PCM16 of 24 kHz, loud as speech or silent.
func sound(lasts time.Duration, loud bool) string {
	pcm := make([]byte, 2*int(lasts*24000/time.Second))
	for i := 0; loud && i < len(pcm)/2; i++ {
		v := int16(8000 * math.Sin(float64(i)/10))
		pcm[2*i], pcm[2*i+1] = byte(v), byte(v>>8)
	}
	return base64.StdEncoding.EncodeToString(pcm)
}
