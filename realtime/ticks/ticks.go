// Package ticks is the tick log of a call: who spoke in which 20 ms, and which requests were open then. It shows how a
// call felt: how soon the caller was answered, who spoke over whom, and how much of each outcome was heard.
//
// It must not know calls: it is given each tick, and writes a run of equal ticks as one line.
package ticks

import (
	"bytes"
	"fmt"
	"time"
)

// Every is how long a tick is.
const Every = 20 * time.Millisecond

// maxLog bounds a log, in bytes; what comes later is dropped. The log of an hour has about 200 KiB.
const maxLog = 1 << 20

// A Tick is the state of a call in one 20 ms.
type Tick struct {
	Caller bool   // the caller speaks, as the voice model noticed
	Voice  bool   // the voice is heard
	Open   int    // function calls of ours without an output
	Tells  string // ids of the work whose outcome the voice tells, separated by commas
}

// A Log collects the ticks of one call. It is pure.
type Log struct {
	out   bytes.Buffer
	began time.Time
	from  int // index of the first tick of the run that is not written yet
	n     int // its length
	last  Tick
}

// New returns the log of a call that begins now.
func New(now time.Time) *Log { return &Log{began: now} }

// Add adds the tick at a moment.
func (l *Log) Add(now time.Time, t Tick) {
	at := int(now.Sub(l.began) / Every)
	if l.n > 0 && t == l.last {
		l.n = at - l.from + 1
		return
	}
	l.flush()
	l.from, l.n, l.last = at, 1, t
}

// Note adds an event at a moment: a request, an answer, or that an outcome was heard or cut. id is of the request, or
// of the work. Neither may contain spaces.
func (l *Log) Note(now time.Time, what, id string) {
	l.flush()
	l.line("%d ! %s %s", now.Sub(l.began).Milliseconds(), what, id)
}

// Text ends the log and returns it: lines "MS xTICKS caller|- voice|- OPEN WORK,…|-" of equal ticks, and
// "MS ! WHAT ID".
func (l *Log) Text() []byte {
	l.flush()
	return l.out.Bytes()
}

func (l *Log) flush() {
	if l.n == 0 {
		return
	}
	mark := func(on bool, name string) string {
		if on {
			return name
		}
		return "-"
	}
	t := l.last
	tells := t.Tells
	if tells == "" {
		tells = "-"
	}
	l.line("%d x%d %s %s %d %s", l.from*int(Every.Milliseconds()), l.n,
		mark(t.Caller, "caller"), mark(t.Voice, "voice"), t.Open, tells)
	l.from, l.n = l.from+l.n, 0
}

func (l *Log) line(format string, args ...any) {
	if l.out.Len() < maxLog {
		fmt.Fprintf(&l.out, format+"\n", args...)
	}
}
