package router

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A book is a ledger with bodies and a history that outlives routers.
type book struct {
	mu      sync.Mutex
	entries map[string]ledger.Entry // Guarded by mu: by key
	bodies  map[string]ledger.Body  // Guarded by mu: by key
	fails   int                     // Guarded by mu: how many reads of a body fail
}

func newBook() *book {
	return &book{entries: map[string]ledger.Entry{}, bodies: map[string]ledger.Body{}}
}

func (b *book) Advance(_ context.Context, s ledger.Step) (ledger.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after, err := b.entries[s.Key].Apply(s)
	if err != nil {
		return after, err
	}
	b.entries[s.Key] = after
	body := b.bodies[s.Key]
	body.Prompt, body.Text = cmp.Or(s.Body.Prompt, body.Prompt), cmp.Or(s.Body.Text, body.Text)
	body.Did, body.Request = cmp.Or(s.Body.Did, body.Did), cmp.Or(s.Body.Request, body.Request)
	if !s.Keeps() {
		body.Request = ""
	}
	b.bodies[s.Key] = body
	return after, nil
}

// body returns what is stored beside an entry.
func (b *book) body(key string) ledger.Body {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bodies[key]
}

func (b *book) list(delivered bool) []ledger.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.SortedFunc(maps.Values(b.entries), func(x, y ledger.Entry) int { return x.Accepted.Compare(y.Accepted) })
	return slices.DeleteFunc(all, func(e ledger.Entry) bool { return (e.Status == handoff.StatusDelivered) != delivered })
}

func (b *book) Open(context.Context, handoff.Caller) ([]ledger.Entry, error) {
	return b.list(false), nil
}

func (b *book) OpenAll(context.Context) ([]ledger.Entry, error) { return b.list(false), nil }

func (b *book) History(context.Context, handoff.Caller, ledger.HistoryQuery) (ledger.HistoryPage, error) {
	all := b.list(true)
	slices.Reverse(all)
	return ledger.HistoryPage{Entries: all}, nil
}

func (b *book) Body(_ context.Context, _ handoff.Caller, key string) (ledger.Body, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails--; b.fails >= 0 {
		return ledger.Body{}, false, handoff.Fault(handoff.CodeInternal, "", "the disk cannot be read")
	}
	body, ok := b.bodies[key]
	return body, ok, nil
}

func (b *book) Find(_ context.Context, _ handoff.Caller, key string) (ledger.Entry, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	return e, ok, nil
}

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
				fleet, b := newCopier(), newBook()
				var r *Router
				end := func() {}
				life := func() {
					r = idle(Config{Fleet: fleet, Ledger: b})
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
						r.Answered(ladderGrant, first)
					}
					if err != nil {
						t.Fatalf("%s: %v", act, err)
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
				var all sync.WaitGroup
				ids := make([]handoff.RunID, 3)
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

// TestRepeatedBeforeItBegan: what a former life promised and never began begins once when its request is repeated.
func TestRepeatedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet, b := newCopier(), newBook()
		print, whole := handoff.PrintOf("go"), strings.Repeat("go on ", 100)
		req := handoff.Request{Print: print, Target: handoff.Target{Server: "s", Thread: "t"}, Input: handoff.TextInput(whole)}
		k := ledgerKeyOf(ladderCaller, "r1", requestHash(req))
		b.entries[k.key] = ledger.Entry{
			Key: k.key, Args: k.args, Owner: "former", Caller: ladderCaller, Status: handoff.StatusAccepted,
			Accepted: time.Now(), Facts: ledger.Facts{ClientID: "r1", Target: req.Target, Prompt: whole[:200], Print: print},
		}
		b.bodies[k.key] = ledger.Body{Request: encodeRequest(req)}
		r := running(t, Config{Fleet: fleet, Ledger: b})
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

// TestReadInPart: what could not be read when it was taken up is read again, and until then is not written over: the
// whole request that waits, and a whole answer that nobody heard.
func TestReadInPart(t *testing.T) {
	for _, status := range []handoff.Status{handoff.StatusAccepted, handoff.StatusCompleted} {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testReadInPart(t, status) })
		})
	}
}

func testReadInPart(t *testing.T, status handoff.Status) {
	b := newBook()
	whole := strings.Repeat("read it, ", 100) + "and do not push"
	req := handoff.Request{Target: handoff.Target{Server: "s", Thread: "t"}, Input: []handoff.Part{
		handoff.Text(whole), handoff.Image{URL: "data:image/png;base64,AAAA"},
	}}
	e := ledger.Entry{
		Key: "k", Args: "a", Owner: "former", Caller: ladderCaller, Status: status, Accepted: time.Now(),
		Facts: ledger.Facts{ClientID: "r1", Target: req.Target, Prompt: whole[:200]},
	}
	kept := ledger.Body{Request: encodeRequest(req)}
	if status == handoff.StatusCompleted {
		e.Outcome, e.Ended, kept = handoff.OutcomeResult, time.Now(), ledger.Body{Prompt: whole, Text: "the whole answer"}
	}
	b.entries["k"], b.bodies["k"], b.fails = e, kept, 3
	r := running(t, Config{Fleet: newCopier(), Ledger: b})
	time.Sleep(time.Minute)
	rec, err := r.Handoff(ladderGrant, "r1")
	if err != nil || rec.Text != kept.Text || status == handoff.StatusCompleted && rec.Prompt != whole {
		t.Errorf("%s: %+v, %v", status, rec, err)
	}
	synctest.Wait()
	if got := b.body("k").Request; got != kept.Request {
		t.Errorf("%s: the store has %q, want %q", status, got, kept.Request)
	}
	_ = r.Heard(t.Context(), ladderGrant, "r1")
	synctest.Wait()
	if got := b.body("k").Text; got != kept.Text {
		t.Errorf("%s: the store has the answer %q", status, got)
	}
}

// TestRepeatedPromise: equal requests that are under way together are different work. One whose asker left without the
// promise is repeated by the next.
func TestRepeatedPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newCopier()
		r := running(t, Config{Fleet: fleet, Ledger: newBook()})
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
		r.Answered(ladderGrant, handoff.RunID(second))
		secondLeaves()
		firstLeaves() // its connection broke
		again, leave := give()
		if again != first {
			t.Errorf("repeated it is %s, want %s", again, first)
		}
		r.Answered(ladderGrant, handoff.RunID(again))
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
