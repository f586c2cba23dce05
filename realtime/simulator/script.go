package simulator

import (
	"slices"
	"strings"
	"time"
)

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

// Said reports whether the caller said these words, in any case.
func (h Heard) Said(words string) bool { return anyHas(h.Texts, words) }

// Told reports whether a system message has these words, in any case.
func (h Heard) Told(words string) bool { return anyHas(h.Messages, words) }

func anyHas(texts []string, words string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(words))
	})
}

// Repeat says new outputs and system messages, as the brain would. It can be the Script of a [Config].
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
