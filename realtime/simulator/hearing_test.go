package simulator

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tone makes a sine of 300 Hz, amplitude 0 is silence.
func tone(rate int, d time.Duration, amplitude float64) []int16 {
	out := make([]int16, int(d*time.Duration(rate)/time.Second))
	for i := range out {
		out[i] = int16(amplitude * math.Sin(2*math.Pi*300*float64(i)/float64(rate)))
	}
	return out
}

// coded writes samples in a format. The companded ones are found by trying all 256 bytes.
func coded(f format, samples []int16) []byte {
	if f.Type == formatPCM {
		out := make([]byte, 0, 2*len(samples))
		for _, s := range samples {
			out = append(out, byte(s), byte(uint16(s)>>8))
		}
		return out
	}
	var decode func(byte) int16 = fromMulaw
	if f.Type == formatPCMA {
		decode = fromAlaw
	}
	near := map[int16]byte{}
	out := make([]byte, 0, len(samples))
	for _, s := range samples {
		b, ok := near[s]
		if !ok {
			best := math.MaxInt
			for c := range 256 {
				if d := int(decode(byte(c))) - int(s); max(d, -d) < best {
					best, b = max(d, -d), byte(c)
				}
			}
			near[s] = b
		}
		out = append(out, b)
	}
	return out
}

func formats() []format { return []format{{formatPCM, 24000}, {Type: formatPCMU}, {Type: formatPCMA}} }

// play sends sound in frames of 20 ms and a bit, as an odd client would.
func (w *world) play(f format, samples []int16) {
	w.t.Helper()
	data := coded(f, samples)
	for chunk := range slices.Chunk(data, f.rate()/50*len(coded(f, []int16{0}))+1) {
		w.send(`{"type":"input_audio_buffer.append","audio":%q}`, base64.StdEncoding.EncodeToString(chunk))
	}
}

func (w *world) hears(f format) {
	w.t.Helper()
	w.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"format":{"type":%q},`+
		`"transcription":{"model":"whisper-1"}}}}}`, f.Type)
	w.take()
}

func TestG711(t *testing.T) {
	for b, want := range map[byte]int16{0xff: 0, 0x7f: 0, 0x00: -32124, 0x80: 32124, 0xfe: 8, 0x7e: -8} {
		if got := fromMulaw(b); got != want {
			t.Errorf("mu-law %#x is %d, want %d", b, got, want)
		}
	}
	for b, want := range map[byte]int16{0xd5: 8, 0x55: -8, 0xaa: 32256, 0x2a: -32256} {
		if got := fromAlaw(b); got != want {
			t.Errorf("A-law %#x is %d, want %d", b, got, want)
		}
	}
}

func TestSpeechIsDetected(t *testing.T) {
	for _, f := range formats() {
		w := newWorld(t, brainOf())
		w.hears(f)
		w.play(f, tone(f.rate(), time.Second, 0))
		w.play(f, tone(f.rate(), 180*time.Millisecond, 6000))
		if got := w.take(); len(got) != 0 {
			t.Fatalf("%s: before 200 ms of speech: %v", f.Type, types(got))
		}
		w.play(f, tone(f.rate(), 600*time.Millisecond, 6000))
		started := one(t, w.take(), "input_audio_buffer.speech_started")
		if ms := started.Get("audio_start_ms").Int(); ms != 700 { // the prefix of 300 ms before 1000
			t.Errorf("%s: speech began at %d", f.Type, ms)
		}
		w.play(f, tone(f.rate(), 470*time.Millisecond, 3))
		if got := w.take(); len(got) != 0 {
			t.Fatalf("%s: before 500 ms of silence: %v", f.Type, types(got))
		}
		w.play(f, tone(f.rate(), 100*time.Millisecond, 3))
		got := w.take()
		want := []string{
			"input_audio_buffer.speech_stopped", "input_audio_buffer.committed", "conversation.item.added",
			"conversation.item.done",
			"conversation.item.input_audio_transcription.completed", "response.created", "response.output_item.added",
			"conversation.item.added", "response.content_part.added", "response.output_audio_transcript.delta",
			"response.output_audio.delta",
		}
		if diff := cmp.Diff(want, types(got)); diff != "" {
			t.Errorf("%s: %s", f.Type, diff)
		}
		for _, e := range got[:5] {
			if id := e.Get("item_id").Str + e.Get("item.id").Str; id != started.Get("item_id").Str {
				t.Errorf("%s is about %s", e.Get("type"), id)
			}
		}
		w.pass(time.Minute)
		if said := one(t, w.take(), "response.done").Get("response.output.0.content.0.transcript").Str; said != sayNoWords {
			t.Errorf("%s: said %q", f.Type, said)
		}
	}
}

// A quiet room, the beeps of Chrome's fake microphone, a cough, and the simulator's own voice are no speech.
func TestNoiseIsNoSpeech(t *testing.T) {
	for _, f := range formats() {
		beeps := []int16{}
		for range 20 {
			beeps = append(beeps, tone(f.rate(), 60*time.Millisecond, 20000)...)
			beeps = append(beeps, tone(f.rate(), 440*time.Millisecond, 0)...)
		}
		murmur, _ := base64.StdEncoding.DecodeString(f.murmur())
		own, _ := f.decodeSamples(slices.Repeat(murmur, 30))
		for name, sound := range map[string][]int16{
			"silence": tone(f.rate(), 3*time.Second, 0), "a quiet room": tone(f.rate(), 3*time.Second, 150), "beeps": beeps,
			"a cough":                   append(tone(f.rate(), 150*time.Millisecond, 20000), tone(f.rate(), time.Second, 0)...),
			"the simulator's own voice": own,
		} {
			w := newWorld(t, brainOf())
			w.hears(f)
			w.play(f, sound)
			if got := w.take(); len(got) != 0 {
				t.Errorf("%s: %s is speech: %v", f.Type, name, types(got))
			}
		}
	}
}

func TestSilenceAfterSpeechEndsDespiteBeeps(t *testing.T) {
	f := formats()[0]
	w := newWorld(t, brainOf())
	w.hears(f)
	w.play(f, tone(f.rate(), 500*time.Millisecond, 6000))
	for range 3 {
		w.play(f, tone(f.rate(), 440*time.Millisecond, 0))
		w.play(f, tone(f.rate(), 60*time.Millisecond, 6000))
	}
	one(t, w.take(), "input_audio_buffer.speech_stopped")
}

func TestPausesBelongToSpeech(t *testing.T) {
	f := formats()[1]
	w := newWorld(t, brainOf())
	w.hears(f)
	for range 5 {
		w.play(f, tone(f.rate(), 300*time.Millisecond, 6000))
		w.play(f, tone(f.rate(), 300*time.Millisecond, 0))
	}
	if diff := cmp.Diff([]string{"input_audio_buffer.speech_started"}, types(w.take())); diff != "" {
		t.Error(diff)
	}
}

func TestBargeIn(t *testing.T) {
	for _, interrupt := range []bool{true, false} {
		w := newWorld(t, func(h Heard) []Move {
			if h.Said("stop that") {
				return says("fine")
			}
			return says("one two three four five six seven eight nine ten")
		})
		w.s.words = speech("stop that")
		w.send(`{"type":"session.update","session":{"type":"realtime",`+
			`"audio":{"input":{"turn_detection":{"type":"server_vad","interrupt_response":%v}}}}}`, interrupt)
		w.send(`{"type":"response.create"}`)
		w.pass(time.Second)
		w.take()
		f := formats()[0]
		w.play(f, tone(f.rate(), 400*time.Millisecond, 6000))
		got := w.take()
		if interrupt {
			want := []string{
				"input_audio_buffer.speech_started", "response.output_audio.done", "response.output_audio_transcript.done",
				"response.content_part.done", "response.output_item.done", "conversation.item.done", "rate_limits.updated",
				"response.done",
			}
			if diff := cmp.Diff(want, types(got)); diff != "" {
				t.Error(diff)
			}
			done := one(t, got, "response.done").Get("response")
			if done.Get("status").Str != "cancelled" || done.Get("status_details.reason").Str != "turn_detected" {
				t.Error(done.Raw)
			}
		} else if diff := cmp.Diff([]string{"input_audio_buffer.speech_started"}, types(got)); diff != "" {
			t.Error(diff)
		}
		w.play(f, tone(f.rate(), 600*time.Millisecond, 0))
		w.pass(time.Minute)
		dones := all(append(got, w.take()...), "response.done")
		said := dones[len(dones)-1].Get("response.output.0.content.0.transcript").Str
		if interrupt && (len(dones) != 2 || said != "fine") || !interrupt && (len(dones) != 1 || !strings.HasPrefix(said, "one")) {
			t.Errorf("interrupt %v: %d responses, the last says %q", interrupt, len(dones), said)
		}
	}
}

// With create_response off the client asks for the response itself.
func TestDetectionAlone(t *testing.T) {
	w := newWorld(t, brainOf())
	w.send(`{"type":"session.update","session":{"type":"realtime",` +
		`"audio":{"input":{"turn_detection":{"type":"server_vad","create_response":false}}}}}`)
	w.take()
	f := formats()[0]
	w.play(f, tone(f.rate(), time.Second, 6000))
	w.play(f, tone(f.rate(), time.Second, 0))
	w.pass(time.Minute)
	want := []string{
		"input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed",
		"conversation.item.added", "conversation.item.done",
	}
	if diff := cmp.Diff(want, types(w.take())); diff != "" {
		t.Error(diff)
	}
}

func TestCommitByHand(t *testing.T) {
	w := newWorld(t, func(h Heard) []Move { return says(h.Texts[0]) })
	w.s.words = speech("fix it")
	w.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null,` +
		`"transcription":{"model":"whisper-1"}}}}}`)
	w.take()
	f := formats()[0]
	w.play(f, tone(f.rate(), 90*time.Millisecond, 9000))
	w.take()
	w.send(`{"type":"input_audio_buffer.commit","event_id":"c"}`)
	w.fails("input_audio_buffer_commit_empty", "c")
	w.play(f, tone(f.rate(), time.Second, 9000))
	if got := w.take(); len(got) != 0 {
		t.Errorf("detection is off: %v", types(got))
	}
	w.send(`{"type":"input_audio_buffer.commit"}`)
	got := w.take()
	want := []string{
		"input_audio_buffer.committed", "conversation.item.added", "conversation.item.done",
		"conversation.item.input_audio_transcription.delta", "conversation.item.input_audio_transcription.completed",
	}
	if diff := cmp.Diff(want, types(got)); diff != "" {
		t.Error(diff)
	}
	if e := got[1]; e.Get("item.content.0.type").Str != "input_audio" ||
		e.Get("item.content.0.transcript").Raw != "null" {
		t.Error(e.Raw)
	}
	if e := got[4]; e.Get("transcript").Str != "fix it" || !e.Get("usage.type").Exists() {
		t.Error(e.Raw)
	}
	w.send(`{"type":"input_audio_buffer.commit","event_id":"c"}`)
	w.fails("input_audio_buffer_commit_empty", "c")
	w.send(`{"type":"response.create"}`)
	w.pass(time.Minute)
	if said := one(t, w.take(), "response.done").Get("response.output.0.content.0.transcript").Str; said != "fix it" {
		t.Errorf("understood %q", said)
	}
}

func TestClearForgetsSpeech(t *testing.T) {
	w := newWorld(t, brainOf())
	f := formats()[0]
	w.play(f, tone(f.rate(), 400*time.Millisecond, 9000))
	w.take()
	w.send(`{"type":"input_audio_buffer.clear"}`)
	w.play(f, tone(f.rate(), time.Second, 0))
	if diff := cmp.Diff([]string{"input_audio_buffer.cleared"}, types(w.take())); diff != "" {
		t.Error(diff)
	}
}

// Spoken sentences of a script arrive as detected speech with its words.
func TestHear(t *testing.T) {
	w := newWorld(t, func(h Heard) []Move { return []Move{Call{Tool: strings.Join(h.Texts, ""), Arguments: "{}"}} })
	w.send(`{"type":"session.update","session":{"type":"realtime",` +
		`"audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
	w.take()
	w.s.happen(w.now, Hear{Text: "Which machines do I have?", For: 2 * time.Second})
	w.drain()
	one(t, w.take(), "input_audio_buffer.speech_started")
	w.pass(1900 * time.Millisecond)
	if got := w.take(); len(got) != 0 {
		t.Errorf("while they speak: %v", types(got))
	}
	w.pass(time.Second)
	got := w.take()
	e := one(t, got, "conversation.item.input_audio_transcription.completed")
	if e.Get("transcript").Str != "Which machines do I have?" {
		t.Error(e.Raw)
	}
	if e := one(t, got, "input_audio_buffer.speech_stopped"); e.Get("audio_end_ms").Int() != 2000 {
		t.Error(e.Raw)
	}
	if call := one(t, got, "response.done").Get("response.output.0.name").Str; call != "Which machines do I have?" {
		t.Errorf("called %q", call)
	}
}
