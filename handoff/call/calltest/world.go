// Package calltest plays the ladders of package call: scripted conversations, in fake time, with any kind of agent
// beneath. It simulates the caller, the voice model, the page, the store and the fleet, and records what they are told.
// The test that plays a ladder provides the [Machines].
//
// It must not know package call, whose own tests use it: the test also provides what serves the calls.
package calltest

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/router"
)

// Grant is the grant of the caller in all ladders.
var Grant = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll, Page: true}

// A World is the common part of the worlds of ladders, which embed it: names, what is stored and listed, how long
// requests to a machine take, and how they fail. Its words, one on each line, beside those of its [Ledger]:
//
//	server NAME                       a machine
//	sticky SERVER THREAD TITLE...     a sticky session in the store, half a minute old
//	titled THREAD TITLE...            the title of a thread
//	attach DURATION                   how long a resume or a creation takes
//	patience DURATION                 how long a lost agent is looked for
//	start DURATION                    how long an acknowledgement takes
//	fail WHAT CODE                    attach THREAD | create SERVER | start THREAD | steer THREAD | interrupt THREAD |
//	                                  resolve SERVER | read THREAD | remove THREAD | store X
//	once WHAT CODE                    the same, the first time only
//	down SERVER FROM TO               a resume there is unreachable then
//	voice LEVEL                       what may be approved by voice
//	speaks CODE                       the language of the settings
//	alias SERVER NAME...              what people also call it
//	child SERVER                      its work ends with the process
//	returns THREAD OTHER              a resume gives back another thread
//	sessions N                        lists have many more than one
//	dead SERVER                       lists do not reach it
//	audit DURATION                    how long a record of a decision takes
//	turn THREAD STEP; STEP...         what turns do there; THREAD * is any. The steps are the world's
type World struct {
	ladder
	T        *testing.T // Set once
	Began    time.Time  // Set once
	Machines Machines   // Set once
	Ledger   *Ledger    // Set once

	AttachTakes, StartTakes time.Duration               // Set once, like all up to mu
	Patience                time.Duration               // 0: the default
	Titles                  map[string]string           // of threads
	Plans                   map[string][]string         // steps of turns, by thread
	Voice                   string                      // what may be approved by voice
	Speaks                  string                      // the language of the settings; "": English
	audits                  time.Duration               //
	aliases                 map[string][]string         //
	outages                 map[string][2]time.Duration //
	children                map[string]bool             // machines whose work ends with the process
	returns                 map[string]string           // threads that a resume gives back, by the one asked for
	sessions                int                         // that a list has beside the first
	dead                    string                      // a machine that lists do not reach
	Closing                 atomic.Bool                 // the process ends
	crowded                 atomic.Bool                 // several calls were open at once

	mu    sync.Mutex
	names []string                // Guarded by mu, like all that follows: of machines
	fails map[string]handoff.Code //
	once  map[string]handoff.Code //
	made  int                     // threads
}

// NewWorld returns a world without machines.
func NewWorld(t *testing.T) *World {
	w := &World{
		ladder: ladder{began: time.Now()}, T: t, Began: time.Now(),
		AttachTakes: 40 * time.Millisecond, StartTakes: 10 * time.Millisecond,
		Titles: map[string]string{}, Plans: map[string][]string{},
		aliases: map[string][]string{}, children: map[string]bool{}, returns: map[string]string{},
		outages: map[string][2]time.Duration{}, fails: map[string]handoff.Code{}, once: map[string]handoff.Code{},
	}
	w.Ledger = newLedger(w)
	return w
}

// Word reads a line of a world. It returns false if the line is none of those that every world has.
func (w *World) Word(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	first, more, _ := strings.Cut(rest, " ")
	next, last, _ := strings.Cut(more, " ")
	switch verb {
	case "server":
		w.Join(first)
	case "sticky":
		w.Titles[next] = last
		return w.Ledger.word(line)
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
		w.outages[first] = [2]time.Duration{w.Duration(next), w.Duration(last)}
	case "alias":
		w.aliases[first] = append(w.aliases[first], more)
	case "child":
		w.children[first] = true
	case "returns":
		w.returns[first] = more
	case "sessions":
		w.sessions = len(first) * 40
	case "dead":
		w.dead = first
	case "voice":
		w.Voice = first
	case "speaks":
		w.Speaks = first
	case "turn":
		w.Plans[first] = strings.Split(more, ";")
	default:
		return w.Ledger.word(line)
	}
	return true
}

// Config returns the configuration of a life of the router. Its ids and pauses are not random.
func (w *World) Config(life string) router.Config {
	return router.Config{
		Fleet: w, Store: w.Ledger.For(life), Notifier: w, Auditor: w, Patience: w.Patience, IDs: router.NewIDs(life),
		Jitter: func(d time.Duration) time.Duration { return d },
	}
}

// Duration parses a duration, or fails the test.
func (w *World) Duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		w.T.Fatal(err)
	}
	return d
}

// Share parses a number from 0 to 1, or fails the test.
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

// Names returns the names of the machines. The slice must not be changed.
func (w *World) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names
}

// lose makes a thread cease to exist.
func (w *World) lose(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails["attach "+thread] = handoff.CodeSessionGone
}

// Failure returns the error with which a request to a machine, or an action there, fails; nil: it succeeds.
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
