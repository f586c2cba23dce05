package handoff

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A speechWorld is a call around a schedule: a caller who talks into everything, a voice model that
// speaks, is cut and forgets, works that report, ask and end. Beside it stands an own account of what the
// schedule may do.
type speechWorld struct {
	t        *testing.T
	pick     func(n int) int
	schedule *schedule
	now      time.Time
	wake     time.Time
	log      []string
	serial   int

	level    SpeechLevel
	caller   bool     // speaks
	model    []string // ids of what is spoken now; nil when silent
	queue    []string // asked of the floor
	quiet    bool
	quietAt  time.Time
	hungUp   bool
	works    []string
	open     map[string]time.Time // unanswered requests, since
	lookups  map[string]bool
	due      map[string]bool // asked to be answered
	notes    map[string]int
	ids      map[string]scheduleEffect
	spokenAt time.Time // the last speakable thing asked or said
	flying   map[string]time.Time
	silence  int // speakable things in a row that were not confirmed

	questions map[QuestionID]*worldQuestion
	finals    map[string]*worldFinal
}

type worldQuestion struct {
	opened, last time.Time
	work         string
	times        int
	closed, told bool
}

type worldFinal struct {
	ended       time.Time
	told        int
	given, kept int
}

func newSpeechWorld(t *testing.T, pick func(n int) int) *speechWorld {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &speechWorld{
		t: t, pick: pick, schedule: newSchedule(LevelMilestones, AskAgainAfter), now: now, level: LevelMilestones, quiet: true,
		open: map[string]time.Time{}, lookups: map[string]bool{}, due: map[string]bool{}, notes: map[string]int{},
		ids: map[string]scheduleEffect{}, flying: map[string]time.Time{}, questions: map[QuestionID]*worldQuestion{}, finals: map[string]*worldFinal{},
	}
}

func (w *speechWorld) fail(format string, args ...any) {
	w.t.Helper()
	from := max(0, len(w.log)-80)
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[from:], "\n"))
}

// give hands an event to the schedule and checks every effect.
func (w *speechWorld) give(e scheduleEvent) {
	w.t.Helper()
	w.log = append(w.log, fmt.Sprintf("%s %T%+v", w.now.Format("04:05.000"), e, e))
	for _, x := range slices.Clone(w.schedule.step(w.now, e)) {
		w.log = append(w.log, "    → "+showEffect(x))
		w.check(x)
	}
	w.bounds()
	w.alive()
}

func (w *speechWorld) check(x scheduleEffect) {
	w.t.Helper()
	if w.hungUp && x.act != doKeep {
		w.fail("after the end: %s", showEffect(x))
	}
	if x.act == doNote || x.act == doSay {
		if _, twice := w.ids[x.id]; twice || len(x.id) > 24 {
			w.fail("id %q twice or too long", x.id)
		}
		w.ids[x.id] = x
	}
	switch x.act {
	case doNote:
		w.notes[x.works[0]]++
		if _, waits := w.open[x.works[0]]; waits || w.notes[x.works[0]] > maxPacedNotes {
			w.fail("note before the answer, or too many")
		}
	case doSay:
		w.said(x)
	case doAnswer:
		for _, id := range x.works {
			since, waits := w.open[id]
			if !waits || w.due[id] || w.now.Sub(since) > deadAir {
				w.fail("%s is not to be answered now", id)
			}
			w.due[id] = true
		}
	case doGiven, doKeep:
		w.settled(x)
	case doNotify:
		q := w.questions[x.question]
		if q.closed || q.told || q.times == 0 || w.now.Sub(q.last) < AskAgainAfter*time.Duration(1+maxTellings-q.times) {
			w.fail("question %s told elsewhere out of place", x.question)
		}
		q.told = true
	case doWake:
		if !x.at.After(w.now) {
			w.fail("a wake for the past")
		}
		w.wake = x.at
	case doTakeBack:
		if !w.questions[x.question].closed || w.ids[x.id].question != x.question {
			w.fail("%s taken back", x.id)
		}
		delete(w.flying, x.id)
		w.queue = slices.DeleteFunc(w.queue, func(id string) bool { return id == x.id })
	case doDrop:
		if x.count < 1 {
			w.fail("nothing dropped")
		}
	}
}

func (w *speechWorld) said(x scheduleEffect) {
	w.t.Helper()
	if x.text == "" || len(x.text) > 16<<10 {
		w.fail("%d bytes of text", len(x.text))
	}
	switch x.class {
	case classSpeakable:
		w.speakable(x)
	case classUrgent:
		q := w.questions[x.question]
		q.times++
		switch {
		case q.closed, q.times > 2:
			w.fail("question %s asked out of place, time %d", x.question, q.times)
		case !w.quiet && (q.times == 2 || w.now.Sub(q.opened) < urgentHold):
			w.fail("asked over somebody")
		case q.times == 2 && w.now.Sub(q.last) < AskAgainAfter:
			w.fail("asked again after %v", w.now.Sub(q.last))
		}
		q.last = w.now
	case classFinal:
		held := time.Duration(0)
		for _, id := range x.works {
			f := w.finals[id]
			f.told++
			held = max(held, w.now.Sub(f.ended))
			if f.told > 2 || f.given > 0 {
				w.fail("outcome of %s told too often", id)
			}
		}
		if !w.quiet && held < urgentHold && len(x.works) < maxHeldFinals {
			w.fail("told over somebody")
		}
	default:
		w.fail("said silently")
	}
	w.queue = append(w.queue, x.id)
	w.flying[x.id] = w.now
}

func (w *speechWorld) speakable(x scheduleEffect) {
	w.t.Helper()
	filler := strings.HasPrefix(x.text, "Still ")
	switch {
	case !w.quiet:
		w.fail("speakable over somebody")
	case w.level == LevelQuiet:
		w.fail("speakable at the quiet level")
	case filler:
		if len(w.lookups) == 0 {
			w.fail("filler without a lookup")
		}
	case w.now.Sub(w.spokenAt) < speakableGap:
		w.fail("only %v after the last", w.now.Sub(w.spokenAt))
	case len(w.open)+len(w.lookups) > 0:
		w.fail("speakable while a request is open")
	case w.level == LevelMilestones && !strings.Contains(x.text, " is still "):
		w.fail("not a milestone")
	case w.silence >= maxLost:
		w.fail("speakable though nobody confirms any")
	}
	for id, at := range w.flying {
		if w.now.Sub(at) < flightWait {
			w.fail("speakable while %s is on its way", id)
		}
	}
	w.spokenAt = w.now
}

func (w *speechWorld) settled(x scheduleEffect) {
	w.t.Helper()
	for _, id := range x.works {
		f := w.finals[id]
		if x.act == doGiven {
			f.given++
			for other := range w.flying { // said twice, confirmed once
				if slices.Contains(w.ids[other].works, id) {
					delete(w.flying, other)
				}
			}
		} else {
			f.kept++
		}
		if f.given+f.kept != 1 {
			w.fail("outcome of %s given %d times, kept %d times", id, f.given, f.kept)
		}
	}
}

// bounds holds what the schedule may remember.
func (w *speechWorld) bounds() {
	w.t.Helper()
	s := w.schedule
	if len(s.works) > maxPaced || len(s.lookups) > maxLookups || len(s.questions) > maxOpenQuestions || len(s.finals) >= maxHeldFinals || len(s.flights) > maxFlights {
		w.fail("over a bound: %d works, %d lookups, %d questions, %d finals, %d flights", len(s.works), len(s.lookups), len(s.questions), len(s.finals), len(s.flights))
	}
	for _, p := range s.works {
		if len(p.remarks) > maxHeldRemarks || len(p.early) > maxHeldRemarks {
			w.fail("%d remarks held, %d early", len(p.remarks), len(p.early))
		}
	}
}

// alive holds that nothing waits for ever: what may be said now was said.
func (w *speechWorld) alive() {
	w.t.Helper()
	for _, f := range w.schedule.finals {
		if w.quiet || w.now.Sub(f.at) >= urgentHold {
			w.fail("outcome of %s is held for %v, quiet %v", f.rec.ID, w.now.Sub(f.at), w.quiet)
		}
	}
	for id, q := range w.questions {
		if q.times == 0 && !q.closed && !w.hungUp && (w.quiet || w.now.Sub(q.opened) >= urgentHold) {
			w.fail("question %s is held", id)
		}
	}
	for id, q := range w.questions {
		if q.times > 0 && !q.told && !q.closed && !w.hungUp && w.now.Sub(q.last) >= maxTellings*AskAgainAfter {
			w.fail("question %s is told nowhere", id)
		}
	}
	for id, since := range w.open {
		if !w.due[id] && w.now.Sub(since) >= deadAir {
			w.fail("dead air for %s", id)
		}
	}
	if !w.idle() || w.now.Sub(w.spokenAt) < speakableGap || w.now.Sub(w.quietAt) < settle {
		return
	}
	for _, p := range w.schedule.works {
		if w.level == LevelChatty && len(p.remarks) > 0 {
			w.fail("silence for %v while %s has something to say", w.now.Sub(w.quietAt), p.id)
		}
		if !w.now.Before(p.beatAt) {
			w.fail("%s owes a sign of life", p.id)
		}
	}
}

// idle tells whether something speakable could be said now.
func (w *speechWorld) idle() bool {
	if !w.quiet || w.level == LevelQuiet || w.hungUp || len(w.open)+len(w.lookups) > 0 || w.silence >= maxLost {
		return false
	}
	for _, q := range w.questions {
		if !q.closed {
			return false
		}
	}
	for _, at := range w.flying {
		if w.now.Sub(at) < flightWait {
			return false
		}
	}
	return true
}

// pass lets time go by, with the wakes in it.
func (w *speechWorld) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		next, due := end, !w.wake.IsZero() && !w.wake.After(end)
		if due {
			next, w.wake = w.wake, time.Time{}
		}
		w.now = next
		for id, at := range w.flying { // the schedule gives up on it now
			if w.ids[id].class == classSpeakable && w.now.Sub(at) >= flightWait {
				delete(w.flying, id)
				w.silence++
			}
		}
		if !due {
			w.alive() // a wake that was not asked for shows here
			return
		}
		w.give(wakeEvent{})
	}
}

func (w *speechWorld) hush() {
	w.t.Helper()
	if on := !w.caller && w.model == nil; on != w.quiet {
		w.quiet = on
		if on {
			w.quietAt = w.now
		}
		w.give(Quiet{On: on})
	}
}

// live runs a call of n acts and holds that no outcome is lost.
func (w *speechWorld) live(n int) {
	w.t.Helper()
	for range n {
		switch w.pick(12) {
		case 0:
			w.pass(time.Duration(w.pick(90)) * time.Second)
		default:
			w.pass(time.Duration(w.pick(3000)) * time.Millisecond)
		}
		for _, id := range slices.Sorted(maps.Keys(w.open)) { // the router's promise
			if w.due[id] && w.pick(3) == 0 {
				w.answer(id)
				break
			}
		}
		w.act()
	}
	w.hungUp = true
	w.give(CallEnded{})
	for _, id := range slices.Clone(w.works) {
		w.finish(id)
	}
	for id, f := range w.finals {
		if f.given+f.kept != 1 {
			w.fail("outcome of %s: given %d, kept %d", id, f.given, f.kept)
		}
	}
}

// TestScheduleWorlds runs many random calls.
func TestScheduleWorlds(t *testing.T) {
	worlds, total := 100, scheduleCounts{}
	for seed := range worlds {
		random := rand.New(rand.NewPCG(1, uint64(seed)))
		w := newSpeechWorld(t, random.IntN)
		w.live(400)
		c := w.schedule.counts
		total.notes += c.notes
		total.remarks += c.remarks
		total.beats += c.beats
		total.fillers += c.fillers
		total.questions += c.questions
		total.finals += c.finals
		total.stale += c.stale
		total.cut += c.cut
		total.lost += c.lost
	}
	for _, n := range []int{total.notes, total.remarks, total.beats, total.fillers, total.questions, total.finals, total.stale, total.cut, total.lost} {
		if n < worlds/4 {
			t.Errorf("the worlds are too tame: %+v", total)
			break
		}
	}
	t.Logf("%+v", total)
}

// FuzzSchedule lets the fuzzer choose what happens.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte("a call of which nothing is known"))
	f.Add([]byte{15, 0, 200, 11, 3, 0, 1, 40, 255, 12, 0, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		pick := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			if n > 256 && len(data) > 0 {
				b = b<<8 | int(data[0])
				data = data[1:]
			}
			return b % n
		}
		newSpeechWorld(t, pick).live(min(len(data), 300))
	})
}
