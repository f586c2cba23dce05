package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// world is a session without a socket: time stands still unless a test moves it.
type world struct {
	t   *testing.T
	s   *session
	now time.Time
	got []gjson.Result // events since the last take
}

func newWorld(t *testing.T, decide func(Heard) []Move) *world {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	w := &world{t: t, now: now, s: newSession(decide, now, newSettings())}
	w.drain()
	return w
}

// brainOf returns what decides in a connection without a script.
func brainOf() func(Heard) []Move { return New(Config{}).decider() }

// steps makes a script that plays these moves, one response after another.
func steps(moves ...[]Move) func(Heard) []Move {
	n := -1
	return func(Heard) []Move {
		n++
		return moves[n]
	}
}

// speech returns the words of one speech.
func speech(words string) <-chan string {
	said := make(chan string, 1)
	said <- words
	return said
}

func (w *world) drain() {
	for _, b := range w.s.out {
		if !json.Valid(b) {
			w.t.Fatalf("sent invalid JSON: %s", b)
		}
		w.got = append(w.got, gjson.ParseBytes(b))
	}
	w.s.out = nil
}

// send gives the session a client's event.
func (w *world) send(format string, args ...any) {
	w.t.Helper()
	w.s.receive(w.now, fmt.Appendf(nil, format, args...))
	w.drain()
}

// pass lets time pass, waking the session as the run loop would.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for w.s.end == nil && !w.s.wake().After(end) {
		w.now = w.s.wake()
		w.s.advance(w.now)
		w.drain()
	}
	w.now = end
	w.s.advance(w.now)
	w.drain()
}

// take returns what came since the last take.
func (w *world) take() []gjson.Result {
	got := w.got
	w.got = nil
	return got
}

// types lists event types; repeated deltas count once.
func types(events []gjson.Result) []string {
	var names []string
	for _, e := range events {
		name := e.Get("type").Str
		if strings.HasSuffix(name, ".delta") && len(names) > 0 && strings.HasSuffix(names[len(names)-1], ".delta") &&
			slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
	}
	return names
}

// one returns the only event of a type.
func one(t *testing.T, events []gjson.Result, kind string) gjson.Result {
	t.Helper()
	found := all(events, kind)
	if len(found) != 1 {
		t.Fatalf("%d events %s in %v", len(found), kind, types(events))
	}
	return found[0]
}

func all(events []gjson.Result, kind string) []gjson.Result {
	var found []gjson.Result
	for _, e := range events {
		if e.Get("type").Str == kind {
			found = append(found, e)
		}
	}
	return found
}

// fails checks that the next event is an error with this code that names the event.
func (w *world) fails(code, eventID string) {
	w.t.Helper()
	got := w.take()
	if len(got) != 1 || got[0].Get("type").Str != "error" {
		w.t.Fatalf("want one error %s, got %v", code, types(got))
	}
	e := got[0].Get("error")
	if e.Get("code").Str != code || e.Get("event_id").Str != eventID || e.Get("message").Str == "" ||
		e.Get("type").Str == "" || !e.Get("param").Exists() {
		w.t.Errorf("want %s for %q, got %s", code, eventID, e.Raw)
	}
}

func (w *world) says(text string) {
	w.t.Helper()
	w.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",`+
		`"text":%q}]}}`, text)
	w.send(`{"type":"response.create"}`)
}
