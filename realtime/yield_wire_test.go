package realtime

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/realtime/rtc"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// recorded returns the sound of somebody who names a card, from Debian's package pocketsphinx-testdata, as PCM16 at the
// rate of the API: the recording has two thirds of its samples.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	wav, err := os.ReadFile("/usr/share/pocketsphinx/test/data/cards/" + name)
	if err != nil {
		t.Fatalf("no recorded speech: install Debian's package pocketsphinx-testdata, or run .ci/tools: %v", err)
	}
	wav = wav[44:]
	var pcm []byte
	for i := range len(wav) / 2 * 3 / 2 {
		pcm = binary.LittleEndian.AppendUint16(pcm, binary.LittleEndian.Uint16(wav[i*2/3*2:]))
	}
	return pcm
}

// TestYieldsToRecordedSpeech plays recorded speech into a long answer, which a page plays itself or gets from us:
// bursts as short as a murmur do not stop it, also while the answer is being made, and the sentence after them does,
// over and over.
func TestYieldsToRecordedSpeech(t *testing.T) {
	t.Run("a page that plays the sound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := &successor{wire: newWire(), over: make(chan struct{})}
			yieldsToRecordedSpeech(t, client, true, "handoff.cut", client.sent)
		})
	})
	t.Run("a page whose sound is played here", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			told := newWire()
			client := rtc.NewBooth(func(time.Time, string) {}, func(event []byte) { told.Send(event) })
			yieldsToRecordedSpeech(t, client, false, "output_audio_buffer.cleared", told.sent)
		})
	})
}

// yieldsToRecordedSpeech does so with a client that says by an event that it stops the sound.
func yieldsToRecordedSpeech(t *testing.T, client connection, tells bool, stops string, sent func() []string) {
	lines := rtctest.NewPipes()
	script := func(h simulator.Heard) []simulator.Move {
		if len(h.Texts) == 0 { // sound, of which the model finds no words
			return nil
		}
		return []simulator.Move{simulator.Say{Text: strings.Repeat("It goes on. ", 60)}}
	}
	front, err := NewFront(Config{ModelURL: "ws://127.0.0.1:1/v1/realtime", Model: "simulator", Router: &listener{}, Tools: ours,
		Dial: lines.Dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = simulator.New(simulator.Config{Script: script}).Serve(ctx, lines) })
	pass, fault := front.quota.enter(ctx, someone)
	if fault != nil {
		t.Fatal(fault)
	}
	model, fault := front.provider.dialModel(ctx, "simulator", http.Header{})
	if fault != nil {
		t.Fatal(fault)
	}
	call := front.admit(someone, "rtc_1", 0, client, model, func(c *Call) {
		c.legs.takesOurs, c.hearing.yielding.lowers = tells, true
	})
	running.Go(func() { _ = front.serve(ctx, call, client, model, pass) })
	time.Sleep(time.Second)
	say := func(event string) { call.takeFrom(client)([]byte(event)) }
	cuts := func() (n, cancelled, began int) {
		for _, event := range sent() {
			switch gjson.Get(event, "type").String() {
			case stops:
				n++
			case "response.done":
				if gjson.Get(event, "response.status").String() == "cancelled" {
					cancelled++
				}
			case "input_audio_buffer.speech_started":
				began++
			}
		}
		return n, cancelled, began
	}
	hears := func(pcm []byte) { // a second of silence after it
		const piece = 24 * 2 * 40 // bytes of 40 ms
		pcm = append(pcm[:len(pcm):len(pcm)], make([]byte, 25*piece)...)
		for ; len(pcm) >= piece; pcm = pcm[piece:] {
			say(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm[:piece]) + `"}`)
			time.Sleep(40 * time.Millisecond)
		}
		synctest.Wait()
	}
	say(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{` +
		`"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-4o-mini-transcribe"},` +
		`"turn_detection":{"type":"server_vad","interrupt_response":false}}}}}`)
	const ms = 24 * 2 // bytes
	first := recorded(t, "001.wav")
	burst := first[330*ms : 680*ms]
	for _, name := range []string{"001.wav", "002.wav", "003.wav", "004.wav", "005.wav"} {
		say(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"tell me"}]}}`)
		say(`{"type":"response.create"}`)
		time.Sleep(2 * time.Second)
		for i := range 3 {
			cuts()
			if hears(burst); i > 0 {
				time.Sleep(time.Second)
			}
			if n, cancelled, began := cuts(); n != 0 || cancelled != 0 || began != 1 {
				t.Errorf("%s: burst %d is noticed %d times, cuts %d and cancels %d", name, i, began, n, cancelled)
			}
		}
		hears(recorded(t, name))
		if n, _, began := cuts(); n != 1 || began == 0 {
			t.Errorf("%s is noticed %d times, and cuts %d", name, began, n)
		}
		time.Sleep(2 * time.Second)
	}
	call.hangUp()
	stop()
	running.Wait()
	pass.leave()
}
