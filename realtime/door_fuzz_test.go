package realtime

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc"
)

// The doors of a call, whole: what comes need not even be JSON. Wires are without a bound here, so that only
// the door decides.

// doorSeeds are frames that matter at either door, one a line.
var doorSeeds = []string{
	freshSession + "\n" +
		`{"type":"session.updated","session":{"tools":[{"type":"function","name":"codex"}],"instructions":"x"}}`,
	began("r1", "c1") + "\n" + itemDone("r1", callItem("k1", "c1", "codex", "completed")) + "\n" +
		done("r1", "c1", "completed", callItem("k1", "c1", "codex", "completed")),
	itemAdded(callItem("k1", "c1", "codex", "")) + "\n" +
		`{"type":"conversation.item.done","previous_item_id":"k1","item":{"id":"k1"}}`,
	`{"type":"session.update","session":{"tools":[{"name":"codex"}],"tool_choice":"required","audio":{"input":null}}}`,
	`{"type":"response.create"}` + "\n" +
		`{"type":"response.create","response":{"conversation":"none","tools":[],"input":[]}}` + "\n" +
		`{"type":"response.cancel"}`,
	`{"type":"input_audio_buffer.append","audio":"AAAA"}` + "\n" + `{"type":"input_audio_buffer.commit"}`,
	`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",` +
		`"text":"hi"}]}}`,
	`{"type":"error","error":{"code":"conversation_already_has_active_response","event_id":"e1"}}`,
	`{"type":"response.output_audio.delta","response_id":"r1","item_id":"i","delta":"AAAA"}`,
	`{"type":"input_audio_buffer.speech_started","audio_start_ms":-1,"item_id":"` + strings.Repeat("i", 300) + `"}`,
	`{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":1e99}` + "\n" + `{"type":"` + events.TypePlayed +
		`","response_id":"r1"}`,
	`{"type":"x","a":` + strings.Repeat("[", 200) + "\n{]\n\x00\n[]\n",
}

// throughDoor gives a call frames, one a line, at one of its doors, and returns what it sent to either side. The other
// side goes on meanwhile.
func throughDoor(frames string, door func(*Call, []byte)) (toClient, toModel []string) {
	client, model := newWire(), newWire()
	c := newCall(someone, ours, "rtc_fuzz", client, model, nopLog())
	c.fromModel([]byte(freshSession))
	c.fromModel([]byte(began("r0", "")))
	c.fromModel([]byte(itemDone("r0", callItem("k0", "c0", "codex", "completed"))))
	for i, frame := range strings.SplitN(frames, "\n", 40) {
		door(c, []byte(frame))
		if i == 2 {
			c.saying.say(handoff.Utterance{ID: "u", CallID: "c0", Text: "done", Floor: handoff.FloorAsk})
		}
	}
	c.leaveModel()
	return client.sent(), model.sent()
}

// readable fails for anything of ours that cannot be read; what passed may be anything.
func readable(t *testing.T, sent []string, given string) {
	t.Helper()
	for _, e := range sent {
		if !gjson.Valid(e) && !strings.Contains(given, e) {
			t.Fatalf("made %q", e)
		}
	}
}

// FuzzClientDoor holds that whatever a client sends, the model gets JSON alone but for sound, and our request one
// output.
func FuzzClientDoor(f *testing.F) {
	for _, seed := range doorSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frames string) {
		toClient, toModel := throughDoor(frames, (*Call).fromClient)
		readable(t, toClient, "")
		readable(t, toModel, sound(frames)) // it passes unread
		outputs := 0
		for _, e := range toModel {
			if gjson.Get(e, "item.type").Str == events.ItemOutput && gjson.Get(e, "item.call_id").Str == "c0" {
				outputs++
			}
		}
		if outputs != 1 {
			t.Fatalf("the request has %d outputs", outputs)
		}
	})
}

// sound returns the frames that name a client's sound as their type.
func sound(frames string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(frames, "\n"),
		func(f string) bool { return !strings.Contains(f, "input_audio_buffer.append") }), "\n")
}

// FuzzModelDoor holds that whatever a model sends, it is answered in JSON, and what we make for the client is.
func FuzzModelDoor(f *testing.F) {
	for _, seed := range doorSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frames string) {
		toClient, toModel := throughDoor(frames, (*Call).fromModel)
		readable(t, toClient, frames) // sound passes unread
		readable(t, toModel, "")
	})
}

// FuzzOfferForm posts any body as an offer, raw or in a form. One that passes is within its bounds, and its session
// is an event.
func FuzzOfferForm(f *testing.F) {
	const sdp = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=max-message-size:1\r\n"
	f.Add("application/sdp", sdp)
	f.Add("", sdp+"m=application 9\r\n")
	f.Add("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"sdp\"\r\n\r\n"+sdp+
		"\r\n--b\r\nContent-Disposition: form-data; name=\"session\"\r\n\r\n{\"model\":\"m\",\"audio\":{}}\r\n--b--\r\n")
	f.Add("multipart/form-data", "--\r\n")
	f.Fuzz(func(t *testing.T, kind, body string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/realtime/calls", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		offer, fault := readOffer(httptest.NewRecorder(), r, someone)
		if fault != nil {
			if fault.Code != handoff.CodeMalformed && fault.Code != handoff.CodeTooLarge {
				t.Fatalf("refused with %v", fault)
			}
			return
		}
		if len(offer.SDP) > rtc.MaxSDP || offer.Session != nil && !events.IsObject(offer.Session) {
			t.Fatalf("let pass %d bytes with %q", len(offer.SDP), offer.Session)
		}
	})
}
