package speech

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// A speechWorld is a call around a schedule: a caller who talks into everything, a voice model that
// speaks, is cut and forgets, works that report, ask and end. Beside it stands an own account of what the
// schedule may do.
type speechWorld struct {
	t        *testing.T
	pick     func(n int) int
	schedule *Schedule
	now      time.Time
	wake     time.Time
	log      []string
	serial   int

	level     handoff.SpeechLevel
	caller    bool     // speaks
	model     []string // ids of what is spoken now; nil when silent
	queue     []string // asked of the floor
	quiet     bool
	quietAt   time.Time
	hungUp    bool
	works     []string
	open      map[string]time.Time // unanswered requests, since
	lookups   map[string]bool
	notes     map[string]int
	IDs       map[string]Effect
	spokenAt  time.Time // the last speakable thing asked or said
	flying    map[string]time.Time
	elsewhere int       // outcomes that the caller was told outside of the call
	unsaid    int       // tellings of which the voice model said nothing
	stopAt    time.Time // of the caller's last "stop"
	silence   int       // speakable things in a row that were not confirmed

	questions map[handoff.QuestionID]*worldQuestion
	finals    map[string]*worldFinal
}

type worldQuestion struct {
	opened, last time.Time
	work         string
	times        int
	closed, told bool
	refused      bool // there was no room for it: it is told elsewhere at once, and never said here
}

// open reports whether a question is open, and was said in the call.
func (q *worldQuestion) open() bool { return !q.closed && !q.refused }

// asking reports whether the call is asking a question: nothing else is announced meanwhile.
func (w *speechWorld) asking() bool {
	for _, q := range w.questions {
		if q.open() && !q.told {
			return true
		}
	}
	return false
}

// newsNote marks other news.
const newsNote = "Other news."

// reMilestone matches the signs of life of one work, of several on a machine, and of many.
var reMilestone = regexp.MustCompile(` is still | is working on | has just begun on | are running`)

type worldFinal struct {
	ended time.Time
	told  int
	given int
}

func newSpeechWorld(t *testing.T, pick func(n int) int, count counted) *speechWorld {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &speechWorld{
		t: t, pick: pick, schedule: New(handoff.LevelMilestones, handoff.AskAgainAfter, "", count.add), now: now,
		level: handoff.LevelMilestones, quiet: true,
		open: map[string]time.Time{}, lookups: map[string]bool{}, notes: map[string]int{},
		IDs: map[string]Effect{}, flying: map[string]time.Time{}, questions: map[handoff.QuestionID]*worldQuestion{},
		finals: map[string]*worldFinal{},
	}
}

func (w *speechWorld) fail(format string, args ...any) {
	w.t.Helper()
	from := max(0, len(w.log)-80)
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[from:], "\n"))
}

// give hands an event to the schedule and checks every effect.
func (w *speechWorld) give(e Event) {
	w.t.Helper()
	w.log = append(w.log, fmt.Sprintf("%s %T%+v", w.now.Format("04:05.000"), e, e))
	for _, x := range slices.Clone(w.schedule.Step(w.now, e)) {
		w.log = append(w.log, "    → "+showEffect(x))
		w.check(x)
	}
	w.bounds()
	w.alive()
}

func (w *speechWorld) check(x Effect) {
	w.t.Helper()
	if w.hungUp {
		w.fail("after the end: %s", showEffect(x))
	}
	if x.Act == DoNote || x.Act == DoSay {
		if _, twice := w.IDs[x.ID]; twice || len(x.ID) > 24 {
			w.fail("id %q twice or too long", x.ID)
		}
		w.IDs[x.ID] = x
	}
	switch x.Act {
	case DoNote:
		w.notes[x.Works[0]]++
		if _, waits := w.open[x.Works[0]]; waits || w.notes[x.Works[0]] > MaxPacedNotes {
			w.fail("note before the answer, or too many")
		}
	case DoSay:
		w.said(x)
	case DoGiven:
		w.heard(x)
	case DoNotify:
		q := w.questions[x.Question]
		if q.refused && !q.told {
			q.told = true
			return
		}
		if q.closed || q.refused || q.told || q.times == 0 ||
			w.now.Sub(q.last) < handoff.AskAgainAfter*time.Duration(1+maxTellings-q.times) {
			w.fail("question %s told elsewhere out of place", x.Question)
		}
		q.told = true
	case DoWake:
		if !x.At.After(w.now) {
			w.fail("a wake for the past")
		}
		w.wake = x.At
	case DoTakeBack:
		said := w.IDs[x.ID]
		over := x.Question == "" && w.allGiven(said) || x.Question != "" && w.questions[x.Question].closed
		stopped := said.class() == classFinal && w.now.Equal(w.stopAt) // it is told later, or in the next call
		if !over && !stopped || said.Question != x.Question {
			w.fail("%s taken back", x.ID)
		}
		if over {
			delete(w.flying, x.ID)
		}
		w.queue = slices.DeleteFunc(w.queue, func(id string) bool { return id == x.ID })
	}
}

func (w *speechWorld) said(x Effect) {
	w.t.Helper()
	if x.Text == "" || len(x.Text) > 16<<10 {
		w.fail("%d bytes of text", len(x.Text))
	}
	asking := w.asking()
	if strings.Contains(x.Text, newsNote) {
		if asking {
			w.fail("news while a question is open")
		}
		return
	}
	switch x.class() {
	case classSpeakable:
		w.speakable(x)
	case classUrgent:
		q := w.questions[x.Question]
		q.times++
		switch {
		case q.closed, q.refused, q.times > 2:
			w.fail("question %s asked out of place, time %d", x.Question, q.times)
		case !w.quiet && (q.times == 2 || w.now.Sub(q.opened) < urgentHold):
			w.fail("asked over somebody")
		case q.times == 2 && w.now.Sub(q.last) < handoff.AskAgainAfter:
			w.fail("asked again after %v", w.now.Sub(q.last))
		}
		q.last = w.now
	case classFinal:
		held := time.Duration(0)
		for _, id := range x.Works {
			f := w.finals[id]
			f.told++
			held = max(held, w.now.Sub(f.ended))
			if f.told > maxOffers || f.given > 0 {
				w.fail("outcome of %s told too often", id)
			}
		}
		if !w.quiet && held < urgentHold && len(x.Works) < maxHeldFinals {
			w.fail("told over somebody")
		}
		if asking {
			w.fail("told while a question is open")
		}
	default:
		w.fail("said silently")
	}
	w.queue = append(w.queue, x.ID)
	w.flying[x.ID] = w.now
}

func (w *speechWorld) speakable(x Effect) {
	w.t.Helper()
	filler := strings.Contains(x.Text, `"say":"Still `)
	switch {
	case !w.quiet:
		w.fail("speakable over somebody")
	case w.level == handoff.LevelQuiet:
		w.fail("speakable at the quiet level")
	case filler:
		if len(w.lookups) == 0 {
			w.fail("filler without a lookup")
		}
	case w.now.Sub(w.spokenAt) < speakableGap:
		w.fail("only %v after the last", w.now.Sub(w.spokenAt))
	case len(w.open)+len(w.lookups) > 0:
		w.fail("speakable while a request is open")
	case slices.ContainsFunc(slices.Collect(maps.Values(w.questions)), (*worldQuestion).open):
		w.fail("speakable while a question is open")
	case w.level == handoff.LevelMilestones && !reMilestone.MatchString(x.Text):
		w.fail("not a milestone")
	case w.silence >= maxLost:
		w.fail("speakable though nobody confirms any")
	}
	for id, at := range w.flying {
		if w.now.Sub(at) < deliveryWait {
			w.fail("speakable while %s is on its way", id)
		}
	}
	w.spokenAt = w.now
}

func (w *speechWorld) heard(x Effect) {
	w.t.Helper()
	for _, id := range x.Works {
		f := w.finals[id]
		f.given++
		for other := range w.flying { // said twice, confirmed once
			if slices.Contains(w.IDs[other].Works, id) {
				delete(w.flying, other)
			}
		}
		if f.given != 1 {
			w.fail("outcome of %s given %d times", id, f.given)
		}
	}
}

// bounds holds what the schedule may remember.
func (w *speechWorld) bounds() {
	w.t.Helper()
	s := w.schedule
	if len(s.works) > maxPaced || len(s.lookups) > maxLookups || len(s.questions) > maxOpenQuestions ||
		len(s.finals) >= 3*maxHeldFinals && !s.asking() || len(s.deliveries) > maxDeliveries {
		w.fail("over a bound: %d works, %d lookups, %d questions, %d finals, %d deliveries", len(s.works), len(s.lookups),
			len(s.questions), len(s.finals), len(s.deliveries))
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
		held := w.now.Sub(f.at)
		if !w.asking() && (w.quiet && (held >= finalsTogether || len(w.schedule.works) == 0) || held >= urgentHold) {
			w.fail("outcome of %s is held for %v, quiet %v", f.rec.ID, w.now.Sub(f.at), w.quiet)
		}
	}
	for id, q := range w.questions {
		if q.refused && !q.told {
			w.fail("question %s is refused and told nowhere", id)
		}
		if q.times == 0 && !q.closed && !q.refused && !w.hungUp && (w.quiet || w.now.Sub(q.opened) >= urgentHold) {
			w.fail("question %s is held", id)
		}
	}
	for id, q := range w.questions {
		if q.times > 0 && !q.told && !q.closed && !w.hungUp && w.now.Sub(q.last) >= maxTellings*handoff.AskAgainAfter {
			w.fail("question %s is told nowhere", id)
		}
	}
	if !w.idle() || w.now.Sub(w.spokenAt) < speakableGap || w.now.Sub(w.quietAt) < quietGap {
		return
	}
	for _, p := range w.schedule.works {
		if w.level == handoff.LevelChatty && len(p.remarks) > 0 {
			w.fail("silence for %v while %s has something to say", w.now.Sub(w.quietAt), p.ID)
		}
	}
	beating, _ := w.schedule.beating()
	for _, p := range beating {
		if !w.now.Before(p.heartbeatAt) {
			w.fail("%s owes a heartbeat", p.ID)
		}
	}
}

// idle reports whether something speakable could be said now.
func (w *speechWorld) idle() bool {
	if !w.quiet || w.level == handoff.LevelQuiet || w.hungUp || len(w.open)+len(w.lookups) > 0 || w.silence >= maxLost {
		return false
	}
	for _, q := range w.questions {
		if !q.closed {
			return false
		}
	}
	for _, at := range w.flying {
		if w.now.Sub(at) < deliveryWait {
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
			if w.IDs[id].class() == classSpeakable && w.now.Sub(at) >= deliveryWait {
				delete(w.flying, id)
				w.silence++
			}
		}
		if !due {
			w.alive() // a wake that was not asked for shows here
			return
		}
		w.give(Wake{})
	}
}

func (w *speechWorld) hush() {
	w.t.Helper()
	if on := !w.caller && w.model == nil; on != w.quiet {
		w.quiet = on
		if on {
			w.quietAt = w.now
		}
		w.give(handoff.Quiet{On: on})
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
			if w.pick(6) == 0 {
				w.answer(id)
				break
			}
		}
		w.act()
	}
	for id, f := range w.finals { // each was told, or is held until there is quiet
		held := slices.ContainsFunc(w.schedule.finals, func(h heldFinal) bool { return h.rec.ID == id })
		if f.given+f.told == 0 && !held {
			w.fail("outcome of %s is lost", id)
		}
	}
	w.hungUp = true
	w.give(handoff.CallEnded{})
	for _, id := range slices.Clone(w.works) { // from here on nothing is said
		w.finish(id)
	}
}

// TestScheduleWorlds runs many random calls.
func TestScheduleWorlds(t *testing.T) {
	worlds, elsewhere, unsaid, total := 100, 0, 0, counted{}
	for seed := range worlds {
		random := rand.New(rand.NewPCG(1, uint64(seed)))
		w := newSpeechWorld(t, random.IntN, total)
		w.live(400)
		elsewhere += w.elsewhere
		unsaid += w.unsaid
	}
	for _, word := range slices.Concat(Given, Unsaid[:3]) {
		if total[word] < worlds/4 || elsewhere < worlds || unsaid < worlds {
			t.Errorf("the worlds are too tame: %+v", total)
			break
		}
	}
	t.Logf("%+v, %d told elsewhere, %d unsaid", total, elsewhere, unsaid)
}

// FuzzSchedule lets the fuzzer choose what happens.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte("a call of which nothing is known"))
	f.Add([]byte{15, 0, 200, 11, 3, 0, 1, 40, 255, 12, 0, 7})
	// more questions than are kept
	f.Add(append([]byte{1, 0, 0, 15, 2, 0, 0}, bytes.Repeat([]byte{1, 0, 0, 15, 1, 0, 3}, maxOpenQuestions+2)...))
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
		newSpeechWorld(t, pick, counted{}).live(min(len(data), 300))
	})
}

// TestScheduleWorldFull opens more questions than a call keeps, and then lives on: each is said, or told elsewhere
// at once, and never both.
func TestScheduleWorldFull(t *testing.T) {
	for seed := range 20 {
		random := rand.New(rand.NewPCG(2, uint64(seed)))
		w := newSpeechWorld(t, random.IntN, counted{})
		for len(w.works) == 0 {
			w.begin()
		}
		for range maxOpenQuestions + 10 {
			w.ask(w.works[0])
			w.pass(time.Duration(random.IntN(200)) * time.Millisecond)
		}
		w.live(300)
	}
}
