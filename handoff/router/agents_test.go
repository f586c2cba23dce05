package router

import (
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// closing counts how often it is closed.
type closing struct {
	handoff.Agent
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// TestLateAttachment: each attachment is closed once, also one that comes after the end of its handoff.
func TestLateAttachment(t *testing.T) {
	var a agents
	early, late := &closing{}, &closing{}
	_, _ = a.hold(handoff.Attached{Agent: early}, nil)
	a.end(zap.NewNop())
	_, _ = a.hold(handoff.Attached{Agent: late}, nil)
	if early.closed != 1 || late.closed != 1 {
		t.Errorf("closed %d and %d times", early.closed, late.closed)
	}
}
