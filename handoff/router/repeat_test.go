package router

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// TestRepeatedRequest: a request with a print is the same work for 24 hours, also after a restart, whoever was told of
// it meanwhile, until who asked has the answer.
func TestRepeatedRequest(t *testing.T) {
	const same, other = true, false
	for _, tc := range []struct {
		name string
		acts string // what happens between the request and its repetition
		want bool
	}{
		{"at once", "", same},
		{"hours later", "wait", same},
		{"after its end", "end", same},
		{"after a restart", "restart", same},
		{"after a restart and its end", "end restart", same},
		{"after somebody else was told", "end heard", same},
		{"after somebody else was told, and a restart", "end heard restart", same},
		{"after who asked was told", "end told", other},
		{"after who asked was told, and a restart", "end told restart", other},
		{"after who asked got an answer, and a restart", "answered end restart", other},
		{"after a day", "wait wait", other},
		{"after a day and a restart", "wait restart wait", other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet, kept := newCopier(), shelved()
				var r *Router
				end := func() {}
				life := func() {
					r = idle(Config{Fleet: fleet, Store: kept})
					end()
					end = begin(t, r)
				}
				life()
				req := handoff.Request{
					Print: handoff.PrintOf("mcp", "go"), Target: handoff.Target{Server: "s", Thread: "t"},
					Input: handoff.TextInput(strings.Repeat("go ", 200)),
				}
				first, err := r.Start(t.Context(), ladderGrant, req)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for act := range strings.FieldsSeq(tc.acts) {
					switch act {
					case "wait":
						time.Sleep(13 * time.Hour)
					case "end":
						close(fleet.let)
					case "restart":
						life()
					case "heard":
						err = r.Heard(t.Context(), ladderGrant, first)
					case "told":
						err = r.Told(t.Context(), ladderGrant, first)
					case "answered":
						r.Answered(ladderGrant, first, 0)
					}
					if err != nil {
						t.Fatalf("%s: %v", act, err)
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
				var all sync.WaitGroup
				ids := make([]handoff.ID, 3)
				for i := range ids { // together
					all.Go(func() { ids[i], _ = r.Start(t.Context(), ladderGrant, req) })
				}
				all.Wait()
				if (ids[0] == first) != tc.want || ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] {
					t.Errorf("asked again: %q, the first was %s", ids, first)
				}
				end()
			})
		})
	}
}

// TestSurelyRepeated: a request that certainly repeats another is the same work also while that seems to be waited for,
// and for a time after its answer. One that is certainly the first is not, but may be repeated. What is not kept is
// remembered without its words.
func TestSurelyRepeated(t *testing.T) {
	const same, other, lost = true, false, 10 * time.Minute
	again, first := handoff.Request{Again: true}, handoff.Request{First: true}
	for _, tc := range []struct {
		name    string
		request handoff.Request // how it is asked for
		acts    string
		repeats handoff.Request
		want    bool
	}{
		{"the first one", handoff.Request{}, "", first, other},
		{"a repetition of the first one", first, "", again, same},
		{"an equal one at the same time", handoff.Request{Waits: true}, "", handoff.Request{}, other},
		{"a repetition at the same time", handoff.Request{Waits: true}, "", again, same},
		{"an equal one of a client that had left before", handoff.Request{Waits: true}, "left", handoff.Request{}, same},
		{"an equal one after the answer", handoff.Request{}, "end told", handoff.Request{}, other},
		{"a repetition after the answer", handoff.Request{}, "end told", again, same},
		{"a repetition after the answer and a restart", handoff.Request{}, "end told restart", again, same},
		{"an equal one after an early answer and a kill", handoff.Request{}, "answered restart", handoff.Request{}, other},
		{"a repetition after an early answer and a kill", handoff.Request{}, "answered restart", again, same},
		{"a repetition long after the answer", handoff.Request{}, "end told wait", again, other},
		{"a repetition long after the answer and a restart", handoff.Request{}, "end told restart wait", again, other},
		{"a repetition of a first one that was refused", handoff.Request{}, "end told refused", again, other},
		{"a repetition at the same time as a refused one", handoff.Request{Waits: true}, "refused", again, same},
		{"not kept", handoff.Request{Unkept: true}, "end heard", again, same},
		{"not kept, after the answer", handoff.Request{Unkept: true}, "end told", again, same},
		{"not kept, long after the answer", handoff.Request{Unkept: true}, "end told wait", again, other},
		{"not kept, after a kill", handoff.Request{Unkept: true}, "restart", again, same},
		{"not kept, after two kills", handoff.Request{Unkept: true}, "restart restart", handoff.Request{}, same},
		{"not kept, after two kills and its answer", handoff.Request{Unkept: true}, "restart restart told", handoff.Request{}, other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet, kept := newCopier(), shelved()
				var r *Router
				end := func() {}
				life := func() {
					r = idle(Config{Fleet: fleet, Store: kept})
					end()
					end = begin(t, r)
				}
				life()
				synctest.Wait()
				ask := func(ctx context.Context, how handoff.Request) handoff.ID {
					how.Print, how.Target = handoff.PrintOf("go"), handoff.Target{Server: "s", Thread: "t"}
					how.Input = handoff.TextInput("go on")
					known, err := r.Repeats(ctx, ladderGrant, how)
					id, failed := r.Start(ctx, ladderGrant, how)
					if err != nil || failed != nil || known != "" && known != id {
						t.Fatalf("%s, then %s: %v, %v", known, id, err, failed)
					}
					synctest.Wait()
					return id
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if strings.Contains(tc.acts, "left") {
					leave()
				}
				id := ask(ctx, tc.request)
				for act := range strings.FieldsSeq(tc.acts) {
					switch act {
					case "wait":
						time.Sleep(lost)
					case "end":
						close(fleet.let)
					case "restart":
						life()
					case "told", "answered":
						if r.Answered(ladderGrant, id, lost); act == "told" {
							_ = r.Heard(t.Context(), ladderGrant, id)
						}
					case "heard":
						_ = r.Heard(t.Context(), ladderGrant, id)
					case "refused": // a first one, before Start
						_, _ = r.Repeats(t.Context(), ladderGrant, handoff.Request{Print: handoff.PrintOf("go"), First: true})
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if rec, _ := r.Handoff(ladderGrant, string(id)); rec.State == handoff.StatusDelivered && rec.Unkept && rec.Prompt+rec.Text != "" {
					t.Errorf("it has the words %q", rec.Prompt+rec.Text)
				}
				if next := ask(t.Context(), tc.repeats); (next == id) != tc.want {
					t.Errorf("asked again: %s, the first was %s", next, id)
				}
				end()
			})
		})
	}
}

// TestRepeatedBeforeItBegan: what a former life promised and never began begins once when its request is repeated.
func TestRepeatedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet, kept := newCopier(), shelved()
		print, whole := handoff.PrintOf("go"), strings.Repeat("go on ", 100)
		req := handoff.Request{Print: print, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput(whole)}
		kept.leave(ledger.Entry{
			Key: work.KeyOf(ladderCaller, "r1"), Args: work.ArgsOf(req), Owner: "former", Caller: ladderCaller, Status: handoff.StatusAccepted,
			Accepted: time.Now(), Facts: ledger.Facts{ClientID: "r1", Target: req.Target, Prompt: whole[:200], Print: print},
		}, ledger.Body{Request: wholeRequest(whole)})
		r := running(t, Config{Fleet: fleet, Store: kept})
		synctest.Wait()
		id, err := r.Start(t.Context(), ladderGrant, req)
		if err != nil || id == "r1" {
			t.Fatalf("%s, %v", id, err)
		}
		close(fleet.let)
		synctest.Wait()
		if again, err := r.Start(t.Context(), ladderGrant, req); again != id || err != nil || fleet.started != 1 {
			t.Errorf("%s, want %s, after %d turns, %v", again, id, fleet.started, err)
		}
		if rec, _ := r.Handoff(ladderGrant, "r1"); rec.Paused {
			t.Error("the caller is still asked about it")
		}
	})
}

// TestRepeatedPromise: equal requests that are under way together are different work. One whose asker left without the
// promise is repeated by the next.
func TestRepeatedPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newCopier()
		r := running(t, Config{Fleet: fleet, Store: shelved()})
		req := handoff.Request{
			Print: handoff.PrintOf("api", "go"), Target: handoff.Target{Server: "s", Thread: "t"}, Mode: handoff.ModeNext,
			Input: handoff.TextInput("go"),
		}
		give := func() (string, context.CancelFunc) {
			ctx, leave := context.WithCancel(t.Context())
			rec, err := r.Give(ctx, ladderGrant, req)
			if err != nil {
				t.Fatal(err)
			}
			return rec.ID, func() { leave(); synctest.Wait() }
		}
		first, firstLeaves := give()
		second, secondLeaves := give()
		if first == second {
			t.Error("two requests at the same time are one")
		}
		r.Answered(ladderGrant, handoff.ID(second), 0)
		secondLeaves()
		firstLeaves() // its connection broke
		again, leave := give()
		if again != first {
			t.Errorf("repeated it is %s, want %s", again, first)
		}
		r.Answered(ladderGrant, handoff.ID(again), 0)
		leave()
		if next, leave := give(); next == first || next == second {
			t.Errorf("given once more it is %s", next)
		} else {
			leave()
		}
		close(fleet.let)
		synctest.Wait()
	})
}
