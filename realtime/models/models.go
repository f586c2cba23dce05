// Package models knows what the makers of voice models publish: what a model costs, when it is shut down, and which
// model takes its place. It is pure.
//
// It must not know a call, a limit or the clock: its callers count and compare dates.
package models

import (
	"strings"
	"time"
)

// A Model is a voice model of OpenAI.
type Model struct {
	Name   string
	Prices Prices
	Ends   time.Time // the day on which it is shut down, in UTC; zero: none is announced
	Next   string    // the model that OpenAI recommends in its place; "" where Ends is zero
}

// Prices of developers.openai.com/api/docs/models/NAME and the pricing page, read in November 2026: text and sound in,
// cached and out, and pictures in and cached.
var (
	full = Prices{TextIn: 4, TextCached: 0.40, TextOut: 24, AudioIn: 32, AudioCached: 0.40, AudioOut: 64,
		ImageIn: 5, ImageCached: 0.50}
	earlier = Prices{TextIn: 4, TextCached: 0.40, TextOut: 16, AudioIn: 32, AudioCached: 0.40, AudioOut: 64,
		ImageIn: 5, ImageCached: 0.50}
	smallest = Prices{TextIn: 0.60, TextCached: 0.06, TextOut: 2.40, AudioIn: 10, AudioCached: 0.30, AudioOut: 20,
		ImageIn: 0.80, ImageCached: 0.08}
)

// shutdown is when OpenAI ends its first generation of realtime models (developers.openai.com/api/docs/deprecations,
// read in November 2026; notices of resellers say the day before).
var shutdown = time.Date(2027, time.January, 20, 0, 0, 0, 0, time.UTC)

// known are the voice models of OpenAI. Set once.
var known = []Model{
	{Name: "gpt-realtime-2.1", Prices: full},
	{Name: "gpt-realtime-2.1-mini", Prices: smallest},
	{Name: "gpt-realtime-2", Prices: full},
	{Name: "gpt-realtime-1.5", Prices: earlier},
	{Name: "gpt-realtime", Prices: earlier, Ends: shutdown, Next: "gpt-realtime-2.1"},
	{Name: "gpt-realtime-mini", Prices: smallest, Ends: shutdown, Next: "gpt-realtime-2.1-mini"},
}

// Known returns the model of OpenAI with this name, or of which this is a snapshot: "gpt-realtime-2025-08-28".
func Known(name string) (Model, bool) {
	for _, m := range known {
		if rest, is := strings.CutPrefix(name, m.Name); is && (rest == "" || isDate(rest)) {
			return m, true
		}
	}
	return Model{}, false
}

// isDate reports whether the end of a name is the date of a snapshot.
func isDate(rest string) bool {
	_, err := time.Parse("-"+time.DateOnly, rest)
	return err == nil
}

// Dearest returns prices that no known model exceeds: the most that an unknown one is likely to cost.
func Dearest() Prices { return full }
