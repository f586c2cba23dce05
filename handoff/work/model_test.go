package work

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A choice is something that may happen next.
type choice struct {
	who   string // "", a handoff, or what a handoff does
	what  string
	fault bool
	do    func()
}

// Choices that settle nothing.
const (
	calling = "a call begins"
	living  = "another life begins"
	asking  = "is asked for"
	hearing = "is heard"
	looking = "looks at its queue"
)

// A plan bounds what happens in a world.
type plan struct {
	modes  []handoff.Mode // of the requests, which are all for one thread
	calls  int            // that may begin
	lives  int            // that there may be
	faults int            // of all kinds together
}

// A handoff is a world that goes one way, with what happened in it.
type run struct {
	*world
	plan  plan
	asked []handoff.ID
	path  []string
	left  int // faults
}

func begin(p plan) *run {
	return &run{world: newWorld(), plan: p, asked: make([]handoff.ID, len(p.modes)), left: p.faults}
}

// takes lets a choice happen.
func (r *run) takes(c choice) {
	r.path = append(r.path, c.who+" "+c.what)
	if c.fault {
		r.left--
	}
	c.do()
}

// choices are all that may happen next.
func (r *run) choices() (all []choice) {
	add := func(fault bool, who, what string, do func()) {
		if !fault || r.left > 0 {
			all = append(all, choice{who, what, fault, do})
		}
	}
	for _, l := range r.lives {
		if l.dead {
			continue
		}
		who := "life " + strconv.Itoa(l.n)
		at := func(fault bool, what string, do func()) { add(fault, who, what, do) }
		for _, h := range l.all {
			if j, ok := l.jobs[h.ID]; ok {
				r.answers(l, j, add)
			}
		}
		l.stores(at)
	}
	for i, j := range r.flying {
		land := func() { r.flying = slices.Delete(r.flying, i, i+1) }
		add(false, j.ID, "start: it arrives late", func() { land(); r.arrives(j) })
		add(true, j.ID, "start: it never arrives", land)
	}
	r.people(add)
	if len(r.store.before) > 0 {
		add(true, "", "the store loses its last batch", func() { r.loses(1) })
		add(true, "", "the store loses everything", func() { r.loses(9) })
	}
	return all
}

type adds func(fault bool, who, what string, do func())

// stores is what may come of the store, and of time.
func (l *life) stores(at func(fault bool, what string, do func())) {
	switch {
	case l.loads, l.came:
		at(false, "the store is read", func() { l.read(nil) })
		at(true, "the store is not read", func() { l.read(errAway) })
	case l.sent != nil:
		at(false, "the store takes it", func() { l.commits(takes) })
		at(true, "the store does not take it", func() { l.commits(fails) })
		at(true, "the store's answer is lost", func() { l.commits(forget) })
	case l.over && l.stored() && len(l.jobs) == 0:
		at(false, "it has ended", func() { l.dead = true })
	}
	if next := l.Next(); !next.IsZero() {
		again := next.Equal(l.keep.again)
		name := "time passes"
		if again {
			name = "the store is tried again"
		}
		at(!again, name, func() { l.passes(next) })
	}
}

// passes lets time pass.
func (l *life) passes(until time.Time) {
	if until.After(l.w.now) {
		l.w.now = until
	}
	l.step(&Due{})
}

// people is what callers and operators do.
func (r *run) people(add adds) {
	l := r.newest()
	if l.dead || l.over {
		if len(r.lives) < r.plan.lives {
			add(false, "", living, func() { r.life() })
		}
		return
	}
	if e := r.ear(); e != nil && !e.of.dead {
		for _, h := range e.of.all {
			if e.told[h.ID] > 0 && !e.heard[h.ID] && h.Outcome != "" {
				add(false, h.ID, hearing, func() { e.hears(h.ID) })
			}
		}
		add(true, "", "the call ends", e.hangsUp)
	} else if len(r.ears) < r.plan.calls && !l.came {
		add(false, "", calling, func() { l.calls() })
	}
	for i, id := range r.asked {
		if l.came {
			break
		}
		key := "k" + strconv.Itoa(i)
		ask := func() { r.asks(l, i, key) }
		if id == "" && (i == 0 || r.asked[i-1] != "") {
			add(false, key, asking, ask)
		} else if id != "" {
			add(true, key, "is asked for again", ask)
		}
	}
	for _, h := range l.all {
		if h.open && h.state.Outcome == "" && !h.state.Stopping {
			add(true, h.ID, "is stopped", func() { l.stopped[h.ID] = true; l.step(&Stop{Grant: owner, ID: h.ID}) })
		}
	}
	for _, h := range l.all {
		if h.Paused && !l.came {
			add(true, h.ID, "is begun after all", func() { l.beginsPaused(h) })
		}
	}
	add(true, "", "the process ends", func() { l.ends(false) })
	add(true, "", "the caller moves", func() { l.ends(true) })
	if len(r.lives) < r.plan.lives {
		add(true, "", "the process is killed", func() { l.killed(); r.life() })
		add(true, "", "another instance takes the caller", func() { r.life() })
	}
}

// beginsPaused has paused work begun.
func (l *life) beginsPaused(h *Handoff) {
	l.asksFor(handoff.Request{Key: "instead of " + h.ID + " " + strconv.Itoa(l.n), Instead: handoff.ID(h.ID)})
}

func (l *life) ends(moved bool) {
	l.step(&Ends{Moved: moved})
	l.step(&Unstored{Now: true})
}

// killed ends a life where it is. What it sent may still arrive, also a batch.
func (l *life) killed() {
	l.dead = true
	for _, h := range l.all {
		l.halt(h.ID)
	}
	for _, e := range l.w.ears {
		e.left = e.left || e.of == l
	}
}

// asks gives work, or repeats it.
func (r *run) asks(l *life, i int, key string) {
	was := r.asked[i]
	a := l.asks(key, r.plan.modes[i])
	if a.Err != nil {
		r.wrong("%s is refused: %v", key, a.Err)
	}
	h := l.find(string(a.ID))
	old := l.find(string(was))
	if h == nil {
		r.wrong("%s is nowhere", key)
	} else if was != "" && was != a.ID && old != nil && !old.free() && old.begunAs != string(a.ID) && !r.amnesia {
		r.wrong("%s is begun once more as %s, not as %s", key, a.ID, was)
	}
	r.asked[i] = a.ID
}

// answers is what may come of a job.
func (r *run) answers(l *life, j Job, add adds) {
	who := j.ID + " " + string(j.Kind) + ":"
	done := func(fault bool, what string, d func() Done) {
		add(fault, who, what, func() { l.done(j, d()) })
	}
	says := func(fault bool, what string, d Done) { done(fault, what, func() Done { return d }) }
	failed := func(c handoff.Code) Done { return Done{Err: handoff.Fault(c, "s", "")} }
	running := r.attached().Running
	switch j.Kind {
	case Resolve:
		says(false, "found", Done{Target: thread})
	case Join:
		add(false, who, looking, func() { l.looks(j) })
	case Attach:
		done(false, "attached", func() Done { return Done{Attached: r.attached()} })
		says(true, "gone", failed(handoff.CodeSessionGone))
		says(true, "away", failed(handoff.CodeUnreachable))
	case Start:
		if running != "" {
			done(false, "busy", func() Done { delete(l.tried, j.ID); return failed(handoff.CodeBusy) })
			return
		}
		done(false, "acknowledged", func() Done { return Done{Turn: r.arrives(j)} })
		done(true, "its answer is lost", func() Done { r.arrives(j); return failed(handoff.CodeUnknownStart) })
		says(true, "it is lost", failed(handoff.CodeUnknownStart))
		says(true, "refused", failed(handoff.CodeRefused))
		says(true, "not sent", failed(handoff.CodeUnreachable))
	case Steer:
		if running == j.Holder.ID {
			done(false, "taken", func() Done { r.arrives(j); return Done{} })
			done(true, "its answer is lost", func() Done { r.arrives(j); return failed(handoff.CodeAgentGone) })
		}
		says(running == j.Holder.ID, "not taken", failed(handoff.CodeBusy))
	case Await, Elsewhere:
		done(false, "it is over", func() Done { r.turnEnds(running); return Done{} })
	case Reconcile:
		done(false, "looked for", func() Done { return Done{Attached: r.attached(), Turn: r.turnOf(j.ID)} })
		says(true, "nobody can tell", failed(handoff.CodeUnknownStart))
	case Follow:
		if h := l.find(j.ID); !h.state.Seen {
			add(false, who, "it reports", func() { l.updates(j, handoff.Started{Turn: j.Turn}) })
		}
		add(false, who, "it is done", func() {
			r.turnEnds(j.Turn)
			l.updates(j, handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"})
		})
		says(true, "lost", failed(handoff.CodeAgentGone))
		says(true, "gone", failed(handoff.CodeTurnGone))
	case Reconnect:
		done(false, "attached", func() Done { return Done{Attached: r.attached()} })
		says(true, "too late", failed(handoff.CodeAgentGone))
	default:
		r.wrong("nobody knows of the job %s", j.Kind)
	}
}

// looks has a job look at its queue.
func (l *life) looks(j Job) {
	look := &Look{ID: j.ID, N: j.N}
	if l.step(look); look.Changed == nil && l.jobs[j.ID].N == j.N {
		delete(l.jobs, j.ID)
	}
}

// updates is an update of the turn that a job follows.
func (l *life) updates(j Job, u handoff.Update) {
	e := &Update{ID: j.ID, N: j.N, Update: u}
	if _, over := u.(handoff.TurnEnded); over {
		delete(l.jobs, j.ID)
	}
	l.step(e)
}

func (w *world) turnEnds(id handoff.TurnID) {
	for n := range w.turns {
		if turnID(n) == id {
			w.turns[n].runs = false
		}
	}
}

// turnOf is the turn with the words of a handoff, or "".
func (w *world) turnOf(id string) handoff.TurnID {
	i := slices.IndexFunc(w.turns, func(t turn) bool { return t.of == id })
	if i < 0 {
		return ""
	}
	return turnID(i)
}

// print is the same for two worlds in which the same may happen.
func (r *run) print() string {
	var b strings.Builder
	for _, l := range r.lives {
		k := &l.keep
		fmt.Fprint(&b, "\n", l.dead, l.over, l.came, l.loads, k.open, len(k.doubted), k.beat, k.single, k.tries > 0,
			k.again.IsZero(), k.version == r.store.Version, len(k.places), len(l.listeners))
		if l.dead {
			continue
		}
		fmt.Fprint(&b, l.cfg.Threads.(*lines).all)
		if k.sent != nil {
			for _, of := range k.sent.of {
				fmt.Fprint(&b, of.h.ID, of.seq == of.h.doc.seq)
			}
			fmt.Fprint(&b, " was ", l.sent.Was == r.store.Version)
		}
		for _, h := range k.dirty {
			fmt.Fprint(&b, " ", h.ID)
		}
		for _, h := range l.all {
			d := h.doc
			j := l.jobs[h.ID]
			fmt.Fprint(&b, ";", h.ID, h.state, h.open, h.State, h.Outcome, h.Paused, h.unheard, h.givenTo != nil, h.offered,
				h.listener != nil, h.begunAs, j.Kind, h.wait.store.what,
				h.watch.unseen.IsZero(), h.wait.within.IsZero(), d.closed, d.known, d.free, d.clear,
				d.sent, d.status, d.seq == d.acked, h.attempt.number, h.awaited, h.run.Turn, l.has[h.ID].Status)
		}
	}
	for _, e := range ledger.Entries(r.store.Documents, func(string) {}) {
		fmt.Fprint(&b, "|", e.ClientID, e.Status, e.Outcome, e.Attempt, e.Turn)
	}
	fmt.Fprint(&b, len(r.store.Past), len(r.store.before), r.store.life, r.lost, r.amnesia, r.turns, len(r.flying), r.asked,
		r.left, len(r.ears), r.ear() != nil)
	for _, e := range r.ears {
		fmt.Fprint(&b, e.left, e.told, e.heard)
	}
	return b.String()
}

// replay lets a world go a way again.
func replay(p plan, way []uint8) *run {
	r := begin(p)
	for _, at := range way {
		r.takes(r.choices()[at])
	}
	return r
}

func (r *run) failure() string {
	return fmt.Sprintf("%s, after\n  %s", r.bad, strings.Join(r.path, "\n  "))
}

// explore visits each state within some steps, and settles each. It returns how many states and steps there were.
func explore(p plan, depth int) (states, steps int, failure string) {
	seed, seen := maphash.MakeSeed(), map[uint64]bool{}
	ways := [][]uint8{nil}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for at := range replay(p, way).choices() {
			r := replay(p, append(way, uint8(at)))
			steps++
			if r.bad != "" {
				return states, steps, r.failure()
			}
			print := maphash.String(seed, r.print())
			if seen[print] {
				continue
			}
			seen[print] = true
			states++
			if len(way)+1 < depth {
				ways = append(ways, append(slices.Clone(way), uint8(at)))
			}
			if r.settle(); r.bad != "" {
				return states, steps, r.failure()
			}
		}
	}
	return states, steps, ""
}

// TestExplored visits all that may happen to one request, and to two for one session, within some steps and faults.
func TestExplored(t *testing.T) {
	for name, p := range map[string]plan{
		"one":             {[]handoff.Mode{handoff.ModeNow}, 2, 2, 2},
		"one after other": {[]handoff.Mode{handoff.ModeNow, handoff.ModeNext}, 1, 2, 1},
		"added":           {[]handoff.Mode{handoff.ModeNow, handoff.ModeNow}, 1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			states, steps, failure := explore(p, exploredDepth)
			if failure != "" {
				t.Fatal(failure)
			}
			t.Logf("%d states, %d steps", states, steps)
		})
	}
}

// TestWalks lets many worlds go at random, with three requests, and faults of all kinds.
func TestWalks(t *testing.T) {
	steps := 0
	for seed := range uint64(walks) {
		chance := rand.New(rand.NewPCG(seed, 1))
		r := begin(plan{[]handoff.Mode{handoff.ModeNow, handoff.ModeNext, handoff.ModeNow}, 4, 5, 20})
		for range 80 {
			all := r.choices()
			if chance.IntN(6) > 0 {
				all = slices.DeleteFunc(all, func(c choice) bool { return c.fault })
			}
			if len(all) > 0 && r.bad == "" {
				r.takes(all[chance.IntN(len(all))])
				steps++
			}
		}
		if r.bad == "" {
			r.settle()
		}
		if r.bad != "" {
			t.Fatalf("seed %d: %s", seed, r.failure())
		}
	}
	t.Logf("%d steps", steps)
}
