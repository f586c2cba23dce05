package router

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A brisk fleet has threads where each turn lasts a second. It notes what it was told, in order.
type brisk struct {
	byName
	mu   sync.Mutex
	told []string // Guarded by mu
}

func (b *brisk) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	return handoff.Attached{Target: t, Agent: b}, nil
}

func (b *brisk) Start(_ context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, handoff.InputText(turn.Input))
	return handoff.TurnID(fmt.Sprint("turn-", len(b.told))), nil
}

func (b *brisk) Follow(ctx context.Context, _ handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		select {
		case <-time.After(time.Second):
			yield(handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "done"}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

func (b *brisk) Close() error { return nil }

// TestMove: what waits is begun in the order that its caller gave it last, each once and none left out, whatever is
// moved, dropped or asked for meanwhile, and the places that are shown are those of that order.
func TestMove(t *testing.T) {
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) { testMove(t, rand.New(rand.NewPCG(uint64(seed), 1))) })
	}
}

func testMove(t *testing.T, chance *rand.Rand) {
	fleet := &brisk{}
	ctx, r := t.Context(), newClient(t, Config{Fleet: fleet})
	var ids, queue, want []string // all, what waits, and what is to be told
	words := map[string]string{}
	step := func() { // the agent is done with one, and begins the next
		if len(queue) > 0 {
			want, queue = append(want, words[queue[0]]), queue[1:]
		}
	}
	for i := range 40 {
		switch chance.IntN(4) {
		case 0, 1:
			id := r.next("t", fmt.Sprint("words ", i))
			synctest.Wait()
			words[string(id)] = fmt.Sprint("words ", i)
			queue, ids = append(queue, string(id)), append(ids, string(id))
			if r.record(id).Waits == "" { // nothing ran
				step()
			}
		case 2:
			if len(ids) == 0 {
				continue
			}
			id, before := ids[chance.IntN(len(ids))], ""
			if chance.IntN(3) > 0 {
				before = ids[chance.IntN(len(ids))]
			}
			at, to := slices.Index(queue, id), slices.Index(queue, before)
			err := r.Move(ctx, ladderGrant, id, before)
			if moves := at >= 0 && id != before && (to >= 0 || before == ""); moves != (err == nil) {
				t.Fatalf("%s before %q in %q: %v", id, before, queue, err)
			} else if moves {
				queue = slices.Delete(queue, at, at+1)
				if to = slices.Index(queue, before); to < 0 {
					to = len(queue)
				}
				queue = slices.Insert(queue, to, id)
			}
		case 3:
			time.Sleep(time.Second)
			step()
		}
		synctest.Wait()
		if got := shownQueue(t, r.Router); !slices.Equal(got, queue) {
			t.Fatalf("shown %q, want %q", got, queue)
		}
	}
	for len(queue) > 0 {
		time.Sleep(time.Second)
		step()
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
	if !slices.Equal(fleet.told, want) {
		t.Errorf("told %q\nwant %q", fleet.told, want)
	}
	if err := r.Move(ctx, ladderGrant, "none", ""); handoff.CodeOf(err) != handoff.CodeNotFound {
		t.Errorf("work that never was: %v", err)
	}
	if len(ids) > 0 {
		if err := r.Move(ctx, ladderGrant, ids[0], ""); handoff.CodeOf(err) != handoff.CodeWorkEnded {
			t.Errorf("work that has ended: %v", err)
		}
	}
}

// shownQueue is what waits in the order that a page gives it: those with a place by that, then the others by when they
// were asked for.
func shownQueue(t *testing.T, r *Router) []string {
	t.Helper()
	all, err := r.Handoffs(ladderGrant)
	if err != nil {
		t.Fatal(err)
	}
	var waiting []handoff.Record
	for _, rec := range slices.Backward(all) {
		if rec.Waits != "" && rec.Outcome == "" {
			waiting = append(waiting, rec)
		}
	}
	turn := func(rec handoff.Record) int {
		if rec.Place == 0 {
			return len(all) + 1
		}
		return rec.Place
	}
	slices.SortStableFunc(waiting, func(a, b handoff.Record) int { return turn(a) - turn(b) })
	var ids []string
	for _, rec := range waiting {
		ids = append(ids, rec.ID)
	}
	return ids
}

// TestMoveIsTheCallers: nobody moves the work of another caller.
func TestMoveIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClient(t, Config{Fleet: slowFleet{}})
		var ids []handoff.ID
		for words := range strings.FieldsSeq("one two three") {
			ids = append(ids, r.next("t", words))
			synctest.Wait()
		}
		other := handoff.Grant{Caller: handoff.Caller{Principal: "somebody else"}}
		if err := r.Move(t.Context(), other, string(ids[2]), ""); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("somebody else's work is moved: %v", err)
		}
		few := ladderGrant
		few.Servers = []string{"laptop"}
		if err := r.Move(t.Context(), few, string(ids[2]), ""); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("work of a machine that the key may not use is moved: %v", err)
		}
	})
}
