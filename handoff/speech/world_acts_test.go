package speech

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// act does one thing of the caller, the voice model or an agent.
func (w *speechWorld) act() {
	w.t.Helper()
	switch w.pick(20) {
	case 0:
		w.speakCaller()
	case 1, 2:
		if w.caller {
			w.caller = false
			switch w.pick(4) {
			case 0:
				w.give(Backchannel{})
			case 1:
				w.stopAt = w.now
				w.give(Hush{Began: w.now})
			default:
				w.give(handoff.Heard{Text: "words", Began: w.now})
			}
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
		w.give(handoff.Heard{Text: "typed", Typed: true, Began: w.now})
	case 10:
		w.level = []handoff.SpeechLevel{handoff.LevelMilestones, handoff.LevelChatty, handoff.LevelQuiet}[w.pick(3)]
		w.give(LevelSet{w.level})
	case 11:
		w.toldElsewhere()
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
	w.give(handoff.Spoke{At: w.now})
	w.give(handoff.Quiet{On: false})
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
		said := handoff.Said{ID: id, At: w.now, Cut: cut}
		x := w.IDs[id]
		if !cut && x.class() == classFinal && w.pick(6) == 0 {
			said.At, said.Unsaid = time.Time{}, true
			w.unsaid++
		}
		unheard := cut && w.pick(2) == 0
		if unheard {
			said.At = time.Time{}
		}
		meant := !cut && !said.Unsaid
		if cut && x.class() == classFinal {
			said.Text, said.Made = "The work on it is done now. There is a little more of it to be told to them.", w.pick(2) == 0
			said.Share = float64(w.pick(21)) / 20
			meant = said.Made && said.Share >= 1-0.2/float64(len(x.Works)) || len(x.Works) == 1 && said.Share >= 0.4
			meant = meant || w.finals[x.Works[0]].told >= maxOffers // then it is left to the next call
		}
		if said.Unsaid {
			meant = w.finals[x.Works[0]].told >= maxTellings // then it is, too
		}
		if _, flies := w.flying[id]; flies {
			w.silence = 0
			if x.class() == classSpeakable {
				w.spokenAt = w.now
			}
		}
		if !unheard && meant || x.class() != classFinal {
			delete(w.flying, id)
		}
		if q := w.questions[x.Question]; q != nil {
			q.last = w.now
		}
		w.give(said)
		if q := w.questions[x.Question]; q != nil && q.closed { // the schedule may have forgotten it before, or not
			w.silence = w.schedule.lost
		}
	}
	w.hush()
}

// toldElsewhere tells the caller an outcome outside of the call. From then on it counts as given.
func (w *speechWorld) toldElsewhere() {
	w.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(w.finals)) {
		f := w.finals[id]
		if f.given > 0 || w.pick(4) == 0 {
			continue
		}
		f.given++
		maps.DeleteFunc(w.flying, func(u string, _ time.Time) bool { return w.allGiven(w.IDs[u]) })
		w.elsewhere++
		w.give(Told{id})
		return
	}
}

// allGiven reports whether an utterance tells outcomes, and the caller was told each of them.
func (w *speechWorld) allGiven(x Effect) bool {
	return len(x.Works) > 0 && x.class() == classFinal && !slices.ContainsFunc(x.Works, func(id string) bool {
		return w.finals[id].given == 0
	})
}

func (w *speechWorld) name(prefix string) string {
	w.serial++
	return prefix + strconv.Itoa(w.serial)
}

// agent does one thing of a work or lookup.
func (w *speechWorld) agent() {
	w.t.Helper()
	if len(w.works) == 0 || w.pick(8) == 0 {
		w.begin()
		return
	}
	id := w.works[w.pick(len(w.works))]
	switch w.pick(11) {
	case 0, 1:
		w.give(Remark{id, "I look at `a/b/c.go`, part " + strconv.Itoa(w.serial) + "."})
	case 2:
		w.give(Doing{id, []handoff.ItemKind{handoff.ItemCommand, handoff.ItemFileChange, handoff.ItemReasoning,
			handoff.ItemMessage}[w.pick(4)], "go test ./..."})
	case 3:
		if w.pick(3) == 0 { // nothing else is said while one is open
			w.ask(id)
		}
	case 4:
		for _, q := range slices.Sorted(maps.Keys(w.questions)) {
			if state := w.questions[q]; !state.closed && state.work == id {
				state.closed = true
				w.give(QuestionClosed{q})
				break
			}
		}
	case 5:
		w.give(Concerned{id})
		w.claim()
	case 6:
		w.finish(id)
	case 7:
		w.give(Waits{id, w.pick(2) == 0})
	case 8:
		w.give(News{wording.Answer{Say: "Something else.", Note: newsNote}})
	default:
		w.answer(id)
	}
}

// ask opens a question of a work.
func (w *speechWorld) ask(work string) {
	w.t.Helper()
	q := handoff.QuestionID(w.name("q"))
	kept := 0
	for _, other := range w.questions {
		if !other.closed && !other.refused {
			kept++
		}
	}
	w.questions[q] = &worldQuestion{opened: w.now, last: w.now, work: work, refused: kept >= maxOpenQuestions}
	w.give(Question{q, work, wording.Answer{Say: "May I?"}})
}

// claim brings an answer to a question. As often as not it is not plain, and the router asks once more, as it
// does while it was not asked twice.
func (w *speechWorld) claim() {
	w.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(w.questions)) {
		q := w.questions[id]
		if q.closed || q.refused || q.times >= maxTellings {
			continue
		}
		if q.times > 0 {
			q.last = w.now
		}
		w.give(Claimed{id})
		if w.pick(2) == 0 && q.times < maxTellings {
			q.times++
			q.last = w.now
			u := w.name("h")
			w.IDs[u] = Effect{Question: id}
			w.queue = append(w.queue, u)
			w.flying[u] = w.now
			w.give(Asked{id, u})
		}
		return
	}
}

func (w *speechWorld) begin() {
	w.t.Helper()
	switch w.pick(4) {
	case 0:
		id := w.name("r")
		w.lookups[id] = true
		w.give(Lookup{id, "bigpc"})
	case 1:
		for _, id := range slices.Sorted(maps.Keys(w.lookups)) {
			delete(w.lookups, id)
			w.give(AnsweredEvent{id})
			break
		}
	default:
		id := w.name("w")
		w.works = append(w.works, id)
		answered := w.pick(3) == 0
		if !answered {
			w.open[id] = w.now
			if within := w.schedule.Within(w.now); within < leastWait || within > deadAir {
				w.fail("%s is answered within %v", id, within)
			}
		}
		w.give(Began{id, []string{"bigpc", "laptop"}[w.pick(2)], "the **api**", time.Time{}, answered})
	}
}

func (w *speechWorld) answer(id string) {
	w.t.Helper()
	if _, waits := w.open[id]; waits {
		delete(w.open, id)
		w.give(AnsweredEvent{id})
	}
}

func (w *speechWorld) finish(id string) {
	w.t.Helper()
	w.works = slices.DeleteFunc(w.works, func(o string) bool { return o == id })
	for _, q := range w.questions {
		q.closed = q.closed || q.work == id
	}
	w.finals[id] = &worldFinal{ended: w.now}
	if _, waits := w.open[id]; waits { // as the answer
		delete(w.open, id)
		w.finals[id].told++
		u := w.name("h")
		w.IDs[u] = Effect{Works: []string{id}}
		w.queue = append(w.queue, u)
		w.flying[u] = w.now
		w.give(Gave{u, id, wording.Answer{Say: "The work is done."}})
		return
	}
	outcome := []handoff.Outcome{handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted}[w.pick(3)]
	rec := handoff.Record{ID: id, Server: "bigpc", Outcome: outcome, Text: "All **done**."}
	if w.pick(6) == 0 {
		w.give(Unheard{Recs: []handoff.Record{rec}, Away: w.pick(2) == 0})
		return
	}
	w.give(Ended{Rec: rec})
}
