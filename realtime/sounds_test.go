package realtime

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// Sound reaches everybody as it was, in order, although its room is used again and again.
func TestSoundIsNotMixedUp(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	other := h.besideIt(h.front.Calls(someone)[0].ID)
	expect(t, other, "session.created")
	send(t, model, began("r1", ""))
	expect(t, client, "response.created")
	expect(t, other, "response.created")
	const events = 500
	sound := func(kind, key string, n int) string {
		return fmt.Sprintf(`{"type":%q,"response_id":"r1","item_id":"i1",%q:"%s"}`, kind, key, strings.Repeat(fmt.Sprintf("%04d", n), 1+n%900))
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "input_audio_buffer.clear")
	go func() {
		for n := range events {
			_ = model.WriteMessage(websocket.TextMessage, []byte(sound("response.output_audio.delta", "delta", n)))
		}
	}()
	go func() {
		for n := range events {
			_ = client.WriteMessage(websocket.TextMessage, []byte(sound("input_audio_buffer.append", "audio", n)))
		}
	}()
	for n := range events {
		for _, far := range []*websocket.Conn{client, other} {
			if got := expect(t, far, "response.output_audio.delta"); got != sound("response.output_audio.delta", "delta", n) {
				t.Fatalf("delta %d is %.80s", n, got)
			}
		}
		if got := expect(t, model, "input_audio_buffer.append"); got != sound("input_audio_buffer.append", "audio", n) {
			t.Fatalf("append %d is %.80s", n, got)
		}
	}
}

// What is lent is given back, within its bounds, and only sound is.
func TestRoomForSounds(t *testing.T) {
	var r soundRoom
	sound := []byte(`{"type":"input_audio_buffer.append","audio":"AAAA"}`)
	first, _ := r.read(bytes.NewReader(sound))
	r.give(first)
	if second, err := r.read(bytes.NewReader(sound)); &first[0] != &second[0] || string(second) != string(sound) || err != nil {
		t.Error("room is not used again")
	}
	r.give(first)
	if other, _ := r.read(strings.NewReader(`{"type":"response.create"}`)); &other[0] == &first[0] || len(r.free) != 1 {
		t.Error("an event that may be kept is in room that is lent")
	}
	r.take()
	r.give([]byte(`{"type":"response.create"}`))
	r.give(append([]byte(`{"type":"input_audio_buffer.append","audio":"`), make([]byte, maxSound)...))
	if len(r.free) != 0 {
		t.Errorf("%d wait", len(r.free))
	}
	for range 2 * keptSounds {
		r.give(append([]byte(nil), sound...))
	}
	if len(r.free) != keptSounds {
		t.Errorf("%d wait", len(r.free))
	}
}
