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
	closed       bool
}

type worldFinal struct {
	ended       time.Time
	told        int
	given, kept int
}

func newSpeechWorld(t *testing.T, pick func(n int) int) *speechWorld {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &speechWorld{
		t: t, pick: pick, schedule: newSchedule(LevelMilestones), now: now, level: LevelMilestones, quiet: true,
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
	case doWake:
		if !x.at.After(w.now) {
			w.fail("a wake for the past")
		}
		w.wake = x.at
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
		case q.times == 2 && w.now.Sub(q.last) < askAgain:
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

// act does one thing of the caller, the voice model or an agent.
func (w *speechWorld) act() {
	w.t.Helper()
	switch w.pick(20) {
	case 0:
		w.speakCaller()
	case 1, 2:
		if w.caller {
			w.caller = false
			w.give(Heard{Text: "words", Began: w.now})
			w.hush()
		}
	case 3, 4, 5:
		if !w.caller && w.model == nil && len(w.queue) > 0 {
			w.model, w.queue = w.queue, nil
			w.hush()
		}
	case 6, 7, 8:
		w.finishModel(false)
	case 9:
		w.silence = 0
		w.give(Heard{Text: "typed", Typed: true, Began: w.now})
	case 10:
		w.level = []SpeechLevel{LevelMilestones, LevelChatty, LevelQuiet}[w.pick(3)]
		w.give(levelEvent{w.level})
	default:
		w.agent()
	}
}

func (w *speechWorld) speakCaller() {
	w.t.Helper()
	if w.caller {
		return
	}
	w.caller, w.silence = true, 0
	w.quiet = false
	w.give(Spoke{At: w.now})
	w.give(Quiet{On: false})
	w.finishModel(true)
}

// finishModel ends what the model says; one thing in eight is never confirmed.
func (w *speechWorld) finishModel(cut bool) {
	w.t.Helper()
	batch := w.model
	w.model = nil
	for _, id := range batch {
		if w.pick(8) == 0 {
			continue
		}
		said := Said{ID: id, At: w.now, Cut: cut}
		x := w.ids[id]
		unheard := cut && w.pick(2) == 0
		if unheard {
			said.At = time.Time{}
		}
		if _, flies := w.flying[id]; flies {
			w.silence = 0
			if x.class == classSpeakable {
				w.spokenAt = w.now
			}
		}
		if !unheard || x.class != classFinal {
			delete(w.flying, id)
		}
		if q := w.questions[x.question]; q != nil {
			q.last = w.now
		}
		w.give(said)
	}
	w.hush()
}

func (w *speechWorld) name(prefix string) string {
	w.serial++
	return prefix + itoa(w.serial)
}

// agent does one thing of a work or lookup.
func (w *speechWorld) agent() {
	w.t.Helper()
	if len(w.works) == 0 || w.pick(8) == 0 {
		w.begin()
		return
	}
	id := w.works[w.pick(len(w.works))]
	switch w.pick(9) {
	case 0, 1:
		w.give(remarkEvent{id, "I look at `a/b/c.go`, part " + itoa(w.serial) + "."})
	case 2:
		w.give(doingEvent{id, []ItemKind{ItemCommand, ItemFileChange, ItemReasoning, ItemMessage}[w.pick(4)], "go test ./..."})
	case 3:
		q := QuestionID(w.name("q"))
		w.questions[q] = &worldQuestion{opened: w.now, last: w.now, work: id}
		w.give(questionEvent{q, id, "May I?"})
	case 4:
		for _, q := range slices.Sorted(maps.Keys(w.questions)) {
			if state := w.questions[q]; !state.closed && state.work == id {
				state.closed = true
				w.give(questionClosedEvent{q})
				break
			}
		}
	case 5:
		w.give(concernedEvent{id})
	case 6:
		w.finish(id)
	default:
		w.answer(id)
	}
}

func (w *speechWorld) begin() {
	w.t.Helper()
	switch w.pick(4) {
	case 0:
		id := w.name("r")
		w.lookups[id] = true
		w.give(lookupEvent{id, "bigpc"})
	case 1:
		for _, id := range slices.Sorted(maps.Keys(w.lookups)) {
			delete(w.lookups, id)
			w.give(answeredEvent{id})
			break
		}
	default:
		id := w.name("w")
		w.works = append(w.works, id)
		answered := w.pick(3) == 0
		if !answered {
			w.open[id] = w.now
		}
		w.give(beganEvent{id, []string{"bigpc", "laptop"}[w.pick(2)], "the **api**", answered})
	}
}

func (w *speechWorld) answer(id string) {
	w.t.Helper()
	if _, waits := w.open[id]; waits {
		delete(w.open, id)
		w.give(answeredEvent{id})
	}
}

func (w *speechWorld) finish(id string) {
	w.t.Helper()
	w.works = slices.DeleteFunc(w.works, func(o string) bool { return o == id })
	for _, q := range w.questions {
		q.closed = q.closed || q.work == id
	}
	w.finals[id] = &worldFinal{ended: w.now}
	if _, waits := w.open[id]; waits || w.pick(6) == 0 {
		delete(w.open, id)
		w.finals[id].told++
		u := w.name("h")
		w.ids[u] = scheduleEffect{class: classFinal, works: []string{id}}
		w.queue = append(w.queue, u)
		w.flying[u] = w.now
		w.give(gaveEvent{u, "The work is done.", []string{id}})
		return
	}
	outcome := []Outcome{OutcomeResult, OutcomeFailed, OutcomeInterrupted}[w.pick(3)]
	w.give(outcomeEvent{rec: Record{ID: id, Server: "bigpc", Outcome: outcome, Text: "All **done**."}})
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
	worlds, total := 400, scheduleCounts{}
	if testing.Short() {
		worlds = 50
	}
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
