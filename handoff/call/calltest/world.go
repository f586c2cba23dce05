// Package calltest plays the ladders of package call: scripted conversations, in fake time, with any kind of agent
// beneath. It provides the caller, the voice model, the page, and the way to the machines. The world that plays a
// ladder provides what a machine does and what is kept of it.
//
// It must not know package call, whose own tests use it: whoever plays a ladder says what serves its call.
package calltest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
)

// Grant is the caller's of every ladder.
var Grant = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll, Page: true}

// A World is what the worlds of ladders have in common: names, and how long the way to a machine takes and how it
// fails. A world embeds it. Its words, one a line:
//
//	server NAME                       a machine
//	sticky SERVER THREAD TITLE...     what the store has, since half a minute
//	titled THREAD TITLE...            the title of a thread
//	attach DURATION                   how long a resume or a creation takes
//	patience DURATION                 how long a lost agent is looked for
//	start DURATION                    how long an acknowledgement takes
//	fail WHAT CODE                    attach THREAD | create SERVER | start THREAD | steer THREAD | interrupt THREAD |
//	                                  resolve SERVER | read THREAD | store X
//	once WHAT CODE                    the same, the first time only
//	down SERVER FROM TO               a resume there is unreachable then
//	voice LEVEL                       what may be approved by voice
//	speaks CODE                       the language of the settings
//	alias SERVER NAME...              what people also call it
//	audit DURATION                    how long a record of a decision takes
//	turn THREAD STEP; STEP...         what turns do there; THREAD * is any. The steps are the world's
type World struct {
	T     *testing.T // Set once
	Began time.Time  // Set once

	AttachTakes, StartTakes time.Duration               // Set once, like all up to mu
	Patience                time.Duration               // 0: the default
	Stickies                map[string]handoff.Sticky   // by server
	Titles                  map[string]string           // of threads
	Plans                   map[string][]string         // steps of turns, by thread
	Voice                   string                      // what may be approved by voice
	Speaks                  string                      // the language of the settings; "": English
	audits                  time.Duration               //
	aliases                 map[string][]string         //
	downs                   map[string][2]time.Duration //
	crowded                 atomic.Bool                 // several calls were open at once

	mu    sync.Mutex
	names []string                // Guarded by mu, like all that follows: of machines
	fails map[string]handoff.Code //
	once  map[string]handoff.Code //
	made  int                     // threads
}

// NewWorld returns a world without machines.
func NewWorld(t *testing.T) *World {
	return &World{
		T: t, Began: time.Now(), AttachTakes: 40 * time.Millisecond, StartTakes: 10 * time.Millisecond,
		Stickies: map[string]handoff.Sticky{}, Titles: map[string]string{}, Plans: map[string][]string{},
		aliases: map[string][]string{},
		downs:   map[string][2]time.Duration{}, fails: map[string]handoff.Code{}, once: map[string]handoff.Code{},
	}
}

// Lines returns the lines of a part of a ladder, without comments.
func Lines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Word reads a line of a world. False: it is none of those that every world has.
func (w *World) Word(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	next, last, _ := strings.Cut(more, " ")
	switch verb {
	case "server":
		w.Join(first)
	case "sticky":
		w.Stickies[first] = handoff.Sticky{Target: handoff.Target{Server: first, Thread: next}, Title: last,
			Since: w.Began.Add(-30 * time.Second)}
		w.Titles[next] = last
	case "titled":
		w.Titles[first] = more
	case "attach":
		w.AttachTakes = w.Duration(first)
	case "start":
		w.StartTakes = w.Duration(first)
	case "audit":
		w.audits = w.Duration(first)
	case "patience":
		w.Patience = w.Duration(first)
	case "fail":
		w.fails[first+" "+next] = handoff.Code(last)
	case "once":
		w.once[first+" "+next] = handoff.Code(last)
	case "down":
		w.downs[first] = [2]time.Duration{w.Duration(next), w.Duration(last)}
	case "alias":
		w.aliases[first] = append(w.aliases[first], more)
	case "voice":
		w.Voice = first
	case "speaks":
		w.Speaks = first
	case "turn":
		w.Plans[first] = strings.Split(more, ";")
	default:
		return false
	}
	return true
}

// Duration reads one, or fails the test.
func (w *World) Duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.T.Fatal(err)
	}
	return d
}

// Share reads a number from 0 to 1, or fails the test.
func (w *World) Share(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		w.T.Fatal(err)
	}
	return n
}

// Join adds a machine.
func (w *World) Join(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(slices.Clone(w.names), server)
}

// Names are those of the machines. They are not changed.
func (w *World) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names
}

// lose makes a thread one that does not exist any more.
func (w *World) lose(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails["attach "+thread] = handoff.CodeSessionGone
}

// Failure is how the way to a machine, or what is done there, fails; nil: it does not.
func (w *World) Failure(what, subject string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code, ok := w.once[what]; ok {
		delete(w.once, what)
		return handoff.Fault(code, subject, "")
	}
	if code, ok := w.fails[what]; ok {
		return handoff.Fault(code, subject, "")
	}
	return nil
}

// Wait takes the time of the way to a machine.
func (w *World) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-After(d):
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "it", "")
	}
}

// After is [time.After] without a timer where there is nothing to wait for. Under -race, two goroutines of a bubble
// that receive from timers which are due crash the runtime of Go 1.26 (tsan: SIGSEGV): they have one race context.
func After(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	now := make(chan time.Time)
	close(now)
	return now
}

// Resolve implements [handoff.Fleet]: it knows names exactly, and passes threads on.
func (w *World) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	if err := w.Failure("resolve "+t.Server, t.Server); err != nil {
		return handoff.Target{}, err
	}
	name, project, _ := strings.Cut(t.Server, "/")
	if slices.Contains(w.Names(), name) {
		return handoff.Target{Server: name, Project: project, Thread: t.Thread}, nil
	}
	return handoff.Target{}, &handoff.Error{Code: handoff.CodeUnknownServer, Subject: t.Server, Choices: w.Names()}
}

// Reach goes the way to a thread.
func (w *World) Reach(ctx context.Context, t handoff.Target) error {
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return err
	}
	if d, ok := w.downs[t.Server]; ok && time.Since(w.Began) >= d[0] && time.Since(w.Began) < d[1] {
		return handoff.Fault(handoff.CodeUnreachable, t.Server, "")
	}
	return w.Failure("attach "+t.Thread, t.Thread)
}

// Make goes the way to where a thread is made, and names it after its kind.
func (w *World) Make(ctx context.Context, t handoff.Target, kind string) (handoff.Target, error) {
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return t, err
	}
	if err := w.Failure("create "+t.Server, t.Server); err != nil {
		return t, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	t.Thread = fmt.Sprintf("%s-%d", kind, w.made)
	return t, nil
}

// ForkEphemeral implements [handoff.Ephemeral].
func (w *World) ForkEphemeral(_ context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "")
}

// Registered implements [handoff.Registrar].
func (w *World) Registered(server string) handoff.Registered {
	return handoff.Registered{Names: append([]string{server}, w.aliases[server]...), VoiceApprovals: w.Voice}
}

// Audit implements [handoff.Auditor].
func (w *World) Audit(ctx context.Context, _ handoff.AuditRecord) error {
	if err := w.Wait(ctx, w.audits); err != nil {
		return err
	}
	return w.Failure("audit x", "the audit")
}
