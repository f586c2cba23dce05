package simulator

import (
	"regexp"
	"slices"
	"sync"
	"time"
)

// A Script decides instead of the brain. It drives the same engine, so the events are those of the brain's. All
// connections of its [Model] share it: a step that one call has used up is gone for the next.
type Script struct {
	// Steps are tried in order when a response is asked for: the first one that fits and is not used up is played.
	Steps []Step
	// Else decides when no step fits; nil says nothing. See [Repeat].
	Else func(Heard) []Move
	// Transcripts are, in order, the words of the speech that voice detection notices or that is committed. Later
	// speech has no words.
	Transcripts []string
	// Now takes events that happen at once, in the connection that receives them first. It may be nil.
	Now <-chan Event
}

// A Step is one thing the scripted model does.
type Step struct {
	On    func(Heard) bool // nil: always fits; see [Text], [Message]
	Times int              // how often it is played; 0: once; negative: always
	Do    []Move
}

// Heard is what came since the last response, as the model sees it.
type Heard struct {
	Nth          int      // which response of this connection, from 1; out-of-band ones do not count
	Texts        []string // the caller's sentences, typed or transcribed
	Sound        bool     // the caller made a sound that has no words
	Outputs      []Output // answers to calls
	Messages     []string // system messages
	Tools        []string // names of the functions that may be called now
	Instructions string   // of the response, or else of the session
	OutOfBand    bool     // conversation "none"

	past news // of another session, answered there
	cut  cut  // the last answer of that session
}

// Output is the answer to a function call.
type Output struct {
	Tool      string // "": the call is not in the conversation
	Arguments string // of the call
	Text      string
	then      func(Heard, Output) []Move // what the brain does with it; nil: says it
}

func (h Heard) news() news { return news{h.Outputs, h.Messages} }

func (h Heard) nothing() bool {
	return len(h.Texts) == 0 && len(h.Outputs) == 0 && len(h.Messages) == 0 && !h.Sound
}

// Text fits when one of the new sentences of the caller matches the pattern, in any case. It panics if the pattern does
// not compile.
func Text(pattern string) func(Heard) bool {
	re := regexp.MustCompile("(?i)" + pattern)
	return func(h Heard) bool { return anyMatch(re, h.Texts) }
}

// Message fits when one of the new system messages matches the pattern, like [Text].
func Message(pattern string) func(Heard) bool {
	re := regexp.MustCompile("(?i)" + pattern)
	return func(h Heard) bool { return anyMatch(re, h.Messages) }
}

func anyMatch(re *regexp.Regexp, texts []string) bool {
	return slices.ContainsFunc(texts, re.MatchString)
}

// Repeat says new outputs and system messages, as the brain would. It can be a [Script.Else].
func Repeat(h Heard) []Move { return says(h.news().spoken()) }

// A Move is a part of a response: [Say] or [Call].
type Move interface{ move() }

// An Event happens outside responses: [Hear] or [Close].
type Event interface{ event() }

// Say speaks, or writes where the session's output is text.
type Say struct{ Text string }

// Call calls a function. Several in one response are siblings.
type Call struct {
	Tool      string
	Arguments string // sent unchanged, so it may be malformed
	ID        string // call_id; "": a new one
	Twice     bool   // output_item.done and conversation.item.done are sent twice
	then      func(Heard, Output) []Move
}

// Close ends the connection: with a close frame, or without one if Code is 0.
type Close struct {
	Code   int
	Reason string
}

// Hear makes the caller speak: voice detection notices the beginning now and the end after For, and the words are Text
// (may be ""). Without voice detection the words are in the input buffer for the next commit.
type Hear struct {
	Text string
	For  time.Duration // 0: one second
}

func (Say) move()    {}
func (Call) move()   {}
func (Close) event() {}
func (Hear) event()  {}

// A mind decides what a response says and does.
type mind interface {
	reply(Heard) []Move
	// transcribe returns the words of the next speech, or "".
	transcribe() string
}

// scripted is the mind of a script, shared by connections.
type scripted struct {
	script *Script // Set once

	mu    sync.Mutex
	used  []int // Guarded by mu: how often each step was played
	words int   // Guarded by mu: transcripts given out
}

func (m *scripted) reply(h Heard) []Move {
	if i := m.take(h); i >= 0 {
		return m.script.Steps[i].Do
	}
	if m.script.Else != nil {
		return m.script.Else(h)
	}
	return nil
}

// take uses the first step that fits and returns its index, or -1. Patterns are matched without the lock.
func (m *scripted) take(h Heard) int {
	for i, step := range m.script.Steps {
		if (step.On == nil || step.On(h)) && m.use(i, step.Times) {
			return i
		}
	}
	return -1
}

func (m *scripted) use(i, times int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if times >= 0 && m.used[i] >= max(times, 1) {
		return false
	}
	m.used[i]++
	return true
}

func (m *scripted) transcribe() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.words == len(m.script.Transcripts) {
		return ""
	}
	m.words++
	return m.script.Transcripts[m.words-1]
}
