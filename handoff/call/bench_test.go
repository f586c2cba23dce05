package call

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
)

// A bench is a router between a voice and an agent that cost nothing: what is measured is its own. It is
// the fleet, the agent, the voice and both stores.
type bench struct {
	handoff.Directory
	events  chan handoff.VoiceEvent
	said    chan handoff.Utterance
	starts  chan handoff.TurnID
	updates chan handoff.Update
	turns   int // Owned by the agent's only work
}

func newBench(b *testing.B) *bench {
	b.Helper()
	x := &bench{events: make(chan handoff.VoiceEvent), said: make(chan handoff.Utterance, 256),
		starts: make(chan handoff.TurnID, 8), updates: make(chan handoff.Update)}
	r, calls := service("", router.Config{Fleet: x, Store: x}, x, "")
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 2)
	go func() { done <- r.Run(ctx) }()
	go func() { done <- calls.Serve(ctx, &handoff.Grant{Caller: handoff.Caller{Principal: "bench"}}, x) }()
	b.Cleanup(func() { close(x.events); stop(); <-done; <-done })
	return x
}

func (x *bench) Events() <-chan handoff.VoiceEvent { return x.events }
func (x *bench) Say(u handoff.Utterance)           { x.said <- u }

func (x *bench) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	return t, nil
}
func (x *bench) Attach(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	return handoff.Attached{Agent: x, Target: t}, nil
}

func (x *bench) Create(_ context.Context, t handoff.Target) (handoff.Attached, error) {
	t.Thread = "thread"
	return handoff.Attached{Agent: x, Target: t}, nil
}

func (x *bench) Start(context.Context, handoff.Turn) (handoff.TurnID, error) {
	x.turns++
	id := handoff.TurnID(fmt.Sprint("turn-", x.turns))
	x.starts <- id
	return id, nil
}

func (x *bench) Follow(ctx context.Context, _ handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		for {
			select {
			case u := <-x.updates:
				if _, last := u.(handoff.TurnEnded); !yield(u, nil) || last {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (x *bench) Close() error { return nil }

func (x *bench) State(context.Context, handoff.Caller) (ledger.State, error) {
	return ledger.State{}, nil
}
func (x *bench) Commit(context.Context, handoff.Caller, ledger.Batch) (ledger.Committed, error) {
	return ledger.Written, nil
}

// begin asks for work and waits until it runs.
func (x *bench) begin(n int) {
	x.events <- handoff.FunctionCall{CallID: fmt.Sprint("call-", n), Asked: time.Now(), Tool: tools.Codex,
		Arguments: fmt.Sprintf(`{"server":"bigpc","prompt":"number %d"}`, n)}
	<-x.starts
}

// BenchmarkRouterStart is from the request to the start: the router alone, both stores free.
func BenchmarkRouterStart(b *testing.B) {
	x := newBench(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		x.begin(n)
		b.StopTimer()
		x.end()
		b.StartTimer()
	}
}

// BenchmarkRouterKept is what a finished handoff leaves in the memory of a call that goes on, once the caller has as
// many records as are kept.
func BenchmarkRouterKept(b *testing.B) {
	x := newBench(b)
	n := 0
	for range 1000 {
		n++
		x.begin(n)
		x.end()
	}
	before := heap()
	for b.Loop() {
		n++
		x.begin(n)
		x.end()
	}
	b.ReportMetric((heap()-before)/float64(b.N), "kept-B/op")
}

// heap is what is in use, in bytes.
func heap() float64 {
	time.Sleep(100 * time.Millisecond) // what is done behind is done
	runtime.GC()
	runtime.GC() // also what had finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// end ends the work and lets its answer be heard.
func (x *bench) end() {
	x.updates <- handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "Done."}
	u := <-x.said
	x.events <- handoff.Said{ID: u.ID, At: time.Now()}
}

// BenchmarkRouterRemark is from an agent's update to the note for the voice model: two updates each, the
// message and the item that shows that it was not the last.
func BenchmarkRouterRemark(b *testing.B) {
	x := newBench(b)
	x.begin(0)
	x.updates <- handoff.Started{}
	<-x.said // the answer, as the work takes long
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%speech.MaxPacedNotes == 0 { // of one work only so many are noted
			b.StopTimer()
			x.updates <- handoff.TurnEnded{Status: handoff.TurnCompleted, Text: "Done."}
			u := <-x.said
			x.events <- handoff.Said{ID: u.ID, At: time.Now()}
			x.begin(n)
			x.updates <- handoff.Started{}
			<-x.said
			b.StartTimer()
			continue
		}
		id := fmt.Sprint("item-", n)
		x.updates <- handoff.ItemDone{Item: handoff.Item{ID: id, Kind: handoff.ItemMessage, Text: "I looked at the tests."}}
		x.updates <- handoff.ItemStarted{Item: handoff.Item{ID: id + "c", Kind: handoff.ItemCommand, Text: "ls"}}
		<-x.said
	}
}
