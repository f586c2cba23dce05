package handoff

import (
	"context"
	"testing"
)

// TestSpanOff: where nothing is traced, spans cost no memory and change no context.
func TestSpanOff(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		under, s := BeginSpan(ctx, "start")
		inner, root := Tracer(nil).Begin(under, "request", nil)
		if inner != ctx || s.Parent()+root.Parent() != "" {
			t.Error("something is traced")
		}
		root.End("")
		s.End(CodeBusy)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// noted is a span that keeps what became of it.
type noted struct{ name string }

func (n noted) Begin(name string) Span { return noted{n.name + "/" + name} }
func (noted) End(Code, ...string)      {}
func (n noted) Parent() string         { return n.name }

// TestSpanBelow: a span begins below that of its context.
func TestSpanBelow(t *testing.T) {
	ctx := WithSpan(context.Background(), noted{"request"})
	ctx, _ = BeginSpan(ctx, "handoff")
	if _, s := BeginSpan(ctx, "start"); s.Parent() != "request/handoff/start" {
		t.Errorf("it is %s", s.Parent())
	}
}
