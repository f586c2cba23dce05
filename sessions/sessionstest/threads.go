package sessionstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// TestThreads is the contract of [threads.Store]. open returns an empty store that stays open until the test ends.
func TestThreads(t *testing.T, open func(t *testing.T) threads.Store) {
	for name, run := range map[string]func(*threadSuite){
		"a thread goes on":                                            (*threadSuite).goesOn,
		"a copy reads what was before it":                             (*threadSuite).copies,
		"of many claims one goes on":                                  (*threadSuite).race,
		"a turn that is known to be lost ends with the next claim":    (*threadSuite).lost,
		"what a turn took besides waits for its model, or is unheard": (*threadSuite).steers,
		"a step made twice is made once":                              (*threadSuite).twice,
		"another owner sees nothing":                                  (*threadSuite).foreign,
		"threads are listed, the newest first":                        (*threadSuite).list,
		"any walk keeps copies apart":                                 (*threadSuite).walk,
	} {
		t.Run(name, func(t *testing.T) {
			run(&threadSuite{T: t, store: open(t), now: time.Now().Truncate(time.Millisecond).UTC()})
		})
	}
}

// A threadSuite runs one case.
type threadSuite struct {
	*testing.T
	store threads.Store
	now   time.Time
}

const threadOwner = "helper"

func threadItems(words ...string) []threads.Item {
	var items []threads.Item
	for _, w := range words {
		items = append(items, threads.Item{From: "model", JSON: json.RawMessage(fmt.Sprintf("{%q:%q}", "text", w))})
	}
	return items
}

func (s *threadSuite) create(id string) {
	s.Helper()
	s.advance(threads.Create{Owner: threadOwner, Thread: id, Dir: "/work", At: s.now})
}

func (s *threadSuite) advance(step threads.Step) threads.Result {
	s.Helper()
	r, err := s.store.Advance(s.Context(), step)
	if err != nil {
		s.Fatalf("%+v: %v", step, err)
	}
	return r
}

func (s *threadSuite) refused(step threads.Step, code handoff.Code) {
	s.Helper()
	if _, err := s.store.Advance(s.Context(), step); handoff.CodeOf(err) != code {
		s.Errorf("%T: %v, want %s", step, err, code)
	}
}

func (s *threadSuite) claim(thread, turn string) threads.Claim {
	return threads.Claim{Owner: threadOwner, Thread: thread, Turn: turn, Title: "title " + turn,
		Items: threadItems("asked " + turn), At: s.now}
}

// fork copies a thread up to the end of a turn.
func (s *threadSuite) fork(thread, after, copied string) threads.Result {
	s.Helper()
	return s.advance(threads.Fork{Owner: threadOwner, Thread: thread, After: after, Copy: copied, At: s.now})
}

// end returns the step that appends an answer and ends the turn.
func (s *threadSuite) end(r threads.Result) threads.End {
	return threads.End{
		Append: threads.Append{
			Owner: threadOwner, Thread: r.Thread.ID, Turn: r.Turn.ID, Fence: r.Turn.Fence, At: s.now, From: r.Thread.Items,
			Items: threadItems("answered " + r.Turn.ID), Anchor: &threads.Anchor{Response: "resp " + r.Turn.ID,
				Upstream: "model", Items: r.Thread.Items + 1, At: s.now},
		},
		Status: threads.Completed, Text: "answer", Usage: json.RawMessage(`{"input_tokens":1}`),
	}
}

// turn makes a turn from its claim to its end.
func (s *threadSuite) turn(thread, turn string) threads.Result {
	s.Helper()
	s.now = s.now.Add(time.Second)
	return s.advance(s.end(s.advance(s.claim(thread, turn))))
}

func (s *threadSuite) read(thread string) threads.Record {
	s.Helper()
	r, err := s.store.Read(s.Context(), threadOwner, thread)
	if err != nil {
		s.Fatalf("read %s: %v", thread, err)
	}
	return r
}

// holds fails the test unless a thread has exactly these turns, by id, and their items.
func (s *threadSuite) holds(thread string, turns ...string) {
	s.Helper()
	r := s.read(thread)
	var have, words, want []string
	for _, t := range r.Turns {
		have = append(have, t.ID)
	}
	for _, it := range r.Items {
		words = append(words, string(it.JSON))
	}
	for _, t := range turns {
		want = append(want, `{"text":"asked `+t+`"}`, `{"text":"answered `+t+`"}`)
	}
	if !slices.Equal(have, turns) || !slices.Equal(words, want) || r.Thread.Items != len(want) {
		s.Errorf("%s has turns %v and items %v, want %v", thread, have, words, turns)
	}
}

func (s *threadSuite) goesOn() {
	s.create("t")
	s.turn("t", "a")
	first := s.read("t")
	s.turn("t", "b")
	s.holds("t", "a", "b")
	r := s.read("t")
	if r.Turns[0] = first.Turns[0]; fmt.Sprint(r.Turns[0]) != fmt.Sprint(first.Turns[0]) {
		s.Errorf("the first turn became %+v", r.Turns[0])
	}
	want := threads.Turn{
		ID: "b", Thread: "t", Previous: "a", Status: threads.Completed, Fence: 2, From: 2, Until: 4,
		Anchor:  threads.Anchor{Response: "resp b", Upstream: "model", Items: 4, At: s.now},
		Started: s.now, Ended: s.now, Text: "answer", Usage: json.RawMessage(`{"input_tokens":1}`),
	}
	if got := r.Turns[1]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		s.Errorf("got  %+v\nwant %+v", got, want)
	}
	if r.Thread.Title != "title a" || r.Thread.Dir != "/work" || r.Thread.Tip != "b" ||
		!r.Thread.Updated.Equal(s.now) || r.Items[1].From != "model" || r.Items[1].Turn != "a" {
		s.Errorf("%+v, %+v", r.Thread, r.Items[1])
	}
}

func (s *threadSuite) copies() {
	s.create("t")
	for _, turn := range []string{"a", "b", "c"} {
		s.turn("t", turn)
	}
	s.fork("t", "b", "u")
	s.turn("u", "d")
	s.fork("u", "a", "v") // after a turn that the copy has from its parent
	s.turn("v", "e")
	s.fork("u", "d", "w")
	s.turn("w", "f")
	s.turn("t", "g")
	s.fork("v", "", "x")
	s.turn("x", "h")
	s.holds("t", "a", "b", "c", "g")
	s.holds("u", "a", "b", "d")
	s.holds("v", "a", "e")
	s.holds("w", "a", "b", "d", "f")
	s.holds("x", "a", "e", "h")
	if anchor := s.read("u").Turns[1].Anchor.Response; anchor != "resp b" {
		s.Errorf("the copy's anchor is %q", anchor)
	}
	late := threads.Fork{Owner: threadOwner, Thread: "u", After: "c", Copy: "y", At: s.now}
	s.refused(late, handoff.CodeNotFound) // a turn that the parent had after the copy
}

func (s *threadSuite) race() {
	const many = 64
	s.create("t")
	s.turn("t", "a")
	var work sync.WaitGroup
	results := make([]threads.Result, many)
	for i := range many {
		work.Go(func() {
			r, err := s.store.Advance(s.Context(), s.claim("t", fmt.Sprint("turn", i)))
			if err != nil && handoff.CodeOf(err) != handoff.CodeBusy {
				s.Errorf("claim %d: %v", i, err)
			}
			results[i] = r
		})
	}
	work.Wait()
	went := 0
	for _, r := range results {
		if r.Turn.ID != "" {
			went++
			s.advance(s.end(r))
			s.holds("t", "a", r.Turn.ID)
		}
	}
	if went != 1 {
		s.Errorf("%d claims went on", went)
	}
}

func (s *threadSuite) lost() {
	s.create("t")
	old := s.advance(s.claim("t", "a"))
	s.refused(s.claim("t", "b"), handoff.CodeBusy)
	s.now = s.now.Add(24 * time.Hour)
	write := s.end(old).Append
	write.Anchor = nil
	old = s.advance(write)
	claim := s.claim("t", "b")
	claim.Lost = "another"
	s.refused(claim, handoff.CodeBusy)
	claim.Lost = "a"
	s.advance(s.end(s.advance(claim)))
	s.refused(s.end(old), handoff.CodeTakenOver)
	s.holds("t", "a", "b")
	if r := s.read("t"); r.Turns[0].Status != threads.Interrupted || r.Turns[1].Previous != "a" {
		s.Errorf("%+v", r.Turns)
	}
}

func (s *threadSuite) twice() {
	s.create("t")
	s.create("t")
	claim := s.claim("t", "a")
	claim.Key = "mine"
	first, again := s.advance(claim), s.advance(claim)
	other := claim
	other.Key = "another's"
	for _, r := range []threads.Result{again, s.advance(other)} {
		if !r.Same || r.Turn.Fence != first.Turn.Fence || r.Turn.Claim != "mine" {
			s.Errorf("%+v", r)
		}
	}
	end := s.end(first)
	s.advance(end.Append)
	s.advance(end.Append)
	s.advance(end)
	s.advance(end)
	if r := s.advance(claim); !r.Same || r.Turn.Status != threads.Completed {
		s.Errorf("%+v", r)
	}
	s.holds("t", "a")
	s.turn("t", "b")
	s.fork("t", "", "v")
	if r := s.fork("t", "", "v"); !r.Same || !r.Forked || r.Thread.ID != "v" {
		s.Errorf("%+v", r)
	}
	s.holds("v", "a", "b")
}

func (s *threadSuite) foreign() {
	s.create("t")
	s.turn("t", "a")
	_, err := s.store.Read(s.Context(), "somebody", "t")
	_, missing := s.store.Read(s.Context(), "somebody", "no such thread")
	if err == nil || missing == nil || err.Error() != missing.Error() {
		s.Errorf("%v, %v", err, missing)
	}
	claim := s.claim("t", "b")
	claim.Owner = "somebody"
	s.refused(claim, handoff.CodeSessionGone)
	s.refused(threads.Fork{Owner: "somebody", Thread: "t", Copy: "u", At: s.now}, handoff.CodeSessionGone)
	if list, err := s.store.List(s.Context(), "somebody", 10); err != nil || len(list) != 0 {
		s.Errorf("%v, %v", list, err)
	}
	s.holds("t", "a")
}

func (s *threadSuite) list() {
	for _, id := range []string{"p", "q", "r", "empty"} {
		s.create(id)
	}
	for _, id := range []string{"q", "p", "r", "p"} {
		s.turn(id, fmt.Sprint(id, s.now.Unix()))
	}
	for limit, want := range map[int][]string{0: nil, 2: {"p", "r"}, 10: {"p", "r", "q"}} {
		list, err := s.store.List(s.Context(), threadOwner, limit)
		var ids []string
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			s.Errorf("at most %d: %v, %v", limit, ids, err)
		}
	}
}

// TestThreadsAge: a thread is forgotten when it was not used for life, and never before; a thread with copies as late
// as its copies. pass advances the clock of the store, and now reads it.
func TestThreadsAge(t *testing.T, store threads.Store, life time.Duration, pass func(time.Duration),
	now func() time.Time) {
	s := &threadSuite{T: t, store: store, now: now()}
	for _, id := range []string{"old", "used", "running", "source", "empty"} {
		s.create(id)
	}
	for _, id := range []string{"old", "used", "source"} {
		s.turn(id, "a")
	}
	s.fork("source", "", "copy")
	later := func(part time.Duration) {
		pass(part)
		s.now = now()
	}
	later(life * 2 / 3)
	s.turn("used", "b")
	s.turn("copy", "b")
	running := s.advance(s.claim("running", "a"))
	later(life * 2 / 3)
	s.here(map[string]bool{"old": false, "empty": false, "used": true, "running": true, "source": true, "copy": true})
	if r, err := store.Read(t.Context(), threadOwner, "copy"); err != nil || len(r.Turns) != 2 {
		t.Errorf("of the copy there are %d turns, %v", len(r.Turns), err)
	}
	if list, err := store.List(t.Context(), threadOwner, 10); err != nil || len(list) < 3 {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	s.advance(threads.Append{Owner: threadOwner, Thread: "running", Turn: "a", Fence: running.Turn.Fence, At: s.now})
	later(life * 2 / 3)
	s.here(map[string]bool{"used": false, "copy": false, "running": true})
	later(3 * life)
	s.here(map[string]bool{"running": false, "source": false})
	if list, err := store.List(t.Context(), threadOwner, 10); err != nil || len(list) > 0 {
		t.Errorf("%+v are listed, %v", list, err)
	}
}

// here fails the test unless exactly the threads with true are there.
func (s *threadSuite) here(want map[string]bool) {
	s.Helper()
	for id, there := range want {
		_, err := s.store.Read(s.Context(), threadOwner, id)
		if (err == nil) != there || err != nil && handoff.CodeOf(err) != handoff.CodeSessionGone {
			s.Errorf("%s: %v, and should be there: %v", id, err, there)
		}
	}
}

// waits fails the test unless the newest turn of a thread has these pending steers and these unheard ones.
func (s *threadSuite) waits(thread string, steers []threads.Steer, unheard ...string) {
	s.Helper()
	r := s.read(thread)
	turn := r.Turns[len(r.Turns)-1]
	if fmt.Sprint(turn.Steers) != fmt.Sprint(steers) || fmt.Sprint(turn.Unheard) != fmt.Sprint(unheard) {
		s.Errorf("%s waits with %v and did not hear %q, want %v and %q", turn.ID, turn.Steers, turn.Unheard, steers, unheard)
	}
}

func (s *threadSuite) steers() {
	s.create("t")
	r := s.advance(s.claim("t", "a"))
	steer := func(n int) threads.Append {
		return threads.Append{Owner: threadOwner, Thread: "t", Turn: "a", Fence: r.Turn.Fence, At: s.now,
			Steer: &threads.Steer{N: n, Words: fmt.Sprint("steer ", n)}}
	}
	one, two, three := *steer(1).Steer, *steer(2).Steer, *steer(3).Steer
	for _, n := range []int{1, 2, 2, 1, 3} { // some of them twice, or late
		s.advance(steer(n))
	}
	s.waits("t", []threads.Steer{one, two, three})
	write := s.end(r).Append
	write.Heard = 1
	s.advance(write)
	s.advance(write)
	s.waits("t", []threads.Steer{two, three})
	s.holds("t", "a")
	s.now = s.now.Add(time.Second)
	end := s.end(r)
	end.Items, end.Anchor = nil, nil
	s.advance(end)
	s.advance(end)
	s.waits("t", nil, "steer 2", "steer 3")
	s.refused(steer(4), handoff.CodeTakenOver)
	r = s.advance(s.claim("t", "b"))
	last := steer(1)
	last.Turn, last.Fence = "b", r.Turn.Fence
	s.advance(last)
	s.advance(threads.Fork{Owner: threadOwner, Thread: "t", Lost: "b", Copy: "u", At: s.now})
	s.waits("t", nil, "steer 1") // the turn was lost
	s.waits("u", nil, "steer 1")
}

// walk makes random steps, and compares each thread with a model in which copies are real copies.
func (s *threadSuite) walk() {
	random := rand.New(rand.NewPCG(1, 2))
	s.create("t0")
	have := map[string][]string{"t0": nil} // turns that have ended, by thread
	names := []string{"t0"}
	for i := range 300 {
		thread := names[random.IntN(len(names))]
		if before := have[thread]; random.IntN(3) == 0 {
			copied, after, at := fmt.Sprint("t", i+1), "", len(before)
			if at > 0 && random.IntN(2) == 0 {
				at = 1 + random.IntN(at)
				after = before[at-1]
			}
			step := threads.Fork{Owner: threadOwner, Thread: thread, After: after, Copy: copied, At: s.now}
			if _, err := s.store.Advance(s.Context(), step); err == nil { // a thread may be copied only so often
				names, have[copied] = append(names, copied), slices.Clone(before[:at])
			}
			continue
		}
		turn := fmt.Sprint("n", i)
		s.turn(thread, turn)
		have[thread] = append(have[thread], turn)
	}
	for _, name := range names {
		s.holds(name, have[name]...)
	}
}
