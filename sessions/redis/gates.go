package redis

import (
	"context"
	"errors"
	"net/url"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

var (
	takeGateScript = script("gate_take")
	freeGateScript = script("gate_free")
)

// gates keep two instances from starting turns in one thread at the same moment. With one Redis no replica is waited
// for: it is written that a turn is about to start after the gate was taken, and a replica that has the later write
// has the earlier one too.
type gates struct{ *engine }

// gateKey holds the start gate of a thread.
func (s gates) gateKey(thread handoff.Target) string {
	return s.key("t:"+url.QueryEscape(thread.Server)+"/"+url.QueryEscape(thread.Thread), "gate")
}

// TakeGate takes the start gate of a thread unless another holder has it, and returns the gate as it is then. The name
// of a holder has no spaces.
func (s gates) TakeGate(ctx context.Context, thread handoff.Target, holder string) (g ledger.Gate, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	keys := []string{s.gateKey(thread)}
	reply, err := s.firstScript(ctx, takeGateScript, keys, holder, ledger.GateFor.Milliseconds()).Slice()
	if err != nil {
		return ledger.Gate{}, s.fault(err)
	}
	var last string
	if !replied(reply, &g.Holder, &last) {
		return ledger.Gate{}, unexpected("start gate")
	}
	g.Last = handoff.TurnID(last)
	return g, nil
}

// FreeGate releases the start gate of a thread, and stores which turn began last; "" leaves that as it is.
func (s gates) FreeGate(ctx context.Context, thread handoff.Target, holder string, last handoff.TurnID) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	keys := []string{s.gateKey(thread)}
	err := freeGateScript.Run(ctx, s.client, keys, holder, string(last), ledger.GateFor.Milliseconds()).Err()
	if errors.Is(err, goredis.Nil) { // it returns nothing
		return nil
	}
	return s.fault(err)
}
