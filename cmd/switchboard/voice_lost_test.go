package main

import (
	"strings"
	"testing"
)

// TestVoiceLost: the way to the voice model is cut, or swallows everything without a word. The call goes on in another
// session, which knows the conversation, and its client sees no error.
func TestVoiceLost(t *testing.T) {
	t.Parallel()
	for name, toxic := range map[string]string{
		"black hole": `{"name":"lost","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`,
		"reset":      `{"name":"lost","type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`,
		"cut":        `{"name":"lost","type":"limit_data","stream":"downstream","attributes":{"bytes":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			voice := scriptedVoice(t)
			address, path, _ := strings.Cut(strings.TrimPrefix(voice.URL, "ws://"), "/")
			way := newCutter(t, "voice", address)
			voice.URL = way.at + "/" + path
			r := start(t, func(p *plan) { p.Hurry, p.Model = 5, voice })
			r.up("bigpc")
			p := r.call()
			p.say(`codex {"server":"bigpc","thread_id":"auth refactor","prompt":"run the tests"}`)
			p.hear("TestRefreshExpiredToken")
			_, err := way.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
			must(t, err)
			p.send(`{"type":"input_audio_buffer.clear"}`) // so that there is something to be lost
			until(t, "the loss to be noticed", func() bool { return strings.Contains(r.logs.String(), "voice model's session lost") })
			must(t, way.proxy.Toxics.RemoveToxic(t.Context(), "lost"))
			until(t, "another session", func() bool { return strings.Contains(r.logs.String(), "voice model's session renewed") })
			p.say(`codex {"server":"bigpc","prompt":"fix it"}`)
			p.hear("all tests pass now")
			works := r.allHeard()
			if len(works) != 2 || works[0].ThreadID != works[1].ThreadID {
				t.Errorf("worked on %+v", works)
			}
			for _, e := range p.all() {
				if e.Type == "error" {
					t.Errorf("the client saw %.300s", e.raw)
				}
			}
		})
	}
}
