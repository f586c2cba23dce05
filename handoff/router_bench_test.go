package handoff

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"
)

// A bench is a router between a voice and an agent that cost nothing: what is measured is its own. It is
// the fleet, the agent, the voice and both stores.
type bench struct {
	Directory
	events  chan Event
	said    chan Utterance
	starts  chan TurnID
	updates chan Update
	turns   int // Owned by the agent's only work
}

func newBench(b *testing.B) *bench {
	b.Helper()
	x := &bench{events: make(chan Event), said: make(chan Utterance, 256), starts: make(chan TurnID, 8), updates: make(chan Update)}
	r := NewRouter(Config{Fleet: x, Directory: x, Stickies: x, Ledger: x})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 2)
	go func() { done <- r.Run(ctx) }()
	go func() { done <- r.Serve(ctx, Grant{Caller: Caller{Principal: "bench"}}, x) }()
	b.Cleanup(func() { close(x.events); stop(); <-done; <-done })
	return x
}

func (x *bench) Events() <-chan Event { return x.events }
func (x *bench) Say(u Utterance)      { x.said <- u }

func (x *bench) Resolve(_ context.Context, _ Grant, t Target) (Target, error) { return t, nil }
func (x *bench) Attach(_ context.Context, t Target) (Attached, error) {
	return Attached{Agent: x, Target: t}, nil
}

func (x *bench) Create(_ context.Context, t Target) (Attached, error) {
	t.Thread = "thread"
	return Attached{Agent: x, Target: t}, nil
}

func (x *bench) Start(context.Context, Turn) (TurnID, error) {
	x.turns++
	id := TurnID(fmt.Sprint("turn-", x.turns))
	x.starts <- id
	return id, nil
}

func (x *bench) Follow(ctx context.Context, _ TurnID) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for {
			select {
			case u := <-x.updates:
				if _, last := u.(TurnEnded); !yield(u, nil) || last {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (x *bench) Close() error { return nil }

func (x *bench) List(context.Context, Caller) ([]Sticky, error)      { return nil, nil }
func (x *bench) Set(context.Context, Caller, Sticky) error           { return nil }
func (x *bench) Clear(context.Context, Caller, Target) error         { return nil }
func (x *bench) OpenAll(context.Context) ([]LedgerEntry, error)      { return nil, nil }
func (x *bench) Open(context.Context, Caller) ([]LedgerEntry, error) { return nil, nil }
func (x *bench) Advance(context.Context, LedgerStep) (LedgerEntry, error) {
	return LedgerEntry{}, nil
}

// begin asks for work and waits until it runs.
func (x *bench) begin(n int) {
	x.events <- Request{CallID: fmt.Sprint("call-", n), Tool: ToolCodex, Arguments: fmt.Sprintf(`{"server":"bigpc","prompt":"number %d"}`, n)}
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
		x.updates <- TurnEnded{Status: TurnCompleted, Text: "Done."}
		u := <-x.said
		x.events <- Said{ID: u.ID, At: time.Now()}
		b.StartTimer()
	}
}

// BenchmarkRouterRemark is from an agent's update to the note for the voice model: two updates each, the
// message and the item that shows that it was not the last.
func BenchmarkRouterRemark(b *testing.B) {
	x := newBench(b)
	x.begin(0)
	x.updates <- Started{}
	<-x.said // the answer, as the work takes long
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%maxPacedNotes == 0 { // of one work only so many are noted
			b.StopTimer()
			x.updates <- TurnEnded{Status: TurnCompleted, Text: "Done."}
			u := <-x.said
			x.events <- Said{ID: u.ID, At: time.Now()}
			x.begin(n)
			x.updates <- Started{}
			<-x.said
			b.StartTimer()
			continue
		}
		id := fmt.Sprint("item-", n)
		x.updates <- ItemDone{Item: Item{ID: id, Kind: ItemMessage, Text: "I looked at the tests."}}
		x.updates <- ItemStarted{Item: Item{ID: id + "c", Kind: ItemCommand, Text: "ls"}}
		<-x.said
	}
}
