package realtime

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
)

// loud is the most negative value of G.711 µ-law, as a byte and as a sample.
const (
	loud       = 0x00
	loudSample = -32124
)

// loudly returns an audio delta with half a second of it, in PCM16 or G.711.
func loudly(pcm bool) string {
	sound := bytes.Repeat([]byte{loud}, 500*8)
	if pcm {
		sound = bytes.Repeat(binary.LittleEndian.AppendUint16(nil, 0x10000+loudSample), 500*24)
	}
	return `{"type":"response.output_audio.delta","response_id":"r0","item_id":"i0","output_index":0,"content_index":0,` +
		`"delta":"` + base64.StdEncoding.EncodeToString(sound) + `"}`
}

// An earful is a model that receives the caller's sound between events.
type earful struct {
	*websocket.Conn
	t     *testing.T
	heard []byte
}

// next returns the next event, and keeps the sound that comes before it.
func (m *earful) next(want string) string {
	m.t.Helper()
	for {
		_ = m.SetReadDeadline(time.Now().Add(patience))
		_, event, err := m.ReadMessage()
		kind := events.PeekType(event)
		if err != nil || kind != want && kind != events.TypeAppend {
			m.t.Fatalf("want %s, got %s, %v", want, event, err)
		}
		if kind == events.TypeAppend {
			piece, err := base64.StdEncoding.DecodeString(gjson.GetBytes(event, "audio").String())
			if err != nil {
				m.t.Fatal(err)
			}
			m.heard = append(m.heard, piece...)
		}
		if kind == want {
			return string(event)
		}
	}
}

// bothHear checks that the caller and the model each hear the other's loudest sound.
func bothHear(t *testing.T, k kind, b *rtctest.Browser, model *earful) {
	t.Helper()
	b.Say(bytes.Repeat([]byte{loud}, 10*rtctest.FrameBytes))
	for enough := 8 * rtctest.FrameBytes * map[bool]int{false: 1, true: 6}[k.pcm]; len(model.heard) < enough; {
		model.next(events.TypeAppend)
	}
	if !k.pcm && model.heard[500] != loud {
		t.Errorf("the model hears %x", model.heard[500])
	} else if sample := int16(binary.LittleEndian.Uint16(model.heard[1000:])); k.pcm &&
		(sample < loudSample-500 || sample > loudSample*9/10) {
		t.Errorf("the model hears %d", sample)
	}
	for _, e := range append(k.begins("r0", ""), loudly(k.pcm), done("r0", "", events.StatusCompleted)) {
		send(t, model.Conn, e)
	}
	for level := byte(0xff); level > loud+8; { // the first sound passes the filter
		level = rtctest.Take(t, b.Packets, "a loud frame").Payload[rtctest.FrameBytes/2]
	}
}

// TestKindsOfModelsInABrowser puts those model servers that keep to their own sound behind a client that has G.711
// alone: both hear each other all the same, the client's configuration comes through, and work is handed over.
func TestKindsOfModelsInABrowser(t *testing.T) {
	for name, k := range kinds {
		if k = k.whole(); !k.pcm && name != "as OpenAI's" { // the others do the same to any client
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.router.on = func(v handoff.Voice, e handoff.VoiceEvent) {
				if call, ok := e.(handoff.FunctionCall); ok {
					v.Say(handoff.Utterance{ID: "a", CallID: call.CallID, Text: "{}", Floor: handoff.FloorAsk})
				}
			}
			b := rtctest.New(t, rtctest.Label)
			_, answer := post(t, h.desk(), "application/sdp", b.Offer())
			b.Accept(answer)
			model := &earful{Conn: rtctest.Take(t, h.model.conns, "model"), t: t}
			defer model.Close()
			updates := 0
			update := func() (asked string, answered bool) {
				asked = model.next(events.TypeSessionUpdate)
				updates++
				for _, e := range k.updates(updates, asked) {
					send(t, model.Conn, e)
					answered = true
				}
				return asked, answered
			}
			for range 3 { // what we need: tools and instructions, the caller's words, and the formats
				update()
			}
			rtctest.Event(t, b.Messages, events.TypeSessionCreated)

			bothHear(t, k, b, model)
			b.Send(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"mine",` +
				`"audio":{"output":{"voice":"cedar"}}}}`)
			asked, answered := update()
			if got := gjson.Get(asked, "session.audio.output.format.type").String(); (got == events.PCMU) == k.pcm {
				t.Errorf("the client's update asks for %s", got)
			}
			if answered {
				if got := rtctest.Event(t, b.Messages,
					events.TypeSessionUpdated); got.Get("session.instructions").String() != "mine" {
					t.Errorf("its update is answered with %s", got)
				}
			}
			it := callItem("k1", "call_1", "codex", events.StatusCompleted)
			for _, e := range append(k.begins("r1", ""), itemDone("r1", it), done("r1", "", events.StatusCompleted, it)) {
				send(t, model.Conn, e)
			}
			if up := model.next(events.TypeItemCreate); gjson.Get(up, "item.call_id").String() != "call_1" {
				t.Errorf("the request is answered with %s", up)
			}
			model.next(events.TypeCreate)
			for len(b.Messages) > 0 {
				if e := <-b.Messages; events.PeekType(e) == events.TypeError {
					t.Errorf("the client was told %s", e)
				}
			}
		})
	}
}
