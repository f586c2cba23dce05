package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/realtime/simulator"
)

// TestChromiumAnotherNetwork: when the browser says that the network is another one, the call takes the new way in
// place. When the voice model's session ends, the header says quietly that the call goes on.
func TestChromiumAnotherNetwork(t *testing.T) {
	t.Parallel()
	voice := runVoice(t, 5, false)
	r := start(t, func(p *plan) { p.Hurry, p.Model = 5, voice.plan })
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	eval[bool](p, `dispatchEvent(new Event("online"))`)
	until(t, "another way", func() bool { return strings.Contains(r.logs.String(), "client takes another way") })
	p.soundFlows()
	p.reconnects(func() { voice.wall(soon) })
	p.Pictures("network-reconnected")
	if now := r.theCall(false); now != id || strings.Contains(r.logs.String(), "client vanished") {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

// TestChromiumSlept: a device that slept asks before the microphone is opened again, and then goes on with the call.
func TestChromiumSlept(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 5 })
	p := r.page(startChromium(t, true), 390, 844)
	p.Choose("Call")
	p.Status("Listening")
	p.soundFlows()
	id := r.theCall(false)
	eval[bool](p, `(() => { const now = Date.now; Date.now = () => now() + 180_000; return document.dispatchEvent(new Event("visibilitychange")); })()`)
	p.noticed("You were away, so the microphone is off.")
	p.Status("Not in a call")
	if r.theCall(true) != id {
		t.Error("the call is another one")
	}
	p.Pictures("network-slept")
	p.reconnects(func() { p.Click("Go on") })
	p.Status("Listening")
	p.soundFlows()
	if now := r.theCall(false); now != id {
		t.Errorf("it was in %s, and is in %s", id, now)
	}
	p.Choose("Hang up")
	p.Status("Not in a call")
	p.Quiet(noKeyYet)
}

// TestChromiumOneEndNotice: when no other session of the voice model is had the call ends, and one notice says why. The
// next call knows what was said.
func TestChromiumOneEndNotice(t *testing.T) {
	t.Parallel()
	voice, notes := notingVoice(t)
	address, path, _ := strings.Cut(strings.TrimPrefix(voice.URL, "ws://"), "/")
	way := newCutter(t, "voice", address)
	voice.URL = way.at + "/" + path
	r := start(t, func(p *plan) { p.Hurry, p.Model = 5, voice })
	p := r.page(startChromium(t, true), 1280, 900)
	p.Choose("Call")
	p.Status("Listening")
	p.says("Remember the blue door")
	p.voice("Noted: Remember the blue door.") // not the greeting: Switchboard, too, knows now that the sentence arrived
	way.proxy.Stop()
	p.Status("Not in a call")
	p.Pictures("network-ended")
	p.Until(`seen.notices.length > 0`)
	if n := eval[int](p, `seen.notices.length`); n != 1 {
		t.Errorf("%d notices:\n%s", n, eval[string](p, `document.body.innerText`))
	}
	must(t, way.proxy.Start())
	p.Choose("Call")
	p.Status("Listening")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the voice model was told %q", notes())
		}
	})
	var asked time.Time
	until(t, "the note", func() bool { // it is told beside the first words, or the next
		if time.Since(asked) > 5*time.Second {
			p.says("Go on")
			asked = time.Now()
		}
		return slices.ContainsFunc(notes(), func(n string) bool {
			return strings.Contains(n, "broke off") && strings.Contains(n, `The caller: "Remember the blue door"`)
		})
	})
}

// notingVoice runs a voice model that keeps what it is told, and says so.
func notingVoice(t *testing.T) (modelSettings, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	l := loopback(t)
	model := simulator.New(simulator.Config{Hurry: 8, Script: &simulator.Script{
		Else: func(h simulator.Heard) []simulator.Move {
			mu.Lock()
			defer mu.Unlock()
			all = append(append(all, h.Texts...), h.Messages...)
			return []simulator.Move{simulator.Say{Text: "Noted: " + strings.Join(h.Texts, " ") + "."}}
		}}})
	background(t, func(ctx context.Context) error { return model.Serve(ctx, l) })
	return modelSettings{URL: "ws://" + l.Addr().String() + "/v1/realtime", Name: "scripted"}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
