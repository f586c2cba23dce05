package rtc

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// Sound of more responses and items than the bounds allow is dropped and counted.
func TestPlayerIsBoundedInItems(t *testing.T) {
	p := newPlayer(narrow)
	for i := range 2 * maxResponses {
		p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"` + fmt.Sprint("id_", i) +
			`","item_id":"i","delta":"AAAA"}`))
		p.fromModel([]byte(`{"type":"response.output_audio.delta","response_id":"one","item_id":"` + fmt.Sprint("id_", i) +
			`","delta":"AAAA"}`))
	}
	if len(p.responses) > maxResponses || len(p.queue) > maxResponses || p.dropped == 0 {
		t.Errorf("%d responses, %d sounds, %d dropped", len(p.responses), len(p.queue), p.dropped)
	}
	for _, s := range p.queue {
		if len(s.clips) > maxClips {
			t.Errorf("%d items", len(s.clips))
		}
	}
}

// Responses without an end are bounded in number, and their ids in length.
func TestPlayerIsBoundedInResponses(t *testing.T) {
	p := newPlayer(narrow)
	p.fromModel([]byte(began(strings.Repeat("r", events.MaxID+1))))
	if len(p.live) != 0 {
		t.Error("a long id is kept")
	}
	for i := range 2 * maxResponses {
		p.fromModel([]byte(began(fmt.Sprint("id_", i))))
		p.fromModel([]byte(sounds(fmt.Sprint("id_", i), "i", 20, 1)))
		p.fromModel([]byte(`{"type":"input_audio_buffer.speech_started"}`))
	}
	if len(p.live) != maxResponses || len(p.muted) > 2*maxResponses || len(p.responses) > maxResponses {
		t.Errorf("%d are made, %d muted, %d shown", len(p.live), len(p.muted), len(p.responses))
	}
}

// An event of a client that nests too deep is passed to the call unparsed, as parsers recurse.
func TestDeepMessages(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	p := newPlayer(narrow)
	for _, kind := range []string{events.TypeSessionUpdate, events.TypeCreate, events.TypeAppend, "x"} {
		frame := []byte(`{"type":"` + kind + `","event_id":"e7","session":{"audio":{}},"a":` + strings.Repeat("[", 1_000_000))
		if got := p.fromClient(frame); len(got.up) != 1 || !bytes.Equal(got.up[0], frame) || len(got.down) != 0 {
			t.Errorf("%s was not left to the call", kind)
		}
	}
}

// FuzzDataChannel gives a player events of its client and of the model in turn, and plays on between them.
// A client never passes sound, or what only a leg says.
func FuzzDataChannel(f *testing.F) {
	seeds := []string{
		freshSession + "\n" + began("r1") + "\n" + sounds("r1", "i", 20, 1) + "\n" + made("r1"),
		`{"type":"session.update","session":{"tools":[{"name":"codex"}],"audio":{"input":null}}}`,
		`{"type":"response.create"}` + "\n" + `{"type":"response.create","response":{"audio":{"output":{"format":7}}}}`,
		`{"type":"input_audio_buffer.append","audio":"AAAA"}`,
		`{"type":"error","error":{"code":"x","event_id":"e1","message":"format"}}`,
		`{"type":"` + events.TypePlayed + `","response_id":"r1"}`,
		`{"type":"x","a":` + strings.Repeat("[", 200) + "\n{]\n\x00\n[]\n",
	}
	for _, seed := range seeds {
		f.Add(seed, seed)
	}
	f.Add(`{"type":"output_audio_buffer.clear"}`+"\n"+`{"type":"session.update","session":{"audio":{}}}`,
		sounds("r1", "i", 20, 1))
	f.Fuzz(func(t *testing.T, client, model string) {
		p := newPlayer(narrow)
		ours := strings.SplitN(model, "\n", 20)
		for i, frame := range strings.SplitN(client, "\n", 20) {
			for _, e := range p.fromClient([]byte(frame)).up {
				kind := events.PeekType(e)
				if !handoff.TooDeep(e) && (kind == events.TypeAppend ||
					(kind == events.TypePlayed || kind == events.TypeFormats || kind == events.TypeOpened) && string(e) == frame) {
					t.Fatalf("passed %s", e)
				}
			}
			if i < len(ours) && !handoff.TooDeep([]byte(ours[i])) {
				p.fromModel([]byte(ours[i]))
			}
			p.next()
		}
		if p.queued < 0 || p.queued > maxPlayback || len(p.live) > maxResponses {
			t.Fatalf("%d bytes wait, %d responses are made", p.queued, len(p.live))
		}
	})
}
